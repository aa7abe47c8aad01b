//! Measured message costs of a network (Table 2).

use serde::{Deserialize, Serialize};

use crate::error::{ModelError, invalid, non_negative};

/// A straight line `[a, b]`: a + b · bytes, in microseconds.
pub type Line = [f64; 2];

/// Software cost of one end of a message, for messages up to a size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Segment {
    /// Largest message this applies to, in bytes without headers; `None` (null) for the last.
    pub max_size: Option<f64>,
    /// The system call alone.
    pub syscall_us: Line,
    /// System call and user-level protocol.
    pub total_us: Line,
}

/// What a network costs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// Software costs by message size, in rising order, the last without limit.
    pub segments: Vec<Segment>,
    /// Time on the wire per byte.
    pub wire_us_per_byte: f64,
    /// Latency of one network interface; a message crosses two.
    pub interface_us: f64,
    /// Latency of the switch.
    pub switch_us: f64,
    /// Header bytes on the wire.
    pub wire_overhead_bytes: f64,
    /// Header bytes the software handles.
    pub software_overhead_bytes: f64,
    /// Effective bandwidth behind `wire_us_per_byte`; documentation only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective_mbps: Option<f64>,
}

impl Network {
    /// The names [`Network::named`] knows.
    pub const NAMES: [&'static str; 2] = ["fast_ethernet", "atm"];

    /// 100 Mbps Fast Ethernet. The table's 58 header bytes fit all wire times, the text's 46 all
    /// software times of Tables 4 and 5.
    #[must_use]
    pub fn fast_ethernet() -> Self {
        Self {
            segments: vec![
                Segment {
                    max_size: Some(1024.0),
                    syscall_us: [71.0, 0.03138],
                    total_us: [102.0, 0.03865],
                },
                Segment {
                    max_size: None,
                    syscall_us: [71.0, 0.02583],
                    total_us: [154.0, 0.02583],
                },
            ],
            wire_us_per_byte: 0.08,
            interface_us: 25.0,
            switch_us: 0.0,
            wire_overhead_bytes: 58.0,
            software_overhead_bytes: 46.0,
            effective_mbps: None,
        }
    }

    /// 155 Mbps ATM OC-3, 135 Mbps effective.
    #[must_use]
    pub fn atm() -> Self {
        Self {
            segments: vec![Segment {
                max_size: None,
                syscall_us: [74.0, 0.01953],
                total_us: [150.0, 0.02918],
            }],
            wire_us_per_byte: 0.05926,
            interface_us: 50.0,
            switch_us: 10.0,
            wire_overhead_bytes: 40.0,
            software_overhead_bytes: 0.0,
            effective_mbps: Some(135.0),
        }
    }

    /// A built-in network by name.
    ///
    /// # Errors
    /// [`ModelError::Unknown`] listing the names.
    pub fn named(name: &str) -> Result<Self, ModelError> {
        match name {
            "fast_ethernet" => Ok(Self::fast_ethernet()),
            "atm" => Ok(Self::atm()),
            _ => Err(ModelError::Unknown {
                field: "network".to_owned(),
                name: name.to_owned(),
                known: Self::NAMES.join(", "),
            }),
        }
    }

    /// Checks every field.
    ///
    /// # Errors
    /// [`ModelError::Invalid`] naming the field; [`ModelError::Shape`] for no segments. The last
    /// segment must have no `max_size`, the others rising ones.
    pub fn validate(&self) -> Result<(), ModelError> {
        if self.segments.is_empty() {
            return Err(ModelError::Shape {
                field: "segments".to_owned(),
                found: 0,
                expected: 1,
            });
        }
        let mut below = 0.0;
        for (i, segment) in self.segments.iter().enumerate() {
            let last = i + 1 == self.segments.len();
            let limit = segment.max_size.unwrap_or(f64::INFINITY);
            if limit.is_nan() || limit <= below || last != segment.max_size.is_none() {
                let field = format!("segments[{i}].max_size");
                return Err(invalid(
                    field,
                    limit,
                    "rising, and null in the last segment only",
                ));
            }
            below = limit;
            for (name, line) in [
                ("syscall_us", segment.syscall_us),
                ("total_us", segment.total_us),
            ] {
                for (j, value) in line.into_iter().enumerate() {
                    non_negative(&format!("segments[{i}].{name}[{j}]"), value)?;
                }
            }
        }
        non_negative("wire_us_per_byte", self.wire_us_per_byte)?;
        non_negative("interface_us", self.interface_us)?;
        non_negative("switch_us", self.switch_us)?;
        non_negative("wire_overhead_bytes", self.wire_overhead_bytes)?;
        non_negative("software_overhead_bytes", self.software_overhead_bytes)
    }

    /// The segment for a message of `bytes`; chosen by the bare size, without headers.
    pub(super) fn segment(&self, bytes: f64) -> &Segment {
        let fits = |s: &&Segment| s.max_size.is_none_or(|limit| bytes <= limit);
        // Validation guarantees a last segment without limit.
        self.segments
            .iter()
            .find(fits)
            .unwrap_or(&self.segments[self.segments.len() - 1])
    }
}
