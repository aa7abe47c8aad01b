//! Whole clusters simulated under one scheduler: application processes with the real library, memory, link and event manager
//! processes with their real cores, stores on simulated disks, and a network between them in which anything goes wrong.
//!
//! A seed determines a run, to the byte ([`Outcome::hash`]). After it, and while it goes on, everything is compared with what
//! is promised: the consistency contract (`history`, and the `verify` crate over what is stored), and the monitoring invariant
//! (`judge`; docs/design/monitoring.md#invariant).
//!
//! Development only: no product links this.

mod clock;
mod coroutine;
mod faults;
mod history;
mod judge;
mod manager;
mod memory;
mod network;
mod plan;
mod program;
mod run;
mod trail;
mod world;

pub use plan::Kind;
pub use run::{Failure, Outcome, TOLD, run};
