//! Clusters for tests.

use std::sync::Arc;

use dosmos_proto::topology::{
    ApplicationProcess, EventManager, Group, GroupPath, MemoryProcess, Topology, TopologyBuilder,
};
use dosmos_proto::{EmpId, GroupId, MpId};

/// A cluster with groups of these paths (parents first), this many memory processes `mp0`, `mp1` … in
/// each, this many application processes `ap0`, `ap1` … at each of them, one event manager per group, and
/// the link process `lp.PATH` of each (dots for slashes) group if there are several.
pub fn topology(groups: &[&str], mps: u32, aps: u32) -> Arc<Topology> {
    let mut t = TopologyBuilder {
        name: "test".into(),
        ..TopologyBuilder::default()
    };
    for path in groups {
        let parent = path.rsplit_once('/').and_then(|(p, _)| {
            let above = groups.iter().position(|g| *g == p)?;
            Some(GroupId(above as u32))
        });
        t.groups.push(Group {
            path: GroupPath::from(*path),
            parent: parent.filter(|_| path.matches('/').count() > 1),
        });
        t.event_managers.push(EventManager {
            name: format!("emp{}", t.event_managers.len()),
        });
    }
    for g in 0..groups.len() as u32 {
        for _ in 0..mps {
            let mp = t.memory_processes.len() as u32;
            t.memory_processes.push(MemoryProcess {
                name: format!("mp{mp}"),
                group: GroupId(g),
                event_manager: EmpId(g),
                link: false,
            });
            for _ in 0..aps {
                t.application_processes.push(ApplicationProcess {
                    name: format!("ap{}", t.application_processes.len()),
                    memory_process: MpId(mp),
                });
            }
        }
    }
    if groups.len() > 1 {
        for (g, path) in groups.iter().enumerate() {
            t.memory_processes.push(MemoryProcess {
                name: format!("lp{}", path.replace('/', ".")),
                group: GroupId(g as u32),
                event_manager: EmpId(g as u32),
                link: true,
            });
        }
    }
    Arc::new(t.build().unwrap())
}
