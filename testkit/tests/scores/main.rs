//! What the detectors find in traces whose answers are known.
#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod labelled;
mod slow;
mod varied;
