//! More application processes than processors: what that costs, by a replay with a processor for each process.
//!
//! It is not one of the findings, since its cure is another machine or fewer processes, and whoever tries a program out on a small
//! machine knows. But what the processes lose by it shows as slow accesses, and would be taken for those.

use dosmos_replay::{Calibrated, Change};
use serde::Serialize;

/// Processes share processors, and the run is longer for it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Oversubscribed {
    /// Number of application processes.
    pub application_processes: usize,
    /// Number of memory and link processes, which need processors too.
    pub memory_processes: usize,
    /// Processors of the machine, fewer than application processes.
    pub processors: usize,
    /// Fraction of the run that a processor for each process would save.
    pub gain: f64,
    /// The least and the most of it, over the costs that messages may have had.
    pub gain_range: [f64; 2],
}

impl Oversubscribed {
    /// None if each application process has a processor, or the run is longer by less than `least` of it.
    pub(crate) fn of(run: &Calibrated, least: f64) -> Option<Self> {
        let topology = run.script().topology();
        let application_processes = topology.application_processes().len();
        let memory_processes = topology.memory_processes().len();
        let processors = run.costs().processors;
        if application_processes <= processors {
            return None;
        }
        let one_each = Change {
            processors: Some(application_processes + memory_processes),
            ..Change::default()
        };
        let gain = run.gain(&one_each).filter(|g| g.gain >= least)?;
        Some(Self {
            application_processes,
            memory_processes,
            processors,
            gain: gain.gain,
            gain_range: [gain.least, gain.most],
        })
    }

    /// It in words.
    pub fn sentence(&self) -> String {
        let [gain, least, most] =
            [self.gain, self.gain_range[0], self.gain_range[1]].map(|g| 100.0 * g);
        let processors = match self.processors {
            1 => "one processor".to_owned(),
            n => format!("{n} processors"),
        };
        format!(
            "{} application processes and {} memory and link processes share {processors}: with one for each the run would be {gain:.0} % shorter \
             ({least:.0} to {most:.0} %, by a replay)",
            self.application_processes, self.memory_processes
        )
    }
}
