//! What to simulate, and how long.

use serde::{Deserialize, Serialize};

use super::distribution::Distribution;
use super::latency::LatencyModel;
use crate::error::{ModelError, finite_result, invalid};
use crate::lopc::{ClientServerInput, GeneralInput, HomogeneousInput};

/// Inputs of a simulation; times in any one unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimInput {
    /// V\[i\]\[k\], mean visits; drawn as a chain of ⌊h⌋ or ⌈h⌉ hops (h the row sum), each hop to k
    /// with probability V\[i\]\[k\]/h.
    #[serde(rename = "V")]
    pub visits: Vec<Vec<f64>>,
    /// W\[i\], mean work; `None` (null) where no thread runs.
    #[serde(rename = "W")]
    pub means: Vec<Option<f64>>,
    /// S_o, mean handler time.
    #[serde(rename = "So")]
    pub handler: f64,
    /// S_l, mean one-way latency.
    #[serde(rename = "Sl")]
    pub latency: f64,
    /// C² of the handler time.
    #[serde(rename = "C2", default)]
    pub c2: f64,
    /// Handlers run beside the compute thread instead of interrupting it.
    #[serde(default)]
    pub protocol_processor: bool,
    /// Distribution of the work.
    #[serde(default)]
    pub work: Distribution,
    /// Shape of the network latency.
    #[serde(default)]
    pub network: LatencyModel,
    /// Seed of all random choices.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Cycles, over all threads, thrown away before measuring.
    #[serde(default = "default_warmup")]
    pub warmup: u64,
    /// Cycles, over all threads, measured; 10⁵ give R to about 0.1 %.
    #[serde(default = "default_cycles")]
    pub cycles: u64,
}

fn default_seed() -> u64 {
    1
}

fn default_warmup() -> u64 {
    10_000
}

fn default_cycles() -> u64 {
    100_000
}

/// More are refused: a mistyped number shall not look like a hang.
const MAX_MESSAGES: f64 = 1e11;

impl SimInput {
    /// The machine of the general model.
    #[must_use]
    pub fn general(input: &GeneralInput) -> Self {
        Self {
            visits: input.visits.clone(),
            means: input.work.clone(),
            handler: input.handler,
            latency: input.latency,
            c2: input.c2,
            protocol_processor: input.protocol_processor,
            work: Distribution::Constant,
            network: LatencyModel::Constant,
            seed: default_seed(),
            warmup: default_warmup(),
            cycles: default_cycles(),
        }
    }

    /// The machine of the homogeneous model: every other node with equal probability.
    #[must_use]
    pub fn homogeneous(input: &HomogeneousInput) -> Self {
        let n = input.processors as usize;
        let share = 1.0 / (f64::from(input.processors) - 1.0);
        let visits = (0..n)
            .map(|i| (0..n).map(|k| if k == i { 0.0 } else { share }).collect())
            .collect();
        Self::general(&GeneralInput {
            visits,
            work: vec![Some(input.work); n],
            handler: input.handler,
            latency: input.latency,
            c2: input.c2,
            protocol_processor: input.protocol_processor,
        })
    }

    /// The machine of the client–server model with the first `servers` nodes as servers.
    #[must_use]
    pub fn client_server(input: &ClientServerInput, servers: u32) -> Self {
        let (n, servers) = (input.processors as usize, servers as usize);
        let share = 1.0 / servers as f64;
        let row = |i| {
            let ask = |k| {
                if i >= servers && k < servers {
                    share
                } else {
                    0.0
                }
            };
            (0..n).map(ask).collect()
        };
        Self::general(&GeneralInput {
            visits: (0..n).map(row).collect(),
            work: (0..n)
                .map(|i| (i >= servers).then_some(input.work))
                .collect(),
            handler: input.handler,
            latency: input.latency,
            c2: input.c2,
            protocol_processor: false,
        })
    }

    /// The analytic model of the same machine.
    #[must_use]
    pub fn as_general(&self) -> GeneralInput {
        GeneralInput {
            visits: self.visits.clone(),
            work: self.means.clone(),
            handler: self.handler,
            latency: self.latency,
            c2: self.c2,
            protocol_processor: self.protocol_processor,
        }
    }

    /// Checks every field.
    ///
    /// # Errors
    /// As [`GeneralInput::validate`], and [`ModelError::Invalid`] for a bad distribution, `columns`
    /// or number of cycles.
    pub fn validate(&self) -> Result<(), ModelError> {
        let general = self.as_general();
        general.validate()?;
        self.work.validate("work.c2")?;
        if self.cycles == 0 {
            return Err(invalid("cycles", 0.0, "at least 1"));
        }
        let hops = |row: &Vec<f64>| row.iter().sum::<f64>();
        let most_hops = self.visits.iter().map(hops).fold(0.0, f64::max);
        let messages = (1.0 + most_hops) * (self.cycles as f64 + self.warmup as f64);
        if messages > MAX_MESSAGES {
            let why = "less: cycles, warmup included, times hops is over 10^11, which takes a day";
            return Err(invalid("cycles", self.cycles as f64, why));
        }
        // Simulated time must stay finite, however unlucky the draws.
        let longest = (0..general.nodes())
            .map(|i| general.logp_cycle_of(i, general.work_of(i)))
            .fold(0.0, f64::max);
        let events = self.cycles as f64 + self.warmup as f64;
        finite_result(
            "the simulated time",
            longest * events * 1e6 * (1.0 + self.c2),
        )
        .map(|_| ())
    }
}
