//! What was found so far: violations, what would be one if nothing is missing, and doubts. A few examples of each kind and
//! variable are kept, the others counted, so that memory does not grow with a run that breaks the contract all the time.

use std::collections::BTreeMap;

use dosmos_proto::{ObjectId, VarId};
use dosmos_trace::Record;

use crate::kind::Kind;
use crate::names::Names;
use crate::verdict::{Doubt, MOST_RECORDS, Violation};

/// Examples kept of one kind and variable.
const EXAMPLES: usize = 2;

/// What the records do not decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Question {
    /// Which elements were accessed in the application process, or by a write with gaps.
    Elements,
    /// Sections ordered by words in memory.
    Words,
    /// Releases or arrivals came too late in the records.
    Order,
    /// Too many accesses of one object between two synchronisations of all.
    Crowded,
    /// A release or barrier that failed should have published.
    Unpublished,
    /// Versions between which one was forgotten.
    Forgotten,
    /// Two clocks whose difference is not known.
    Clocks,
    /// Accesses in a process, by a clock of its own.
    OwnClock,
    /// Releases without a version.
    Unversioned,
    /// Barriers of which nothing is known.
    UnknownBarrier,
    /// Openings that may have counted somebody who had given up.
    GaveUp,
    /// Sections that were released, and that had ended before, or another one had.
    Ended,
}

#[derive(Debug)]
pub(crate) struct Found {
    names: Names,
    certain: BTreeMap<(Kind, VarId), (u64, Vec<Violation>)>,
    /// Violations unless records are missing.
    presumed: BTreeMap<(Kind, VarId), (u64, Vec<Violation>)>,
    doubts: BTreeMap<(Question, VarId), u64>,
    /// Some order was not what the records say.
    disordered: bool,
}

impl Found {
    /// Nothing, in a run whose things have these names.
    pub(crate) fn new(names: Names) -> Self {
        Self {
            names,
            certain: BTreeMap::new(),
            presumed: BTreeMap::new(),
            doubts: BTreeMap::new(),
            disordered: false,
        }
    }

    pub(crate) fn names(&self) -> &Names {
        &self.names
    }

    /// The records refute the contract, whatever else is missing.
    pub(crate) fn certain(
        &mut self,
        kind: Kind,
        object: ObjectId,
        records: &[Record],
        why: impl FnOnce(&Names) -> String,
    ) {
        add(&mut self.certain, &self.names, (kind, object), records, why);
    }

    /// Two accesses conflict and nothing orders them, if no record is missing.
    pub(crate) fn race(
        &mut self,
        object: ObjectId,
        accesses: &[Record; 2],
        in_sections: [bool; 2],
        why: impl FnOnce(&Names) -> String,
    ) {
        let what = (Kind::DataRace, object);
        if let Some(example) = add(&mut self.presumed, &self.names, what, accesses, why) {
            example.in_sections = Some(in_sections);
        }
    }

    /// They refute it if none is missing.
    pub(crate) fn presumed(
        &mut self,
        kind: Kind,
        object: ObjectId,
        records: &[Record],
        why: impl FnOnce(&Names) -> String,
    ) {
        add(
            &mut self.presumed,
            &self.names,
            (kind, object),
            records,
            why,
        );
    }

    pub(crate) fn doubt(&mut self, question: Question, of: VarId) {
        *self.doubts.entry((question, of)).or_default() += 1;
    }

    /// Some order was not what the records say, in what was done with `of`.
    pub(crate) fn disordered(&mut self, of: VarId) {
        self.disordered = true;
        self.doubt(Question::Order, of);
    }

    /// A coordinator may have been started again and count the openings of barriers anew, and the records do not tell which start
    /// of it an opening is of. If two have one number, who passed the first one was taken to come after what was written before the
    /// second.
    pub(crate) fn may_count_anew(&mut self) {
        let counted = |(kind, _): &(Kind, VarId)| {
            matches!(
                kind,
                Kind::BarrierRepeated
                    | Kind::BarrierLeftEarly
                    | Kind::LostWrite
                    | Kind::StaleCopy
                    | Kind::StaleGrant
            )
        };
        let found = self.certain.extract_if(.., |key, _| counted(key));
        self.presumed.extend(found);
    }

    /// Everything, if `complete` with what is a violation only then.
    pub(crate) fn finish(mut self, complete: bool) -> (Vec<Violation>, Vec<Doubt>) {
        if self.disordered {
            self.withdraw_races();
        }
        let mut violations = listed(self.certain);
        let mut doubts: Vec<Doubt> = Vec::new();
        if complete {
            violations.extend(listed(self.presumed));
        } else {
            doubts.extend(self.presumed.into_iter().filter_map(withheld));
        }
        doubts.extend(
            self.doubts
                .into_iter()
                .map(|((q, of), count)| doubt(q, &self.names.of_variable(of), count)),
        );
        (violations, doubts)
    }

    /// What nothing orders may be ordered.
    fn withdraw_races(&mut self) {
        let race = |(kind, _): &(Kind, VarId)| *kind == Kind::DataRace;
        for ((_, of), (count, _)) in self.presumed.extract_if(.., |key, _| race(key)) {
            *self.doubts.entry((Question::Order, of)).or_default() += count;
        }
    }
}

/// Counts a violation; the example of it that is kept, if it is.
fn add<'a>(
    to: &'a mut BTreeMap<(Kind, VarId), (u64, Vec<Violation>)>,
    names: &Names,
    (kind, object): (Kind, ObjectId),
    records: &[Record],
    why: impl FnOnce(&Names) -> String,
) -> Option<&'a mut Violation> {
    let (count, examples) = to.entry((kind, object.var)).or_default();
    *count += 1;
    if examples.len() >= EXAMPLES {
        return None;
    }
    let barrier = names.variable(object.var).is_none();
    examples.push(Violation {
        kind,
        target: match barrier {
            true => names.of_variable(object.var),
            false => names.object(object),
        },
        why: why(names),
        records: records[..records.len().min(MOST_RECORDS)].to_vec(),
        in_sections: None,
        more: 0,
    });
    examples.last_mut()
}

fn listed(found: BTreeMap<(Kind, VarId), (u64, Vec<Violation>)>) -> Vec<Violation> {
    let mut list = Vec::new();
    for (count, mut examples) in found.into_values() {
        let more = count - examples.len() as u64;
        if let Some(last) = examples.last_mut() {
            last.more = more;
        }
        list.extend(examples);
    }
    list
}

fn withheld(
    ((kind, _), (count, examples)): ((Kind, VarId), (u64, Vec<Violation>)),
) -> Option<Doubt> {
    let example = examples.into_iter().next()?;
    Some(Doubt {
        question: format!("{kind} of {}", example.target),
        why: format!("{}; a record that is missing could explain it", example.why),
        decided_by: "the missing records".to_owned(),
        count,
        of_races: false,
    })
}

fn doubt(question: Question, name: &str, count: u64) -> Doubt {
    let of_races = matches!(
        question,
        Question::Elements | Question::Words | Question::Order | Question::Crowded
    );
    let (question, why, decided_by) = match question {
        Question::Elements => (
            format!("data races on {name}"),
            "accesses conflict if they touch the same elements, and their records do not say which: they were made in the \
             application process, or with gaps",
            "the same program with `cache = mp` for the variable, or objects that one process uses at a time",
        ),
        Question::Words => (
            format!("data races on {name}"),
            "its lock is made of words in memory, whose order the records do not tell",
            "the same program with the lock kind `queue`",
        ),
        Question::Order => (
            format!("the order of what was done with {name}"),
            "records arrived in another order than they were made, farther apart than is waited for",
            "clocks of the hosts that agree to within 50 ms",
        ),
        Question::Crowded => (
            format!("data races on {name}"),
            "too many different accesses of one object between two synchronisations of all processes",
            "a barrier of all processes more often, or larger parts at a time",
        ),
        Question::Unpublished => (
            format!("what was written to {name} outside sections"),
            "a release or barrier that should have published it failed",
            "a run without failures",
        ),
        Question::Forgotten => (
            format!("whether reads of {name} were new enough"),
            "the reader synchronised so long ago that some of the versions since then are not remembered",
            "processes that synchronise more often",
        ),
        Question::Clocks => (
            format!("whether a process left {name} early"),
            "by their clocks one process left before another came, and nothing says how well these clocks agree",
            "one event manager for both, or hosts whose clocks agree",
        ),
        Question::OwnClock => (
            format!("whether reads of {name} were new enough"),
            "an older version was read than the times of the records ask for, and accesses in application processes are told by \
             their own clocks, which nothing relates to those of memory processes",
            "the same program with `cache = mp` for the variable",
        ),
        Question::Unversioned => (
            format!("everything about {name}"),
            "its releases have no version: the records were not made by dosmos, or by an old one",
            "records with versions",
        ),
        Question::UnknownBarrier => (
            format!("who had to pass {name}"),
            "nothing says which group the barrier is of",
            "the dictionary of the run",
        ),
        Question::GaveUp => (
            format!("whether all came to {name}"),
            "a process came and gave up waiting there before an opening without it, and its record does not say whether its \
             arrival still counted",
            "a run in which no process gives up at a barrier",
        ),
        Question::Ended => (
            format!("whether a section of {name} that had ended was released"),
            "who serves it ended a section of a process that seemed to be lost, and what has replicas may be granted twice, so that \
             its record does not say which section",
            "a run in which no memory or link process is lost",
        ),
    };
    Doubt {
        question,
        why: why.to_owned(),
        decided_by: decided_by.to_owned(),
        count,
        of_races,
    }
}
