//! What a program says of its run for those who compare runs: how long it computed, and what came out.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How long a computation took, and a checksum of its result.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// From when the input is there (all processes have it) to when the result is there (all have written it).
    pub seconds: f64,
    /// Of the result: equal results have equal ones, whatever program made them.
    pub checksum: Checksum,
}

impl Figures {
    pub(crate) fn new(time: Duration, checksum: Checksum) -> Self {
        Self {
            seconds: time.as_secs_f64(),
            checksum,
        }
    }

    /// The figures as a line of JSON.
    pub(crate) fn line(&self) -> String {
        format!(
            "{{\"seconds\":{},\"checksum\":{}}}",
            self.seconds, self.checksum.0
        )
    }
}

/// FNV-1a over the elements of a result, each as a number of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Checksum(pub u64);

impl Checksum {
    pub(crate) fn of<T: Bits>(elements: &[T]) -> Self {
        Self::new().and(elements)
    }

    /// That of no element.
    pub(crate) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// With more elements.
    pub(crate) fn and<T: Bits>(self, elements: &[T]) -> Self {
        let add = |sum: u64, element: &T| (sum ^ element.bits()).wrapping_mul(0x0100_0000_01b3);
        Self(elements.iter().fold(self.0, add))
    }
}

/// An element that is compared bit by bit: NaN equals itself, and 0 is not -0.
pub(crate) trait Bits: Copy + std::fmt::Debug {
    /// Its bits.
    fn bits(self) -> u64;
}

impl Bits for f64 {
    fn bits(self) -> u64 {
        self.to_bits()
    }
}
impl Bits for u8 {
    fn bits(self) -> u64 {
        u64::from(self)
    }
}
impl Bits for u32 {
    fn bits(self) -> u64 {
        u64::from(self)
    }
}
impl Bits for u64 {
    fn bits(self) -> u64 {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_and_the_order_change_the_checksum() {
        let sum = Checksum::of(&[1.0, 2.0]);
        assert_eq!(sum, Checksum::of(&[1.0]).and(&[2.0]));
        assert_ne!(sum, Checksum::of(&[2.0, 1.0]));
        assert_ne!(Checksum::of(&[0.0]), Checksum::of(&[-0.0]));
    }

    #[test]
    fn a_line_is_read_as_it_was_written() {
        let figures = Figures::new(Duration::from_millis(1500), Checksum(u64::MAX));
        let read: Figures = serde_json::from_str(&figures.line()).unwrap();
        assert_eq!(read, figures);
    }
}
