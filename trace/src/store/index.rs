//! What a store keeps in memory of what is on disk: summaries, dictionary, counters.

use std::collections::BTreeMap;
use std::sync::Arc;

use dosmos_proto::{ApId, EmpId, MpId, Nanos, PhaseTimes, Topology, VarId, Variable};

use super::engine::Engine;
use super::entry::{Event, RecordingCounters};
use super::error::StoreError;
use super::imported::Imported;
use super::manifest::Removed;
use crate::chunk::Summary;
use crate::query::{BarrierName, Completeness, TimeRange};
use crate::selection::Selection;

/// Most notes about damage that an answer carries.
const MOST_NOTES: usize = 10;
/// Most phases, of all processes together, told apart.
const MOST_PHASES: usize = 500_000;

/// Where a chunk is and what it holds.
#[derive(Clone, Debug)]
pub(super) struct ChunkRef {
    pub(super) number: u64,
    pub(super) database: u32,
    /// Its length.
    pub(super) bytes: u32,
    pub(super) summary: Summary,
}

/// What a store keeps in memory.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) databases: BTreeMap<u32, Engine>,
    /// Chunks that took others in, and the last number each covers.
    pub(super) merged: BTreeMap<u64, u64>,
    /// What retention removed.
    pub(super) removed: Removed,
    pub(super) chunks: Vec<Arc<ChunkRef>>,
    pub(super) variables: BTreeMap<VarId, Variable>,
    pub(super) barriers: BTreeMap<VarId, BarrierName>,
    pub(super) counters: BTreeMap<(MpId, u64), RecordingCounters>,
    /// What each memory process was told to record, whenever that left something out.
    selections: BTreeMap<MpId, Vec<(u64, Selection)>>,
    /// Starts of memory processes that reported here, and whether they said that they had reported everything.
    reports: BTreeMap<(MpId, u64), bool>,
    /// What the file said that the records come from, if they do.
    pub(super) imported: Option<Imported>,
    /// Where application processes' time went, by process and phase.
    pub(super) phases: BTreeMap<(ApId, u64), PhaseTimes>,
    /// What is wrong with which chunk.
    damaged_chunks: BTreeMap<u64, String>,
    /// What is wrong with whole databases.
    pub(super) lost_databases: Vec<String>,
}

impl Index {
    /// Takes an event's share: the dictionary and the counters.
    pub(super) fn event(&mut self, event: &Event) {
        match event {
            Event::Variable(v) => {
                self.variables.insert(v.id(), v.clone());
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
            Event::Selection {
                mp,
                incarnation,
                selection,
            } => self.selection(*mp, *incarnation, selection),
            Event::Report {
                mp,
                incarnation,
                ended,
            } => {
                *self.reports.entry((*mp, *incarnation)).or_default() |= *ended;
            }
            Event::Imported(imported) => self.imported = Some(imported.clone()),
            Event::Times(piece) => self.times(piece),
            Event::HandOver(_) | Event::Received { .. } => {}
        }
    }

    /// Keeps what leaves something out, once.
    fn selection(&mut self, mp: MpId, incarnation: u64, selection: &Selection) {
        let known = self.selections.entry(mp).or_default();
        let said = (incarnation, selection.clone());
        if selection.leaves_out().is_some() && !known.contains(&said) {
            known.push(said);
        }
    }

    /// Memory processes of this event manager that did not report to their end; none where nobody says who reports.
    pub(super) fn silent(&self, topology: &Topology, emp: EmpId) -> Vec<String> {
        if self.reports.is_empty() {
            return Vec::new();
        }
        let ended = |mp: MpId| {
            let mut its = self.reports.range((mp, 0)..=(mp, u64::MAX));
            its.next_back().is_some_and(|(_, ended)| *ended)
        };
        let processes = (0u32..).map(MpId).zip(topology.memory_processes());
        processes
            .filter(|(mp, process)| process.event_manager == emp && !ended(*mp))
            .map(|(_, process)| process.name.clone())
            .collect()
    }

    /// Adds a piece of a phase. Of a run with very many phases the later ones become one.
    fn times(&mut self, piece: &PhaseTimes) {
        let mut key = (piece.ap, piece.phase);
        if self.phases.len() >= MOST_PHASES && !self.phases.contains_key(&key) {
            let last = self.phases.range((piece.ap, 0)..=key).next_back();
            key = last.map_or(key, |(k, _)| *k);
        }
        match self.phases.get_mut(&key) {
            Some(known) => known.join(piece),
            None => {
                self.phases.insert(key, *piece);
            }
        }
    }

    /// Adds a chunk, or puts a longer one in its place.
    pub(super) fn chunk(&mut self, chunk: ChunkRef) {
        match self.chunks.last_mut() {
            Some(last) if last.number == chunk.number => *last = Arc::new(chunk),
            _ => self.chunks.push(Arc::new(chunk)),
        }
    }

    /// Adds a chunk where its number says.
    pub(super) fn found_again(&mut self, chunk: ChunkRef) {
        let place = self.chunks.partition_point(|c| c.number < chunk.number);
        self.chunks.insert(place, Arc::new(chunk));
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
        let notes = self
            .lost_databases
            .iter()
            .chain(self.damaged_chunks.values());
        let mut c = Completeness {
            recorded: self.records(),
            corrupt_chunks: (self.lost_databases.len() + self.damaged_chunks.len()) as u64,
            notes: notes.take(MOST_NOTES).cloned().collect(),
            ..Completeness::default()
        };
        for counters in self.counters.values() {
            c.dropped += counters.dropped;
            c.unselected += counters.unselected;
            if counters.sampling > 0.0 {
                c.sampling = c.sampling.min(counters.sampling);
            }
        }
        for (_, selection) in self.selections.values().flatten() {
            if !c.selections.contains(selection) {
                c.selections.push(selection.clone());
            }
        }
        c.removed = self.removed.records;
        c.recorded += c.dropped + c.removed;
        if let Some(imported) = &self.imported {
            c.merge(&imported.lacking);
        }
        c
    }

    /// All that the events so far said, as events: what a database that follows has to know when this one
    /// is gone.
    pub(super) fn dictionary(&self) -> Vec<Event> {
        let variables = self.variables.values().cloned().map(Event::Variable);
        let barriers = self.barriers.values().cloned().map(Event::Barrier);
        let counters =
            self.counters
                .iter()
                .map(|(&(mp, incarnation), &counters)| Event::Counters {
                    mp,
                    incarnation,
                    counters,
                });
        let selections = self.selections.iter().flat_map(|(&mp, its)| {
            its.iter()
                .map(move |(incarnation, selection)| Event::Selection {
                    mp,
                    incarnation: *incarnation,
                    selection: selection.clone(),
                })
        });
        let reports = self
            .reports
            .iter()
            .map(|(&(mp, incarnation), &ended)| Event::Report {
                mp,
                incarnation,
                ended,
            });
        let imported = self.imported.iter().cloned().map(Event::Imported);
        let times = self.phases.values().copied().map(Event::Times);
        variables
            .chain(barriers)
            .chain(counters)
            .chain(selections)
            .chain(reports)
            .chain(imported)
            .chain(times)
            .collect()
    }

    /// Where the chunk of this number is, if there is one.
    pub(super) fn place_of(&self, number: u64) -> Option<usize> {
        self.chunks.binary_search_by_key(&number, |c| c.number).ok()
    }

    /// Whether the chunk of this number was taken into another.
    pub(super) fn is_merged(&self, number: u64) -> bool {
        let into = self.merged.range(..number).next_back();
        into.is_some_and(|(_, last)| number <= *last)
    }

    /// Forgets a database that retention removes.
    pub(super) fn forget(&mut self, database: u32) {
        self.databases.remove(&database);
        self.chunks.retain(|c| c.database != database);
    }

    /// Number of records in a database.
    pub(super) fn records_in(&self, database: u32) -> u64 {
        let its = self.chunks.iter().filter(|c| c.database == database);
        its.map(|c| u64::from(c.summary.records)).sum()
    }

    /// Notes what is not there of the records that a database should have.
    pub(super) fn expect(&mut self, database: u32, name: &str, records: u64) {
        let found = self.records_in(database);
        if found < records {
            let missing = records - found;
            self.lost_databases.push(format!(
                "{name} is damaged: {missing} of its {records} records are missing"
            ));
        }
    }

    /// Notes that something could not be read of which it is not known what it was, once.
    pub(super) fn lost(&mut self, error: &StoreError) {
        let note = format!("{error}; its records are missing");
        if !self.lost_databases.contains(&note) {
            self.lost_databases.push(note);
        }
    }

    /// Notes a chunk that could not be read, once.
    pub(super) fn damaged(&mut self, number: u64, why: &str) {
        let at = self.chunks.binary_search_by_key(&number, |c| c.number);
        let how_many = match at {
            Ok(at) => format!("its {} records", self.chunks[at].summary.records),
            Err(_) => "its records".to_owned(),
        };
        self.damaged_chunks.entry(number).or_insert_with(|| {
            format!("chunk {number} cannot be read ({why}); {how_many} are missing")
        });
    }
}
