//! The models: evaluated cases, the papers' tables, properties, extremes, and inputs from measured runs.
#![allow(clippy::unwrap_used)] // a test may

mod cases_dvsm;
mod cases_lopc;
mod cases_memhier;
mod cases_sim;
mod common;
mod extremes;
mod inputs;
mod properties_lopc;
mod properties_memory;
mod solver;
