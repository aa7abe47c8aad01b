//! Inputs of LoPC and of the locality fit; what cannot be told.

use dosmos_model::inputs::{Builder, Change, DelayModel, NetworkRecord, Placement};
use dosmos_model::lopc::{general, homogeneous};
use dosmos_proto::{ApId, Component, MpId};
use dosmos_trace::query::Breakdown;
use dosmos_trace::record::{Op, Side};

use super::lab::{Lab, close, network, one_phase, topology};

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
