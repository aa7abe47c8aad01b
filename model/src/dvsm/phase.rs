//! Applications: phases between barriers, each as long as its slowest processor and the barrier.
//!
//! Counts, sizes and averages are per processor *and* phase: averages over the run would hide
//! imbalance that alternates.

use serde::{Deserialize, Serialize};

use super::barrier::Barrier;
use super::costs::Costs;
use super::ops::{Empty, Fault, Lock};
use crate::error::{ModelError, length, non_negative};

/// What one processor does in one phase: busy time, and operations with their counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Processor {
    /// Application code, microseconds.
    pub busy: f64,
    /// Diff faults.
    #[serde(default)]
    pub faults: Vec<(f64, Fault)>,
    /// Cold faults.
    #[serde(default)]
    pub empties: Vec<(f64, Empty)>,
    /// Lock acquisitions.
    #[serde(default)]
    pub locks: Vec<(f64, Lock)>,
    /// Parts of others' faults served here.
    #[serde(default)]
    pub served: Vec<(f64, Fault)>,
    /// Faults of garbage collection, over all shared pages; never prefetched, as they come at once.
    #[serde(default)]
    pub gc: Vec<(f64, Fault)>,
    /// Releasing of locks, DSM code, microseconds.
    #[serde(default)]
    pub release: f64,
}

/// What all processors do up to a barrier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Phase {
    /// By processor.
    pub procs: Vec<Processor>,
    /// The barrier that ends the phase.
    pub barrier: Barrier,
}

/// An application.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Application {
    /// For reports.
    #[serde(default)]
    pub name: String,
    /// T_seq, microseconds on one processor of the measured system.
    pub sequential_us: f64,
    /// In order; every phase has the same processors.
    pub phases: Vec<Phase>,
}

/// Predicted time of an application.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApplicationCost {
    /// T, microseconds.
    pub time_us: f64,
    /// T by phase, barrier included.
    pub phase_us: Vec<f64>,
    /// Time of each processor in each phase, barrier excluded.
    pub processor_sums_us: Vec<Vec<f64>>,
    /// Barrier that ends each phase.
    pub barrier_us: Vec<f64>,
    /// T_seq/(p P T), p the processor speed.
    pub efficiency: f64,
    /// Busy time, mean over processors, all phases.
    pub mean_busy_us: f64,
    /// T − mean busy time.
    pub overhead_us: f64,
}

/// Where a processor's time goes in a phase, the barrier excluded; microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Parts {
    /// Application code.
    pub busy_us: f64,
    /// Diff faults.
    pub faults_us: f64,
    /// Cold faults.
    pub empties_us: f64,
    /// Garbage collection.
    pub gc_us: f64,
    /// Lock acquisitions.
    pub locks_us: f64,
    /// Serving others' faults.
    pub served_us: f64,
    /// Releasing of locks.
    pub release_us: f64,
}

impl Processor {
    fn validate(&self, at: &str) -> Result<(), ModelError> {
        non_negative(&format!("{at}busy"), self.busy)?;
        non_negative(&format!("{at}release"), self.release)?;
        for (name, list) in [
            ("faults", &self.faults),
            ("served", &self.served),
            ("gc", &self.gc),
        ] {
            for (i, (count, op)) in list.iter().enumerate() {
                non_negative(&format!("{at}{name}[{i}][0]"), *count)?;
                op.validate(&format!("{at}{name}[{i}][1]."))?;
            }
        }
        for (i, (count, op)) in self.empties.iter().enumerate() {
            non_negative(&format!("{at}empties[{i}][0]"), *count)?;
            op.validate(&format!("{at}empties[{i}][1]."))?;
        }
        for (i, (count, op)) in self.locks.iter().enumerate() {
            non_negative(&format!("{at}locks[{i}][0]"), *count)?;
            op.validate(&format!("{at}locks[{i}][1]."))?;
        }
        Ok(())
    }

    /// Busy time and every operation, `count` times each.
    fn time(&self, costs: &Costs) -> f64 {
        self.parts(costs).total()
    }

    /// Where the processor's time goes. For values that were checked ([`Application::validate`]).
    #[must_use]
    pub fn parts(&self, costs: &Costs) -> Parts {
        let technology = costs.technology();
        let mix = |ahead: f64, waited: f64, hidden: f64| (1.0 - ahead) * waited + ahead * hidden;
        let fault = |op: &Fault| {
            mix(
                technology.prefetch_fault,
                op.checked_cost(costs).total,
                op.prefetched(costs),
            )
        };
        let empty = |op: &Empty| {
            mix(
                technology.prefetch_empty,
                op.checked_cost(costs).total,
                op.prefetched(costs),
            )
        };
        let lock = |op: &Lock| {
            mix(
                technology.prefetch_lock,
                op.checked_cost(costs).total,
                op.prefetched(costs),
            )
        };
        Parts {
            busy_us: costs.busy(self.busy),
            faults_us: total(&self.faults, fault),
            empties_us: total(&self.empties, empty),
            gc_us: total(&self.gc, |op| op.checked_cost(costs).total),
            locks_us: total(&self.locks, lock),
            // Prefetching hides latency from the faulting processor; others serve it all the same.
            served_us: total(&self.served, |op| op.service(costs)),
            release_us: costs.dsm(self.release),
        }
    }
}

impl Parts {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> f64 {
        self.busy_us
            + self.faults_us
            + self.empties_us
            + self.gc_us
            + self.locks_us
            + self.served_us
            + self.release_us
    }
}

/// Σ count × cost.
fn total<T>(operations: &[(f64, T)], cost: impl Fn(&T) -> f64) -> f64 {
    operations.iter().map(|(count, op)| count * cost(op)).sum()
}

impl Application {
    /// Checks every field.
    ///
    /// # Errors
    /// [`ModelError::Shape`] for no phases, no processors, or phases that differ in processors;
    /// [`ModelError::Invalid`] with the path of the field, e.g. `phases[0].procs[1].busy`.
    pub fn validate(&self) -> Result<(), ModelError> {
        non_negative("sequential_us", self.sequential_us)?;
        let Some(first) = self.phases.first() else {
            return Err(ModelError::Shape {
                field: "phases".to_owned(),
                found: 0,
                expected: 1,
            });
        };
        if first.procs.is_empty() {
            let field = "phases[0].procs".to_owned();
            return Err(ModelError::Shape {
                field,
                found: 0,
                expected: 1,
            });
        }
        for (i, phase) in self.phases.iter().enumerate() {
            length(
                &format!("phases[{i}].procs"),
                phase.procs.len(),
                first.procs.len(),
            )?;
            for (j, processor) in phase.procs.iter().enumerate() {
                processor.validate(&format!("phases[{i}].procs[{j}]."))?;
            }
            phase.barrier.validate(&format!("phases[{i}].barrier."))?;
        }
        Ok(())
    }

    /// T = Σ phases (max over processors + barrier), with its components.
    ///
    /// # Errors
    /// As [`Application::validate`]; [`ModelError::Invalid`] under `phases` if the predicted time is
    /// zero, which has no efficiency.
    pub fn cost(&self, costs: &Costs) -> Result<ApplicationCost, ModelError> {
        self.validate()?;
        let processors = self.phases[0].procs.len();
        let processor_sums_us: Vec<Vec<f64>> = self
            .phases
            .iter()
            .map(|phase| phase.procs.iter().map(|p| p.time(costs)).collect())
            .collect();
        let barrier_us: Vec<f64> = self
            .phases
            .iter()
            .map(|phase| phase.barrier.checked_cost(processors, costs).total)
            .collect();
        let phase_us: Vec<f64> = processor_sums_us
            .iter()
            .zip(&barrier_us)
            .map(|(sums, barrier)| sums.iter().fold(0.0, |a: f64, &b| a.max(b)) + barrier)
            .collect();
        let time_us: f64 = phase_us.iter().sum();
        crate::error::positive("phases", time_us)?;
        let busy: f64 = self
            .phases
            .iter()
            .flat_map(|phase| &phase.procs)
            .map(|p| costs.busy(p.busy))
            .sum();
        let mean_busy_us = busy / processors as f64;
        Ok(ApplicationCost {
            efficiency: costs.busy(self.sequential_us) / (processors as f64 * time_us),
            overhead_us: time_us - mean_busy_us,
            mean_busy_us,
            time_us,
            phase_us,
            processor_sums_us,
            barrier_us,
        })
    }
}

/// (O_base − O_new)/O_base: the share of the overhead that a change removes; 0 if there was none.
#[must_use]
pub fn overhead_reduction(base: &ApplicationCost, new: &ApplicationCost) -> f64 {
    if base.overhead_us > 0.0 {
        (base.overhead_us - new.overhead_us) / base.overhead_us
    } else {
        0.0
    }
}
