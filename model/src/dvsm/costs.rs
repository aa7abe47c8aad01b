//! A network under a technology: the primitive costs from which operations are built.

use super::network::{Line, Network};
use super::what_if::Technology;
use crate::error::ModelError;

/// Primitive costs, in microseconds; inputs have been checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Costs {
    network: Network,
    technology: Technology,
    system_speed: f64,
}

impl Costs {
    /// Combines a network and a technology.
    ///
    /// # Errors
    /// [`ModelError::Invalid`] or [`ModelError::Shape`] naming the field of either that is wrong.
    pub fn new(network: Network, technology: Technology) -> Result<Self, ModelError> {
        network.validate()?;
        technology.validate()?;
        let system_speed = technology.system_speed();
        crate::error::positive("speed", system_speed)?;
        Ok(Self {
            network,
            technology,
            system_speed,
        })
    }

    /// The technology.
    #[must_use]
    pub fn technology(&self) -> &Technology {
        &self.technology
    }

    /// Software cost of one end of a message of `bytes`: (a + b (bytes + H_s)) f / system speed.
    #[must_use]
    pub fn soft(&self, bytes: f64) -> f64 {
        self.end(self.network.segment(bytes).total_us, bytes)
    }

    /// The part of [`Costs::soft`] that is the system call.
    #[must_use]
    pub fn syscall(&self, bytes: f64) -> f64 {
        self.end(self.network.segment(bytes).syscall_us, bytes)
    }

    fn end(&self, [a, b]: Line, bytes: f64) -> f64 {
        let measured = a + b * (bytes + self.network.software_overhead_bytes);
        measured * self.technology.protocol / self.system_speed
    }

    /// Time of a message of `bytes` on the wire, header included.
    #[must_use]
    pub fn wire(&self, bytes: f64) -> f64 {
        // 1 Mbps is one bit per microsecond.
        let per_byte = self
            .technology
            .bandwidth_mbps
            .map_or(self.network.wire_us_per_byte, |mbps| 8.0 / mbps);
        (bytes + self.network.wire_overhead_bytes) * per_byte
    }

    /// Hardware latency of `messages` messages: two interfaces and the switch each.
    #[must_use]
    pub fn latency(&self, messages: f64) -> f64 {
        let interface = self
            .technology
            .interface_us
            .unwrap_or(self.network.interface_us);
        let switch = self.technology.switch_us.unwrap_or(self.network.switch_us);
        messages * (2.0 * interface + switch)
    }

    /// Extra system call time, measured as `us`.
    #[must_use]
    pub fn extra(&self, us: f64) -> f64 {
        let protocol = if self.technology.extra_is_protocol {
            self.technology.protocol
        } else {
            1.0
        };
        us * protocol / self.system_speed
    }

    /// DSM handler code or delay, measured as `us`.
    #[must_use]
    pub fn dsm(&self, us: f64) -> f64 {
        us / if self.technology.dsm_is_system {
            self.system_speed
        } else {
            self.technology.speed
        }
    }

    /// Signal delivery, measured as `us`.
    #[must_use]
    pub fn signal(&self, us: f64) -> f64 {
        self.technology.signal_us.unwrap_or(us / self.system_speed)
    }

    /// Application code, measured as `us`.
    #[must_use]
    pub fn busy(&self, us: f64) -> f64 {
        us / self.technology.speed
    }
}
