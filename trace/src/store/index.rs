//! What a store keeps in memory of what is on disk: summaries, dictionary, counters.

use std::collections::BTreeMap;

use dosmos_proto::{MpId, Nanos, VarId, Variable};

use super::engine::Engine;
use super::{Event, RecordingCounters};
use crate::chunk::Summary;
use crate::query::{BarrierName, Completeness, TimeRange};

/// Where a chunk is and what it holds.
#[derive(Clone, Debug)]
pub(super) struct ChunkRef {
    pub(super) number: u64,
    pub(super) database: usize,
    pub(super) summary: Summary,
}

/// What a store keeps in memory.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) databases: Vec<Engine>,
    pub(super) chunks: Vec<ChunkRef>,
    pub(super) variables: BTreeMap<VarId, Variable>,
    pub(super) barriers: BTreeMap<VarId, BarrierName>,
    pub(super) counters: BTreeMap<(MpId, u64), RecordingCounters>,
    pub(super) damage: Vec<String>,
}

impl Index {
    /// Takes an event's share: the dictionary and the counters.
    pub(super) fn event(&mut self, event: &Event) {
        match event {
            Event::Variable(v) => {
                self.variables.insert(v.id, v.clone());
            }
            Event::Barrier(b) => {
                self.barriers.insert(b.id, b.clone());
            }
            Event::Counters {
                mp,
                incarnation,
                counters,
            } => {
                self.counters.insert((*mp, *incarnation), *counters);
            }
            Event::HandOver(_) | Event::Received { .. } => {}
        }
    }

    /// From the first start to the last end.
    pub(super) fn extent(&self) -> Option<TimeRange> {
        let from = self.chunks.iter().map(|c| c.summary.starts.from).min()?;
        let to = self.chunks.iter().map(|c| c.summary.end).max()?;
        Some(TimeRange {
            from,
            // The last record starts within it, even if it took no time.
            to: to.max(self.last_start()) + Nanos(1),
        })
    }

    fn last_start(&self) -> Nanos {
        let ends = self.chunks.iter().map(|c| c.summary.starts.to);
        ends.max().unwrap_or_default() - Nanos(1)
    }

    pub(super) fn records(&self) -> u64 {
        self.chunks
            .iter()
            .map(|c| u64::from(c.summary.records))
            .sum()
    }

    pub(super) fn completeness(&self) -> Completeness {
        let mut c = Completeness {
            recorded: self.records(),
            corrupt_chunks: self.damage.len() as u64,
            notes: self.damage.iter().take(10).cloned().collect(),
            ..Completeness::default()
        };
        for counters in self.counters.values() {
            c.dropped += counters.dropped;
            if counters.sampling > 0.0 {
                c.sampling = c.sampling.min(counters.sampling);
            }
        }
        c.recorded += c.dropped;
        c
    }

    /// Notes a chunk that could not be read, once.
    pub(super) fn damaged(&mut self, number: u64, why: &str) {
        let note = format!("chunk {number} cannot be read ({why}); its records are missing");
        if !self.damage.contains(&note) {
            self.damage.push(note);
        }
    }
}
