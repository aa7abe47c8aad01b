//! What dosmos reads that others wrote: one entry point per kind of input. Each takes any bytes, gives them to the product's
//! own code, and panics if what comes back contradicts itself. So a panic, a hang or memory beyond [`MOST_MEMORY`] is a defect,
//! whoever calls: the random tests of this crate, or the fuzz targets in `fuzz/`.
//!
//! Formats with checksums are sealed first ([`seal`]): damage that a checksum notices is tested elsewhere
//! (`trace/tests/stores`), and bytes that were written on purpose have checksums that hold.

#![allow(clippy::unwrap_used)] // test support: a failure here is a failed test

mod calls;
mod chunks;
mod cluster_files;
mod columns;
mod core;
mod frames;
mod jsonl;
mod messages;
mod otf2;
mod samples;
mod seal;
mod stores;

use nix::sys::resource::{Resource, setrlimit};

/// Most address space that a process which takes inputs may need: those here are smaller than 1 MiB.
pub const MOST_MEMORY: u64 = 2 << 30;

/// A kind of input.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name of its fuzz target.
    pub name: &'static str,
    /// Reads one input.
    pub take: fn(&[u8]),
    /// Inputs to begin with: at least one that is as it should be.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All kinds.
pub const ALL: [Entry; 11] = [
    entry("messages", messages::take, messages::seeds),
    entry("frames", frames::take, frames::seeds),
    entry("calls", calls::take, calls::seeds),
    entry("requests", core::take, core::seeds),
    entry("batches", columns::take, columns::seeds),
    entry("chunks", chunks::take, chunks::seeds),
    entry("logs", stores::take_log, stores::log_seeds),
    entry("store_files", stores::take_file, stores::file_seeds),
    entry("cluster_files", cluster_files::take, cluster_files::seeds),
    entry("jsonl", jsonl::take, jsonl::seeds),
    entry("otf2", otf2::take, otf2::seeds),
];

const fn entry(name: &'static str, take: fn(&[u8]), seeds: fn() -> Vec<Vec<u8>>) -> Entry {
    Entry { name, take, seeds }
}

/// The entry of this name.
///
/// # Panics
/// If there is none.
pub fn named(name: &str) -> Entry {
    let found = ALL.into_iter().find(|e| e.name == name);
    found.unwrap_or_else(|| panic!("no kind of input is called {name}"))
}

/// From now on an allocation beyond [`MOST_MEMORY`] ends this process.
///
/// # Panics
/// If the system refuses the limit.
pub fn limit_memory() {
    setrlimit(Resource::RLIMIT_AS, MOST_MEMORY, MOST_MEMORY).unwrap();
}
