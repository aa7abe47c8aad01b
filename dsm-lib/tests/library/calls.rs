//! Calls that are not waited for at once, against a fake memory process: posted ones, ones that an executor polls, ones that other
//! threads have under way. Nothing here may hang; deadlines bound every wait.

use crate::fake::Fake;
use dsm_lib::{Cache, Dsm, Error, Vector};

#[test]
fn what_is_posted_is_done_before_the_barrier_and_its_error_is_that_of_the_barrier() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let v: Vector<u64> = dsm.vector("v", 4).declare().unwrap();
    let refusing: Vector<u64> = dsm.vector("refusing", 4).declare().unwrap();
    let before = fake.log().len();
    v.object(0).unwrap().set_async(1, 7).post().unwrap();
    let call = v.object(0).unwrap().set_async(2, 8);
    dsm.barrier_named("one").unwrap();
    assert_eq!(
        fake.log()[before..],
        ["write v", "write v", "barrier one"],
        "in order"
    );
    call.wait().unwrap(); // its reply was in no hurry
    assert_eq!(v.object(0).unwrap().read().unwrap()[..], [0, 7, 8, 0]);

    let write = |at| refusing.object(0).unwrap().set_async(at, 1).post();
    write(0).unwrap();
    write(1).unwrap();
    let error = dsm.barrier_named("two").unwrap_err();
    assert!(
        error.to_string().contains("write of refusing"),
        "{error}: the error of what was posted"
    );
    dsm.barrier_named("three").unwrap();
    assert!(write(4).is_err(), "it is outside");
    write(0).unwrap();
    dsm.publish().unwrap_err();
    for _ in 0..2000 {
        v.object(0).unwrap().set_async(1, 9).post().unwrap(); // without ever a barrier
    }
    write(0).unwrap();
    let v = v.object(0).unwrap();
    dsm.close().unwrap_err();
    assert!(v.set_async(0, 1).post().is_err(), "the session is over");
}

#[test]
fn a_process_that_is_alone_does_not_wait_at_a_barrier() {
    let fake = Fake::start();
    let dsm = fake.connect();
    for _ in 0..200 {
        dsm.group_barrier().unwrap();
    }
    dsm.publish().unwrap();
    let arrived = fake
        .log()
        .iter()
        .filter(|l| l.starts_with("barrier"))
        .count();
    assert_eq!(arrived, 200);
}

#[test]
fn a_dropped_arrival_at_a_barrier_is_taken_back() {
    let fake = Fake::start();
    let dsm = fake.connect();
    drop(dsm.barrier_named_async("silent"));
    drop(dsm.publish_async()); // takes no effect on others: it is not taken back
    dsm.barrier().unwrap();
    let log = fake.log();
    let expected = [
        "hello ",
        "barrier silent",
        "cancel silent",
        "publish ",
        "barrier barrier",
    ];
    assert_eq!(log, expected);
}

#[test]
fn replies_out_of_order_find_their_calls() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let v = dsm.vector::<u32>("reverse", 3).split(3).declare().unwrap();
    // Only because all three are under way at once does the fake answer at all.
    let calls: Vec<_> = v
        .objects()
        .map(|o| o.set_async(0, 10 + o.index()))
        .collect();
    calls.into_iter().for_each(|c| c.wait().unwrap());
    let calls: Vec<_> = v.objects().map(|o| o.get_async(0)).collect();
    let values: Vec<_> = calls.into_iter().map(|c| c.wait().unwrap()).collect();
    assert_eq!(values, [10, 11, 12]);
}

#[test]
fn calls_are_futures_for_any_executor() {
    let fake = Fake::start();
    futures::executor::block_on(async {
        let dsm = Dsm::connect_async(fake.settings()).await.unwrap();
        let v = dsm.vector::<u64>("reverse", 3).split(3).declare_async();
        let v = v.await.unwrap();
        let sums = futures::future::join_all(v.objects().map(|o| o.fetch_add_async(0, 4)));
        assert!(sums.await.into_iter().all(|before| before == Ok(0)));
        let n = dsm.scalar::<f32>("n").declare_async().await.unwrap();
        let mut section = n.acquire_async().await.unwrap();
        section.write_async(2.5).await.unwrap();
        // The blocking form works here, too, though it blocks the executor.
        assert_eq!(section.read().unwrap(), 2.5);
        section.release_async().await.unwrap();
        dsm.barrier_async().await.unwrap();
        dsm.close_async().await.unwrap();
    });
}

#[test]
fn a_call_under_way_is_served_while_the_program_computes() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let n = dsm.scalar::<u64>("n").declare().unwrap();
    for i in 0..200 {
        assert_eq!(n.fetch_add(1).unwrap(), 2 * i);
        // Nobody blocks on this one; the fake hears of it all the same.
        let before = fake.log().len();
        let call = n.fetch_add_async(1);
        while fake.log().len() == before {
            std::thread::yield_now();
        }
        assert_eq!(call.wait().unwrap(), 2 * i + 1);
    }
}

#[test]
fn blocking_and_asynchronous_threads_do_not_stall_each_other() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let n = dsm.scalar::<u64>("n").declare().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..300).for_each(|_| assert!(n.fetch_add(1).is_ok())));
            scope.spawn(|| {
                futures::executor::block_on(async {
                    for _ in 0..300 {
                        assert!(n.fetch_add_async(1).await.is_ok());
                    }
                });
            });
        }
    });
    assert_eq!(n.read().unwrap(), 1200);
}

#[test]
fn what_one_thread_posts_leaves_while_another_waits() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let late = dsm.scalar::<u64>("late").cache(Cache::Mp);
    let late = late.declare().unwrap();
    // Of what is kept here something would be sent now and then.
    let v = dsm.vector::<u64>("v", 4).cache(Cache::Mp);
    let v: Vector<u64> = v.declare().unwrap();
    let object = v.object(0).unwrap();
    for round in 1..=20 {
        let asked = || fake.log().iter().filter(|l| *l == "read late").count();
        std::thread::scope(|scope| {
            // Its answer comes when something else is asked.
            let waits = scope.spawn(|| late.read());
            while asked() < round {
                assert!(!waits.is_finished(), "it asks again");
                std::thread::yield_now();
            }
            object.set_async(0, 1).post().unwrap();
            waits.join().unwrap().unwrap();
        });
    }
}

/// A waker that, when woken, drops what it is given: as an executor that shuts down may.
struct Dropper(std::sync::Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl std::task::Wake for Dropper {
    fn wake(self: std::sync::Arc<Self>) {
        let action = self.0.lock().unwrap().take();
        action.into_iter().for_each(|act| act());
    }
}

#[test]
fn what_a_waker_drops_does_not_wait_for_the_session_it_runs_in() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let n = dsm.scalar::<u64>("n").declare().unwrap();
    let m = dsm.scalar::<u64>("m").declare().unwrap();
    let section = m.acquire().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let act = move || {
        let error = m.read().unwrap_err();
        drop(section);
        drop(m);
        drop(dsm);
        tell.send(error).unwrap();
    };
    let waker = std::task::Waker::from(std::sync::Arc::new(Dropper(std::sync::Mutex::new(Some(
        Box::new(act),
    )))));
    let mut call = n.read_async();
    let polled = std::pin::Pin::new(&mut call);
    // Either it is done at once, or the waker acts on the thread that carries the session.
    if std::future::Future::poll(polled, &mut std::task::Context::from_waker(&waker)).is_ready() {
        return;
    }
    drop(n);
    let error = told.recv().unwrap();
    assert!(matches!(error, Error::WouldDeadlock { .. }), "{error}");
}
