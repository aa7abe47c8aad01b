//! Where a program stands in the cluster, as its memory process says when it joins.

use std::sync::Arc;

use dosmos_proto::{Malformed, MpId, wire};

/// A memory process that can own objects.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryProcess {
    /// Its name.
    pub name: Arc<str>,
    /// Path of its group.
    pub group: Arc<str>,
}

/// Where this program stands in the cluster.
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) memory_process: String,
    pub(crate) group: String,
    pub(crate) rank: u32,
    pub(crate) size: u32,
    pub(crate) group_rank: u32,
    pub(crate) group_size: u32,
    /// By number, link processes included.
    names: Vec<Arc<str>>,
    pub(crate) owners: Vec<MemoryProcess>,
    /// Memory process of each application process, by rank.
    pub(crate) homes: Vec<Arc<str>>,
}

impl Place {
    pub(crate) fn new(name: String, w: wire::Welcome) -> Result<Self, Malformed> {
        if w.rank >= w.size || w.group_rank >= w.group_size {
            return Err(Malformed::new(
                "welcome",
                format!("rank {} of {} processes", w.rank, w.size),
            ));
        }
        let names: Vec<Arc<str>> = w
            .memory_processes
            .iter()
            .map(|n| n.as_str().into())
            .collect();
        let home = |number: &u32| {
            let name = names.get(*number as usize).cloned();
            name.ok_or_else(|| Malformed::new("welcome", format!("no memory process {number}")))
        };
        Ok(Self {
            homes: w
                .application_homes
                .iter()
                .map(home)
                .collect::<Result<_, _>>()?,
            owners: names
                .iter()
                .zip(&w.memory_process_groups)
                .filter(|(_, group)| !group.is_empty())
                .map(|(name, group)| MemoryProcess {
                    name: name.clone(),
                    group: group.as_str().into(),
                })
                .collect(),
            name,
            memory_process: w.memory_process,
            group: w.group,
            rank: w.rank,
            size: w.size,
            group_rank: w.group_rank,
            group_size: w.group_size,
            names,
        })
    }

    /// Name of a memory process; its number if that is not known.
    pub(crate) fn name_of(&self, id: MpId) -> Arc<str> {
        let known = self.names.get(id.index());
        known.map_or_else(|| id.to_string().into(), Arc::clone)
    }
}
