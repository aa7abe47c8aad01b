//! Records become the operations of phases.

use dosmos_model::dvsm::{Costs, Technology};
use dosmos_model::inputs::{Change, DelayModel, Placement};
use dosmos_proto::{ApId, Component, MpId, Nanos, TopologyBuilder};
use dosmos_trace::record::Op;

use super::lab::{FAULT_US, Lab, close, network, one_phase, topology};

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
