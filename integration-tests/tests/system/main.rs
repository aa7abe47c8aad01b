//! The system as its users run it: every process real. One program, so that a test that waits leaves the processors to others.

#![allow(clippy::unwrap_used)] // a test may

mod applications;
mod blackbox;
mod breakdown;
mod check;
mod commands;
mod in_application;
mod invariant;
mod launching;
mod metrics;
mod outcomes;
mod pathologies;
mod predict;
mod ranks;
mod replicas;
mod verify;
