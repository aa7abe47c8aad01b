//! Litmus programs: the consistency contract (docs/design/consistency.md#contract), tried out.
//!
//! Each test runs many rounds, counts what it saw, and fails at the first outcome that the contract
//! forbids, naming the rule. Where the contract still promises something without synchronisation, the
//! reads are racy on purpose.

mod coherence;
mod iriw;
mod message_passing;
mod mutex;
mod store_buffering;

use std::collections::BTreeMap;

use clap::{Args, ValueEnum};
use dsm_lib::{CopyPolicy, Dsm, LockKind, Object, Vector};

use crate::app::{Program, wrong};
use crate::error::{Error, Result};

/// The arguments of the program.
#[derive(Args, Debug, Clone)]
pub struct Litmus {
    /// The test to run.
    #[arg(long, value_enum)]
    test: Test,
    /// Rounds.
    #[arg(long, default_value_t = 200)]
    rounds: u64,
    /// Elements of the objects whose elements must always agree.
    #[arg(long, default_value_t = 64)]
    elements: usize,
    /// Update copies instead of invalidating them.
    #[arg(long)]
    update: bool,
    /// How the counter of `mutex` is locked: queue, spin or mcs.
    #[arg(long, default_value_t)]
    lock: LockKind,
    /// Leave the synchronisation out (not in iriw and coherence), to see that the test notices.
    #[arg(long)]
    sloppy: bool,
}

/// What can be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Test {
    /// Message passing: data, then a flag.
    Mp,
    /// Store buffering: two write and each reads the other's.
    Sb,
    /// Independent reads of independent writes.
    Iriw,
    /// One object never goes backwards and is never a mixture.
    Coherence,
    /// Mutual exclusion under contention.
    Mutex,
}

impl Program for Litmus {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        let run = match self.test {
            Test::Mp => message_passing::run,
            Test::Sb => store_buffering::run,
            Test::Iriw => iriw::run,
            Test::Coherence => coherence::run,
            Test::Mutex => mutex::run,
        };
        let trial = Trial { options: self, dsm };
        let seen = run(&trial)?;
        let name = self.test.to_possible_value();
        let name = name.as_ref().map_or("?", |n| n.get_name());
        let counts: Vec<String> = seen.iter().map(|(k, n)| format!("{k} {n}")).collect();
        Ok(format!(
            "litmus {name}: {}: {} rounds, forbidden 0, {}",
            dsm.name(),
            self.rounds,
            counts.join(", ")
        ))
    }
}

/// How often each permitted outcome was seen.
type Seen = BTreeMap<&'static str, u64>;

/// One test under way.
struct Trial<'a> {
    options: &'a Litmus,
    dsm: &'a Dsm,
}

impl Trial<'_> {
    fn policy(&self) -> CopyPolicy {
        match self.options.update {
            true => CopyPolicy::Update,
            false => CopyPolicy::Invalidate,
        }
    }

    /// A vector with one element at the memory process of each application process.
    fn one_each(&self, name: &str) -> Result<Vector<u64>> {
        Ok(self
            .dsm
            .vector(name, self.dsm.size())
            .split(self.dsm.size())
            .owner_per_rank()
            .policy(self.policy())
            .declare()?)
    }

    /// An object of many elements, at the memory process of the application process of rank `at`.
    fn wide(&self, name: &str, at: usize) -> Result<Object<u64>> {
        let owner = self.dsm.homes().get(at).map_or("", |h| h);
        let wide = self
            .dsm
            .vector(name, self.options.elements)
            .owner(owner)
            .policy(self.policy())
            .declare()?;
        Ok(wide.object(0)?)
    }

    /// Writes `value` in a section of `object`, in all its elements.
    fn publish(&self, object: &Object<u64>, value: u64) -> Result<()> {
        if self.options.sloppy {
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
    fn read_whole(&self, object: &Object<u64>) -> Result<u64> {
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
    fn read_synchronised(&self, object: &Object<u64>) -> Result<u64> {
        let section = object.acquire()?;
        let value = section.get(0)?;
        section.release()?;
        Ok(value)
    }

    fn forbidden(&self, what: impl Into<String>) -> Error {
        wrong(self.dsm, "litmus", what)
    }
}

fn count(seen: &mut Seen, outcome: &'static str) {
    *seen.entry(outcome).or_default() += 1;
}
