//! Sections and locks against a fake memory process: what is sent for them, and what becomes of one that is dropped, lost or
//! cannot be released. Nothing here may hang; deadlines bound every wait.

use std::time::Duration;

use crate::fake::Fake;
use dsm_lib::{Cache, Error, ErrorCode, LockKind, Vector};

#[test]
fn a_section_is_a_slice_that_is_written_at_its_release() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let v: Vector<f64> = dsm.vector("v", 5).declare().unwrap();
    let mut section = v.object(0).unwrap().acquire().unwrap();
    assert_eq!(section.values().unwrap(), [0.0; 5]);
    section.values_mut().unwrap()[3] = 3.0;
    assert_eq!(section.get(3).unwrap(), 3.0);
    assert_eq!(section.read_range(2..4).unwrap()[..], [0.0, 3.0]);
    assert_eq!(v.get(3).unwrap(), 0.0, "nothing was sent so far");
    section.set(0, 1.0).unwrap(); // behind what was changed in the slice
    assert_eq!(section.values().unwrap(), [1.0, 0.0, 0.0, 3.0, 0.0]);
    section.values_mut().unwrap()[4] = -0.0;
    section.release().unwrap();
    let values = v.object(0).unwrap().read().unwrap();
    assert_eq!(values[..], [1.0, 0.0, 0.0, 3.0, 0.0]);
    assert!(values[4].is_sign_negative(), "changed bits are changes");
    let mut section = v.object(0).unwrap().acquire().unwrap();
    section.values_mut().unwrap()[1] = 7.0;
    drop(section);
    assert_eq!(v.get(1).unwrap(), 7.0);
    let log = fake.log();
    let count = |what: &str| log.iter().filter(|l| *l == what).count();
    let with_releases = (
        count("2 writes with the release"),
        count("1 writes with the release"),
    );
    assert_eq!((count("write v"), count("read v")), (0, 5), "{log:?}");
    assert_eq!(with_releases, (1, 1), "{log:?}");
}

#[test]
fn a_section_takes_two_messages_however_much_is_done_in_it() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let v = dsm.vector("near", 1000).cache(Cache::Mp);
    let v: Vector<i64> = v.declare().unwrap();
    let object = v.object(0).unwrap();
    let mark = fake.log().len();
    let mut section = object.acquire().unwrap();
    for i in 0..1000 {
        section.set(i, i as i64).unwrap();
    }
    section.write_at(2, &[-2, -3]).unwrap();
    assert_eq!(section.fetch_add(0, 5).unwrap(), 0);
    assert!(section.compare_exchange(0, 5, 6).unwrap().stored);
    assert!(section.set(1000, 1).is_err(), "there is no such element");
    assert_eq!(section.read_range(0..4).unwrap()[..], [6, 1, -2, -3]);
    assert_eq!(section.get(999).unwrap(), 999);
    section.release().unwrap();
    dsm.publish().unwrap();
    let log = fake.log()[mark..].to_vec();
    assert_eq!(
        log,
        [
            "acquire near",
            "2 reads in a section",
            "of 0 to 1000",
            "release near",
            "1003 writes with the release",
            "publish "
        ]
    );
    assert_eq!(object.read_range(0..4).unwrap()[..], [6, 1, -2, -3]);
    let done = dsm.counts().total();
    assert_eq!((done.reads, done.writes), (3, 1003));
    // Writes that change nothing are writes, and reading alone sends nothing but the release.
    let mark = fake.log().len();
    let mut section = object.acquire().unwrap();
    section.set(1, 1).unwrap();
    section.release().unwrap();
    let log = fake.log()[mark..].to_vec();
    let said = ["acquire near", "release near", "1 writes with the release"];
    assert_eq!(log, said);
    // The slice counts as one read and one write.
    let mark = fake.log().len();
    let mut section = object.acquire().unwrap();
    section.values_mut().unwrap()[..10].fill(7);
    section.release().unwrap();
    let log = fake.log()[mark..].to_vec();
    let said = [
        "1 reads in a section",
        "of 0 to 1000",
        "release near",
        "1 writes with the release",
    ];
    assert_eq!(log[1..], said);
}

#[test]
fn an_update_changes_what_the_section_has() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let v: Vector<i64> = dsm.vector("near", 4).declare().unwrap();
    let n = dsm.scalar::<i64>("near.n").declare().unwrap();
    let mut section = v.object(0).unwrap().acquire().unwrap();
    let before = section.update(|all| std::mem::replace(&mut all[2], 7));
    assert_eq!(before.unwrap(), 0);
    assert_eq!(section.update(|all| all.iter().sum::<i64>()).unwrap(), 7);
    section.release().unwrap();
    assert_eq!(v.object(0).unwrap().read().unwrap()[..], [0, 0, 7, 0]);

    let mark = fake.log().len();
    let mut section = n.acquire().unwrap();
    assert_eq!(section.update(|n| n + 5).unwrap(), 5);
    assert_eq!(section.update(|n| n * 2).unwrap(), 10);
    section.release().unwrap();
    assert_eq!(n.read().unwrap(), 10);
    let log = fake.log()[mark..].to_vec();
    assert_eq!(log[0], "acquire near.n", "{log:?}");
    assert!(log.contains(&"2 writes with the release".into()), "{log:?}");
}

/// 128 KiB, eight times as much as a message costs.
#[test]
fn a_section_of_a_large_object_fetches_it_when_many_accesses_were_sent() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let v: Vector<i64> = dsm.vector("large", 16 << 10).declare().unwrap();
    let object = v.object(0).unwrap();
    let mark = fake.log().len();
    let mut section = object.acquire().unwrap();
    for i in 0..1000 {
        section.set(i, i as i64).unwrap();
    }
    assert_eq!(section.get(7).unwrap(), 7);
    assert_eq!(section.fetch_add(999, 1).unwrap(), 999);
    section.release().unwrap();
    dsm.publish().unwrap();
    let log = fake.log()[mark..].to_vec();
    let sent = log.iter().filter(|m| *m == "write large").count();
    assert_eq!(sent, 8, "{log:?}");
    assert_eq!(log.iter().filter(|m| *m == "read large").count(), 1);
    assert!(log.contains(&"993 writes with the release".into()));
    assert_eq!(object.read_range(998..1000).unwrap()[..], [998, 1000]);
    // The first reading is that of the whole object.
    let done = dsm.counts().total();
    assert_eq!((done.reads, done.writes), (3, 1001));
}

#[test]
fn a_copy_is_void_when_a_section_that_wrote_is_released() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let near = dsm.vector::<i64>("near", 4).cache(Cache::Ap);
    let v: Vector<i64> = near.declare().unwrap();
    assert_eq!(v.get(1).unwrap(), 0); // kept
    let mut section = v.object(0).unwrap().acquire().unwrap();
    section.set(1, 5).unwrap();
    section.release().unwrap();
    assert_eq!(v.get(1).unwrap(), 5);
}

#[test]
fn a_dropped_section_is_released_before_the_drop_returns() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let n = dsm.scalar::<i64>("n").declare().unwrap();
    drop(n.acquire().unwrap());
    assert_eq!(fake.log().last().unwrap(), "release n");
    n.acquire().unwrap().release().unwrap();
}

#[test]
fn a_release_that_failed_can_be_repeated() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let n = dsm.scalar::<i64>("unsteady").declare().unwrap();
    let failed = n.acquire().unwrap().release().unwrap_err();
    assert_eq!(failed.error.code(), Some(ErrorCode::Unreachable));
    assert_eq!(failed.section.release().unwrap(), 1);
    n.acquire().unwrap().release().unwrap();
}

#[test]
fn what_a_release_that_failed_should_have_written_is_counted_when_it_is_written() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let n = dsm.vector::<i64>("unsteady", 4).declare().unwrap();
    let mut section = n.object(0).unwrap().acquire().unwrap();
    section.values_mut().unwrap()[1] = 2;
    section.set(0, 1).unwrap();
    let failed = section.release().unwrap_err();
    assert_eq!(dsm.counts().total().writes, 0);
    failed.section.release().unwrap();
    assert_eq!(dsm.counts().total().writes, 2);
}

#[test]
fn a_section_whose_release_failed_is_released_when_it_is_dropped() {
    for asynchronous in [false, true] {
        let fake = Fake::start();
        let dsm = fake.connect();
        let n = dsm.scalar::<i64>("unsteady").declare().unwrap();
        let section = n.acquire().unwrap();
        match asynchronous {
            false => drop(section.release().unwrap_err()),
            true => drop(section.release_async().wait().unwrap_err()),
        }
        // The second release was sent before this.
        n.acquire().unwrap().release().unwrap();
        let releases = fake
            .log()
            .iter()
            .filter(|l| *l == "release unsteady")
            .count();
        assert_eq!(releases, 3, "{:?}", fake.log());
    }
}

#[test]
fn a_release_call_that_is_dropped_is_not_sent_again() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let n = dsm.scalar::<i64>("n").declare().unwrap();
    drop(n.acquire().unwrap().release_async());
    n.acquire().unwrap().release().unwrap();
    let releases = fake.log().iter().filter(|l| *l == "release n").count();
    assert_eq!(releases, 2, "{:?}", fake.log());
}

#[test]
fn every_operation_in_a_section_that_was_lost_fails() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let v = dsm.vector::<i64>("v", 4).declare().unwrap();
    let object = v.object(0).unwrap();
    let section = object.acquire().unwrap();
    assert_eq!(section.read().unwrap()[..], [0; 4]);
    dsm.barrier_named("lose").unwrap();
    let errors = [
        section.read().unwrap_err(),
        section.read_range(1..2).unwrap_err(),
        section.get(3).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.code(), Some(ErrorCode::StaleEpoch), "{error}");
    }
    assert_eq!(
        object.get(3).unwrap(),
        0,
        "outside the section it can be read"
    );
    let over = section.release().unwrap_err();
    assert_eq!(over.error.code(), Some(ErrorCode::NotHeld));
    drop(over);
    let releases = fake.log().iter().filter(|l| *l == "release v").count();
    assert_eq!(releases, 1, "what is over is not released again");
}

#[test]
fn the_release_of_a_queue_lock_does_not_wait_for_ever_for_a_successor_that_died() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let v = dsm
        .vector::<i64>("m", 1)
        .lock(LockKind::Mcs)
        .declare()
        .unwrap();
    let object = v
        .object(0)
        .unwrap()
        .with_deadline(Duration::from_millis(50));
    let section = object.acquire().unwrap();
    // The process of rank 1 puts itself at the end of the queue, and dies before it says so.
    let tail = dsm.open::<Vector<u64>>("m#lock").unwrap();
    tail.set(0, 2).unwrap();
    let failed = section.release().unwrap_err();
    assert_eq!(failed.error.code(), Some(ErrorCode::Deadline), "{failed}");
    assert!(failed.to_string().contains("probably ended"), "{failed}");
    // It was only slow: it waits, and says that it is the next.
    let nodes = dsm.open::<Vector<u64>>("m#nodes").unwrap();
    nodes.object(1).unwrap().write(&[0, 1]).unwrap();
    nodes.object(0).unwrap().set(0, 2).unwrap();
    failed.section.release().unwrap();
    assert_eq!(
        nodes.object(1).unwrap().read().unwrap()[..],
        [0, 2],
        "granted"
    );
    assert_eq!(nodes.object(0).unwrap().get(1).unwrap(), 0, "free");
}

#[test]
fn threads_of_one_process_do_not_take_the_same_place_in_a_queue() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let v = dsm
        .vector::<i64>("m", 1)
        .lock(LockKind::Mcs)
        .declare()
        .unwrap();
    let start = std::sync::Barrier::new(2);
    let (mut held, mut refused) = (0, 0);
    for _ in 0..100 {
        let one = || {
            let object = v.object(0).unwrap();
            start.wait();
            let section = object.acquire();
            start.wait(); // both have tried: whoever has it still holds it
            section.map(|s| s.release().unwrap())
        };
        let outcomes: [_; 2] = std::thread::scope(|scope| {
            [scope.spawn(one), scope.spawn(one)].map(|t| t.join().unwrap())
        });
        for outcome in outcomes {
            match outcome {
                Ok(_) => held += 1,
                Err(e) => {
                    assert_eq!(e.code(), Some(ErrorCode::AlreadyHeld), "{e}");
                    refused += 1;
                }
            }
        }
    }
    assert_eq!((held, refused), (100, 100));
}

#[test]
fn acquiring_twice_is_an_error_and_not_a_deadlock() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let n = dsm.scalar::<i64>("n").declare().unwrap();
    let section = n.acquire().unwrap();
    let error = n.acquire().unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::AlreadyHeld));
    assert!(
        error.to_string().starts_with("acquire of n was refused"),
        "{error}"
    );
    section.release().unwrap();
}

#[test]
fn a_lock_granted_to_a_dropped_call_is_given_back() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let n = dsm.scalar::<i64>("late").declare().unwrap();
    let call = n.acquire_async();
    drop(call);
    dsm.barrier().unwrap(); // the grant comes with this
    // The release that answers it has been sent before anything sent from now on.
    dsm.barrier().unwrap();
    assert!(
        fake.log().contains(&"release late".into()),
        "{:?}",
        fake.log()
    );
}

#[test]
fn a_section_of_a_lost_session_is_dropped_without_hanging() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let n = dsm.scalar::<i64>("n").declare().unwrap();
    let mut section = n.acquire().unwrap();
    drop(fake);
    let error = section.write(1).unwrap_err();
    assert!(matches!(error, Error::Lost { .. }), "{error}");
    drop(section);
}
