//! What an answer lacks, with counts: lost, sampled and removed records, event managers that did not answer, chunks
//! that cannot be read. Carried from the sources through fusion to every view.

use serde::{Deserialize, Serialize};

/// How much of the truth an answer holds. Merged by fusion, shown by every view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Completeness {
    /// Records made.
    pub recorded: u64,
    /// Records that were made but lost to a full buffer or store.
    pub dropped: u64,
    /// Records that retention removed, being too old or too many.
    pub removed: u64,
    /// Fraction of accesses recorded (the smallest of the sources'): 1 = all.
    pub sampling: f64,
    /// Event managers that did not answer.
    pub missing: Vec<String>,
    /// Chunks that could not be read.
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
            sampling: 1.0,
            missing: Vec::new(),
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
            && self.sampling >= 1.0
            && self.missing.is_empty()
            && self.corrupt_chunks == 0
    }

    /// What a reader must know, one line per reason; none if nothing is lacking.
    pub fn reasons(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.dropped > 0 {
            lines.push(format!(
                "{} of {} records were dropped",
                self.dropped, self.recorded
            ));
        }
        if self.removed > 0 {
            lines.push(format!(
                "{} of {} records were removed, being too old or too many to keep",
                self.removed, self.recorded
            ));
        }
        if self.sampling < 1.0 {
            lines.push(format!(
                "one access in {:.0} was recorded",
                1.0 / self.sampling
            ));
        }
        for name in &self.missing {
            lines.push(format!("{name} did not answer"));
        }
        if self.corrupt_chunks > 0 {
            lines.push(format!("{} chunks cannot be read", self.corrupt_chunks));
        }
        lines.extend(self.notes.iter().cloned());
        lines
    }

    /// Adds what another source says.
    pub fn merge(&mut self, other: &Self) {
        self.recorded += other.recorded;
        self.dropped += other.dropped;
        self.removed += other.removed;
        self.sampling = self.sampling.min(other.sampling);
        self.missing.extend(other.missing.iter().cloned());
        self.corrupt_chunks += other.corrupt_chunks;
        for note in &other.notes {
            if !self.notes.contains(note) {
                self.notes.push(note.clone());
            }
        }
    }
}
