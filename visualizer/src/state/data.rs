//! What is known: the last answers, and what follows from two of them (rates).

use std::collections::{BTreeMap, VecDeque};

use dosmos_proto::{ApId, MpId, Nanos};
use dosmos_trace::meta::OpCounts;
use dosmos_trace::query::{
    Catalog, Completeness, Histogram, HistogramQuery, History, HistoryQuery, MetaObjects,
    ProcessStatus, Status, TimeRange,
};

use super::window::Scale;

/// What a screen needs beside catalog and status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Nothing.
    Nothing,
    /// All meta-objects; and, where no status tells, the origins of every memory process's accesses.
    Overview,
    /// All meta-objects.
    Variables,
    /// One bucket a column.
    Histogram(HistogramQuery),
    /// Points enough for the columns.
    History(HistoryQuery),
}

/// What the terminal wants to know now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// For the screen shown.
    pub question: Question,
    /// How its times fall onto columns (histogram and history).
    pub scale: Scale,
    /// Ask again from time to time; not while paused.
    pub repeat: bool,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// To nothing, or to a question that only concerns catalog and status.
    None,
    /// To [`Question::Overview`]; accesses by origin for processes without a status.
    Overview(MetaObjects, BTreeMap<MpId, [u64; 3]>),
    /// To [`Question::Variables`].
    Variables(MetaObjects),
    /// To [`Question::Histogram`].
    Histogram(Histogram),
    /// To [`Question::History`].
    History(History),
}

/// What one round of asking brought.
#[derive(Clone, Debug)]
pub struct Update {
    /// What had been wanted.
    pub request: Request,
    /// Catalog, status and answer, or why there are none.
    pub result: Result<(Catalog, Status, Answer), String>,
}

/// A chart's answer with its scale.
#[derive(Clone, Debug)]
pub struct Charted<T> {
    /// The answer.
    pub answer: T,
    /// How its times fall onto columns.
    pub scale: Scale,
}

/// How far back rates look.
const RATE_WINDOW: Nanos = Nanos(2_500_000_000);

/// Counters at one instant.
#[derive(Clone, Debug, Default)]
struct Sample {
    now: Nanos,
    /// By process: its event manager's clock, and all its accesses.
    processes: BTreeMap<MpId, (Nanos, u64)>,
    aps: BTreeMap<ApId, u64>,
}

/// The last answers.
#[derive(Clone, Debug, Default)]
pub struct Data {
    /// Processes, variables, extent.
    pub catalog: Catalog,
    /// State of the processes.
    pub status: Status,
    /// All meta-objects, as last asked for.
    pub metas: MetaObjects,
    /// Accesses by origin of each memory process.
    pub origins: BTreeMap<MpId, [u64; 3]>,
    /// Accesses by application process.
    pub by_ap: BTreeMap<ApId, OpCounts>,
    /// The histogram shown.
    pub histogram: Option<Charted<Histogram>>,
    /// The history shown.
    pub history: Option<Charted<History>>,
    /// Why the last round brought nothing; none if it did.
    pub error: Option<String>,
    /// A round has brought something.
    pub answered: bool,
    samples: VecDeque<Sample>,
}

impl Data {
    /// First start and last end; an empty range if there is no record.
    pub fn extent(&self) -> TimeRange {
        self.catalog.extent.unwrap_or(TimeRange {
            from: Nanos::ZERO,
            to: Nanos::ZERO,
        })
    }

    /// What is lacking: according to the catalog, the status and the chart on screen.
    pub fn completeness(&self) -> Completeness {
        let mut all = self.catalog.completeness.clone();
        let charts = [
            self.histogram.as_ref().map(|h| &h.answer.completeness),
            self.history.as_ref().map(|h| &h.answer.completeness),
            Some(&self.status.completeness),
        ];
        for other in charts.into_iter().flatten() {
            all.dropped = all.dropped.max(other.dropped);
            all.recorded = all.recorded.max(other.recorded);
            all.sampling = all.sampling.min(other.sampling);
            all.corrupt_chunks = all.corrupt_chunks.max(other.corrupt_chunks);
            all.missing.extend(other.missing.iter().cloned());
            all.notes.extend(other.notes.iter().cloned());
        }
        all.dropped = all.dropped.max(self.processes().map(|p| p.dropped).sum());
        all.missing.sort();
        all.missing.dedup();
        all.notes.sort();
        all.notes.dedup();
        all
    }

    /// States of all memory processes.
    pub fn processes(&self) -> impl Iterator<Item = &ProcessStatus> {
        let managers = self.status.event_managers.iter();
        managers.flat_map(|e| &e.processes)
    }

    /// Takes catalog and status, and counts rates from them.
    pub fn take_base(&mut self, catalog: Catalog, status: Status) {
        self.catalog = catalog;
        self.status = status;
        self.answered = true;
        let mut sample = Sample::default();
        for manager in &self.status.event_managers {
            sample.now = sample.now.max(manager.now);
            for process in &manager.processes {
                let origins = process.by_origin.map(|c| c.total());
                self.origins.insert(process.mp, origins);
                let total = origins.iter().sum();
                sample.processes.insert(process.mp, (manager.now, total));
            }
        }
        self.samples.push_back(sample);
        self.forget_old_samples();
    }

    /// Takes meta-objects.
    pub fn take_metas(&mut self, metas: MetaObjects) {
        self.by_ap.clear();
        for primary in &metas.primaries {
            for (ap, counts) in &primary.by_ap {
                self.by_ap.entry(*ap).or_default().add(counts);
            }
        }
        for secondary in &metas.secondaries {
            for (ap, reads) in &secondary.by_ap {
                self.by_ap.entry(*ap).or_default().reads += reads;
            }
        }
        if let Some(sample) = self.samples.back_mut() {
            sample.aps = self.by_ap.iter().map(|(ap, c)| (*ap, c.total())).collect();
        }
        self.metas = metas;
    }

    fn forget_old_samples(&mut self) {
        let Some(newest) = self.samples.back().map(|s| s.now) else {
            return;
        };
        // One sample older than the window stays, so that slow polling still has a difference.
        while self.samples.len() > 2 && newest - self.samples[1].now > RATE_WINDOW {
            self.samples.pop_front();
        }
        // Where the clock stands still (no event manager running) samples say nothing anyway.
        while self.samples.len() > 64 {
            self.samples.pop_front();
        }
    }

    /// Rates are told only of what runs; forget them where time was not observed.
    pub fn forget_rates(&mut self) {
        self.samples.clear();
    }

    /// Accesses a second of a memory process's applications, lately.
    pub fn rate_of_mp(&self, mp: MpId) -> Option<f64> {
        let known = |s: &Sample| s.processes.get(&mp).copied();
        self.rate(known)
    }

    /// Accesses a second of an application process, lately.
    pub fn rate_of_ap(&self, ap: ApId) -> Option<f64> {
        let known = |s: &Sample| Some((s.now, *s.aps.get(&ap)?));
        self.rate(known)
    }

    fn rate(&self, known: impl Fn(&Sample) -> Option<(Nanos, u64)>) -> Option<f64> {
        let (since, before) = self.samples.iter().find_map(&known)?;
        let (now, after) = self.samples.iter().rev().find_map(&known)?;
        let seconds = (now - since).as_secs_f64();
        (seconds > 0.0).then(|| after.saturating_sub(before) as f64 / seconds)
    }
}
