//! Which start of a process something belongs to.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One start of a named process. No two starts have the same, and a later start of a name is greater,
/// whatever the wall clock does: the high half counts the starts (stored on disk, see
/// `dosmos_node::incarnation`), the low half is random, so that two processes that count apart from each
/// other under one name differ too.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Incarnation(u64);

impl Incarnation {
    /// The `start`-th start, told apart from others that count the same by `nonce`.
    pub const fn new(start: u32, nonce: u32) -> Self {
        Self((start as u64) << 32 | nonce as u64)
    }

    /// As it came in a message or from a store.
    pub const fn from_wire(number: u64) -> Self {
        Self(number)
    }

    /// As it travels and is stored.
    pub const fn to_wire(self) -> u64 {
        self.0
    }

    /// How many starts there were, this one included.
    pub const fn start(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:08x}", self.start(), self.0 as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_start_is_greater_whatever_the_nonce() {
        let (first, second) = (Incarnation::new(1, u32::MAX), Incarnation::new(2, 0));
        assert!(first < second);
        assert_ne!(Incarnation::new(1, 0), first);
        assert_eq!(Incarnation::from_wire(second.to_wire()), second);
        assert_eq!(Incarnation::new(3, 0xab).to_string(), "3-000000ab");
    }
}
