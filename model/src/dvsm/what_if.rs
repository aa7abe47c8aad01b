//! Technology parameters: the system as measured, and what might replace it (Table 7).

use serde::{Deserialize, Serialize};

use crate::error::{ModelError, fraction, non_negative, positive};

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
