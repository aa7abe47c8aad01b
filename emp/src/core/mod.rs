//! The event manager's bookkeeping, without I/O, clock or threads.

mod exchange;
mod ingest;
mod pending;

pub use exchange::Outbox;
pub use ingest::{Ingest, Refused, Verdict};
pub use pending::{Pending, PositionedEvent};
