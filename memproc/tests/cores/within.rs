//! Memory processes within application processes: they go on until all application processes have left.

use crate::common::*;
use dosmos_memproc::core::messages::Request;
use dosmos_proto::{ApId, MpId};

#[test]
fn all_are_told_who_left_and_know_when_all_have() {
    let mut c = Cluster::in_application(&["/a", "/b"], 2, 1);
    let know = |c: &Cluster| -> Vec<bool> {
        c.cores
            .iter()
            .map(|core| core.still_here().is_empty())
            .collect()
    };
    for ap in 0..4 {
        assert_eq!(know(&c), [false; 6], "before ap{ap} leaves");
        if ap == 2 {
            // It dies.
            c.gone(ApId(ap));
        } else {
            c.call(ap, Request::Bye);
        }
        c.run();
    }
    let owners = c.topology.owners_in(None).collect::<Vec<MpId>>();
    for mp in owners {
        assert!(c.cores[mp.index()].still_here().is_empty(), "{mp}");
    }
}

#[test]
fn who_is_lost_with_its_memory_process_has_left_and_may_come_back() {
    let mut c = Cluster::in_application(&["/a"], 2, 1);
    c.call(0, Request::Bye);
    c.run();
    assert!(!c.cores[0].still_here().is_empty());
    c.down(MpId(0), MpId(1));
    c.run();
    assert!(c.cores[0].still_here().is_empty());
    c.up(MpId(0), MpId(1));
    c.run();
    assert!(!c.cores[0].still_here().is_empty());
}
