//! Technology parameters: the system as measured, and what might replace it (Table 7).

use serde::{Deserialize, Serialize};

use crate::error::{ModelError, fraction, non_negative, positive};

/// Names of [`Technology::named`].
const NAMES: [&str; 16] = [
    "base",
    "future",
    "future_half_system",
    "fast8",
    "fast8_half_system",
    "slow4_half_system",
    "fast3",
    "protocol_half",
    "protocol_half_not_extra",
    "no_interface_latency",
    "gigabit",
    "dsm_is_user_code",
    "no_system_benefit",
    "prefetch_half",
    "prefetch_lock_half",
    "prefetch_empty_all",
];

/// How a system differs from the one the operation costs were measured on.
///
/// Decided here because the paper leaves it open: `protocol` is the *remaining* fraction; the extra
/// system call time counts as protocol; DSM code is system software; measured delays scale as DSM code
/// does; cold faults are not prefetched unless asked.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Technology {
    /// p > 0: processors are p times as fast; busy time is divided by it.
    pub speed: f64,
    /// b in \[0, 1\]: system software runs (1+b)^(log₂ p) times as fast.
    pub system_benefit: f64,
    /// f ≥ 0: remaining fraction of the software cost of messages.
    pub protocol: f64,
    /// φ in \[0, 1\]: fraction of diff faults that are prefetched, without mispredictions.
    pub prefetch_fault: f64,
    /// The same for cold faults.
    pub prefetch_empty: f64,
    /// Fraction of lock acquisitions that are not waited for.
    pub prefetch_lock: f64,
    /// Replaces the interface latency; never scaled by p.
    pub interface_us: Option<f64>,
    /// Replaces the switch latency; never scaled by p.
    pub switch_us: Option<f64>,
    /// Replaces the bandwidth; never scaled by p.
    pub bandwidth_mbps: Option<f64>,
    /// Replaces the signal delivery time, finally; without it, the measured one is divided by the
    /// system speed.
    pub signal_us: Option<f64>,
    /// DSM handler code and delays scale with the system speed rather than with p.
    pub dsm_is_system: bool,
    /// `protocol` also scales the extra system call time.
    pub extra_is_protocol: bool,
}

impl Default for Technology {
    /// The system as measured.
    fn default() -> Self {
        Self {
            speed: 1.0,
            system_benefit: 1.0,
            protocol: 1.0,
            prefetch_fault: 0.0,
            prefetch_empty: 0.0,
            prefetch_lock: 0.0,
            interface_us: None,
            switch_us: None,
            bandwidth_mbps: None,
            signal_us: None,
            dsm_is_system: true,
            extra_is_protocol: true,
        }
    }
}

impl Technology {
    /// The paper's future system (Table 7): p = 8, 0.5 µs interfaces and switch, 10 Gbps, signals in
    /// 40/64 µs, a fifth of the protocol cost, half of the faults and locks hidden. The paper uses
    /// `system_benefit` 1 and 0.5.
    #[must_use]
    pub fn future(system_benefit: f64) -> Self {
        Self {
            speed: 8.0,
            system_benefit,
            protocol: 0.2,
            prefetch_fault: 0.5,
            prefetch_lock: 0.5,
            interface_us: Some(0.5),
            switch_us: Some(0.5),
            bandwidth_mbps: Some(10_000.0),
            signal_us: Some(0.625),
            ..Self::default()
        }
    }

    /// A what-if that is asked often, by name: the measured system (`base`), Table 7 (`future`,
    /// `future_half_system`), and one parameter changed at a time.
    ///
    /// # Errors
    /// [`ModelError::Unknown`] listing the names.
    pub fn named(name: &str) -> Result<Self, ModelError> {
        let base = Self::default();
        let speed = |speed, system_benefit| Self {
            speed,
            system_benefit,
            ..base
        };
        Ok(match name {
            "base" => base,
            "future" => Self::future(1.0),
            "future_half_system" => Self::future(0.5),
            "fast8" => speed(8.0, 1.0),
            "fast8_half_system" => speed(8.0, 0.5),
            "slow4_half_system" => speed(0.25, 0.5),
            "fast3" => speed(3.0, 0.5),
            "no_system_benefit" => speed(8.0, 0.0),
            "dsm_is_user_code" => Self {
                dsm_is_system: false,
                ..speed(8.0, 0.5)
            },
            "protocol_half" => Self {
                protocol: 0.5,
                ..base
            },
            "protocol_half_not_extra" => Self {
                protocol: 0.5,
                extra_is_protocol: false,
                ..base
            },
            "no_interface_latency" => Self {
                interface_us: Some(0.0),
                ..base
            },
            "gigabit" => Self {
                bandwidth_mbps: Some(1000.0),
                ..base
            },
            "prefetch_half" => Self {
                prefetch_fault: 0.5,
                ..base
            },
            "prefetch_lock_half" => Self {
                prefetch_lock: 0.5,
                ..base
            },
            "prefetch_empty_all" => Self {
                prefetch_empty: 1.0,
                ..base
            },
            _ => {
                return Err(ModelError::Unknown {
                    field: "tech".to_owned(),
                    name: name.to_owned(),
                    known: NAMES.join(", "),
                });
            }
        })
    }

    /// (1+b)^(log₂ p): p for b = 1, 1 for b = 0, 3.375 for p = 8 and b = ½. Holds for p < 1 too.
    #[must_use]
    pub fn system_speed(&self) -> f64 {
        (1.0 + self.system_benefit).powf(self.speed.log2())
    }

    /// Checks every field.
    ///
    /// # Errors
    /// [`ModelError::Invalid`] naming the field that is out of range.
    pub fn validate(&self) -> Result<(), ModelError> {
        positive("speed", self.speed)?;
        fraction("system_benefit", self.system_benefit)?;
        non_negative("protocol", self.protocol)?;
        fraction("prefetch_fault", self.prefetch_fault)?;
        fraction("prefetch_empty", self.prefetch_empty)?;
        fraction("prefetch_lock", self.prefetch_lock)?;
        non_negative("interface_us", self.interface_us.unwrap_or(0.0))?;
        non_negative("switch_us", self.switch_us.unwrap_or(0.0))?;
        positive("bandwidth_mbps", self.bandwidth_mbps.unwrap_or(1.0))?;
        non_negative("signal_us", self.signal_us.unwrap_or(0.0))
    }
}
