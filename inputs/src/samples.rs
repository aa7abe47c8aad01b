//! Sound values, from which inputs begin.

use std::sync::Arc;

use dosmos_proto::topology::{
    ApplicationProcess, EventManager, Group, GroupPath, MemoryProcess, Topology, TopologyBuilder,
};
use dosmos_proto::{
    ApId, ElementType, EmpId, GroupId, Layout, MpId, Nanos, ObjectId, VarId, Variable, VariableSpec,
};
use dosmos_trace::record::{Flags, Op, Origin, Record, Side};

/// Two groups of two memory processes and a link process each, an application process per memory process.
pub(crate) fn topology() -> Arc<Topology> {
    let mut t = TopologyBuilder {
        name: "sample".into(),
        ..TopologyBuilder::default()
    };
    for (g, path) in ["/a", "/b"].into_iter().enumerate() {
        let path = GroupPath::from(path);
        t.groups.push(Group { path, parent: None });
        let name = format!("emp{g}");
        t.event_managers.push(EventManager { name });
    }
    let process = |name: String, g: u32, link| MemoryProcess {
        name,
        group: GroupId(g),
        event_manager: EmpId(g),
        link,
    };
    for mp in 0..4 {
        let memory_process = MpId(mp);
        t.memory_processes
            .push(process(format!("mp{mp}"), mp / 2, false));
        t.application_processes.push(ApplicationProcess {
            name: format!("ap{mp}"),
            memory_process,
        });
    }
    for g in 0..2 {
        t.memory_processes.push(process(format!("lp{g}"), g, true));
    }
    Arc::new(t.build().unwrap())
}

/// A declaration of four objects of 64 bytes.
pub(crate) fn declaration(name: &str) -> VariableSpec {
    let layout = Layout::new(ElementType::F64, (4, 8), (2, 2)).unwrap();
    VariableSpec::new(name, layout).unwrap()
}

/// A variable of two owners.
pub(crate) fn variable() -> Variable {
    let owners = vec![MpId(0), MpId(1), MpId(1), MpId(2)];
    Variable::new(VarId(0), declaration("x"), owners, GroupId(0)).unwrap()
}

/// Records of all operations, processes and origins.
pub(crate) fn records(count: u32) -> Vec<Record> {
    let of = |i: u32| Record {
        start: Nanos(1_000_000 + u64::from(i) * 1_000),
        duration: Nanos(u64::from(i * 37 % 900)),
        wait: Nanos(u64::from(i % 3 * 10)),
        service: Nanos(u64::from(i % 5)),
        op: Op::ALL[i as usize % Op::ALL.len()],
        side: [Side::Requester, Side::Owner][i as usize % 2],
        origin: Origin::ALL[i as usize % 3],
        flags: Flags::default(),
        object: ObjectId::new(VarId(0), i % 4),
        ap: ApId(i % 4),
        mp: MpId(i % 4),
        peer: MpId(i / 3 % 4),
        count: 1 + i / 7 % 2,
        bytes: 8,
        version: u64::from(i / 5),
        range: (0, 1 + i % 8),
    };
    (0..count).map(of).collect()
}
