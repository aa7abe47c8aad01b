//! The critical path and the delays with names, and in words.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, Nanos, ObjectId};
use dosmos_trace::query::{Breakdown, Catalog};
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::builder::{Gathered, PathBuilder};
use super::chains::Sums;
use super::delays::{At, Key, Waited};
use super::tally::Doing;

/// Parts and delays that are told; the rest of the path is one part.
const PARTS: usize = 20;
const DELAYS: usize = 10;
/// Of the path, what is less is not in the sentence.
const TOLD: f64 = 0.01;

/// What the longest chain of dependences of a run consists of.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CriticalPath {
    /// Its length: from the first operation to the end of the last process, nanoseconds.
    pub length_ns: u64,
    /// It in a sentence.
    pub summary: String,
    /// How much of it was what, whoever did it: the largest first.
    pub kinds: Vec<PathKind>,
    /// What it consists of, the largest first. The parts add up to its length.
    pub parts: Vec<PathPart>,
    /// Waits for locks of which no record says who held them, all processes together, nanoseconds.
    pub unexplained_ns: u64,
    /// Everything was recorded; otherwise it may lead through what was not.
    pub complete: bool,
}

/// How much of the critical path was what.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathKind {
    /// As of a part of the path.
    pub doing: &'static str,
    /// How long, nanoseconds.
    pub time_ns: u64,
    /// Fraction of the path, 0 to 1.
    pub share: f64,
}

/// What a process did on the critical path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathPart {
    /// Which process; none: several.
    pub process: Option<String>,
    /// `computing`, `access` (reads and writes at its own memory process), `remote` (at others), `lock` (acquires and
    /// releases), `barrier`, or `other`.
    pub doing: &'static str,
    /// Of which variable, or at which barrier.
    pub of: Option<String>,
    /// How long, nanoseconds.
    pub time_ns: u64,
    /// Fraction of the path, 0 to 1.
    pub share: f64,
}

/// What waits for a process cost, for one cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Delay {
    /// Who was waited for; none: for copies, nobody knows whose.
    pub process: Option<String>,
    /// `barrier`, `lock`, or `copies`.
    pub at: &'static str,
    /// Which barrier, object, or variable.
    pub of: String,
    /// What that process did meanwhile: as of a part of the path, or `held` (it waited for a lock that another held),
    /// `late` (it waited at a barrier for another), `copies` (for the acknowledgements of copies).
    pub because: &'static str,
    /// Of which variable or object, or at which barrier it did that.
    pub because_of: Option<String>,
    /// For whom that process waited itself; none: nobody, or several in turn.
    pub because_by: Option<String>,
    /// Who waited.
    pub waiting: Vec<String>,
    /// How often.
    pub times: u64,
    /// How long, all together, nanoseconds.
    pub waited_ns: u64,
    /// The same as a fraction of process time, 0 to 1.
    pub share: f64,
    /// Fraction of the critical path that leads through the process where the cause is: the one waited for in the end.
    pub path_share: Option<f64>,
    /// It in a sentence.
    pub text: String,
}

impl PathBuilder {
    /// The critical path, and the largest delays; none without records. `times` says when processes ended.
    pub fn finish(
        &mut self,
        catalog: &Catalog,
        times: &Breakdown,
    ) -> (Option<CriticalPath>, Vec<Delay>) {
        let mut ends: FxHashMap<ApId, Nanos> = FxHashMap::default();
        for times in &times.phases {
            let end = ends.entry(times.ap).or_default();
            *end = times.end().max(*end);
        }
        match self.gather(&ends) {
            Some(gathered) if gathered.length > 0 => {
                let names = Names { catalog, gathered };
                (Some(names.path()), names.delays())
            }
            _ => (None, Vec::new()),
        }
    }
}

/// What was gathered, and the names of it.
struct Names<'a> {
    catalog: &'a Catalog,
    gathered: Gathered<'a>,
}

impl Names<'_> {
    fn path(&self) -> CriticalPath {
        let length = self.gathered.length;
        let share = |time: u64| time as f64 / length as f64;
        let mut all: Vec<_> = self.gathered.path.iter().collect();
        all.sort_by_key(|(what, time)| (std::cmp::Reverse(**time), **what));
        let parts = all.iter().take(PARTS);
        let mut parts: Vec<PathPart> = parts
            .map(|((process, doing), time)| PathPart {
                process: process.map(|ap| self.ap(ap)),
                doing: kind(*doing),
                of: self.of(*doing),
                time_ns: **time,
                share: share(**time),
            })
            .collect();
        let rest: u64 = all.iter().skip(PARTS).map(|(_, time)| **time).sum();
        if rest > 0 {
            parts.push(PathPart {
                process: None,
                doing: kind(Doing::Other),
                of: None,
                time_ns: rest,
                share: share(rest),
            });
        }
        let mut kinds: BTreeMap<&'static str, u64> = BTreeMap::new();
        for ((_, doing), time) in &all {
            *kinds.entry(kind(*doing)).or_default() += **time;
        }
        let mut kinds: Vec<PathKind> = kinds
            .into_iter()
            .map(|(doing, time_ns)| PathKind {
                doing,
                time_ns,
                share: share(time_ns),
            })
            .collect();
        kinds.sort_by_key(|kind| std::cmp::Reverse(kind.time_ns));
        let complete = self.catalog.completeness.is_complete();
        CriticalPath {
            length_ns: length,
            summary: self.summary(complete),
            kinds,
            parts,
            unexplained_ns: self.gathered.unexplained,
            complete,
        }
    }

    /// What was done on the path, by whom mostly.
    fn summary(&self, complete: bool) -> String {
        let length = self.gathered.length as f64;
        let whole = |by: &[(ApId, u64)]| by.iter().map(|(_, time)| time).sum::<u64>();
        let by_doing = grouped(&self.gathered.path).into_iter();
        let mut by_doing: Vec<_> = by_doing
            .map(|(doing, by)| (doing, whole(&by), by))
            .collect();
        by_doing.sort_by_key(|(doing, time, _)| (std::cmp::Reverse(*time), *doing));
        let told = by_doing.iter().take(4);
        let told = told.filter(|(_, time, _)| *time as f64 >= TOLD * length);
        let told = told.map(|(doing, time, by)| {
            let whole = *time as f64;
            let who = by.iter().take(2);
            let who = who.filter(|(_, time)| *time as f64 >= (0.25 * whole).max(TOLD * length));
            let who: Vec<String> = who
                .map(|(ap, time)| format!("{} {}", percent(*time as f64 / length), self.ap(*ap)))
                .collect();
            let who = match who.is_empty() {
                true => String::new(),
                false => format!(" ({})", who.join(", ")),
            };
            format!("{} {}{who}", percent(whole / length), self.does(*doing))
        });
        let told: Vec<String> = told.collect();
        let mut text = told.join(", ");
        let process_time = length * self.gathered.processes.len() as f64;
        if self.gathered.unexplained as f64 >= TOLD * process_time {
            let time = Nanos(self.gathered.unexplained);
            text += &format!("; waits for locks of {time} have no recorded cause");
        }
        if !complete {
            text += "; not everything was recorded, it may lead through what was not";
        }
        text
    }

    fn delays(&self) -> Vec<Delay> {
        let largest = self.gathered.delays.largest();
        let told = largest.iter().take(DELAYS);
        told.map(|(key, waited)| self.delay(key, waited, &largest))
            .collect()
    }

    fn delay(&self, key: &Key, waited: &Waited, all: &[(&Key, &Waited)]) -> Delay {
        let processes = &self.gathered.processes;
        let time = self.gathered.length as f64 * processes.len() as f64;
        let share = waited.time as f64 / time;
        let waiting = waited.waiting().filter_map(|n| processes.get(n));
        let waiting: Vec<String> = waiting.map(|ap| self.ap(*ap)).collect();
        let by = match key.because {
            Doing::HeldBy(_, by) | Doing::Late(_, by) => by,
            _ => None,
        };
        let (at, of) = match key.at {
            At::Barrier(var) => ("barrier", self.catalog.name_of(var)),
            At::Lock(object) => ("lock", self.object(object)),
            At::Copies(var) => ("copies", self.catalog.name_of(var)),
        };
        Delay {
            process: key.process.map(|ap| self.ap(ap)),
            at,
            because: kind(key.because),
            because_of: self.of(key.because),
            because_by: by.map(|ap| self.ap(ap)),
            times: waited.times,
            waited_ns: waited.time,
            share,
            path_share: by.or(key.process).map(|ap| self.share_of(ap)),
            text: self.sentence(key, (&of, &waiting), (waited.time, share), all),
            of,
            waiting,
        }
    }

    fn sentence(
        &self,
        key: &Key,
        (of, waiting): (&str, &[String]),
        (time, share): (u64, f64),
        all: &[(&Key, &Waited)],
    ) -> String {
        let cost = format!(
            "{} together, {} of process time",
            Nanos(time),
            percent(share)
        );
        let Some(process) = key.process else {
            let who = match waiting {
                [one] => one.clone(),
                several => format!("{} processes", several.len()),
            };
            return format!(
                "{who} waited in releases of {of} for the acknowledgements of copies ({cost})"
            );
        };
        let who = match waiting {
            [one] => one.clone(),
            several => format!("{} others", several.len()),
        };
        let (at, because) = match key.at {
            At::Lock(_) => (
                format!("for {of}"),
                format!("{} while it held it", self.did(key.because, all)),
            ),
            _ => (
                format!("at {of}"),
                format!("{} longer than they did", self.did(key.because, all)),
            ),
        };
        let because = match key.because {
            Doing::HeldBy(..) | Doing::Late(..) => self.did(key.because, all),
            _ => because,
        };
        let process = self.ap(process);
        format!("{process} was waited for by {who} {at} ({cost}), because it {because}")
    }

    /// What a process did that was waited for.
    fn did(&self, doing: Doing, all: &[(&Key, &Waited)]) -> String {
        match doing {
            Doing::Computing => "computed".to_owned(),
            Doing::Other => "did many small things".to_owned(),
            Doing::Copies(_) => "waited for the acknowledgements of copies".to_owned(),
            Doing::HeldBy(object, by) => {
                let held = format!("waited for {}", self.object(object));
                let Some(by) = by else {
                    return format!("{held}, held by others in turn");
                };
                // What that one did is in a row of its own.
                let of_it = |key: &Key| key.process == Some(by) && key.at == At::Lock(object);
                let row = all.iter().find(|(key, _)| of_it(key));
                let meanwhile = row.map(|(key, _)| match key.because {
                    Doing::HeldBy(..) | Doing::Late(..) => ", which waited itself".to_owned(),
                    doing => format!(", which {} meanwhile", self.did(doing, &[])),
                });
                let meanwhile = meanwhile.unwrap_or_default();
                format!("{held} held by {}{meanwhile}", self.ap(by))
            }
            Doing::Late(var, by) => {
                let who = by.map_or("others in turn".to_owned(), |ap| self.ap(ap));
                format!("waited at {} for {who}", self.catalog.name_of(var))
            }
            other => format!("was {}", self.does(other)),
        }
    }

    /// What is done, as part of a path.
    fn does(&self, doing: Doing) -> String {
        let of = self.of(doing).unwrap_or_default();
        match doing {
            Doing::Computing => "computing".to_owned(),
            Doing::Access(_) => format!("in reads and writes of {of}"),
            Doing::Remote(_) => {
                format!("in reads and writes of {of} at other memory processes")
            }
            Doing::Lock(_) | Doing::Copies(_) | Doing::HeldBy(..) => {
                format!("in acquires and releases of {of}")
            }
            Doing::Barrier(_) | Doing::Late(..) => format!("at {of}"),
            Doing::Other => "in many other things".to_owned(),
        }
    }

    /// The name of what it is done to.
    fn of(&self, doing: Doing) -> Option<String> {
        match doing {
            Doing::Computing | Doing::Other => None,
            Doing::HeldBy(object, _) => Some(self.object(object)),
            Doing::Access(var)
            | Doing::Remote(var)
            | Doing::Lock(var)
            | Doing::Copies(var)
            | Doing::Barrier(var)
            | Doing::Late(var, _) => Some(self.catalog.name_of(var)),
        }
    }

    fn object(&self, object: ObjectId) -> String {
        format!("{}[{}]", self.catalog.name_of(object.var), object.index)
    }

    fn ap(&self, ap: ApId) -> String {
        self.catalog.topology.ap_name(ap)
    }

    /// The fraction of the path that leads through a process.
    fn share_of(&self, ap: ApId) -> f64 {
        let its = self.gathered.path.iter();
        let its = its.filter(|((process, _), _)| *process == Some(ap));
        let sum: u64 = its.map(|(_, time)| time).sum();
        sum as f64 / self.gathered.length as f64
    }
}

/// What is done on the path, and by whom, who did it longest first.
fn grouped(path: &Sums) -> BTreeMap<Doing, Vec<(ApId, u64)>> {
    let mut by_doing: BTreeMap<Doing, Vec<(ApId, u64)>> = BTreeMap::new();
    for ((process, doing), time) in path {
        let by = by_doing.entry(*doing).or_default();
        by.extend(process.map(|ap| (ap, *time)));
    }
    for by in by_doing.values_mut() {
        by.sort_by_key(|(ap, time)| (std::cmp::Reverse(*time), *ap));
    }
    by_doing
}

fn kind(doing: Doing) -> &'static str {
    match doing {
        Doing::Computing => "computing",
        Doing::Access(_) => "access",
        Doing::Remote(_) => "remote",
        Doing::Lock(_) => "lock",
        Doing::Copies(_) => "copies",
        Doing::Barrier(_) => "barrier",
        Doing::HeldBy(..) => "held",
        Doing::Late(..) => "late",
        Doing::Other => "other",
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}
