//! What is wrong with a run that has ended: what it recorded is held against what happened.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::Path;

use dosmos_trace::query::Filter;
use dosmos_trace::store::{Event, Item, StoreSource};

use super::cluster::{Cluster, TALLY};
use super::plan::{GROUPS, MEMBERS};
use crate::{Lab, said};

/// What became of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Records stored.
    pub records: u64,
    /// Records that memory processes dropped and counted.
    pub dropped: u64,
    /// Exit status of `dosmos verify`.
    pub verdict: i32,
    /// Application processes that ended well.
    pub succeeded: usize,
    /// Releases that were confirmed of a variable with replicas.
    pub released: usize,
    /// What the program with replicas was told of what failed.
    pub failed: Vec<String>,
    /// Promises that were broken.
    pub broken: Vec<String>,
}

/// Judges a run, all of whose processes have ended.
pub(super) fn judge(lab: &Lab, cluster: &Cluster) -> Outcome {
    let mut outcome = Outcome {
        succeeded: cluster.succeeded.iter().filter(|s| **s).count(),
        broken: cluster.broken.clone(),
        ..Outcome::default()
    };
    for emp in 0..GROUPS {
        let store = lab.path().join(format!("run/store/emp{emp}"));
        match account(&store, &mut outcome) {
            Ok(()) => {}
            Err(e) => outcome.broken.push(format!("the store of emp{emp}: {e}")),
        }
    }
    if let Err(e) = hold_against_each_other(lab, &mut outcome) {
        outcome.broken.push(format!("what was counted: {e}"));
    }
    let questions = [
        &["verify", "--no-races", "--run-dir", "run"][..],
        &["check", "--run-dir", "run"],
    ];
    for question in questions {
        let answer = lab.dosmos(question);
        let status = answer.status.code();
        let command = question[0];
        match status {
            // Of a run of which something is missing nobody may say that nothing was found.
            Some(0 | 1) if !cluster.killed.is_empty() => outcome.broken.push(format!(
                "{command} says {status:?} although {:?} were killed:\n{}",
                cluster.killed,
                said(&answer)
            )),
            Some(1) if command == "verify" => {
                outcome.broken.push(format!("violated:\n{}", said(&answer)));
            }
            Some(0..=2) => {}
            _ => outcome.broken.push(format!("{command}: {}", said(&answer))),
        }
        if command == "verify" {
            outcome.verdict = status.unwrap_or(-1);
        }
    }
    // What application processes say at their end is all that happened only if all came to it.
    let whole = cluster.succeeded.iter().all(|s| *s) && cluster.killed.is_empty();
    if whole && outcome.dropped == 0 && lab.stored() != lab.done() {
        outcome
            .broken
            .push("what is stored is not what was done".to_owned());
    }
    outcome
}

/// What processes counted on one variable: each number is made from the one before, so one that is confirmed twice was lost in
/// between; and later numbers have later tokens.
fn hold_against_each_other(lab: &Lab, outcome: &mut Outcome) -> std::io::Result<()> {
    let mut counted: BTreeMap<u64, u64> = BTreeMap::new();
    for i in 0..MEMBERS {
        let file = lab.path().join(format!("{TALLY}.ap{i}"));
        if !file.exists() {
            continue;
        }
        for line in std::fs::read_to_string(file)?.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["counted", number, token] => {
                    let numbers = (number.parse(), token.parse());
                    let (Ok(number), Ok(token)) = numbers else {
                        return Err(std::io::Error::other(format!("{line:?} cannot be read")));
                    };
                    outcome.released += 1;
                    if counted.insert(number, token).is_some() {
                        let lost = format!("{number} was confirmed twice: a release was lost");
                        outcome.broken.push(lost);
                    }
                }
                _ => outcome.failed.push(line.to_owned()),
            }
        }
    }
    let tokens: Vec<u64> = counted.into_values().collect();
    if let Some(pair) = tokens.windows(2).find(|pair| pair[0] >= pair[1]) {
        let order = format!("token {} came after {}", pair[1], pair[0]);
        outcome.broken.push(order);
    }
    Ok(())
}

/// What the starts of memory processes that report to a store say: how many records they made, how many of them they dropped,
/// and whether they reported to their end.
type Starts = BTreeMap<(u32, u64), (u64, u64, bool)>;

/// Holds the records of a store against what the memory processes say of them.
fn account(store: &Path, outcome: &mut Outcome) -> Result<(), Box<dyn std::error::Error>> {
    let source = StoreSource::open(store)?;
    let (mut starts, mut stored) = (Starts::new(), 0u64);
    let mut seen = BTreeSet::new();
    let mut twice = 0;
    let everything = Filter {
        everything: true,
        ..Filter::default()
    };
    source.scan(&everything, |item| {
        match item {
            Item::Record(record) => {
                stored += 1;
                twice += u64::from(!seen.insert(format!("{record:?}")));
            }
            Item::Event(Event::Counters {
                mp,
                incarnation,
                counters,
            }) => {
                let start = starts.entry((mp.0, *incarnation)).or_default();
                (start.0, start.1) = (counters.recorded, counters.dropped);
            }
            Item::Event(Event::Report {
                mp,
                incarnation,
                ended,
            }) => {
                starts.entry((mp.0, *incarnation)).or_default().2 |= *ended;
            }
            Item::Event(_) => {}
        }
        ControlFlow::Continue(())
    })?;
    let emp = store.file_name().unwrap_or_default().display().to_string();
    let lacking = source.completeness();
    if lacking.corrupt_chunks > 0 {
        let notes = lacking.notes.join("; ");
        outcome.broken.push(format!("{emp} is damaged: {notes}"));
    }
    if twice > 0 {
        outcome
            .broken
            .push(format!("{emp} has {twice} records twice"));
    }
    // Whoever is to report and has not yet: a start without a number.
    let known: BTreeSet<u32> = starts.keys().filter(|s| s.1 > 0).map(|s| s.0).collect();
    starts.retain(|(mp, start), _| *start > 0 || !known.contains(mp));
    let made: u64 = starts.values().map(|s| s.0).sum();
    let dropped: u64 = starts.values().map(|s| s.1).sum();
    outcome.records += stored;
    outcome.dropped += dropped;
    let ended = starts.values().all(|s| s.2);
    // One that was killed may have sent more than its last count says.
    if ended && stored + dropped != made {
        outcome.broken.push(format!(
            "those who report to {emp} made {made} records; {stored} are stored and {dropped} dropped"
        ));
    }
    if !ended && lacking.is_complete() {
        outcome.broken.push(format!(
            "{emp} is said to be complete, and a memory process did not report to its end: {starts:?}"
        ));
    }
    Ok(())
}
