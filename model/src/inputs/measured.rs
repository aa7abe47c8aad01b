//! A run as it was measured: the one value from which every model's input, and every prediction, is made.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, Component, MpId, Nanos, PhaseTimes, Spent};
use dosmos_trace::query::{Breakdown, Catalog, Completeness};
use dosmos_trace::record::Record;
use serde::Serialize;

use super::change::Change;
use super::network::NetworkRecord;
use super::phases::{Delays, Run, Source};
use super::place::Places;
use super::sharing::Sharing;
use super::tally::Tally;
use crate::dvsm::Application;
use crate::error::{ModelError, invalid};

/// Which operation times the phase model uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DelayModel {
    /// Messages and service, and beyond them the mean delays measured per process, phase and kind of
    /// operation, and the time without a processor: the method of the DVSM paper.
    #[default]
    Measured,
    /// Messages, service and waiting for locks alone: from counts, nothing taken from the time to be
    /// predicted. Less than the truth where processes compete.
    None,
}

/// Gathers a run from its records.
#[derive(Debug)]
pub struct Builder {
    catalog: Catalog,
    network: NetworkRecord,
    tally: Tally,
}

impl Builder {
    /// Begins: `catalog` of the run, and what messages cost where it ran.
    ///
    /// # Errors
    /// [`ModelError`] naming the field of the network record that is wrong.
    pub fn new(catalog: Catalog, network: NetworkRecord) -> Result<Self, ModelError> {
        network.validate()?;
        Ok(Self {
            catalog,
            network,
            tally: Tally::default(),
        })
    }

    /// Takes a record: of everything (`Filter { everything: true, .. }`), in order of their start.
    pub fn add(&mut self, record: &Record) {
        self.tally.add(record);
    }

    /// Says what the records given lacked, once they have been: reading them may have found damage that the
    /// catalog did not know of.
    pub fn lacked(&mut self, lacking: Completeness) {
        self.catalog.completeness = lacking;
    }

    /// The run, with the execution-time breakdown of its processes.
    ///
    /// # Errors
    /// [`ModelError::Shape`] for a run without a breakdown: its time is not known.
    pub fn finish(self, breakdown: &Breakdown) -> Result<Measured, ModelError> {
        let mut aps: Vec<ApId> = breakdown.phases.iter().map(|p| p.ap).collect();
        aps.dedup();
        if aps.is_empty() {
            return Err(ModelError::Shape {
                field: "breakdown".to_owned(),
                found: 0,
                expected: 1,
            });
        }
        let passed: BTreeMap<ApId, u64> = breakdown
            .by_process()
            .iter()
            .map(|p| (p.ap, p.spent.calls(Component::Barrier)))
            .collect();
        let first = passed.values().next();
        let aligned = passed.values().all(|n| Some(n) == first);
        let sampling = self.catalog.completeness.sampling;
        let mut run = Measured {
            kept: BTreeMap::new(),
            scale: if sampling > 0.0 { 1.0 / sampling } else { 1.0 },
            catalog: self.catalog,
            network: self.network,
            tally: self.tally,
            processes: breakdown.by_process(),
            times: breakdown
                .phases
                .iter()
                .map(|p| ((p.phase, p.ap), *p))
                .collect(),
            aps,
            aligned,
        };
        run.begin_with_the_last();
        // Who computed on more processors than the record says was not where it was measured.
        let busy: f64 = (0..run.aps.len())
            .map(|i| run.spent(i, Component::Busy).0 as f64 / 1e3)
            .sum();
        let used = (busy / run.run_us().max(f64::MIN_POSITIVE)).round();
        if used.is_finite() {
            run.network.processors = run.network.processors.max(used as usize);
        }
        Ok(run)
    }
}

/// A run as it was measured.
#[derive(Clone, Debug)]
pub struct Measured {
    pub(super) catalog: Catalog,
    pub(super) network: NetworkRecord,
    pub(super) tally: Tally,
    pub(super) times: BTreeMap<(u64, ApId), PhaseTimes>,
    pub(super) processes: Vec<PhaseTimes>,
    pub(super) aps: Vec<ApId>,
    pub(super) scale: f64,
    pub(super) aligned: bool,
    /// Of what processes did in their first phase, the share that belongs to the run, where it is not all.
    pub(super) kept: BTreeMap<ApId, f64>,
}

/// What a document says of the run it is about.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct About {
    /// Name of the cluster.
    pub name: String,
    /// Application processes.
    pub processes: Vec<String>,
    /// Phases between barriers that all passed; 1 if they passed different ones.
    pub phases: usize,
    /// Time of the run without start-up, µs.
    pub run_us: f64,
    /// What to know of the records behind it.
    pub notes: Vec<String>,
}

impl Measured {
    /// Number of application processes.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.aps.len()
    }

    /// What messages cost.
    #[must_use]
    pub fn network(&self) -> &NetworkRecord {
        &self.network
    }

    /// Names, processes, and how complete the records are.
    #[must_use]
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// From when the last process was there until the last one ended, µs, declarations excluded.
    #[must_use]
    pub fn run_us(&self) -> f64 {
        let end = self.processes.iter().map(PhaseTimes::end).max();
        let begin = self.processes.iter().map(began).max();
        let length = begin.zip(end).map(|(begin, end)| end - begin);
        length.map_or(0.0, |l| l.0 as f64 / 1e3)
    }

    /// Leaves out what processes that were there early did before the run began: it is in no measured time, and a
    /// model that had it would be as much too long. Their counts follow by the share of the first phase kept.
    fn begin_with_the_last(&mut self) {
        let Some(begin) = self.processes.iter().map(began).max() else {
            return;
        };
        for process in &mut self.processes {
            let Some(first) = self.times.get_mut(&(0, process.ap)) else {
                continue;
            };
            // Early is, too, who only waits for the others at the barrier: what that does not explain was work.
            let waited = first.spent.time(Component::Barrier);
            let early = (begin - began(process) - waited).0 as f64;
            let worked = worked(&first.spent).0 as f64;
            if early <= 0.0 || worked <= 0.0 {
                continue;
            }
            let kept = (1.0 - early / worked).max(0.0);
            self.kept.insert(process.ap, kept);
            first.spent = shortened(&first.spent, kept);
        }
        for process in &mut self.processes {
            let mut all = Spent::default();
            let own = self.times.iter().filter(|((_, ap), _)| *ap == process.ap);
            own.for_each(|(_, times)| all.join(&times.spent));
            process.spent = all;
        }
    }

    /// What this is about.
    #[must_use]
    pub fn about(&self) -> About {
        let topology = &self.catalog.topology;
        let completeness = &self.catalog.completeness;
        let mut notes = completeness.reasons();
        if completeness.sampling < 1.0 {
            notes.push("counts are estimates: what was recorded, scaled up".to_owned());
        }
        if !self.aligned {
            notes.push("the processes passed different barriers: the run is one phase".to_owned());
        }
        About {
            name: topology.name().to_owned(),
            processes: self.aps.iter().map(|a| topology.ap_name(*a)).collect(),
            phases: self.source().phases(),
            run_us: self.run_us(),
            notes,
        }
    }

    pub(super) fn source(&self) -> Source<'_> {
        Source {
            tally: &self.tally,
            times: &self.times,
            aps: &self.aps,
            network: &self.network,
            scale: self.scale,
            aligned: self.aligned,
            kept: &self.kept,
        }
    }

    /// The run in the terms of the phase model: as it was, or with its processes and objects elsewhere.
    pub(super) fn run(
        &self,
        delays: DelayModel,
        change: Option<&Change>,
    ) -> Result<Run, ModelError> {
        let source = self.source();
        let today = Places::today(&self.catalog.topology);
        let as_was = Sharing::default();
        let plain = source.run(&today, &Delays::default(), &as_was)?;
        let delays = match delays {
            DelayModel::Measured => source.delays(&plain)?,
            DelayModel::None => Delays::default(),
        };
        let sharing = change.map_or(&as_was, |c| &c.sharing);
        let places = match change.and_then(|c| c.placement.as_ref()) {
            None => today,
            Some(placement) => Places::imagined(&self.catalog.topology, placement)?,
        };
        source.run(&places, &delays, sharing)
    }

    /// The application as `dosmos model dvsm` reads it.
    ///
    /// # Errors
    /// [`ModelError`] if the network record makes no costs.
    pub fn application(&self, delays: DelayModel) -> Result<Application, ModelError> {
        let run = self.run(delays, None)?;
        Ok(run.application(self.catalog.topology.name()))
    }

    /// The references of a process to objects, as a document for `dosmos model fit`: numbers that stand
    /// for objects, and their mean size. None of a process without any.
    #[must_use]
    pub fn references(&self, ap: ApId) -> Option<crate::memhier::fit::FitInput> {
        let of = self
            .tally
            .references
            .get(&ap)
            .filter(|r| !r.objects.is_empty())?;
        let mut numbers = BTreeMap::new();
        let dense = of.objects.iter().map(|object| {
            let next = numbers.len() as u64;
            *numbers.entry(*object).or_insert(next)
        });
        Some(crate::memhier::fit::FitInput {
            trace: dense.collect(),
            item_bytes: Some((of.bytes as f64 / of.count.max(1) as f64).max(1.0)),
            ..Default::default()
        })
    }

    /// A process by its name.
    ///
    /// # Errors
    /// [`ModelError::Unknown`] listing the names.
    pub fn process(&self, name: &str) -> Result<ApId, ModelError> {
        let topology = &self.catalog.topology;
        let found = self.aps.iter().find(|a| topology.ap_name(**a) == name);
        found.copied().ok_or_else(|| ModelError::Unknown {
            field: "process".to_owned(),
            name: name.to_owned(),
            known: self.about().processes.join(", "),
        })
    }

    /// The first process.
    ///
    /// # Errors
    /// [`ModelError::Invalid`] if there is none.
    pub fn first(&self) -> Result<ApId, ModelError> {
        let none = || invalid("processes", 0.0, "at least 1");
        self.aps.first().copied().ok_or_else(none)
    }

    pub(super) fn home(&self, ap: ApId) -> MpId {
        Places::today(&self.catalog.topology).home(ap)
    }

    pub(super) fn spent(&self, i: usize, of: Component) -> Nanos {
        self.processes
            .get(i)
            .map_or(Nanos::ZERO, |p| p.spent.time(of))
    }
}

/// When a process was there, and had declared what it uses.
fn began(process: &PhaseTimes) -> Nanos {
    process.start + process.spent.time(Component::Other)
}

/// What is neither start-up nor a barrier.
fn worked(spent: &Spent) -> Nanos {
    spent.total() - spent.time(Component::Barrier) - spent.time(Component::Other)
}

/// The share `kept` of the work.
fn shortened(spent: &Spent, kept: f64) -> Spent {
    let mut short = Spent::default();
    for of in Component::ALL {
        let kept = match of {
            Component::Barrier | Component::Other => 1.0,
            _ => kept,
        };
        let time = Nanos((spent.time(of).0 as f64 * kept) as u64);
        short.add(of, time, (spent.calls(of) as f64 * kept).round() as u64);
    }
    short
}
