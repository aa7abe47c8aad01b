//! Meta-objects: hand-overs, and sums.

use dosmos_proto::{EmpId, MpId, wire};
use dosmos_trace::meta::{HandOver, OpCounts};
use dosmos_trace::query::{MetaQuery, TraceSource};
use dosmos_trace::record::{Op, Origin, Side};
use dosmos_trace::store::StoreSource;

use crate::common::{DEADLINE, Emp, Mp, X, metas, post, record, stored};

/// mp1 read X, owned by mp0: once remotely, then `reads` times its copy, which is then invalidated.
async fn read_and_invalidate(mp: &Mp, sequence: u64, reads: u64) {
    let mut list = vec![record(0, 1, Side::Requester, Op::Read)];
    for i in 0..reads {
        let mut read = record(i + 1, 1, Side::Requester, Op::Read);
        read.flags.optimized = true;
        read.origin = Origin::Local;
        list.push(read);
    }
    let hand_over = HandOver {
        object: X,
        copy_at: MpId(1),
        primary_emp: EmpId(0),
        dropped: true,
    };
    mp.batch(sequence, &list, &[hand_over]);
}

#[tokio::test]
async fn hand_overs_reach_the_primary_once_also_if_its_event_manager_was_away() {
    let dir = dosmos_testseeds::scratch();
    let emp1 = Emp::start(dir.path(), 1, dir.path().join("s1")).await;
    let mut mp1 = Mp::connect(&emp1, "mp1", 1).await.unwrap();
    read_and_invalidate(&mp1, 1, 4).await;
    mp1.durable(1).await;
    let emp0 = Emp::start(dir.path(), 0, dir.path().join("s0")).await;
    emp1.client()
        .await
        .flush(wire::FlushRequest {})
        .await
        .unwrap();
    assert_eq!(metas(&emp0).await.primaries[0].reads_on_copies, 4);
    emp0.stop().await;
    read_and_invalidate(&mp1, 2, 3).await;
    mp1.durable(2).await;
    let emp0 = Emp::start(dir.path(), 0, dir.path().join("s0")).await;
    emp1.client()
        .await
        .flush(wire::FlushRequest {})
        .await
        .unwrap();
    let found = metas(&emp0).await;
    assert_eq!(found.primaries[0].reads_on_copies, 7);
    drop(mp1);
    emp1.stop().await;
    emp0.stop().await;
    // The directory says the same as the live event manager did.
    let source = StoreSource::open(&dir.path().join("s0")).unwrap();
    let dead = source.meta_objects(&MetaQuery::default()).await.unwrap();
    assert_eq!(dead.primaries, found.primaries);
}

#[tokio::test]
async fn answers_say_how_many_hand_overs_were_dropped() {
    let dir = dosmos_testseeds::scratch();
    let emp = Emp::start(dir.path(), 0, dir.path().join("s0")).await;
    let mut mp = Mp::connect(&emp, "mp0", 1).await.unwrap();
    let counters = wire::ProcessCounters {
        lost_hand_overs: 3,
        ..Default::default()
    };
    let batch = wire::Batch {
        sequence: 1,
        counters: Some(counters),
        sampling: 1.0,
        ..Default::default()
    };
    post(&mp.send, wire::ingest_request::Body::Batch(batch));
    mp.durable(1).await;
    let notes = metas(&emp).await.completeness.notes;
    assert!(
        notes
            .iter()
            .any(|n| n.contains("3 hand-overs of copies were dropped")),
        "{notes:?}"
    );
    emp.stop().await;
}

#[tokio::test]
async fn meta_objects_sum_up_to_the_records() {
    let dir = dosmos_testseeds::scratch();
    let emp0 = Emp::start(dir.path(), 0, dir.path().join("s0")).await;
    let emp1 = Emp::start(dir.path(), 1, dir.path().join("s1")).await;
    let mp0 = Mp::connect(&emp0, "mp0", 1).await.unwrap();
    let mp1 = Mp::connect(&emp1, "mp1", 1).await.unwrap();
    for round in 1..=20 {
        mp0.batch(
            round,
            &[
                record(round, 1, Side::Owner, Op::Read),
                record(round, 0, Side::Requester, Op::Write),
            ],
            &[],
        );
        read_and_invalidate(&mp1, round, round % 3).await;
    }
    // Both flush: the first one's hand-overs, then what they brought.
    for emp in [&emp1, &emp0] {
        emp.client()
            .await
            .flush(wire::FlushRequest {})
            .await
            .unwrap();
    }
    let eventually_all = async {
        loop {
            let mut seen = OpCounts::default();
            let mut done = OpCounts::default();
            for emp in [&emp0, &emp1] {
                let metas = metas(emp).await;
                for p in &metas.primaries {
                    seen.add(&p.counts);
                    seen.reads += p.reads_on_copies;
                }
                seen.reads += metas.secondaries.iter().map(|s| s.reads).sum::<u64>();
                let accesses = stored(emp).await;
                accesses
                    .iter()
                    .filter(|r| r.is_access())
                    .for_each(|r| done.count(r.op, r.accesses()));
            }
            if seen == done
                && done.writes == 20
                && done.reads == 20 + (1..=20).map(|r| r % 3).sum::<u64>()
            {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(DEADLINE, eventually_all)
        .await
        .expect("the sums to meet");
}
