//! How long a run took, how long the phase model says it took, and how long it would take after a
//! change.
//!
//! A phase is as long as its slowest process (docs/design/models.md#dvsm-phases), and at least as long as its work keeps the
//! machine's processors busy: processes that share processors cannot all compute at once.
//!
//! What a change gains is the ratio of two modelled times. So where a model is off by the same factor
//! before and after, its gain is right.

use std::collections::BTreeSet;

use dosmos_proto::{ApId, Component};
use serde::Serialize;

use super::change::Change;
use super::measured::{DelayModel, Measured};
use super::phases::{Kind, Run, Work};
use crate::dvsm::{Costs, Network, Technology};
use crate::error::{ModelError, positive};

/// Where the time goes, mean over the processes; together the time of the run. Microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Times {
    /// Of the run.
    pub run_us: f64,
    /// Computing.
    pub busy_us: f64,
    /// The processor serves others.
    pub service_us: f64,
    /// Accesses that the own memory process serves alone.
    pub local_us: f64,
    /// Accesses that another memory process serves.
    pub fault_us: f64,
    /// The first such of a process to an object.
    pub cold_us: f64,
    /// Acquires and releases.
    pub lock_us: f64,
    /// Barriers, waiting for the slowest included.
    pub barrier_us: f64,
}

/// A run now and after a change.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Now, measured.
    pub measured: Times,
    /// Now, modelled.
    pub modelled: Times,
    /// modelled / measured − 1.
    pub error: f64,
    /// After the change, modelled; none if nothing was to change.
    pub changed: Option<Times>,
    /// 1 − changed / modelled: the share of the time that the change saves; below 0 if it costs.
    pub gain: Option<f64>,
    /// The measured time less the gain, µs.
    pub expected_us: Option<f64>,
}

impl Measured {
    /// The breakdown measured, modelled, and after `change` (none: no change).
    ///
    /// # Errors
    /// [`ModelError`] naming the field of the technology that is out of range, the process that a
    /// placement lacks, or what makes no time at all.
    pub fn predict(
        &self,
        delays: DelayModel,
        change: Option<&Change>,
    ) -> Result<Prediction, ModelError> {
        let measured = self.times();
        let today = self.run(delays, None)?;
        let modelled = self.evaluate(&today, &Change::default())?;
        positive("run_us", measured.run_us)?;
        positive("phases", modelled.run_us)?;
        let changed = match change {
            None => None,
            Some(change) => Some(self.evaluate(&self.run(delays, Some(change))?, change)?),
        };
        let gain = changed.map(|c| 1.0 - c.run_us / modelled.run_us);
        Ok(Prediction {
            measured,
            modelled,
            error: modelled.run_us / measured.run_us - 1.0,
            changed,
            gain,
            expected_us: gain.map(|g| measured.run_us * (1.0 - g)),
        })
    }

    /// The share of the run's time that a change would save, 0 if it saves none: what a finding says it
    /// gains.
    ///
    /// # Errors
    /// As [`Self::predict`].
    pub fn gain(&self, change: &Change) -> Result<f64, ModelError> {
        let prediction = self.predict(DelayModel::Measured, Some(change))?;
        Ok(prediction.gain.unwrap_or(0.0).clamp(0.0, 1.0))
    }

    /// The breakdown as measured, without start-up: what a process waited at barriers for later starters is
    /// no part of the run.
    #[must_use]
    pub fn times(&self) -> Times {
        let run_us = self.run_us();
        let n = self.aps.len().max(1) as f64;
        let mean = |of: Component| {
            let all = (0..self.aps.len()).map(|i| self.spent(i, of).0 as f64 / 1e3);
            all.sum::<f64>() / n
        };
        let mut times = Times {
            run_us,
            busy_us: mean(Component::Busy),
            service_us: mean(Component::Service),
            local_us: mean(Component::Local),
            fault_us: mean(Component::Fault),
            cold_us: mean(Component::Cold),
            lock_us: mean(Component::Lock),
            barrier_us: 0.0,
        };
        times.barrier_us = (run_us - times.without_barriers()).max(0.0);
        times
    }

    fn evaluate(&self, run: &Run, change: &Change) -> Result<Times, ModelError> {
        let costs = Costs::new(self.network.network.clone(), change.technology)?;
        let work_costs = Costs::new(without_distance(&self.network.network), no_distance(change))?;
        let measured_costs = Costs::new(self.network.network.clone(), Technology::default())?;
        let hop_us = 4.0 * measured_costs.soft(0.0);
        let was = self.aps.len().max(1) as f64;
        let now = change.processes.map_or(was, f64::from);
        positive("procs", now)?;
        let processors = change.processors.unwrap_or(self.network.processors).max(1);
        let mut times = Times::default();
        for (works, barrier) in &run.phases {
            let works: Vec<Work> = works
                .iter()
                .map(|w| Work {
                    busy_us: w.busy_us * was / now,
                    ..w.clone()
                })
                .collect();
            let mut parts: Vec<Times> = works.iter().map(|w| parts(w, &costs)).collect();
            self.balance(&mut parts, &change.balanced);
            let slowest = parts
                .iter()
                .map(Times::without_barriers)
                .fold(0.0, f64::max);
            let demand: f64 = works
                .iter()
                .map(|w| parts_of_processor(w, &work_costs, hop_us))
                .sum::<f64>()
                * (now / was);
            let length = slowest.max(demand / processors as f64);
            let barrier = barrier.cost(now.round() as usize, &costs)?.total;
            times.run_us += length + barrier;
            for part in &parts {
                times.add(part, 1.0 / was);
                // What is longer than the slowest process is given to others' processes.
                times.service_us += (length - slowest) / was;
                times.barrier_us += (slowest - part.without_barriers() + barrier) / was;
            }
        }
        Ok(times)
    }

    /// Divides what processes do in a phase evenly among those named.
    fn balance(&self, parts: &mut [Times], balanced: &BTreeSet<ApId>) {
        let chosen: Vec<usize> = (0..self.aps.len().min(parts.len()))
            .filter(|&i| balanced.contains(&self.aps[i]))
            .collect();
        let mut mean = Times::default();
        for &i in &chosen {
            mean.add(&parts[i], 1.0 / chosen.len() as f64);
        }
        for i in chosen {
            let lock_us = parts[i].lock_us;
            parts[i] = Times { lock_us, ..mean };
        }
    }
}

impl Times {
    fn without_barriers(&self) -> f64 {
        self.busy_us + self.service_us + self.local_us + self.fault_us + self.cold_us + self.lock_us
    }

    fn add(&mut self, other: &Self, weight: f64) {
        self.busy_us += weight * other.busy_us;
        self.service_us += weight * other.service_us;
        self.local_us += weight * other.local_us;
        self.fault_us += weight * other.fault_us;
        self.cold_us += weight * other.cold_us;
        self.lock_us += weight * other.lock_us;
    }

    /// Names and values, in the order of the tables.
    #[must_use]
    pub fn rows(&self) -> [(&'static str, f64); 8] {
        [
            ("busy", self.busy_us),
            ("service", self.service_us),
            ("local", self.local_us),
            ("fault", self.fault_us),
            ("cold", self.cold_us),
            ("lock", self.lock_us),
            ("barrier", self.barrier_us),
            ("run", self.run_us),
        ]
    }
}

/// Where the time of a process in a phase goes.
fn parts(work: &Work, costs: &Costs) -> Times {
    let all = work.processor().parts(costs);
    let local_us = work.total(Kind::Local, costs).1;
    let preempted_us = costs.dsm(work.preempted_us);
    Times {
        busy_us: all.busy_us,
        service_us: all.served_us + preempted_us,
        local_us,
        fault_us: all.faults_us,
        cold_us: all.empties_us,
        lock_us: all.locks_us + (all.release_us - local_us - preempted_us).max(0.0),
        ..Times::default()
    }
}

/// What it needs of processors, everything that others do for it included, where the way to the own memory
/// process and back takes one for `hop_us` at most.
fn parts_of_processor(work: &Work, costs: &Costs, hop_us: f64) -> f64 {
    work.without_delays(hop_us).processor().parts(costs).total()
}

/// The same software, at no distance.
fn without_distance(network: &Network) -> Network {
    Network {
        wire_us_per_byte: 0.0,
        interface_us: 0.0,
        switch_us: 0.0,
        ..network.clone()
    }
}

fn no_distance(change: &Change) -> Technology {
    Technology {
        interface_us: None,
        switch_us: None,
        bandwidth_mbps: None,
        ..change.technology
    }
}
