//! Replays a recorded run: as it was, and as it would be after a change.
//!
//! A record says what a process did and when, not why it took as long. So the replay keeps what the program decides (the
//! operations of each process, their order, which of them it waited for, what it computed in between) and lets everything
//! else happen again: messages take their way through memory and link processes, locks are queued for, barriers open when
//! the last participant has arrived, copies are dropped or updated, and all processes share the processors of the machine.
//! After a change of owners, groups, policies or sharing the same operations take other ways. The method is that of
//! Dimemas (docs/bibliography.md#dimemas), with processes that share processors.
//!
//! | file | what it holds |
//! |---|---|
//! | `script`, `thread` | from records to what each process does: [`ScriptBuilder`], [`Script`] |
//! | `neighbours` | accesses that one call could make |
//! | `polls` | reading until something has changed, and what has |
//! | `queues`, `counters` | work that processes take from a shared counter, and who takes it; who has the counter to itself |
//! | `think` | how much of the time between two operations is computing, from the breakdown |
//! | `costs` | what messages cost: processor time of each end, and time on the way |
//! | `change` | what is to be different: [`Change`], [`Technology`] |
//! | `places` | who owns what, who is where, and the way between two processes |
//! | `balance` | work that is divided evenly |
//! | `exchange` | who exchanges something with everyone, and who with neighbours |
//! | `scale` | another number of processes, more data: [`Scale`] |
//! | `host` | processes that share processors |
//! | `locks`, `copies`, `barriers` | the state that operations find |
//! | `engine`, `operations` | the events, and what each operation does |
//! | `calibrate` | costs such that the replay of the run as it was takes as long as the run |
//!
//! Limits, which the outcome states: a process takes the same decisions whatever it reads (but that it reads until something
//! has changed, and takes work from a shared counter as it comes to it); accesses in the application process ([in-process
//! records](dosmos_trace::record::Flags)) are part of its computing.

mod asked;
mod balance;
mod barriers;
mod calibrate;
mod change;
mod copies;
mod costs;
mod counters;
mod engine;
mod exchange;
mod gaps;
mod host;
mod ids;
mod locks;
pub mod neighbours;
mod operations;
mod places;
mod polls;
mod queues;
mod scale;
mod script;
mod think;
mod thread;

pub use calibrate::{Calibrated, Gain};
pub use change::{Change, Technology};
pub use costs::Costs;
pub use engine::Outcome;
pub use scale::Scale;
pub use script::{Script, ScriptBuilder};
