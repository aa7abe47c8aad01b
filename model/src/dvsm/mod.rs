//! Page-based DSM: what an operation costs, what an application costs, and what would change it.
//!
//! Times are microseconds, sizes bytes. A message has two ends; its software cost is paid at each.
//!
//! | module | contents |
//! |---|---|
//! | [`network`] | measured message costs of a network (Table 2), Fast Ethernet and ATM built in |
//! | [`what_if`] | technology parameters: processor speed, protocol cost, prefetching, … (Table 7) |
//! | [`costs`] | the two together: cost of a message end, a wire crossing, a piece of DSM code |
//! | [`ops`] | diff fault, cold fault, lock, service (Tables 3–6) |
//! | [`barrier`] | barrier |
//! | [`phase`] | an application as phases between barriers: time, efficiency, overhead |
//!
//! Source: Parsons, Brorsson, Sevcik, *Predicting the Performance of Distributed Virtual Shared-Memory
//! Applications* (IBM Systems Journal 36(4), 1997); table numbers are that paper's. What it leaves open
//! is said where it is decided.

pub mod barrier;
pub mod costs;
pub mod network;
pub mod ops;
pub mod phase;
pub mod what_if;

pub use barrier::{Barrier, BarrierCost};
pub use costs::Costs;
pub use network::{Network, Segment};
pub use ops::{Empty, EmptyCost, Fault, FaultCost, Lock, LockCost, Stage};
pub use phase::{Application, ApplicationCost, Parts, Phase, Processor, overhead_reduction};
pub use what_if::Technology;
