//! What is modelled: a program, and the machine or cluster it runs on.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Error, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer, Serialize};

use super::locality::Locality;
use crate::error::{ModelError, fraction, invalid, non_negative, positive};

/// A thing built in, by its name, or one described by its fields.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Named<T> {
    /// The name of a built-in one.
    Name(String),
    /// The thing itself.
    Given(T),
}

// By hand, as the derived form for untagged enums cannot say which field is wrong.
impl<'de, T: Deserialize<'de>> Deserialize<'de> for Named<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = Named<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name or an object")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
                Ok(Named::Name(name.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Named::Given)
            }
        }
        deserializer.deserialize_any(Either(PhantomData))
    }
}

/// How the machines of a cluster share their network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// One medium for all.
    Bus,
    /// A port for each machine; references meet at the port of their destination.
    Switch,
}

/// A cluster network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Bus or switch.
    pub sharing: Sharing,
    /// Cycles of a reference to another machine's memory, between workstations (n = 1).
    pub remote_cycles: f64,
    /// The same between SMPs (n > 1); as between workstations if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smp_remote_cycles: Option<f64>,
}

/// Built-in networks: name, sharing, cycles at 200 MHz between workstations and between SMPs.
const NETWORKS: [(&str, Sharing, f64, f64); 3] = [
    ("10Mb bus", Sharing::Bus, 45_075.0, 45_078.0),
    ("100Mb bus", Sharing::Bus, 4_575.0, 4_578.0),
    ("155Mb switch", Sharing::Switch, 3_275.0, 3_278.0),
];

impl Named<Network> {
    /// The network.
    ///
    /// # Errors
    /// [`ModelError::Unknown`] listing the names; [`ModelError::Invalid`] for cycles out of range.
    pub fn resolve(&self, field: &str) -> Result<Network, ModelError> {
        match self {
            Self::Given(network) => {
                positive(&format!("{field}.remote_cycles"), network.remote_cycles)?;
                let smps = network.smp_remote_cycles.unwrap_or(1.0);
                positive(&format!("{field}.smp_remote_cycles"), smps)?;
                Ok(network.clone())
            }
            Self::Name(name) => NETWORKS
                .iter()
                .find(|(known, ..)| known == name)
                .map(|&(_, sharing, workstations, smps)| Network {
                    sharing,
                    remote_cycles: workstations,
                    smp_remote_cycles: Some(smps),
                })
                .ok_or_else(|| unknown(field, name, NETWORKS.iter().map(|n| n.0))),
        }
    }
}

/// A program, as far as the memory hierarchy sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// α > 1 of its locality.
    pub alpha: f64,
    /// β > 0 of its locality, bytes.
    pub beta: f64,
    /// γ in (0, 1], share of instructions that reference memory.
    pub gamma: f64,
}

/// Built-in programs (Table 2, and TPC-C of the text): name, α, β, γ.
const PROGRAMS: [(&str, f64, f64, f64); 5] = [
    ("FFT", 1.21, 103.26, 0.20),
    ("LU", 1.30, 90.27, 0.31),
    ("Radix", 1.14, 120.84, 0.37),
    ("EDGE", 1.71, 85.03, 0.45),
    ("TPC-C", 1.73, 1222.66, 0.36),
];

impl Program {
    /// Its locality.
    #[must_use]
    pub fn locality(&self) -> Locality {
        Locality {
            alpha: self.alpha,
            beta: self.beta,
        }
    }
}

impl Named<Program> {
    /// The program.
    ///
    /// # Errors
    /// [`ModelError::Unknown`] listing the names; [`ModelError::Invalid`] for a field out of range.
    pub fn resolve(&self) -> Result<Program, ModelError> {
        match self {
            Self::Given(program) => {
                program.locality().validate("program.")?;
                positive("program.gamma", program.gamma)?;
                fraction("program.gamma", program.gamma)?;
                Ok(program.clone())
            }
            Self::Name(name) => PROGRAMS
                .iter()
                .find(|(known, ..)| known == name)
                .map(|&(_, alpha, beta, gamma)| Program { alpha, beta, gamma })
                .ok_or_else(|| unknown("program", name, PROGRAMS.iter().map(|p| p.0))),
        }
    }
}

fn unknown<'a>(field: &str, name: &str, known: impl Iterator<Item = &'a str>) -> ModelError {
    ModelError::Unknown {
        field: field.to_owned(),
        name: name.to_owned(),
        known: known.collect::<Vec<_>>().join(", "),
    }
}

/// Cycles of the levels inside a machine.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cycles {
    /// τ_1, a cache hit.
    pub cache: f64,
    /// A reference to the machine's own memory.
    pub memory: f64,
    /// A reference to its disk.
    pub disk: f64,
}

impl Default for Cycles {
    /// The paper's, at 200 MHz.
    fn default() -> Self {
        Self {
            cache: 1.0,
            memory: 50.0,
            disk: 2000.0,
        }
    }
}

/// A machine or cluster with a program on it: the input of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// n ≥ 1, processors of a machine.
    pub n: u32,
    /// N ≥ 1, machines.
    #[serde(rename = "N")]
    pub machines: u32,
    /// Bytes of a processor's cache.
    pub cache: f64,
    /// Bytes of a machine's memory.
    pub memory: f64,
    /// The network, where N > 1; null otherwise.
    #[serde(default)]
    pub net: Option<Named<Network>>,
    /// The program.
    pub program: Named<Program>,
    /// Factor on remote references, for coherence traffic: 1.124 in the paper.
    #[serde(default = "default_adjust")]
    pub adjust: f64,
    /// Bytes of one unit of x in the locality law; the paper does not state the unit, 1 gives its
    /// orders of magnitude.
    #[serde(default = "one")]
    pub unit_bytes: f64,
    /// Fraction of disk accesses that go to another machine's disk and so cross the network.
    #[serde(default)]
    pub remote_disk: f64,
    /// Bytes of the program's data on one processor; without it the tail has no end.
    #[serde(default)]
    pub x_max: Option<f64>,
    /// C² of the levels' service times; 0, constant, in the paper.
    #[serde(rename = "C2", default)]
    pub c2: f64,
    /// S, instructions (and cycles) per second of a processor.
    #[serde(default = "default_hz")]
    pub hz: f64,
    /// Cycles of the levels.
    #[serde(default)]
    pub cycles: Cycles,
}

fn default_adjust() -> f64 {
    1.124
}

fn one() -> f64 {
    1.0
}

fn default_hz() -> f64 {
    2e8
}

/// Kibibytes and mebibytes of the paper's configurations.
const KIB: f64 = 1024.0;
const MIB: f64 = 1024.0 * 1024.0;

/// C1–C15 of the paper: n, N, cache (KiB), memory (MiB), network.
const CONFIGURATIONS: [(u32, u32, f64, f64, Option<&str>); 15] = [
    (2, 1, 256.0, 64.0, None),
    (2, 1, 512.0, 64.0, None),
    (2, 1, 256.0, 128.0, None),
    (2, 1, 512.0, 128.0, None),
    (4, 1, 256.0, 128.0, None),
    (4, 1, 512.0, 128.0, None),
    (1, 2, 256.0, 32.0, Some("10Mb bus")),
    (1, 4, 256.0, 64.0, Some("100Mb bus")),
    (1, 4, 512.0, 64.0, Some("100Mb bus")),
    (1, 4, 256.0, 64.0, Some("155Mb switch")),
    (1, 8, 512.0, 64.0, Some("155Mb switch")),
    (2, 2, 256.0, 64.0, Some("10Mb bus")),
    (2, 2, 256.0, 128.0, Some("100Mb bus")),
    (4, 2, 256.0, 128.0, Some("100Mb bus")),
    (4, 2, 256.0, 128.0, Some("155Mb switch")),
];

impl Machine {
    /// A configuration of the paper, `C1` to `C15`, with one of its programs.
    ///
    /// # Errors
    /// [`ModelError::Unknown`] listing the names.
    pub fn configuration(name: &str, program: &str) -> Result<Self, ModelError> {
        let number = name.strip_prefix('C').and_then(|n| n.parse::<usize>().ok());
        let row = number
            .and_then(|n| CONFIGURATIONS.get(n.checked_sub(1)?))
            .ok_or_else(|| unknown("config", name, ["C1", "…", "C15"].into_iter()))?;
        let &(n, machines, cache, memory, net) = row;
        Ok(Self {
            n,
            machines,
            cache: cache * KIB,
            memory: memory * MIB,
            net: net.map(|name| Named::Name(name.to_owned())),
            program: Named::Name(program.to_owned()),
            adjust: default_adjust(),
            unit_bytes: 1.0,
            remote_disk: 0.0,
            x_max: None,
            c2: 0.0,
            hz: default_hz(),
            cycles: Cycles::default(),
        })
    }

    /// Checks every field; [`Named`] ones are checked where they are resolved.
    ///
    /// # Errors
    /// [`ModelError::Invalid`] naming the field.
    pub fn validate(&self) -> Result<(), ModelError> {
        for (field, count) in [("n", self.n), ("N", self.machines)] {
            if count == 0 || count > MAX_PROCESSORS {
                return Err(invalid(field, f64::from(count), "between 1 and 1,000,000"));
            }
        }
        non_negative("cache", self.cache)?;
        positive("memory", self.memory)?;
        if self.memory < self.cache {
            return Err(invalid("memory", self.memory, "at least the cache"));
        }
        non_negative("adjust", self.adjust)?;
        positive("unit_bytes", self.unit_bytes)?;
        fraction("remote_disk", self.remote_disk)?;
        positive("x_max", self.x_max.unwrap_or(1.0))?;
        non_negative("C2", self.c2)?;
        positive("hz", self.hz)?;
        positive("cycles.cache", self.cycles.cache)?;
        positive("cycles.memory", self.cycles.memory)?;
        positive("cycles.disk", self.cycles.disk)
    }

    /// q = nN, all processors.
    #[must_use]
    pub fn processors(&self) -> u64 {
        u64::from(self.n) * u64::from(self.machines)
    }
}

/// More of either are refused: far beyond what the model was made for.
const MAX_PROCESSORS: u32 = 1_000_000;
