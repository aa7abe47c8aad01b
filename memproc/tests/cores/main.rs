//! Clusters of cores inside one test, message by message: one program, since each of its parts needs the same cluster.
#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod barriers;
mod barriers_of_two;
#[path = "../common/mod.rs"]
mod common;
mod delegation;
mod faults;
mod held_copies;
mod lost_messages;
mod messages;
mod names;
mod publishing;
mod recorded;
mod recovery;
mod replicas;
mod within;
