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
mod trial;

use clap::{Args, ValueEnum};
use dsm_lib::{Cache, CopyPolicy, Dsm, LockKind};

use crate::error::Result;
use crate::program::Program;
use trial::Trial;

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
    /// Make every access a message: no copies in application processes.
    #[arg(long)]
    messages: bool,
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
        let trial = Trial {
            dsm,
            rounds: self.rounds,
            elements: self.elements,
            policy: match self.update {
                true => CopyPolicy::Update,
                false => CopyPolicy::Invalidate,
            },
            cache: match self.messages {
                true => Cache::Mp,
                false => Cache::Ap,
            },
            lock: self.lock,
            sloppy: self.sloppy,
        };
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
