//! From a run to models' inputs and predictions, on runs whose every figure is known.

#![allow(clippy::unwrap_used)] // a test may

use dosmos_model::dvsm::{Costs, Network, Segment, Technology};
use dosmos_model::inputs::{
    Builder, Change, DelayModel, Hop, Measured, NetworkRecord, Placement, Sharing,
};
use dosmos_model::lopc::{general, homogeneous};
use dosmos_proto::topology::{ApplicationProcess, EventManager, Group, MemoryProcess};
use dosmos_proto::{
    ApId, Component, EmpId, GroupId, GroupPath, MpId, Nanos, ObjectId, PhaseTimes, Topology,
    TopologyBuilder, VarId,
};
use dosmos_trace::query::{Breakdown, Catalog};
use dosmos_trace::record::{Flags, Op, Origin, Record, Side};

const X: VarId = VarId(7);
/// Soft 10 µs an end, interfaces 1 µs, wire 0.01 µs a byte, way to the own memory process 30 µs.
fn network() -> NetworkRecord {
    NetworkRecord {
        machine: String::new(),
        processors: 8,
        network: Network {
            segments: vec![Segment {
                max_size: None,
                syscall_us: [5.0, 0.0],
                total_us: [10.0, 0.0],
            }],
            wire_us_per_byte: 0.01,
            interface_us: 1.0,
            switch_us: 0.0,
            wire_overhead_bytes: 0.0,
            software_overhead_bytes: 0.0,
            effective_mbps: None,
        },
        hop: Hop {
            read_us: [30.0, 0.0],
            write_us: [30.0, 0.0],
        },
    }
}

/// A group a pair of numbers: memory processes in it. Each has an application process; links where there
/// is more than one group.
fn topology(groups: &[u32]) -> Topology {
    let mut t = TopologyBuilder {
        name: "test".into(),
        event_managers: vec![EventManager {
            name: "emp0".into(),
        }],
        ..TopologyBuilder::default()
    };
    for (g, size) in groups.iter().enumerate() {
        t.groups.push(Group {
            path: GroupPath::top(&format!("g{g}")),
            parent: None,
        });
        for _ in 0..*size {
            let n = t.application_processes.len();
            t.application_processes.push(ApplicationProcess {
                name: format!("ap{n}"),
                memory_process: MpId(t.memory_processes.len() as u32),
            });
            t.memory_processes.push(process(format!("mp{n}"), g, false));
        }
    }
    if groups.len() > 1 {
        for g in 0..groups.len() {
            t.memory_processes.push(process(format!("lp{g}"), g, true));
        }
    }
    t.build().unwrap()
}

fn process(name: String, group: usize, link: bool) -> MemoryProcess {
    MemoryProcess {
        name,
        group: GroupId(group as u32),
        event_manager: EmpId(0),
        link,
    }
}

/// Records and times of a run.
struct Lab {
    catalog: Catalog,
    records: Vec<Record>,
    breakdown: Breakdown,
}

impl Lab {
    fn new(groups: &[u32]) -> Self {
        Self {
            catalog: Catalog {
                run: None,
                topology: topology(groups),
                ..Catalog::default()
            },
            records: Vec::new(),
            breakdown: Breakdown::default(),
        }
    }

    /// `ap` does `op` on an object of `owner`, version `version`; with the owner's record if it is remote.
    fn access(&mut self, ap: u32, op: Op, owner: u32, version: u64, bytes: u32) -> &mut Self {
        let t = &self.catalog.topology;
        let mp = t.ap(ApId(ap)).unwrap().memory_process;
        let group = |mp: MpId| t.mp(mp).unwrap().group;
        let origin = match MpId(owner) {
            o if o == mp => Origin::Local,
            o if group(o) == group(mp) => Origin::Intra,
            _ => Origin::Inter,
        };
        let at = self.records.len() as u64 * 1000;
        let record = Record {
            start: Nanos(at),
            duration: Nanos(60_000),
            wait: Nanos::ZERO,
            service: Nanos(4_000),
            op,
            side: Side::Requester,
            origin,
            flags: Flags::default(),
            object: ObjectId::new(X, owner),
            ap: ApId(ap),
            mp,
            peer: MpId(owner),
            count: 1,
            bytes: bytes.into(),
            version,
            range: (0, 0),
        };
        if origin != Origin::Local && op != Op::Barrier {
            self.records.push(Record {
                side: Side::Owner,
                mp: MpId(owner),
                ..record
            });
        }
        self.records.push(record);
        self
    }

    /// Times of a phase of `ap`, in µs.
    fn times(&mut self, ap: u32, phase: u64, parts: &[(Component, u64, u64)]) -> &mut Self {
        let mut piece = PhaseTimes {
            ap: ApId(ap),
            phase,
            ..PhaseTimes::default()
        };
        for (of, us, calls) in parts {
            piece.spent.add(*of, Nanos(us * 1000), *calls);
        }
        piece.wall = piece.spent.total();
        self.breakdown.merge(&Breakdown {
            phases: vec![piece],
            ..Breakdown::default()
        });
        self
    }

    fn run(&self) -> Measured {
        let mut builder = Builder::new(self.catalog.clone(), network()).unwrap();
        self.records.iter().for_each(|r| builder.add(r));
        builder.finish(&self.breakdown).unwrap()
    }
}

/// ap0 reads its own object ten times; ap1 asks mp0 five times for 100 bytes, once new each time.
fn one_phase(groups: &[u32]) -> Lab {
    let mut lab = Lab::new(groups);
    for _ in 0..10 {
        lab.access(0, Op::Read, 0, 0, 8);
    }
    for version in 0..5 {
        lab.access(1, Op::Read, 0, version, 100);
    }
    lab.times(
        0,
        0,
        &[(Component::Busy, 1000, 0), (Component::Local, 400, 10)],
    );
    lab.times(
        1,
        0,
        &[
            (Component::Busy, 500, 0),
            (Component::Cold, 200, 1),
            (Component::Fault, 480, 4),
        ],
    );
    lab
}

#[track_caller]
fn close(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} is not {b}");
}

/// 4 ends, 4 interfaces, 100 bytes on the wire, service, way to the own memory process.
const FAULT_US: f64 = 40.0 + 4.0 + 1.0 + 4.0 + 30.0;

#[test]
fn accesses_become_operations_of_the_phase_model() {
    let run = one_phase(&[2]).run();
    let app = run.application(DelayModel::None).unwrap();
    let [first, second] = &app.phases[0].procs[..] else {
        panic!("{app:?}")
    };
    close(app.sequential_us, 1500.0);
    assert!(first.faults.is_empty() && first.empties.is_empty());
    close(first.release, 10.0 * 30.0);
    close(second.faults[0].0, 4.0);
    close(second.empties[0].0, 1.0);
    let costs = Costs::new(network().network, Technology::default()).unwrap();
    close(second.faults[0].1.cost(&costs).unwrap().total, FAULT_US);
    close(second.empties[0].1.cost(&costs).unwrap().total, FAULT_US);
    // Its memory process serves the five: two ends and the service each.
    close(first.parts(&costs).served_us, 5.0 * 24.0);
    app.cost(&costs).unwrap();
}

#[test]
fn measured_delays_make_operations_as_long_as_they_were() {
    let run = one_phase(&[2]).run();
    let p = run.predict(DelayModel::Measured, None).unwrap();
    close(p.modelled.local_us, 400.0 / 2.0);
    close(p.modelled.fault_us, 480.0 / 2.0);
    close(p.modelled.cold_us, 200.0 / 2.0);
    close(p.measured.fault_us, p.modelled.fault_us);
    let p = run.predict(DelayModel::None, None).unwrap();
    close(p.modelled.fault_us, 4.0 * FAULT_US / 2.0);
    assert_eq!(p.changed, None);
}

#[test]
fn time_without_a_processor_is_service_and_what_serving_does_not_explain_a_delay() {
    let mut lab = one_phase(&[2]);
    lab.times(0, 0, &[(Component::Service, 300, 0)]);
    lab.times(1, 0, &[(Component::Service, 70, 0)]);
    let service = |lab: &Lab, delays| {
        let p = lab.run().predict(delays, None).unwrap();
        p.modelled.service_us * 2.0
    };
    // ap0's memory process serves for 5 × 24 of its 300 µs; ap1's serves nobody.
    close(service(&lab, DelayModel::Measured), 300.0 + 70.0);
    close(service(&lab, DelayModel::None), 5.0 * 24.0);
    // Serving that happened beside the process is not charged to it.
    close(service(&one_phase(&[2]), DelayModel::Measured), 0.0);
}

#[test]
fn parts_add_up_to_the_run_before_and_after_any_change() {
    let run = one_phase(&[1, 1]).run();
    for delays in [DelayModel::Measured, DelayModel::None] {
        for processors in [1, 2, 100] {
            let change = Change {
                technology: Technology::future(0.5),
                processes: Some(16),
                processors: Some(processors),
                ..Change::default()
            };
            let p = run.predict(delays, Some(&change)).unwrap();
            for times in [p.measured, p.modelled, p.changed.unwrap()] {
                let rows = times.rows();
                let parts: f64 = rows[..7].iter().map(|(_, us)| us).sum();
                close(parts, rows[7].1);
            }
            close(
                p.expected_us.unwrap(),
                p.measured.run_us * (1.0 - p.gain.unwrap()),
            );
        }
    }
}

#[test]
fn one_processor_computes_for_all_in_turn() {
    let run = one_phase(&[2]).run();
    let on = |processors| {
        let change = Change {
            processors: Some(processors),
            ..Change::default()
        };
        let p = run.predict(DelayModel::None, Some(&change)).unwrap();
        p.changed.unwrap().run_us
    };
    // Busy 1500, ten hops of 30, five faults of 30 + 40 + 4; no wire and no interface.
    let demand = 1500.0 + 300.0 + 5.0 * 74.0;
    close(on(1) - on(1000), demand - (1000.0 + 300.0 + 120.0));
    assert!(on(2) < on(1));
}

#[test]
fn another_group_makes_faults_local_copied_or_far() {
    let mut lab = one_phase(&[2]);
    for _ in 0..5 {
        lab.access(1, Op::Read, 0, 4, 100); // nothing new: served from the copy, were there one
    }
    let run = lab.run();
    let faults = |groups: &[u32], home: Option<u32>| {
        let topology = topology(groups);
        let topology = topology
            .with_homes(home.map(|mp| (ApId(1), MpId(mp))))
            .unwrap();
        let change = Change {
            placement: Some(Placement {
                topology,
                ..Placement::default()
            }),
            ..Change::default()
        };
        let p = run.predict(DelayModel::None, Some(&change)).unwrap();
        let changed = p.changed.unwrap();
        (changed.fault_us + changed.cold_us) * 2.0
    };
    close(faults(&[2], None), 10.0 * FAULT_US);
    // With the owner: local.
    close(faults(&[2], Some(0)), 0.0);
    // In another group: two link processes more, four ends each way.
    close(faults(&[1, 1], None), 10.0 * (FAULT_US + 2.0 * 40.0));

    // Where it was far and comes near, the first read of each state fetches.
    let mut lab = Lab::new(&[1, 1]);
    for version in [0, 0, 0, 1, 1, 2] {
        lab.access(1, Op::Read, 0, version, 100);
    }
    lab.times(0, 0, &[(Component::Busy, 10, 0)]);
    lab.times(
        1,
        0,
        &[(Component::Busy, 10, 0), (Component::Fault, 900, 6)],
    );
    let change = Change {
        placement: Some(Placement {
            topology: {
                let mut near = TopologyBuilder::from(topology(&[2]));
                near.name = "near".into();
                near.build().unwrap()
            },
            ..Placement::default()
        }),
        ..Change::default()
    };
    let run = lab.run();
    let p = run.predict(DelayModel::None, Some(&change)).unwrap();
    let changed = p.changed.unwrap();
    close((changed.fault_us + changed.cold_us) * 2.0, 3.0 * FAULT_US);
    close(changed.local_us * 2.0, 3.0 * 30.0);
    assert!(p.gain.unwrap() > 0.0);
    assert!(run.gain(&change).unwrap() > 0.0);
}

#[test]
fn owners_that_move_take_their_accesses_along() {
    let run = one_phase(&[2]).run();
    let change = Change {
        placement: Some(Placement {
            topology: topology(&[2]),
            moved: [(X, vec![MpId(1)])].into(),
            ..Placement::default()
        }),
        ..Change::default()
    };
    let p = run.predict(DelayModel::None, Some(&change)).unwrap();
    let changed = p.changed.unwrap();
    // ap0's object is at mp1 now: its reads of one state are one fetch; ap1's five are local.
    close((changed.fault_us + changed.cold_us) * 2.0, FAULT_US - 0.92);
    close(changed.local_us * 2.0, (9.0 + 5.0) * 30.0);
}

#[test]
fn a_single_object_moves_alone() {
    let mut lab = one_phase(&[3]);
    for _ in 0..4 {
        lab.access(1, Op::Read, 2, 0, 100);
    }
    let run = lab.run();
    let owners = |objects: &[(u32, u32)]| {
        let objects = objects.iter();
        let change = Change {
            placement: Some(Placement {
                topology: topology(&[3]),
                objects: objects
                    .map(|(index, mp)| (ObjectId::new(X, *index), MpId(*mp)))
                    .collect(),
                ..Placement::default()
            }),
            ..Change::default()
        };
        let p = run.predict(DelayModel::None, Some(&change)).unwrap();
        let changed = p.changed.unwrap();
        (changed.fault_us + changed.cold_us) * 2.0
    };
    close(owners(&[]), 9.0 * FAULT_US);
    close(owners(&[(2, 1)]), 5.0 * FAULT_US);
    close(owners(&[(2, 0)]), 9.0 * FAULT_US);
}

#[test]
fn objects_that_are_private_or_split_cost_no_messages_and_free_ones_no_waiting() {
    let mut lab = one_phase(&[2]);
    lab.access(1, Op::Acquire, 0, 0, 0);
    let acquire = lab.records.len() - 2;
    for record in &mut lab.records[acquire..] {
        (record.wait, record.duration) = (Nanos(500_000), Nanos(560_000));
    }
    lab.times(1, 0, &[(Component::Lock, 590, 1)]);
    let run = lab.run();
    let with = |sharing: Sharing| {
        let change = Change {
            sharing,
            ..Change::default()
        };
        let p = run.predict(DelayModel::Measured, Some(&change)).unwrap();
        assert!(run.gain(&change).unwrap() >= 0.0);
        (p.modelled, p.changed.unwrap())
    };
    let objects = || [ObjectId::new(X, 0)].into();
    let (now, then) = with(Sharing {
        free: objects(),
        ..Sharing::default()
    });
    close((now.lock_us - then.lock_us) * 2.0, 500.0);
    close(now.fault_us, then.fault_us);
    let (_, then) = with(Sharing {
        split: objects(),
        ..Sharing::default()
    });
    close(then.fault_us + then.cold_us, 0.0);
    // The way to the own memory process is left, of the acquire too.
    close(then.local_us * 2.0, now.local_us * 2.0 + 5.0 * 30.0);
    close(then.lock_us * 2.0, 30.0);
    let (_, then) = with(Sharing {
        private: objects(),
        ..Sharing::default()
    });
    // Nothing is left of accesses to it, ap0's own neither.
    close(then.fault_us + then.cold_us + then.lock_us, 0.0);
    assert!(then.local_us < now.local_us);
    // Of objects that nobody touched nothing changes.
    let (now, then) = with(Sharing {
        private: [ObjectId::new(X, 7)].into(),
        ..Sharing::default()
    });
    assert_eq!(now, then);
}

#[test]
fn what_was_done_before_the_last_process_was_there_is_no_part_of_the_run() {
    // ap1 is there 600 µs after ap0; until then ap0 has worked 600 of its 1200 µs.
    let lab = |waited: u64| {
        let mut lab = Lab::new(&[2]);
        for _ in 0..10 {
            lab.access(0, Op::Read, 0, 0, 8);
        }
        let parts = [
            (Component::Busy, 800, 0),
            (Component::Local, 400, 10),
            (Component::Barrier, waited, 1),
        ];
        lab.times(0, 0, &parts);
        lab.times(
            1,
            0,
            &[(Component::Busy, 500, 0), (Component::Barrier, 100, 1)],
        );
        lab.breakdown.phases[1].start = Nanos(600_000);
        lab.run()
    };
    let run = lab(0);
    close(run.run_us(), 600.0);
    let p = run.predict(DelayModel::Measured, None).unwrap();
    close(p.measured.busy_us, (400.0 + 500.0) / 2.0);
    close(p.measured.local_us, 200.0 / 2.0);
    close(p.modelled.local_us, 200.0 / 2.0);
    close(p.modelled.busy_us, p.measured.busy_us);
    // Who was early and only waited for the other has done all in the run.
    let p = lab(700).predict(DelayModel::Measured, None).unwrap();
    close(p.measured.busy_us, (800.0 + 500.0) / 2.0);
}

#[test]
fn balanced_processes_take_the_mean_time() {
    let mut lab = Lab::new(&[3]);
    for (ap, busy) in [(0, 900), (1, 300), (2, 100)] {
        lab.times(ap, 0, &[(Component::Busy, busy, 0)]);
    }
    let run = lab.run();
    let length = |aps: &[u32]| {
        let change = Change {
            balanced: aps.iter().map(|ap| ApId(*ap)).collect(),
            ..Change::default()
        };
        let p = run.predict(DelayModel::None, Some(&change)).unwrap();
        p.modelled.run_us - p.changed.unwrap().run_us
    };
    close(length(&[]), 0.0);
    close(length(&[0, 1]), 300.0);
    close(length(&[1, 2]), 0.0);
    close(length(&[0, 1, 2]), 900.0 - 1300.0 / 3.0);
}

#[test]
fn lopc_gets_its_symbols() {
    let run = one_phase(&[1, 1]).run();
    let c = run.contention().unwrap().unwrap();
    close(c.n, 2.5);
    assert_eq!(c.requests, [0.0, 5.0]);
    close(c.service_us, 4.0);
    close(c.transit_us, 28.0); // (60 − 4) / 2
    close(c.cycle_us[1], (500.0 + 200.0 + 480.0) / 5.0);
    let h = c.homogeneous.unwrap();
    close(h.handler, 24.0);
    // ap1 saw 680 µs of five requests of 60 µs; of 76 + 56 + 4 µs the handlers of six nodes take more than all.
    close(c.hop_us, 76.0);
    close(h.latency, 0.0);
    let near = one_phase(&[2]).run().contention().unwrap().unwrap();
    close(near.general.latency, (76.0 + 56.0 + 4.0 - 48.0) / 2.0);
    close(c.latency_from_costs_us, (4.0 + 1.0 + 30.0) / 2.0);
    close(h.work, (1000.0 + 400.0 + 500.0) / 5.0);
    homogeneous::solve(&h).unwrap();
    // mp0, mp1, and the two link processes, each crossed there and back.
    assert_eq!(c.general.visits[1], [1.0, 0.0, 2.0, 2.0]);
    assert_eq!(c.general.work[0], None);
    close(c.general.work[1].unwrap(), 100.0);
    general::solve(&c.general).unwrap();
    assert_eq!(c.nodes, ["mp0", "mp1", "lp0", "lp1"]);
    close(c.cpu_us[1], 500.0 / 5.0 + 30.0 + 2.0 * 24.0);
    let times = c.times(8).unwrap();
    close(times.measured_us, 5.0 * c.cycle_us[1]);
    assert!(times.logp_us <= times.modelled_us, "{times:?}");
    close(times.stretched_us, times.from_costs_us);
}

#[test]
fn a_thread_of_a_shared_memory_process_has_a_node_of_its_own() {
    let mut lab = one_phase(&[3]);
    let shared = [(ApId(1), MpId(2)), (ApId(2), MpId(2))];
    lab.catalog.topology = lab.catalog.topology.with_homes(shared).unwrap();
    lab.records.iter_mut().for_each(|r| {
        if r.ap == ApId(1) && r.side == Side::Requester {
            r.mp = MpId(2);
        }
    });
    lab.access(2, Op::Read, 0, 0, 8);
    lab.times(2, 0, &[(Component::Fault, 50, 1)]);
    let c = lab.run().contention().unwrap().unwrap();
    assert_eq!(c.nodes, ["mp0", "mp1", "mp2", "ap2"]);
    assert_eq!(c.general.visits[3], [1.0, 0.0, 0.0, 0.0]);
    general::solve(&c.general).unwrap();
}

#[test]
fn phases_are_told_apart_only_if_all_passed_the_same_barriers() {
    let mut lab = Lab::new(&[2]);
    for ap in 0..2 {
        for phase in 0..3 {
            lab.access(ap, Op::Read, ap, 0, 8);
            lab.access(ap, Op::Barrier, 0, 0, 0);
            let busy = if phase % 2 == u64::from(ap) { 100 } else { 10 };
            let parts = [(Component::Busy, busy, 0), (Component::Barrier, 200, 1)];
            lab.times(ap, phase, &parts);
        }
    }
    let app = lab.run().application(DelayModel::None).unwrap();
    let busy: Vec<Vec<f64>> = app
        .phases
        .iter()
        .map(|p| p.procs.iter().map(|p| p.busy).collect())
        .collect();
    assert_eq!(busy, [[100.0, 10.0], [10.0, 100.0], [100.0, 10.0]]);
    // The last to come waits 200 µs: the barrier costs that.
    let p = lab.run().predict(DelayModel::Measured, None).unwrap();
    close(p.modelled.run_us, 3.0 * (100.0 + 30.0 + 200.0));

    lab.times(1, 3, &[(Component::Barrier, 5, 1)]);
    let run = lab.run();
    assert_eq!(run.about().phases, 1);
    assert!(run.about().notes[0].contains("different barriers"));
    close(
        run.application(DelayModel::None).unwrap().phases[0].procs[0].busy,
        210.0,
    );
}

#[test]
fn references_are_numbered_for_the_locality_fit() {
    let mut lab = Lab::new(&[2]);
    for owner in [0, 1, 0, 0, 1] {
        lab.access(1, Op::Read, owner, 0, 16);
    }
    lab.times(1, 0, &[(Component::Busy, 1, 0)]);
    let run = lab.run();
    let fit = run.references(run.process("ap1").unwrap()).unwrap();
    assert_eq!(fit.trace, [0, 1, 0, 0, 1]);
    assert_eq!(fit.item_bytes, Some(16.0));
    let error = run.process("ap7").unwrap_err().to_string();
    assert!(error.contains("ap7") && error.contains("ap1"), "{error}");
}

#[test]
fn what_cannot_be_told_is_an_error_that_says_why() {
    let lab = one_phase(&[2]);
    let builder = Builder::new(lab.catalog.clone(), network()).unwrap();
    let error = builder.finish(&Breakdown::default()).unwrap_err();
    assert!(error.to_string().contains("breakdown"), "{error}");
    let change = Change {
        placement: Some(Placement {
            topology: topology(&[1]),
            ..Placement::default()
        }),
        ..Change::default()
    };
    let run = lab.run();
    let error = run.predict(DelayModel::None, Some(&change)).unwrap_err();
    assert!(error.to_string().contains("mp1"), "{error}");
    let bad = NetworkRecord {
        processors: 0,
        ..network()
    };
    assert!(Builder::new(lab.catalog.clone(), bad).is_err());
    let mut alone = Lab::new(&[1]);
    alone.access(0, Op::Read, 0, 0, 8);
    alone.times(0, 0, &[(Component::Busy, 7, 0)]);
    assert_eq!(alone.run().contention().unwrap(), None);
}
