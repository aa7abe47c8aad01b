//! What an answer lacks, with counts. Carried from the sources through fusion to every view.
//!
//! Complete is only what was recorded as a whole, stored as a whole, kept, and read as a whole: records that were
//! dropped, removed or damaged count, and so do accesses that were never recorded because sampling or the selection left
//! them out, event managers that did not answer, stores that were not given, and processes that did not report to their
//! end.

use serde::{Deserialize, Serialize};

use crate::selection::Selection;

/// How much of the truth an answer holds. Merged by fusion, shown by every view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Completeness {
    /// Records made.
    pub recorded: u64,
    /// Records that were made but lost to a full buffer or store.
    pub dropped: u64,
    /// Records that retention removed, being too old or too many.
    pub removed: u64,
    /// Records that were stored and cannot be read any more, as far as they are counted.
    pub damaged: u64,
    /// Accesses that the records made stand for, beyond one each.
    pub extra_accesses: u64,
    /// Accesses that the records dropped, removed or damaged stand for, beyond one each, as far as that is known.
    pub extra_lost: u64,
    /// Fraction of the selected accesses that was recorded (the smallest of the sources'): 1 = all.
    pub sampling: f64,
    /// Accesses that were not recorded because the selection left them out.
    pub unselected: u64,
    /// The selections that left something out, each once.
    pub selections: Vec<Selection>,
    /// Event managers that did not answer.
    pub missing: Vec<String>,
    /// Event managers of the run whose stores were not given.
    pub missing_stores: Vec<String>,
    /// Memory processes that never reported, or not to their end.
    pub silent: Vec<String>,
    /// Chunks, or stretches of a store, that could not be read.
    pub corrupt_chunks: u64,
    /// Anything else a reader must know.
    pub notes: Vec<String>,
}

impl Default for Completeness {
    fn default() -> Self {
        Self {
            recorded: 0,
            dropped: 0,
            removed: 0,
            damaged: 0,
            extra_accesses: 0,
            extra_lost: 0,
            sampling: 1.0,
            unselected: 0,
            selections: Vec::new(),
            missing: Vec::new(),
            missing_stores: Vec::new(),
            silent: Vec::new(),
            corrupt_chunks: 0,
            notes: Vec::new(),
        }
    }
}

impl Completeness {
    /// Nothing is known to be lacking.
    pub fn is_complete(&self) -> bool {
        self.dropped == 0
            && self.removed == 0
            && self.damaged == 0
            && self.sampling >= 1.0
            && self.unselected == 0
            && self.selections.is_empty()
            && self.missing.is_empty()
            && self.missing_stores.is_empty()
            && self.silent.is_empty()
            && self.corrupt_chunks == 0
    }

    /// Share of the accesses that is in the answer, as far as what is missing is counted (0 to 1). A source that is
    /// missing as a whole is not counted: ask [`Completeness::is_complete`] as well.
    pub fn share(&self) -> f64 {
        let all = self.accesses().saturating_add(self.unselected);
        if all == 0 {
            return if self.is_complete() { 1.0 } else { 0.0 };
        }
        let kept = self.accesses().saturating_sub(self.lost_accesses());
        kept as f64 / all as f64 * self.sampling
    }

    /// Accesses that the records made stand for.
    pub fn accesses(&self) -> u64 {
        self.recorded.saturating_add(self.extra_accesses)
    }

    /// Accesses that the records dropped, removed or damaged stand for: at least as many as these records.
    pub fn lost_accesses(&self) -> u64 {
        let records = [self.dropped, self.removed, self.damaged];
        let records = records.into_iter().fold(0, u64::saturating_add);
        records.saturating_add(self.extra_lost)
    }

    /// What a reader must know, one line per reason; none if nothing is lacking.
    pub fn reasons(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (count, what) in [
            (self.dropped, "were dropped"),
            (
                self.removed,
                "were removed, being too old or too many to keep",
            ),
            (self.damaged, "are damaged and cannot be read"),
        ] {
            if count > 0 {
                lines.push(format!("{count} of {} records {what}", self.recorded));
            }
        }
        if self.extra_lost > 0 {
            lines.push(format!(
                "the lost records stand for {} of {} accesses",
                self.lost_accesses(),
                self.accesses()
            ));
        }
        if self.sampling < 1.0 {
            lines.push(format!(
                "one access in {:.0} was recorded",
                1.0 / self.sampling
            ));
        }
        if self.unselected > 0 {
            lines.push(format!(
                "{} accesses were not recorded, being left out by the selection",
                self.unselected
            ));
        }
        let left_out = self.selections.iter().filter_map(Selection::leaves_out);
        lines.extend(left_out.map(|what| format!("not everything was recorded: {what}")));
        let named = |names: &[String], what: &str| {
            let line = |name: &String| format!("{name} {what}");
            names.iter().map(line).collect::<Vec<_>>()
        };
        lines.extend(named(&self.missing, "did not answer"));
        lines.extend(named(
            &self.missing_stores,
            "belongs to this run and its store is missing",
        ));
        lines.extend(named(&self.silent, "did not report to its end"));
        if self.corrupt_chunks > 0 {
            let chunks = match self.corrupt_chunks {
                1 => "1 chunk".to_owned(),
                n => format!("{n} chunks"),
            };
            lines.push(format!("{chunks} cannot be read"));
        }
        lines.extend(self.notes.iter().cloned());
        lines
    }

    /// Adds what another source says.
    pub fn merge(&mut self, other: &Self) {
        fn add<T: Clone + PartialEq>(to: &mut Vec<T>, more: &[T]) {
            for item in more {
                if !to.contains(item) {
                    to.push(item.clone());
                }
            }
        }
        count(&mut self.recorded, other.recorded);
        count(&mut self.dropped, other.dropped);
        count(&mut self.removed, other.removed);
        count(&mut self.damaged, other.damaged);
        count(&mut self.extra_accesses, other.extra_accesses);
        count(&mut self.extra_lost, other.extra_lost);
        self.sampling = self.sampling.min(other.sampling);
        count(&mut self.unselected, other.unselected);
        count(&mut self.corrupt_chunks, other.corrupt_chunks);
        add(&mut self.selections, &other.selections);
        add(&mut self.missing, &other.missing);
        add(&mut self.missing_stores, &other.missing_stores);
        add(&mut self.silent, &other.silent);
        add(&mut self.notes, &other.notes);
    }
}

/// What others say may be any number.
fn count(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selection::Mode;

    #[test]
    fn whatever_is_lacking_is_said_and_never_complete() {
        let off = Selection {
            mode: Mode::Off,
            ..Selection::default()
        };
        let whole = Completeness {
            recorded: 100,
            ..Completeness::default()
        };
        assert!(whole.is_complete() && whole.reasons().is_empty());
        let lacking: [fn(&mut Completeness); 9] = [
            |c| c.dropped = 25,
            |c| c.removed = 25,
            |c| c.damaged = 25,
            |c| c.sampling = 0.25,
            |c| c.unselected = 100,
            |c| c.missing.push("emp1".into()),
            |c| c.missing_stores.push("emp1".into()),
            |c| c.silent.push("mp1".into()),
            |c| c.corrupt_chunks = 1,
        ];
        for (i, lack) in lacking.iter().enumerate() {
            let mut answer = whole.clone();
            lack(&mut answer);
            assert!(!answer.is_complete(), "{i}");
            assert_eq!(answer.reasons().len(), 1, "{i}");
            let mut merged = whole.clone();
            merged.merge(&answer);
            assert!(!merged.is_complete(), "{i}");
        }
        let mut nothing = Completeness::default();
        assert!(nothing.share() >= 1.0);
        nothing.selections.push(off.clone());
        nothing.merge(&nothing.clone());
        assert_eq!(nothing.selections, [off]);
        assert!(!nothing.is_complete() && nothing.share() <= 0.0);
        assert!(nothing.reasons()[0].contains("mode is off"));
        let dropped = Completeness {
            dropped: 25,
            unselected: 100,
            ..whole
        };
        assert!((dropped.share() - 0.375).abs() < 1e-9);
    }
}
