//! What the tests have in common: the variables that they share, and how they are written and read.

use std::collections::BTreeMap;

use dsm_lib::{Cache, CopyPolicy, Dsm, LockKind, Object, Vector};

use crate::error::{Error, Result};
use crate::program::wrong;

/// How often each permitted outcome was seen.
pub(super) type Seen = BTreeMap<&'static str, u64>;

/// One test under way.
pub(super) struct Trial<'a> {
    pub(super) dsm: &'a Dsm,
    pub(super) rounds: u64,
    /// Elements of the objects whose elements must always agree.
    pub(super) elements: usize,
    pub(super) policy: CopyPolicy,
    pub(super) cache: Cache,
    pub(super) lock: LockKind,
    /// Leave the synchronisation out.
    pub(super) sloppy: bool,
}

impl Trial<'_> {
    /// A vector with one element at the memory process of each application process.
    pub(super) fn one_each(&self, name: &str) -> Result<Vector<u64>> {
        Ok(self
            .dsm
            .vector(name, self.dsm.size())
            .split(self.dsm.size())
            .owner_per_rank()
            .policy(self.policy)
            .cache(self.cache)
            .declare()?)
    }

    /// An object of many elements, at the memory process of the application process of rank `at`.
    pub(super) fn wide(&self, name: &str, at: usize) -> Result<Object<u64>> {
        let owner = self.dsm.homes().get(at).map_or("", |h| h);
        let wide = self
            .dsm
            .vector(name, self.elements)
            .owner(owner)
            .policy(self.policy)
            .cache(self.cache)
            .declare()?;
        Ok(wide.object(0)?)
    }

    /// Writes `value` in a section of `object`, in all its elements.
    pub(super) fn publish(&self, object: &Object<u64>, value: u64) -> Result<()> {
        if self.sloppy {
            for at in 0..object.len() {
                object.set(at, value)?;
            }
            return Ok(());
        }
        let mut section = object.acquire()?;
        section.write(&vec![value; object.len()])?;
        section.release()?;
        Ok(())
    }

    /// Reads the one value in all elements of `object`, without synchronisation.
    pub(super) fn read_whole(&self, object: &Object<u64>) -> Result<u64> {
        let view = object.read()?;
        match view.iter().find(|v| **v != view[0]) {
            None => Ok(view[0]),
            Some(other) => Err(self.forbidden(format!(
                "a read of {object:?} has elements {} and {other}: a mixture of two releases (rule 4)",
                view[0]
            ))),
        }
    }

    /// Reads `object` in a section of its own.
    pub(super) fn read_synchronised(&self, object: &Object<u64>) -> Result<u64> {
        let section = object.acquire()?;
        let value = section.get(0)?;
        section.release()?;
        Ok(value)
    }

    pub(super) fn forbidden(&self, what: impl Into<String>) -> Error {
        wrong(self.dsm, "litmus", what)
    }
}

pub(super) fn count(seen: &mut Seen, outcome: &'static str) {
    *seen.entry(outcome).or_default() += 1;
}
