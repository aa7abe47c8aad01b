//! Stores of seeded records, for the tests of this directory.

use dosmos_proto::{ApId, EmpId, MpId, Nanos, ObjectId, Topology, VarId};
use dosmos_testseeds::Random;
use dosmos_trace::record::{Flags, Op, Origin, Record, Side};
use dosmos_trace::run::RunId;
use dosmos_trace::store::{BatchMark, Commit, Identity};

/// Whose the stores are.
pub(crate) fn identity() -> Identity {
    Identity {
        run: RunId::from_bits(1),
        event_manager: "emp0".into(),
        emp: EmpId(0),
        topology: Topology::default(),
    }
}

/// Records of some processes and objects, with times that spread; all different.
pub(crate) fn records(seed: u64, count: usize) -> Vec<Record> {
    let mut random = Random::new(seed);
    let mut next = |below: u64| random.below(below);
    (0..count as u64)
        .map(|i| Record {
            start: Nanos(1_000_000 + i * 1_000 + next(900)),
            duration: Nanos(200 + next(30_000)),
            wait: Nanos(next(150)),
            service: Nanos(next(100)),
            op: Op::ALL[next(4) as usize],
            side: Side::Requester,
            origin: Origin::ALL[next(3) as usize],
            flags: Flags::default(),
            object: ObjectId::new(VarId(next(5) as u32), next(7) as u32),
            ap: ApId(next(4) as u32),
            mp: MpId(next(3) as u32),
            peer: MpId(next(3) as u32),
            count: 1,
            bytes: 8,
            version: i,
            range: (0, 1),
        })
        .collect()
}

/// Batch `sequence`, of these records.
pub(crate) fn commit(sequence: u64, records: &[Record]) -> Commit {
    Commit {
        marks: vec![BatchMark {
            mp: MpId(0),
            incarnation: 1,
            sequence,
            until: Default::default(),
        }],
        records: records.to_vec(),
        events: Vec::new(),
    }
}
