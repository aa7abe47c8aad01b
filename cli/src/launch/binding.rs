//! Which processors memory processes run on, and their application processes, if the cluster file says so.
//!
//! Whoever sends a message on a Unix socket is about to wait, so the system likes to wake the receiver on the same processor; and what
//! wakes for a few microseconds at a time is seldom moved to another. So the memory processes of one machine can end up on one
//! processor, with another idle. Bound, each has a share of the processors, alone or together with its application processes.

use std::collections::HashMap;
use std::ops::Range;

use anyhow::Context;
use dosmos_proto::Topology;
use dosmos_proto::spin::ENV_SPIN;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::config::Bind;

/// The calling thread.
const THIS: Pid = Pid::from_raw(0);

/// The processors of each process that is bound, by name.
#[derive(Clone, Debug, Default)]
pub(super) struct Binding {
    processors: HashMap<String, CpuSet>,
    /// There are several.
    several: bool,
}

impl Binding {
    /// Deals out the processors on which this process may run.
    pub(super) fn of(bind: Bind, topology: &Topology) -> anyhow::Result<Self> {
        let cores = match (bind, cores()) {
            (Bind::None, _) => return Ok(Self::default()),
            // The default: where it cannot be, the system decides.
            (Bind::Memory, cores) => cores.unwrap_or_default(),
            (Bind::Cores, cores) => cores?,
        };
        let all = topology.memory_processes().iter();
        let bound: Vec<_> = all.filter(|mp| !mp.link).collect();
        if bind == Bind::Memory && (bound.len() < 2 || bound.len() > cores.len()) {
            return Ok(Self::default());
        }
        let mut binding = Self {
            several: cores.len() > 1,
            ..Self::default()
        };
        for (i, mp) in bound.iter().enumerate() {
            let mut set = CpuSet::new();
            for core in &cores[share(i, bound.len(), cores.len())] {
                set.set(*core)?;
            }
            let theirs = topology.application_processes().iter();
            let theirs = theirs
                .filter(|ap| bind == Bind::Cores && topology.mp_name(ap.memory_process) == mp.name);
            for name in theirs.map(|ap| &ap.name).chain([&mp.name]) {
                binding.processors.insert(name.clone(), set);
            }
        }
        Ok(binding)
    }

    /// What process `name` finds in its environment: one that has a single processor may wait awake nevertheless, since what it waits
    /// for runs on others.
    pub(super) fn environment(&self, name: &str) -> Option<(&'static str, &'static str)> {
        let bound = self.several && self.processors.contains_key(name);
        (bound && std::env::var_os(ENV_SPIN).is_none()).then_some((ENV_SPIN, "on"))
    }

    /// Starts process `name` where it is bound: a child runs where the thread ran that started it.
    pub(super) fn around<R>(
        &self,
        name: &str,
        start: impl FnOnce() -> anyhow::Result<R>,
    ) -> anyhow::Result<R> {
        let Some(set) = self.processors.get(name) else {
            return start();
        };
        let failed = || format!("cannot bind {name} to its processors");
        let before = sched_getaffinity(THIS).with_context(failed)?;
        sched_setaffinity(THIS, set).with_context(failed)?;
        let started = start();
        sched_setaffinity(THIS, &before).with_context(failed)?;
        started
    }
}

/// The processors on which this process may run, if the system also lets it choose among them.
fn cores() -> anyhow::Result<Vec<usize>> {
    let allowed = sched_getaffinity(THIS).context("cannot ask which processors there are")?;
    sched_setaffinity(THIS, &allowed).context("cannot bind to processors")?;
    let is_allowed = |i: &usize| allowed.is_set(*i).unwrap_or(false);
    Ok((0..CpuSet::count()).filter(is_allowed).collect())
}

/// Which of `cores` are those of the `i`th of `sharers`: as many for each, neighbours, or one that others have too.
fn share(i: usize, sharers: usize, cores: usize) -> Range<usize> {
    let first = i * cores / sharers;
    first..((i + 1) * cores / sharers).max((first + 1).min(cores))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_a_core_and_no_core_is_left_over() {
        for cores in 1..10 {
            for sharers in 1..20 {
                let all: Vec<_> = (0..sharers).map(|i| share(i, sharers, cores)).collect();
                assert!(all.iter().all(|s| !s.is_empty()), "{sharers} of {cores}");
                for core in 0..cores {
                    let those = all.iter().filter(|s| s.contains(&core)).count();
                    let most = sharers.div_ceil(cores);
                    assert!((1..=most).contains(&those), "{sharers} of {cores}: {all:?}");
                }
            }
        }
    }
}
