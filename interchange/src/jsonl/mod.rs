//! The project's exchange format: one JSON object a line.
//!
//! `run` first; then `group`, `mp` and `ap`; then `variable` and `barrier`; then `record` and `hand_over`, in
//! the order of the log; `completeness` last. Fields that have their usual value are left out where the
//! format says they may be; unknown fields are ignored.

mod dictionary;
mod error;
#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may
mod fuzz_tests;
mod importer;
pub(crate) mod line;
mod read;
mod write;

pub(crate) use importer::{Importer, Trouble};
pub(crate) use write::rfc3339;

pub use error::{BadLine, ImportError};
pub use read::{BadLines, Imported, Importing, import};
pub use write::Jsonl;
