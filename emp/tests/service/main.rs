//! Event managers as their memory processes and readers see them: real gRPC, real stores.
#![allow(clippy::unwrap_used)] // a test may

mod bounds;
mod certificates;
mod common;
mod disk_full;
mod hand_overs;
mod ingest;
mod killed;
mod queries;
mod strangers;
