//! The event manager's bookkeeping, without I/O, clock or threads.

mod dictionary;
mod exchange;
mod ingest;
mod link;
mod manager;
mod pending;
mod steps;

pub use dictionary::{Dictionary, Full};
pub use exchange::Outbox;
pub use ingest::{Ingest, Refused, Verdict};
pub use link::Link;
pub use manager::{BatchError, Durable, Manager};
pub use pending::{Pending, PositionedEvent};
