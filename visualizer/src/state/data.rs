//! What is known of the run as a whole: catalog and status, and what follows from two of them (rates).

use std::collections::{BTreeMap, VecDeque};

use dosmos_client::Launch;
use dosmos_proto::{ApId, MpId, Nanos, ObjectId, PhaseTimes, Topology, VarId, Variable};
use dosmos_trace::meta::OpCounts;
use dosmos_trace::query::{
    Breakdown, Catalog, Completeness, ProcessStatus, ProcessTimes, Status, TimeRange,
};

use super::lanes;
use super::pace::{Paced, Paces};
use super::question::ApFigures;

/// Where the time of one application process went.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spending {
    /// All its phases.
    pub whole: ProcessTimes,
    /// The longest from one barrier to the next.
    pub longest: PhaseTimes,
    /// How many there are.
    pub phases: usize,
}

/// How far back rates look.
const RATE_WINDOW: Nanos = Nanos(2_500_000_000);
/// Variables remembered by number; beyond, those seen last.
const REMEMBERED: usize = 20_000;

/// Counters of a process at one instant.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    /// Its event manager's clock.
    now: Nanos,
    accesses: u64,
    recorded: u64,
    cpu: Option<Nanos>,
    monitor: Nanos,
}

/// Counters at one instant.
#[derive(Clone, Debug, Default)]
struct Sample {
    now: Nanos,
    processes: BTreeMap<MpId, Counters>,
    aps: BTreeMap<ApId, u64>,
    /// Processor time and clock of each event manager.
    managers: BTreeMap<String, (Nanos, Nanos)>,
    received: u64,
}

/// What a process costs, recently.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Costs {
    /// Share of a processor that it takes, if it is known.
    pub cpu: Option<f64>,
    /// Share of a processor that monitoring takes in it: the intrusion.
    pub monitor: f64,
    /// Records it makes a second.
    pub records: f64,
}

/// What is known of the run as a whole.
#[derive(Clone, Debug, Default)]
pub struct Data {
    /// Processes, extent, and the variables met so far.
    pub catalog: Catalog,
    /// State of the processes.
    pub status: Status,
    /// Accesses by origin of each memory process.
    pub origins: BTreeMap<MpId, [u64; 3]>,
    /// Accesses by application process.
    pub by_ap: BTreeMap<ApId, ApFigures>,
    /// Where each process's time went.
    pub times: BTreeMap<ApId, Spending>,
    /// How the run was started and how it ended.
    pub launch: Launch,
    /// Why the last round brought nothing; none if it did.
    pub error: Option<String>,
    /// A round has brought something.
    pub answered: bool,
    samples: VecDeque<Sample>,
    /// How the rates of the processes went.
    pub paces: Paces,
}

impl Data {
    /// `variable[index]`; of a variable with one object without the index.
    pub fn object_name(&self, object: ObjectId) -> String {
        lanes::object_name(object, &self.catalog)
    }

    /// First start and last end; an empty range if there is no record.
    pub fn extent(&self) -> TimeRange {
        self.catalog.extent.unwrap_or(TimeRange {
            from: Nanos::ZERO,
            to: Nanos::ZERO,
        })
    }

    /// What is missing: according to the catalog, the status and the answers shown.
    pub fn completeness<'a>(
        &'a self,
        shown: impl IntoIterator<Item = &'a Completeness>,
    ) -> Completeness {
        let mut all = self.catalog.completeness.clone();
        for other in shown.into_iter().chain([&self.status.completeness]) {
            all.dropped = all.dropped.max(other.dropped);
            all.recorded = all.recorded.max(other.recorded);
            all.sampling = all.sampling.min(other.sampling);
            all.corrupt_chunks = all.corrupt_chunks.max(other.corrupt_chunks);
            all.missing.extend(other.missing.iter().cloned());
            all.notes.extend(other.notes.iter().cloned());
        }
        all.dropped = all
            .dropped
            .max(self.processes().map(|p| p.counters.dropped).sum());
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

    /// Whether anybody told what this application process did. An event manager that answers knows all that connected
    /// to its memory processes.
    pub fn knows_ap(&self, ap: ApId) -> bool {
        let topology = &self.catalog.topology;
        let its = topology
            .ap(ap)
            .and_then(|ap| topology.mp(ap.memory_process));
        let manager = its.map(|mp| topology.emp_name(mp.event_manager));
        let mut managers = self.status.event_managers.iter();
        self.by_ap.contains_key(&ap) || managers.any(|m| Some(&m.name) == manager.as_ref())
    }

    /// Whether everybody told that no record was dropped.
    pub fn nobody_dropped(&self) -> bool {
        let all = self.completeness([]);
        let silent = [&all.missing, &all.missing_stores, &all.silent];
        !self.catalog.live && all.dropped == 0 && silent.into_iter().all(Vec::is_empty)
    }

    /// A variable met so far.
    pub fn variable(&self, id: VarId) -> Option<&Variable> {
        self.catalog.variables.iter().find(|v| v.id() == id)
    }

    /// Takes catalog and status, and counts rates from them. Topology and variables stay where the new
    /// ones are not told.
    pub fn take_base(&mut self, mut catalog: Catalog, status: Status, received: u64) {
        if catalog.topology == Topology::default() {
            catalog.topology = std::mem::take(&mut self.catalog.topology);
        }
        let told = std::mem::replace(
            &mut catalog.variables,
            std::mem::take(&mut self.catalog.variables),
        );
        self.catalog = catalog;
        self.meet(told);
        self.status = status;
        self.answered = true;
        let mut sample = Sample {
            received,
            ..Sample::default()
        };
        for manager in &self.status.event_managers {
            sample.now = sample.now.max(manager.now);
            let name = manager.name.clone();
            sample.managers.insert(name, (manager.now, manager.cpu));
            for process in &manager.processes {
                let origins = process.by_origin.map(OpCounts::total).into_array();
                self.origins.insert(process.mp, origins);
                let counters = Counters {
                    now: manager.now,
                    accesses: origins.iter().sum(),
                    recorded: process.counters.recorded,
                    cpu: process.counters.cpu,
                    monitor: process.counters.monitor,
                };
                sample.processes.insert(process.mp, counters);
                for ap in &process.aps {
                    let mut figures = ApFigures {
                        origins: ap.by_origin.map(OpCounts::total).into_array(),
                        ..ApFigures::default()
                    };
                    for (_, counts) in ap.by_origin.iter() {
                        figures.counts.add(counts);
                    }
                    sample.aps.insert(ap.ap, figures.counts.total());
                    self.by_ap.insert(ap.ap, figures);
                }
            }
        }
        self.samples.push_back(sample);
        self.forget_old_samples();
        self.keep_rates();
    }

    /// Takes accesses of application processes, where no status tells them.
    pub fn take_aps(&mut self, aps: BTreeMap<ApId, ApFigures>) {
        self.origins.clear();
        for (ap, figures) in &aps {
            let its = self.catalog.topology.ap(*ap).map(|a| a.memory_process);
            let Some(mp) = its else { continue };
            let sum = self.origins.entry(mp).or_default();
            for (sum, n) in sum.iter_mut().zip(figures.origins) {
                *sum += n;
            }
        }
        self.by_ap = aps;
    }

    /// Takes where the time went.
    pub fn take_times(&mut self, breakdown: &Breakdown) {
        self.times.clear();
        for phase in &breakdown.phases {
            let its = self.times.entry(phase.ap).and_modify(|its| {
                its.whole.join(phase);
                its.phases += 1;
            });
            let its = its.or_insert(Spending {
                whole: *phase,
                longest: *phase,
                phases: 1,
            });
            if phase.wall > its.longest.wall {
                its.longest = *phase;
            }
        }
    }

    /// Remembers variables.
    pub fn meet(&mut self, variables: Vec<Variable>) {
        let known = &mut self.catalog.variables;
        if known.len() + variables.len() > REMEMBERED {
            known.clear();
        }
        for variable in variables {
            match known.binary_search_by_key(&variable.id(), Variable::id) {
                Ok(at) => known[at] = variable,
                Err(at) => known.insert(at, variable),
            }
        }
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

    /// Keeps the rates of now, of what runs.
    fn keep_rates(&mut self) {
        let Some(newest) = self.samples.back().filter(|_| self.catalog.live) else {
            return;
        };
        let mps = newest.processes.keys().map(|mp| Paced::Mp(*mp));
        let processes: Vec<Paced> = mps
            .chain(newest.aps.keys().map(|ap| Paced::Ap(*ap)))
            .collect();
        for process in processes {
            let rate = match process {
                Paced::Mp(mp) => self.rate_of_mp(mp),
                Paced::Ap(ap) => self.rate_of_ap(ap),
            };
            if let Some(rate) = rate {
                self.paces.take(process, rate);
            }
        }
    }

    /// Rates are told only of what runs; forget them where time was not observed.
    pub fn forget_rates(&mut self) {
        self.samples.clear();
    }

    /// Accesses per second of a memory process's applications, recently.
    pub fn rate_of_mp(&self, mp: MpId) -> Option<f64> {
        self.rate(|s| s.processes.get(&mp).map(|c| (c.now, c.accesses)))
    }

    /// Accesses per second of an application process, recently.
    pub fn rate_of_ap(&self, ap: ApId) -> Option<f64> {
        self.rate(|s| Some((s.now, *s.aps.get(&ap)?)))
    }

    /// What a memory process costs, recently.
    pub fn costs_of_mp(&self, mp: MpId) -> Option<Costs> {
        let rate = |of: fn(&Counters) -> Option<u64>| {
            self.rate(|s| {
                let counters = s.processes.get(&mp)?;
                Some((counters.now, of(counters)?))
            })
        };
        Some(Costs {
            cpu: rate(|c| Some(c.cpu?.0)).map(|share| share / 1e9),
            monitor: rate(|c| Some(c.monitor.0))? / 1e9,
            records: rate(|c| Some(c.recorded))?,
        })
    }

    /// Share of a processor that an event manager takes, recently.
    pub fn cpu_of_manager(&self, name: &str) -> Option<f64> {
        let known = |s: &Sample| s.managers.get(name).map(|(now, cpu)| (*now, cpu.0));
        Some(self.rate(known)? / 1e9)
    }

    /// Bytes per second that this terminal receives, recently.
    pub fn traffic(&self) -> Option<f64> {
        self.rate(|s| Some((s.now, s.received)))
    }

    fn rate(&self, known: impl Fn(&Sample) -> Option<(Nanos, u64)>) -> Option<f64> {
        let (since, before) = self.samples.iter().find_map(&known)?;
        let (now, after) = self.samples.iter().rev().find_map(&known)?;
        let seconds = (now - since).as_secs_f64();
        (seconds > 0.0).then(|| after.saturating_sub(before) as f64 / seconds)
    }
}
