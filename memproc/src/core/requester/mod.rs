//! The requester: works for the application processes of this memory process. It checks their
//! requests, serves reads from copies, sends the rest to owners, homes and barriers, and replies.
//!
//! | file | what |
//! |---|---|
//! | `role` | requests on their way in |
//! | `caches` | copies here and in our application processes; what voids them |
//! | `publish` | the order of flushes, releases and barriers of one application process |
//! | `complete` | responses, and the end of operations |
//! | `leave` | operations that end early: timeouts, application processes that leave, lost owners |
//! | `records` | the record and the reply of an operation |
//! | `session`, `pending`, `copies` | its state |

mod caches;
mod complete;
mod copies;
mod holders;
mod leave;
mod pending;
mod publish;
mod records;
mod role;
mod session;

pub(crate) use pending::WaitsFor;
pub(crate) use role::Requester;
pub use session::MAX_OUTSTANDING;
