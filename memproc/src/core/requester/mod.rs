//! The requester: works for the application processes of this memory process. It checks their
//! requests, serves reads from copies, sends the rest to owners, homes and barriers, and replies.
//!
//! | file | what |
//! |---|---|
//! | `role` | requests on their way in |
//! | `caches` | copies here and in our application processes; what voids them |
//! | `publish` | operations that take their turn in the line of their application process |
//! | `complete` | responses, and the end of operations |
//! | `asking`, `moved` | accesses to objects with replicas, whose owner changes |
//! | `leave` | operations that end early: timeouts, application processes that leave, lost owners |
//! | `records` | the record and the reply of an operation |
//! | `session`, `line` | its state, of each application process: sections; the order of flushes, releases and barriers |
//! | `pending`, `flushes`, `unsettled` | its state: what is under way, and what may be granted though nobody waits |
//! | `copies`, `holders` | its state: copies here, and who has one |

mod asking;
mod caches;
mod complete;
mod copies;
mod flushes;
mod holders;
mod leave;
mod line;
mod moved;
mod pending;
mod publish;
mod records;
mod role;
mod search;
mod session;
mod unsettled;

pub(crate) use pending::{Ticket, WaitsFor};
pub(crate) use role::Requester;
pub use session::MAX_OUTSTANDING;
