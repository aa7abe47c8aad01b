//! Fencing tokens: how a resource outside of the shared memory tells a section from those after it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that rises with every section of an object, also when its owner is lost and another process serves the
/// object: the term of the owner stands above the number of the grant.
///
/// A process that was stopped in a section may wake when the section is long over. The memory refuses what it writes; a
/// resource that the memory does not know (a file, a device, a database) can do the same, if the token goes with every
/// access to it and a [`Fence`] stands before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FencingToken(u64);

impl FencingToken {
    /// The token with this number, as it was passed on.
    pub const fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// Its number, to pass on.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for FencingToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A token is older than one that came before: its section is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "token {token} is out of date, {latest} came before; the section is over, acquire the object again"
)]
#[non_exhaustive]
pub struct OutOfDate {
    /// The token.
    pub token: FencingToken,
    /// The latest that came.
    pub latest: FencingToken,
}

/// Stands before a resource and refuses tokens of sections that are over, as far as later ones came. One fence for each
/// object whose sections protect the resource; it can be shared by threads.
#[derive(Debug, Default)]
pub struct Fence(AtomicU64);

impl Fence {
    /// One that has seen nothing.
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// One that refuses what is older than this token: the latest that was stored with the resource.
    pub const fn after(latest: FencingToken) -> Self {
        Self(AtomicU64::new(latest.0))
    }

    /// Admits an access with this token.
    ///
    /// # Errors
    /// [`OutOfDate`] if a later token came before.
    pub fn admit(&self, token: FencingToken) -> Result<(), OutOfDate> {
        match self.0.fetch_max(token.0, Ordering::AcqRel) {
            latest if latest > token.0 => Err(OutOfDate {
                token,
                latest: FencingToken(latest),
            }),
            _ => Ok(()),
        }
    }

    /// The latest token that came.
    pub fn latest(&self) -> FencingToken {
        FencingToken(self.0.load(Ordering::Acquire))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_tokens_are_refused_and_the_same_section_may_come_again() {
        let fence = Fence::new();
        let [one, two] = [1, 2].map(FencingToken::from_number);
        fence.admit(one).unwrap();
        fence.admit(two).unwrap();
        fence.admit(two).unwrap();
        let refused = fence.admit(one).unwrap_err();
        assert_eq!((refused.token, refused.latest), (one, two));
        assert!(refused.to_string().contains("token 1 is out of date"));
        assert_eq!(fence.latest(), two);
        assert!(Fence::after(two).admit(one).is_err());
    }
}
