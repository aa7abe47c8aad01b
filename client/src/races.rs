//! Data races as findings: what `dosmos verify` finds of them, with what would order the two accesses; and what was not looked
//! at.

use std::collections::BTreeSet;

use dosmos_analysis::{Analysis, Finding, Kind, RaceSearch};
use dosmos_proto::{ApId, Nanos};
use dosmos_trace::query::{Catalog, Completeness, TimeRange};
use dosmos_trace::record::{Op, Record};
use dosmos_verify::{Kind as Broken, Options, Verifier, Violation};

/// Records that are looked at for data races. That takes more time than all else that is done with a record.
const MOST: u64 = 20_000_000;

/// Looks for data races in the records of a whole run.
pub(crate) struct RaceFinder {
    catalog: Catalog,
    verifier: Verifier,
    looked: u64,
}

impl RaceFinder {
    pub(crate) fn new(catalog: Catalog) -> Self {
        let options = Options {
            // A read without its lock sees what was released last, as a whole: read-only locking advises it.
            unlocked_reads: false,
            ..Options::default()
        };
        Self {
            verifier: Verifier::new(catalog.clone(), options),
            catalog,
            looked: 0,
        }
    }

    /// The next record, in order of their start.
    pub(crate) fn add(&mut self, record: &Record) {
        self.looked += 1;
        if self.looked <= MOST {
            self.verifier.add(record);
        }
    }

    /// Puts what was found before all that costs time only.
    pub(crate) fn finish(self, completeness: &Completeness, analysis: &mut Analysis) {
        let verdict = self.verifier.finish(completeness, self.catalog.live, &[]);
        let doubts = verdict.doubts.iter().filter(|doubt| doubt.of_races);
        let mut undecided: Vec<String> = doubts
            .map(|doubt| format!("{}: {}", doubt.question, doubt.why))
            .collect();
        if self.looked > MOST {
            undecided.push(format!("only the first {MOST} records were looked at"));
        }
        analysis.races = RaceSearch {
            looked: self.looked > 0,
            undecided,
        };
        let races = verdict.violations.iter();
        let races = races.filter(|v| v.kind == Broken::DataRace);
        // One of each variable.
        let mut told = BTreeSet::new();
        let mut found = Vec::new();
        for race in races.clone() {
            let of = race.records.first().map(|record| record.object.var);
            if told.insert(of) {
                let same = races.clone().filter(|r| variable(r) == of);
                let times = same.map(|r| 1 + r.more).sum();
                found.extend(finding(race, times, &self.catalog));
            }
        }
        analysis.findings.splice(0..0, found);
    }
}

fn variable(race: &Violation) -> Option<dosmos_proto::VarId> {
    race.records.first().map(|record| record.object.var)
}

/// The finding of a race, of which the run has this many like it.
fn finding(race: &Violation, times: u64, catalog: &Catalog) -> Option<Finding> {
    let [first, second] = *race.records.first_chunk::<2>()?;
    let in_sections = race.in_sections.unwrap_or_default();
    let range = TimeRange {
        from: first.start.min(second.start),
        to: first.end().max(second.end()),
    };
    let start = catalog.extent.map_or(range.from, |extent| extent.from);
    let told = |record: &Record, in_section| access(record, in_section, start, catalog);
    let mut finding = Finding::new(Kind::DataRace, range)
        .with("first_access", told(&first, in_sections[0]))
        .with("second_access", told(&second, in_sections[1]))
        .with("races", times);
    finding.variable = Some(catalog.name_of(first.object.var));
    finding.object = Some(first.object.index);
    let aps = BTreeSet::from([first.ap, second.ap]);
    let topology = &catalog.topology;
    finding.aps = aps.iter().map(|ap| topology.ap_name(*ap)).collect();
    let group = |ap: &ApId| Some(topology.mp(topology.ap(*ap)?.memory_process)?.group);
    let groups: BTreeSet<_> = aps.iter().filter_map(group).collect();
    finding.groups = groups.iter().map(|g| topology.group_name(*g)).collect();
    finding.advice = advice(&finding.target(), [&first, &second], in_sections, catalog);
    Some(finding)
}

/// By whom, what, when, and whether under the lock.
fn access(record: &Record, in_section: bool, start: Nanos, catalog: &Catalog) -> String {
    let elements = match record.range {
        (first, end) if first + 1 == end => format!("element {first}"),
        (first, end) if first < end => format!("elements {first} to {}", end - 1),
        _ => "the object".to_owned(),
    };
    let under = match in_section {
        true => "in a section",
        false => "without acquiring it",
    };
    format!(
        "{} of {elements} by {} after {:.6} s, {under}",
        record.op,
        catalog.topology.ap_name(record.ap),
        (record.start - start).as_secs_f64(),
    )
}

/// What would order the two accesses.
fn advice(
    target: &str,
    accesses: [&Record; 2],
    in_sections: [bool; 2],
    catalog: &Catalog,
) -> String {
    let name = |record: &Record| catalog.topology.ap_name(record.ap);
    let did = |record: &Record| {
        let did = match record.op {
            Op::Read => "reads",
            _ => "writes",
        };
        format!("{} {did}", name(record))
    };
    let [first, second] = accesses;
    let what = format!(
        "{} {target} and {} the same elements, and no lock and no barrier orders the two",
        did(first),
        did(second)
    );
    let forgets = accesses.iter().zip(in_sections).find(|(_, held)| !held);
    match (in_sections, forgets) {
        ([true, false] | [false, true], Some((one, _))) => {
            format!("{what}: {} must acquire {target} too", name(one))
        }
        _ => format!(
            "{what}: let both acquire {target}, or pass {} between the two accesses",
            barrier(accesses, catalog)
        ),
    }
}

/// The barrier of the fewest processes that both of these pass.
fn barrier(accesses: [&Record; 2], catalog: &Catalog) -> String {
    let members = |group| -> Vec<ApId> { catalog.topology.aps_in(group).collect() };
    let both = catalog.barriers.iter().filter_map(|barrier| {
        let members = members(barrier.group);
        let all = accesses.iter().all(|record| members.contains(&record.ap));
        all.then_some((members.len(), barrier.id))
    });
    match both.min() {
        Some((_, id)) => catalog.name_of(id),
        None => "a barrier".to_owned(),
    }
}
