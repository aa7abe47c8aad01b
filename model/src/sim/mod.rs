//! Event-driven simulation of the machine that LoPC describes, to check the models against.
//!
//! A node holds a handler in service, a queue of waiting handlers (requests and replies together,
//! first come first served) and a compute thread that they interrupt. A cycle runs from one reply's
//! completion to the next. Guarantees: the same input, seed included, gives the same output on every
//! machine; a thread has at most one event pending, so that an event costs O(log P) and no
//! allocation.
//!
//! What is measured: R from reply completion to reply completion, R_w from there to the sending of
//! the request, R_q and R_y from a message's arrival to the completion of its handler.

mod calendar;
mod compare;
mod distribution;
mod engine;
mod input;
mod latency;
mod measure;
mod random;

pub use compare::{Comparison, WorkPile, compare, work_pile};
pub use distribution::Distribution;
pub use engine::simulate;
pub use input::SimInput;
pub use latency::{LatencyModel, mesh_mean_hops};
pub use measure::SimOutput;
