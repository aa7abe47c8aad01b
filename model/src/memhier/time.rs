//! Time per instruction, under four assumptions on queueing.

use serde::{Deserialize, Serialize};

use super::locality::{harmonic_tail, queued};
use super::machine::{Machine, Network, Program, Sharing};
use crate::error::{ModelError, finite_result, invalid};
use crate::numeric::bracketed_root;

/// How a shared level queues.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Not at all: a lower bound.
    None,
    /// The printed open formula; no answer if a level saturates.
    Open,
    /// The printed formula evaluated blindly, past its pole too: to reproduce published numbers, not
    /// to be believed where `saturated` is not empty.
    Raw,
    /// Processors are slowed by their own stalls, so that no level saturates. Recommended.
    #[default]
    Closed,
}

/// A level beyond the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Memory of the own machine.
    Memory,
    /// Memory of other machines.
    Remote,
    /// Disk.
    Disk,
}

/// A value for each level; `remote` only where there are several machines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct PerLevel<T> {
    /// Memory of the own machine.
    pub memory: T,
    /// Memory of other machines.
    #[serde(default = "none", skip_serializing_if = "Option::is_none")]
    pub remote: Option<T>,
    /// Disk.
    pub disk: T,
}

fn none<T>() -> Option<T> {
    None
}

impl<T: Copy> PerLevel<T> {
    fn map<U>(&self, f: impl Fn(T) -> U) -> PerLevel<U> {
        PerLevel {
            memory: f(self.memory),
            remote: self.remote.map(&f),
            disk: f(self.disk),
        }
    }

    /// The levels there are, nearest first.
    pub fn each(&self) -> impl Iterator<Item = (Level, T)> {
        let all = [
            Some((Level::Memory, self.memory)),
            self.remote.map(|value| (Level::Remote, value)),
            Some((Level::Disk, self.disk)),
        ];
        all.into_iter().flatten()
    }
}

/// What the model says in one mode.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// T, mean time of a reference, seconds; `None` (null) where the mode has no answer because a
    /// level is saturated.
    #[serde(rename = "T")]
    pub reference: Option<f64>,
    /// E(Instr) = (1/S + γT)/(nN), seconds; `None` with T.
    #[serde(rename = "E")]
    pub instruction: Option<f64>,
    /// h in (0, 1], fraction of its full rate at which a processor issues references; 1 except in the
    /// closed mode.
    pub h: f64,
    /// Utilisation Λτ of each level by the other processors, at that rate.
    pub util_others: PerLevel<f64>,
    /// Levels with a utilisation of at least 1 at that rate.
    pub saturated: Vec<Level>,
    /// p_i, references that reach each level, per reference.
    pub p: PerLevel<f64>,
    /// p_i t_i, the part of each level in T, seconds; `None` with T.
    pub parts: Option<PerLevel<f64>>,
    /// H/(γS), the part of the barriers in T, seconds.
    pub barrier: f64,
}

/// All four modes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimates {
    /// Without queueing.
    pub none: Estimate,
    /// The printed formula where it holds.
    pub open: Estimate,
    /// The printed formula everywhere.
    pub raw: Estimate,
    /// With processors slowed by their stalls.
    pub closed: Estimate,
}

/// A level, ready to be evaluated.
#[derive(Debug, Clone, Copy)]
struct Station {
    /// References that reach it.
    p: f64,
    /// τ, seconds.
    tau: f64,
    /// Processors' worth of traffic that others send it.
    others: f64,
}

/// The model with its constants worked out.
struct System {
    stations: PerLevel<Station>,
    program: Program,
    hz: f64,
    processors: f64,
    c2: f64,
    cache: f64,
    barrier: f64,
}

/// E(Instr) in one mode. Equations (4), (7)–(11); docs/design/models.md#memory-saturation.
///
/// # Errors
/// [`ModelError::Invalid`] or [`ModelError::Unknown`] naming the field. That a level is saturated is
/// an answer, not an error: see [`Estimate`].
pub fn estimate(machine: &Machine, mode: Mode) -> Result<Estimate, ModelError> {
    System::new(machine)?.estimate(mode)
}

/// [`estimate`] in all modes.
///
/// # Errors
/// As [`estimate`].
pub fn estimates(machine: &Machine) -> Result<Estimates, ModelError> {
    let system = System::new(machine)?;
    Ok(Estimates {
        none: system.estimate(Mode::None)?,
        open: system.estimate(Mode::Open)?,
        raw: system.estimate(Mode::Raw)?,
        closed: system.estimate(Mode::Closed)?,
    })
}

impl System {
    fn new(machine: &Machine) -> Result<Self, ModelError> {
        machine.validate()?;
        let program = machine.program.resolve()?;
        let network = match (&machine.net, machine.machines) {
            (_, 1) => None,
            (Some(net), _) => Some(net.resolve("net")?),
            (None, machines) => {
                let why = "1, as there is no net to connect more";
                return Err(invalid("N", f64::from(machines), why));
            }
        };
        let q = u32::try_from(machine.processors())
            .map_err(|_| invalid("N", f64::from(machine.machines), "fewer processors in all"))?;
        Ok(Self {
            stations: stations(machine, &program, network.as_ref()),
            hz: machine.hz,
            processors: f64::from(q),
            c2: machine.c2,
            cache: machine.cycles.cache / machine.hz,
            barrier: finite_result(
                "the barrier term",
                harmonic_tail(q) / (program.gamma * machine.hz),
            )?,
            program,
        })
    }

    /// Λτ of each level when processors issue references at the fraction `h` of their full rate.
    fn utilisations(&self, h: f64) -> PerLevel<f64> {
        let rate = h * self.program.gamma * self.hz;
        self.stations.map(|s| rate * s.p * s.others * s.tau)
    }

    /// p_i t_i at the fraction `h`; `t` gives t_i from τ and Λτ.
    fn parts(&self, h: f64, t: impl Fn(f64, f64) -> f64) -> PerLevel<f64> {
        let rate = h * self.program.gamma * self.hz;
        self.stations
            .map(|s| s.p * t(s.tau, rate * s.p * s.others * s.tau))
    }

    /// T from its parts.
    fn reference(&self, parts: &PerLevel<f64>) -> f64 {
        self.cache + parts.each().map(|(_, part)| part).sum::<f64>() + self.barrier
    }

    /// t where the formula holds, infinite from the pole on.
    fn bounded(&self, tau: f64, utilisation: f64) -> f64 {
        if utilisation < 1.0 {
            queued(tau, utilisation, self.c2)
        } else {
            f64::INFINITY
        }
    }

    /// h (1 + γ S T(h)) = 1: the left side rises from 0, and passes 1 before the first pole and before
    /// h = 1.
    fn throttle(&self) -> f64 {
        let worst = self
            .utilisations(1.0)
            .each()
            .map(|(_, u)| u)
            .fold(0.0, f64::max);
        let excess = |h: f64| {
            let parts = self.parts(h, |tau, u| self.bounded(tau, u));
            h * (1.0 + self.program.gamma * self.hz * self.reference(&parts)) - 1.0
        };
        bracketed_root(excess, 0.0, (1.0 / worst).min(1.0))
    }

    fn estimate(&self, mode: Mode) -> Result<Estimate, ModelError> {
        let h = if mode == Mode::Closed {
            self.throttle()
        } else {
            1.0
        };
        let util_others = self.utilisations(h);
        let saturated: Vec<Level> = util_others
            .each()
            .filter(|(_, u)| *u >= 1.0)
            .map(|(level, _)| level)
            .collect();
        let parts = match mode {
            Mode::None => self.parts(h, |tau, _| tau),
            Mode::Raw => self.parts(h, |tau, u| queued(tau, u, self.c2)),
            Mode::Open | Mode::Closed => self.parts(h, |tau, u| self.bounded(tau, u)),
        };
        let reference = self.reference(&parts);
        // The open formula past its pole, or the blind one exactly on it.
        let answered = reference.is_finite();
        if !answered && saturated.is_empty() {
            finite_result("T", reference)?;
        }
        let instruction = (1.0 / self.hz + self.program.gamma * reference) / self.processors;
        if answered {
            finite_result("E", instruction)?;
        }
        for (_, utilisation) in util_others.each() {
            finite_result("util_others", utilisation)?;
        }
        Ok(Estimate {
            reference: answered.then_some(reference),
            instruction: answered.then_some(instruction),
            h,
            util_others,
            saturated,
            p: self.stations.map(|s| s.p),
            parts: answered.then_some(parts),
            barrier: self.barrier,
        })
    }
}

/// The rows of docs/design/models.md#memory-execution-time: what reaches each level, how long it takes, and who else
/// uses it.
fn stations(machine: &Machine, program: &Program, network: Option<&Network>) -> PerLevel<Station> {
    let (n, machines) = (f64::from(machine.n), f64::from(machine.machines));
    let q = n * machines;
    let locality = program.locality();
    let missed = |bytes: f64| {
        let x = bytes / machine.unit_bytes;
        match machine.x_max {
            Some(x_max) => locality.cut_tail(x, q, x_max / machine.unit_bytes),
            None => locality.tail(x, q),
        }
    };
    let to_disk = missed(machines * machine.memory);
    let remote = network.map(|network| {
        let cycles = match network.smp_remote_cycles {
            Some(cycles) if machine.n > 1 => cycles,
            _ => network.remote_cycles,
        };
        Station {
            p: machine.adjust * missed(machine.memory) + machine.remote_disk * to_disk,
            tau: cycles / machine.hz,
            others: match network.sharing {
                Sharing::Bus => q - 1.0,
                Sharing::Switch => (n * (machines - 1.0) - 1.0) / (machines - 1.0),
            },
        }
    });
    PerLevel {
        memory: Station {
            p: missed(machine.cache),
            tau: machine.cycles.memory / machine.hz,
            others: n - 1.0,
        },
        remote,
        disk: Station {
            p: to_disk,
            tau: machine.cycles.disk / machine.hz,
            others: n - 1.0,
        },
    }
}
