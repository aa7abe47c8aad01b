//! Which life of a process a message, a variable or a handle belongs to.

use std::fmt;
use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};

use crate::Malformed;

/// One life of a process, from its start to its end: a random number of 64 bits that is never zero.
///
/// A process draws one when it starts and puts it into its greetings and into what it hands out
/// (variables, grants, batches of records). Whoever holds something of another incarnation than the
/// present one holds something of a process that ended, and must say so instead of using it.
///
/// Incarnations are compared for equality only. They have no order: there is no counter that a lost
/// file could set back, no clock that could step back, and no largest number with which a forged
/// greeting could lock out all later ones. Which of two incarnations is the present one, the peer
/// knows from its connections: it is the one that greeted last. Of 2^32 starts of one process, two
/// have the same number with a probability below one half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Incarnation(NonZeroU64);

impl Incarnation {
    /// A new one, from the operating system's source of random numbers. For shells; cores get theirs as an
    /// argument.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn random() -> std::io::Result<Self> {
        loop {
            let number = getrandom::u64().map_err(std::io::Error::from)?;
            if let Ok(incarnation) = Self::try_from(number) {
                return Ok(incarnation);
            }
        }
    }

    /// The number used on the wire; never zero.
    pub fn to_wire(self) -> u64 {
        self.0.get()
    }
}

/// Zero is what a message without the field has: it is no incarnation.
impl TryFrom<u64> for Incarnation {
    type Error = Malformed;
    fn try_from(number: u64) -> Result<Self, Malformed> {
        NonZeroU64::new(number)
            .map(Self)
            .ok_or(Malformed::missing("incarnation"))
    }
}

impl fmt::Display for Incarnation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incarnations_differ_and_survive_the_wire() {
        let (a, b) = (
            Incarnation::random().unwrap(),
            Incarnation::random().unwrap(),
        );
        assert_ne!(a, b);
        assert_eq!(Incarnation::try_from(a.to_wire()).unwrap(), a);
        assert!(Incarnation::try_from(0).is_err());
        assert_eq!(
            Incarnation::try_from(255).unwrap().to_string(),
            "00000000000000ff"
        );
    }
}
