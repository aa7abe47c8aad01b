//! What a store keeps in memory of what is on disk: where each block is, summaries, dictionary, counters, and what is
//! known to be lost.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use dosmos_proto::{ApId, EmpId, Incarnation, MpId, Nanos, PhaseTimes, Topology, VarId, Variable};

use super::entry::{Event, RecordingCounters};
use super::error::StoreError;
use super::imported::Imported;
use super::ledger::Extent;
use super::manifest::Removed;
use crate::chunk::Summary;
use crate::clock::{Corrections, ProcessClock};
use crate::query::{BarrierName, Completeness, TimeRange};
use crate::selection::Selection;

/// Most notes about damage that an answer carries.
const MOST_NOTES: usize = 10;
/// Most phases, of all processes together, told apart.
const MOST_PHASES: usize = 500_000;

/// A file of the log, open for reading.
#[derive(Debug)]
pub(super) struct LogFile {
    pub(super) file: File,
    pub(super) path: PathBuf,
    /// Records of the log before it.
    pub(super) records_before: u64,
}

impl LogFile {
    /// `bytes` bytes from place `at` on.
    pub(super) fn read(&self, at: u64, bytes: u32) -> Result<Vec<u8>, StoreError> {
        let mut read = vec![0; bytes as usize];
        let outcome = self.file.read_exact_at(&mut read, at);
        outcome.map_err(|e| StoreError::io(self.path.clone(), e))?;
        Ok(read)
    }

    /// Its size now, in bytes.
    pub(super) fn size(&self) -> u64 {
        self.file.metadata().map_or(0, |m| m.len())
    }
}

/// Where a body is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Number of the file.
    pub(super) database: u32,
    pub(super) at: u64,
    pub(super) bytes: u32,
}

/// Where a chunk is and what it holds.
#[derive(Clone, Debug)]
pub(super) struct ChunkRef {
    /// Number of its first block.
    pub(super) number: u64,
    pub(super) place: Place,
    /// Records of the log before it.
    pub(super) records_before: u64,
    pub(super) summary: Summary,
}

/// Where the events of a block are.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventsRef {
    pub(super) number: u64,
    pub(super) place: Place,
    pub(super) events: u32,
    /// Records and events of the log before it.
    pub(super) records_before: u64,
    pub(super) events_before: u64,
}

/// What a store keeps in memory.
#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) files: BTreeMap<u32, Arc<LogFile>>,
    /// What retention removed.
    pub(super) removed: Removed,
    pub(super) chunks: Vec<Arc<ChunkRef>>,
    pub(super) events: Vec<EventsRef>,
    pub(super) variables: BTreeMap<VarId, Variable>,
    pub(super) barriers: BTreeMap<VarId, BarrierName>,
    pub(super) counters: BTreeMap<(MpId, u64), RecordingCounters>,
    /// What each memory process was told to record, whenever that left something out.
    selections: BTreeMap<MpId, Vec<(u64, Selection)>>,
    /// Starts of memory processes that reported here, and whether they said that they had reported everything.
    reports: BTreeMap<(MpId, u64), bool>,
    /// How the times of each start of a memory process were corrected.
    clocks: BTreeMap<(MpId, u64), Corrections>,
    /// What the file said that the records come from, if they do.
    pub(super) imported: Option<Imported>,
    /// Where application processes' time went, by process and phase.
    pub(super) phases: BTreeMap<(ApId, u64), PhaseTimes>,
    /// What serving took, of each start of a memory process that has ended.
    pub(super) processor: BTreeMap<(MpId, u64), Nanos>,
    /// What is wrong with which chunk, and how many records it has.
    damaged_chunks: BTreeMap<u64, (u64, String)>,
    /// Accesses that the records of those chunks stand for, beyond one each.
    damaged_extra: u64,
    /// Records that are not in the log although they should be.
    missing_records: u64,
    /// What is wrong with the log, as far as it is not a chunk.
    damage: BTreeSet<String>,
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
                let known = self.counters.insert((*mp, *incarnation), *counters);
                // One that records all again did not record all.
                let sampled = known.map(|k| k.sampling).filter(|&s| s > 0.0);
                if let (Some(before), Some(now)) =
                    (sampled, self.counters.get_mut(&(*mp, *incarnation)))
                    && (now.sampling <= 0.0 || before < now.sampling)
                {
                    now.sampling = before;
                }
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
            Event::Clock {
                mp,
                incarnation,
                correction,
            } => {
                let all = self.clocks.entry((*mp, *incarnation)).or_default();
                all.add(*correction);
            }
            Event::Times(piece) => self.times(piece),
            Event::Processor {
                mp,
                incarnation,
                time,
            } => {
                self.processor.insert((*mp, *incarnation), *time);
            }
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

    /// How the times of each start of a memory process were corrected.
    pub(super) fn corrections(&self) -> &BTreeMap<(MpId, u64), Corrections> {
        &self.clocks
    }

    /// What is known of the clocks of the memory processes, by number.
    pub(super) fn clocks(&self) -> Vec<ProcessClock> {
        let mut clocks: BTreeMap<MpId, ProcessClock> = BTreeMap::new();
        let all = self.clocks.iter();
        for (mp, corrected) in all.filter_map(|((mp, _), all)| Some((*mp, all.last()?))) {
            let its = ProcessClock::new(mp, corrected);
            let its = clocks.get(&mp).map_or(its, |before| its.after(before));
            clocks.insert(mp, its);
        }
        clocks.into_values().collect()
    }

    /// Memory processes of this event manager of which a start did not report to its end; none where nobody says who reports.
    pub(super) fn silent(&self, topology: &Topology, emp: EmpId) -> Vec<String> {
        if self.reports.is_empty() {
            return Vec::new();
        }
        // Each start of it: what one that was killed still had is not in what a later one reports. Starts are counted: one
        // that was killed before it could report is missing among them.
        let ended = |mp: MpId| {
            let its = self.reports.range((mp, 1)..=(mp, u64::MAX));
            let starts = its.clone().count();
            let last = its.clone().next_back();
            let last = last.map(|((_, start), _)| Incarnation::from_wire(*start).start());
            let all_reported = last.is_some_and(|last| last as usize <= starts);
            all_reported && its.into_iter().all(|(_, ended)| *ended)
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

    /// Adds a chunk. It takes the place of those up to number `last`.
    pub(super) fn chunk(&mut self, chunk: Arc<ChunkRef>, last: u64) {
        let from = self.chunks.partition_point(|c| c.number < chunk.number);
        let to = self.chunks.partition_point(|c| c.number <= last);
        self.chunks.splice(from..to.max(from), [chunk]);
    }

    /// Takes names that damage may have taken from the log.
    pub(super) fn learn(&mut self, names: Vec<Event>) {
        for name in names {
            let known = match &name {
                Event::Variable(v) => self.variables.contains_key(&v.id()),
                Event::Barrier(b) => self.barriers.contains_key(&b.id),
                _ => true,
            };
            if !known {
                self.event(&name);
            }
        }
    }

    /// The saved state cannot be read: the log tells the same, as far as it still goes back.
    pub(super) fn lost_state(&mut self, error: &StoreError) {
        if self.removed.records > 0 {
            self.damaged_log(format!(
                "{error}; meta-objects count only records still kept"
            ));
        } else {
            tracing::warn!("{error}; the whole log is read instead");
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
        let chunks = self.damaged_chunks.values();
        let notes = self.damage.iter().chain(chunks.clone().map(|(_, why)| why));
        let damaged = self.missing_records + chunks.map(|(records, _)| records).sum::<u64>();
        let extra = self.chunks.iter().map(|c| c.summary.extra).sum::<u64>();
        let mut c = Completeness {
            recorded: self.records() + self.missing_records,
            extra_accesses: extra,
            extra_lost: self.damaged_extra,
            damaged,
            corrupt_chunks: (self.damage.len() + self.damaged_chunks.len()) as u64,
            notes: notes.take(MOST_NOTES).cloned().collect(),
            ..Completeness::default()
        };
        for counters in self.counters.values() {
            add(&mut c.dropped, counters.dropped);
            add(&mut c.extra_lost, counters.extra_dropped);
            add(&mut c.extra_accesses, counters.extra_dropped);
            add(&mut c.unselected, counters.unselected);
            if counters.sampling > 0.0 {
                c.sampling = c.sampling.min(counters.sampling);
            }
        }
        for (_, selection) in self.selections.values().flatten() {
            if !c.selections.contains(selection) {
                c.selections.push(selection.clone());
            }
        }
        add(&mut c.dropped, self.unaccounted());
        c.removed = self.removed.records;
        add(&mut c.extra_lost, self.removed.extra);
        add(&mut c.extra_accesses, self.removed.extra);
        add(&mut c.recorded, c.dropped.saturating_add(c.removed));
        if let Some(imported) = &self.imported {
            c.merge(&imported.lacking);
        }
        c
    }

    /// Records that memory processes made, did not drop, and that are nowhere: known where all that reported here did so to
    /// their end, with their last counters.
    fn unaccounted(&self) -> u64 {
        let mut reports = self.reports.iter().filter(|((_, start), _)| *start > 0);
        if !reports.all(|(_, ended)| *ended) {
            return 0;
        }
        let made = self.counters.iter();
        let made = made.filter(|(start, _)| self.reports.contains_key(start));
        let made = made
            .map(|(_, c)| c.recorded.saturating_sub(c.dropped))
            .fold(0, u64::saturating_add);
        let kept = self.records() + self.missing_records + self.removed.records;
        made.saturating_sub(kept)
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
        let processor = self.processor.iter();
        let processor = processor.map(|(&(mp, incarnation), &time)| Event::Processor {
            mp,
            incarnation,
            time,
        });
        let clocks = self.clocks.iter();
        let clocks = clocks.flat_map(|(&(mp, incarnation), all)| {
            all.all().iter().map(move |&correction| Event::Clock {
                mp,
                incarnation,
                correction,
            })
        });
        variables
            .chain(barriers)
            .chain(counters)
            .chain(selections)
            .chain(reports)
            .chain(imported)
            .chain(clocks)
            .chain(times)
            .chain(processor)
            .collect()
    }

    /// What serving took of each memory process, all its starts together.
    pub(super) fn processor(&self) -> BTreeMap<MpId, Nanos> {
        let mut sums: BTreeMap<MpId, Nanos> = BTreeMap::new();
        for ((mp, _), time) in &self.processor {
            *sums.entry(*mp).or_default() += *time;
        }
        sums
    }

    /// Forgets the files before `first`, which retention removes.
    pub(super) fn forget(&mut self, first: u32) {
        self.files.retain(|number, _| *number >= first);
        self.chunks.retain(|c| c.place.database >= first);
        self.events.retain(|e| e.place.database >= first);
    }

    /// Compares what was found with how much the log should have, and notes what is missing of it.
    pub(super) fn expect(&mut self, extent: &Extent) {
        let mut known = self.removed.records;
        let end = (extent.records, 0);
        let found = self.chunks.iter();
        let found = found.map(|c| (c.records_before, u64::from(c.summary.records)));
        let mut gaps = Vec::new();
        for (before, records) in found.chain([end]).collect::<Vec<_>>() {
            if before > known {
                gaps.push((known, before));
            }
            known = known.max(before + records);
        }
        for (from, to) in gaps {
            self.missing_records += to - from;
            self.damaged_log(format!(
                "records {from} to {} of {} cannot be read: {} of its {} records are missing",
                to - 1,
                extent.records,
                to - from,
                extent.records.saturating_sub(self.removed.records)
            ));
        }
    }

    /// Whether events of the log are missing.
    pub(super) fn lacks_events(&self, extent: &Extent) -> bool {
        // What retention removed is not missing.
        let kept = || {
            self.events
                .first()
                .map_or(extent.events, |e| e.events_before)
        };
        let mut known = if self.removed.records > 0 { kept() } else { 0 };
        let found = self.events.iter();
        let found = found.map(|e| (e.events_before, u64::from(e.events)));
        found.chain([(extent.events, 0)]).any(|(before, events)| {
            let gap = before > known;
            known = known.max(before + events);
            gap
        })
    }

    /// Notes that something is wrong with the log, once.
    pub(super) fn damaged_log(&mut self, note: String) {
        self.damage.insert(note);
    }

    /// Notes a chunk that could not be read, once.
    pub(super) fn damaged(&mut self, number: u64, why: &str) {
        let at = self.chunks.binary_search_by_key(&number, |c| c.number);
        let summary = at.ok().map(|at| &self.chunks[at].summary);
        let (records, extra) = summary.map_or((0, 0), |s| (u64::from(s.records), s.extra));
        self.damaged_chunks.entry(number).or_insert_with(|| {
            self.damaged_extra += extra;
            let note =
                format!("chunk {number} cannot be read ({why}); its {records} records are missing");
            (records, note)
        });
    }
}

/// What others say may be any number.
fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}
