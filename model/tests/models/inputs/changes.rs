//! What a change of the program would bring.

use dosmos_model::dvsm::Technology;
use dosmos_model::inputs::{Change, DelayModel, Placement, Sharing};
use dosmos_proto::{ApId, Component, MpId, Nanos, ObjectId};
use dosmos_trace::record::Op;

use super::lab::{FAULT_US, Lab, X, close, one_phase, topology};

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
