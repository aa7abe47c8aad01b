//! What messages cost on a machine, from measurements of messages there and back (`dosmos-bench network`).
//!
//! A message costs software at both ends, which is processor time, and the rest of the time it takes,
//! which is given to the hardware: interfaces and wire (docs/design/models.md#network-record). Where the two ends work at the
//! same time there is less rest, at least none.

use serde::{Deserialize, Serialize};

use crate::dvsm::network::Line;
use crate::dvsm::{Network, Segment};
use crate::error::{ModelError, non_negative};

/// Messages up to this size have a cost line of their own.
const SMALL_BYTES: f64 = 4096.0;

/// What messages of one size cost. Times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MessageSample {
    /// Content of a message.
    pub bytes: f64,
    /// From the begin of sending to the end of receiving: half of the time there and back.
    pub one_way_us: f64,
    /// Processor time of one end: the mean of sending and receiving.
    pub software_us: f64,
    /// Of that, what the system took.
    pub system_us: f64,
}

/// The time an application process needs to ask its memory process, there and back, which serves alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hop {
    /// A read of that many bytes.
    pub read_us: Line,
    /// A write of that many bytes.
    pub write_us: Line,
}

/// What messages cost on a machine: the network record of the DVSM model, and the way between an
/// application process and its memory process, which that model does not have. More fields (how it was
/// measured) are ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetworkRecord {
    /// Where it was measured.
    #[serde(default)]
    pub machine: String,
    /// Processors there.
    pub processors: usize,
    /// Between memory processes.
    pub network: Network,
    /// Between an application process and its memory process.
    pub hop: Hop,
    /// Processor time that something between two processes takes on the same machine to hand on a message of that many bytes, such as
    /// a proxy; 0 where there is nothing.
    #[serde(default)]
    pub carried_us: Line,
}

impl NetworkRecord {
    /// gRPC over loopback sockets on a machine with two virtual cores (`dosmos-bench network`, 2026-11-23): where nobody
    /// measured.
    #[must_use]
    pub fn typical() -> Self {
        Self {
            machine: "a typical one: measure yours with `dosmos-bench network`".to_owned(),
            processors: 2,
            network: Network {
                segments: vec![Segment {
                    max_size: None,
                    syscall_us: [2.0, 0.0002],
                    total_us: [3.8, 0.0002],
                }],
                wire_us_per_byte: 0.0,
                interface_us: 0.5,
                switch_us: 0.0,
                wire_overhead_bytes: 0.0,
                software_overhead_bytes: 0.0,
                effective_mbps: None,
            },
            hop: Hop {
                read_us: [18.4, 0.0003],
                write_us: [18.4, 0.0003],
            },
            carried_us: [0.0; 2],
        }
    }

    /// Checks every field.
    ///
    /// # Errors
    /// [`ModelError`] naming the field.
    pub fn validate(&self) -> Result<(), ModelError> {
        self.network.validate()?;
        if self.processors == 0 {
            return Err(crate::error::invalid("processors", 0.0, "at least 1"));
        }
        for (name, line) in [
            ("hop.read_us", self.hop.read_us),
            ("hop.write_us", self.hop.write_us),
            ("carried_us", self.carried_us),
        ] {
            non_negative(&format!("{name}[0]"), line[0])?;
            non_negative(&format!("{name}[1]"), line[1])?;
        }
        Ok(())
    }

    /// One request to the own memory process and its response, with this many bytes in both together.
    #[must_use]
    pub fn hop_us(&self, up_bytes: f64, down_bytes: f64) -> f64 {
        self.hop.read_us[0] + self.hop.write_us[1] * up_bytes + self.hop.read_us[1] * down_bytes
    }
}

/// The network behind some samples: two lines of software, small messages and large ones, and
/// what is left of the time to the wire and the interfaces.
///
/// # Errors
/// [`ModelError::Shape`] for fewer than two sizes; [`ModelError::Invalid`] for a sample that is no
/// measurement.
pub fn network_of(samples: &[MessageSample]) -> Result<Network, ModelError> {
    if samples.len() < 2 {
        return Err(ModelError::Shape {
            field: "samples".to_owned(),
            found: samples.len(),
            expected: 2,
        });
    }
    for (i, s) in samples.iter().enumerate() {
        for (name, value) in [
            ("bytes", s.bytes),
            ("one_way_us", s.one_way_us),
            ("software_us", s.software_us),
            ("system_us", s.system_us),
        ] {
            non_negative(&format!("samples[{i}].{name}"), value)?;
        }
    }
    let segment = |max_size: Option<f64>, among: &[MessageSample]| Segment {
        max_size,
        syscall_us: line(among.iter().map(|s| (s.bytes, s.system_us))),
        total_us: line(among.iter().map(|s| (s.bytes, s.software_us))),
    };
    let at_most = |s: &&MessageSample| s.bytes <= SMALL_BYTES;
    let small: Vec<MessageSample> = samples.iter().filter(at_most).copied().collect();
    // The size at the border belongs to both, so that the lines nearly meet there.
    let large: Vec<MessageSample> = samples
        .iter()
        .filter(|s| s.bytes >= SMALL_BYTES)
        .copied()
        .collect();
    let segments = if small.len() >= 2 && large.len() >= 2 {
        vec![segment(Some(SMALL_BYTES), &small), segment(None, &large)]
    } else {
        vec![segment(None, samples)]
    };
    let rest = |s: &MessageSample| (s.one_way_us - 2.0 * s.software_us).max(0.0);
    let [latency, per_byte] = line(samples.iter().map(|s| (s.bytes, rest(s))));
    Ok(Network {
        segments,
        wire_us_per_byte: per_byte,
        interface_us: latency / 2.0,
        switch_us: 0.0,
        wire_overhead_bytes: 0.0,
        software_overhead_bytes: 0.0,
        effective_mbps: (per_byte > 0.0).then(|| 8.0 / per_byte),
    })
}

/// The straight line of least relative squares through points, with neither coefficient below zero.
#[must_use]
pub fn line(points: impl Iterator<Item = (f64, f64)>) -> Line {
    let (mut w, mut x, mut y, mut xx, mut xy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (at, value) in points {
        let weight = 1.0 / value.max(0.1).powi(2);
        w += weight;
        x += weight * at;
        y += weight * value;
        xx += weight * at * at;
        xy += weight * at * value;
    }
    let spread = w * xx - x * x;
    let slope = if spread > 0.0 {
        (w * xy - x * y) / spread
    } else {
        0.0
    };
    if slope <= 0.0 {
        return [if w > 0.0 { y / w } else { 0.0 }, 0.0];
    }
    let start = (y - slope * x) / w;
    if start >= 0.0 {
        [start, slope]
    } else {
        [0.0, xy / xx]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(bytes: f64) -> MessageSample {
        let software_us = if bytes <= SMALL_BYTES {
            8.0 + 0.001 * bytes
        } else {
            10.0 + 0.0005 * bytes
        };
        MessageSample {
            bytes,
            software_us,
            system_us: software_us / 2.0,
            one_way_us: 2.0 * software_us + 6.0 + 0.0002 * bytes,
        }
    }

    #[test]
    fn measured_costs_come_back() {
        let sizes = [0.0, 64.0, 1024.0, 4000.0, 8192.0, 65_536.0];
        let samples: Vec<_> = sizes.map(sample).to_vec();
        let network = network_of(&samples).unwrap();
        network.validate().unwrap();
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} {b}");
        close(network.segments[0].total_us[0], 8.0);
        close(network.segments[0].total_us[1], 0.001);
        close(network.segments[1].total_us[0], 10.0);
        close(network.segments[1].syscall_us[1], 0.00025);
        close(network.interface_us, 3.0);
        close(network.wire_us_per_byte, 0.0002);
    }

    #[test]
    fn ends_that_work_at_the_same_time_leave_no_negative_rest() {
        let samples = [0.0, 100.0].map(|bytes| MessageSample {
            one_way_us: 3.0,
            ..sample(bytes)
        });
        let network = network_of(&samples).unwrap();
        assert_eq!((network.interface_us, network.wire_us_per_byte), (0.0, 0.0));
        assert!(network_of(&samples[..1]).is_err());
        let bad = [
            sample(0.0),
            MessageSample {
                bytes: f64::NAN,
                ..sample(1.0)
            },
        ];
        assert!(
            network_of(&bad)
                .unwrap_err()
                .to_string()
                .contains("samples[1].bytes")
        );
    }

    #[test]
    fn lines_never_fall() {
        assert_eq!(line([(0.0, 4.0), (10.0, 2.0)].into_iter())[1], 0.0);
        assert_eq!(line([(1.0, 1.0), (2.0, 3.0)].into_iter())[0], 0.0);
        assert_eq!(line(std::iter::empty()), [0.0, 0.0]);
        NetworkRecord::typical().validate().unwrap();
    }
}
