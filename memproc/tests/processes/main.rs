//! Whole memory processes over sockets.
#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod bounds;
mod certificates;
mod live;
#[path = "../../src/core/testing.rs"]
#[allow(missing_docs, unreachable_pub, dead_code)]
mod topology;
