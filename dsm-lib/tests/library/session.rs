//! The library against a fake memory process: what a program can do, and what it is told when things
//! go wrong. Nothing here may hang; deadlines bound every wait.

use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use crate::fake::Fake;
use dsm_lib::{
    Cache, CopyPolicy, Dsm, ElementType, Error, ErrorCode, Matrix, Object, Scalar, Variable, Vector,
};

#[test]
fn a_program_knows_its_place() {
    let fake = Fake::start();
    let dsm = fake.connect();
    assert_eq!((dsm.rank(), dsm.size()), (0, 2));
    assert_eq!((dsm.group_rank(), dsm.group_size()), (0, 1));
    assert_eq!((dsm.name(), dsm.group()), ("ap0", "/g"));
    assert_eq!(dsm.memory_process(), "mp0");
    let owners = dsm.memory_processes().iter();
    let owners: Vec<_> = owners.map(|m| (&*m.name, &*m.group)).collect();
    assert_eq!(owners, [("mp0", "/g"), ("mp1", "/h")], "no link process");
    assert_eq!(
        dsm.homes().iter().map(|h| &**h).collect::<Vec<_>>(),
        ["mp0", "mp1"]
    );
    dsm.close().unwrap();
    assert_eq!(fake.log(), ["hello ", "bye "]);
}

#[test]
fn a_copy_in_this_process_is_read_without_a_message_until_it_is_void() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let v: Vector<u64> = dsm.vector("v", 4).cache(Cache::Ap).declare().unwrap();
    let object = v.object(0).unwrap();
    assert_eq!(object.get(3).unwrap(), 0); // fetches all of it
    for _ in 0..5 {
        assert_eq!(object.read().unwrap()[..], [0; 4]);
        assert_eq!(object.read_range(1..3).unwrap()[..], [0, 0]);
        assert_eq!(v.get(0).unwrap(), 0); // another handle, the same copy
        assert_eq!(object.get_async(2).wait().unwrap(), 0);
    }
    assert!(object.get(4).is_err() && object.read_range(3..5).is_err());
    let reads = |fake: &Fake| fake.log().iter().filter(|l| *l == "read v").count();
    assert_eq!(reads(&fake), 1);
    let kept = object.read().unwrap();
    dsm.barrier_named("change").unwrap(); // by somebody else: it is void before the barrier returns
    assert_eq!(object.get(0).unwrap(), 1);
    assert_eq!(kept[0], 0, "a view stays as it is");
    object.set(1, 7).unwrap(); // by this process
    assert_eq!(object.read().unwrap()[..], [1, 7, 0, 0]);
    assert_eq!(reads(&fake), 3);
    let section = object.acquire().unwrap();
    assert_eq!(section.get(1).unwrap(), 7);
    section.release().unwrap();
    assert_eq!(reads(&fake), 4, "a read in a section is a message");
    assert_eq!(object.read().unwrap().version(), 1, "it was not changed");
    assert_eq!(reads(&fake), 4);
    // All that was read is counted, and the memory process is told.
    assert_eq!(dsm.counts().total().reads, 21 + 4 + 1);
    dsm.close().unwrap();
    let told = fake.log();
    let told = told.iter().filter_map(|l| l.strip_suffix(" cached reads"));
    assert_eq!(told.map(|n| n.parse::<u64>().unwrap()).sum::<u64>(), 22);
    assert!(object.read().is_err(), "the session is over");
}

#[test]
fn a_prefetched_object_is_read_without_a_message() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let declared = dsm.vector::<u64>("large", 4096).cache(Cache::Ap).declare();
    let object = declared.unwrap().object(0).unwrap();
    let reads = |fake: &Fake| fake.log().iter().filter(|l| *l == "read large").count();
    object.prefetch();
    dsm.barrier().unwrap(); // what was sent before it has arrived
    assert_eq!(reads(&fake), 1);
    assert_eq!(object.read().unwrap()[..], [0; 4096]);
    object.prefetch(); // it is here
    assert_eq!(object.get(4095).unwrap(), 0);
    dsm.barrier_named("change").unwrap(); // by somebody else: it is void
    assert_eq!(reads(&fake), 1);
    object.prefetch();
    dsm.barrier().unwrap();
    assert_eq!(object.get(0).unwrap(), 1);
    assert_eq!(reads(&fake), 2);
    // Without copies here one comes to the memory process: that is a message of one element.
    let halves = dsm.vector("halves", 4).split(2).cache(Cache::Mp);
    let halves: Vector<u64> = halves.declare().unwrap();
    let (near, far) = (halves.object(0).unwrap(), halves.object(1).unwrap());
    assert!(near.is_local() && !far.is_local());
    near.prefetch(); // its memory process owns it
    far.prefetch();
    dsm.barrier().unwrap();
    assert_eq!(fake.log().iter().filter(|l| *l == "read halves").count(), 1);
}

#[test]
fn several_objects_are_read_at_once() {
    let fake = Fake::start();
    let dsm = fake.connect();
    // Answered three at a time: read one after the other, the first would wait for ever.
    let v: Vector<u64> = dsm.vector("reverse", 3).split(3).declare().unwrap();
    let objects: Vec<_> = v.objects().collect();
    let views = Object::read_all(&objects).unwrap();
    let regions: Vec<u64> = objects.iter().map(|o| o.region().column).collect();
    assert_eq!((views.len(), &regions[..]), (3, &[0, 1, 2][..]));
    assert!(views.iter().all(|view| view[..] == [0]));
}

#[test]
fn an_element_of_a_large_object_does_not_fetch_it_until_so_much_was_read() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let declared = dsm.vector::<u64>("large", 4096).cache(Cache::Ap).declare();
    let object = declared.unwrap().object(0).unwrap();
    let reads = |fake: &Fake| fake.log().iter().filter(|l| *l == "read large").count();
    for _ in 0..3 {
        object.get(0).unwrap();
    }
    assert_eq!(reads(&fake), 3);
    object.read_range(0..4095).unwrap(); // now as much was asked for as it has
    object.get(4095).unwrap();
    assert_eq!(reads(&fake), 4);
}

#[test]
fn a_copy_of_a_large_object_that_was_for_nothing_is_not_asked_for_at_once_again() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let declared = dsm.vector::<u64>("large", 4096).cache(Cache::Ap).declare();
    let object = declared.unwrap().object(0).unwrap();
    let sent = |times: usize| {
        dsm.barrier_named("change").unwrap(); // by somebody else
        let mark = fake.log().len();
        for _ in 0..times {
            object.read().unwrap();
        }
        let log = fake.log()[mark..].to_vec();
        log.iter().filter(|l| *l == "read large").count()
    };
    assert_eq!(sent(1), 1, "a copy comes, and changes before it is read");
    assert_eq!(sent(6), 4, "four times as much as it has");
    assert_eq!(sent(6), 1, "that one was read");
}

#[test]
fn who_reads_the_same_again_and_again_says_once_that_it_awaits_news() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let v: Vector<u64> = dsm.vector("v", 4).declare().unwrap();
    let object = v.object(0).unwrap();
    let said = || fake.log().iter().filter(|l| *l == "awaits news").count();
    let read = |times: usize| {
        for _ in 0..times {
            object.get(1).unwrap();
        }
        // What was said has arrived.
        dsm.publish().unwrap();
    };
    read(100);
    assert_eq!(said(), 0);
    for at in 0..2_000 {
        object.get(at % 2).unwrap(); // not the same
    }
    dsm.publish().unwrap();
    assert_eq!(said(), 0);
    read(2_000);
    assert_eq!(said(), 1);
    read(2_000);
    assert_eq!(said(), 2, "a request ends it");
}

#[test]
fn an_edit_writes_what_was_changed_and_nothing_else() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let v: Vector<i32> = dsm.vector("v", 8).declare().unwrap();
    let object = v.object(0).unwrap();
    let mut edit = object.edit().unwrap();
    edit[1] = 10;
    edit[6] = 60;
    // Others may wait for the object, so this thread may not wait for others.
    let refused = v.set(6, 66).unwrap_err();
    assert!(matches!(refused, Error::EditOpen { .. }), "{refused}");
    let other = v.clone();
    std::thread::spawn(move || other.set(7, 77).unwrap())
        .join()
        .unwrap(); // by somebody else, meanwhile
    edit.finish().unwrap();
    assert_eq!(object.read().unwrap()[..], [0, 10, 0, 0, 0, 0, 60, 77]);
    object.edit().unwrap().row_mut(0)[2] = 20; // written when it is dropped
    assert_eq!(v.get(2).unwrap(), 20);
    drop(object.edit().unwrap()); // nothing changed, nothing written
    let log = fake.log();
    let writes = log.iter().filter(|l| *l == "write v").count();
    assert_eq!(writes, 4, "{log:?}");
}

#[test]
fn values_are_written_and_read_as_wholes_and_parts() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let grid = dsm
        .matrix::<f64>("grid", 5, 3)
        .split_rows(2)
        .owner_per_rank()
        .policy(CopyPolicy::Update)
        .declare()
        .unwrap();
    assert_eq!(grid.object_count(), 2);
    assert_eq!(grid.policy(), CopyPolicy::Update);
    let part = grid.object(1).unwrap();
    assert_eq!((part.len(), part.region().row, part.owner()), (6, 3, "mp1"));
    assert!(!part.is_local() && grid.object(0).unwrap().is_local());

    part.write(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
    part.write_at(4, &[50.0]).unwrap();
    let view = part.read().unwrap();
    assert_eq!(view[..], [1.0, 2.0, 3.0, 4.0, 50.0, 6.0]);
    assert_eq!(view.row(1), [4.0, 50.0, 6.0]);
    assert_eq!(view.rows().count(), 2);
    assert_eq!(part.read_range(2..4).unwrap()[..], [3.0, 4.0]);
    grid.set(0, 2, 7.0).unwrap();
    assert_eq!(grid.get(0, 2).unwrap(), 7.0);
    assert_eq!(grid.get(4, 1).unwrap(), 50.0);

    let flags = dsm.vector::<bool>("flags", 3).declare().unwrap();
    flags.set(1, true).unwrap();
    assert_eq!(
        flags.object(0).unwrap().read().unwrap()[..],
        [false, true, false]
    );
}

#[test]
fn the_owner_adds_to_elements_in_one_message() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let v: Vector<i64> = dsm.vector("v", 5).cache(Cache::Mp).declare().unwrap();
    let object = v.object(0).unwrap();
    object.write(&[1, 2, 3, 4, 5]).unwrap();
    let mark = fake.log().len();
    object.accumulate(&[10; 5]).unwrap();
    let later = object.accumulate_at_async(3, &[100, 200]);
    later.wait().unwrap();
    assert_eq!(fake.log()[mark..], ["write v", "write v"]);
    assert_eq!(object.read().unwrap()[..], [11, 12, 13, 114, 215]);
    let short = object.accumulate(&[1; 4]).unwrap_err();
    assert!(matches!(
        short,
        Error::WrongLength {
            expected: 5,
            given: 4,
            ..
        }
    ));
    let beyond = object.accumulate_at_async(4, &[1, 2]).wait();
    assert!(matches!(beyond, Err(Error::OutOfRange { .. })));
}

#[test]
fn all_objects_are_read_at_once_and_put_together() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let grid = dsm
        .matrix::<u32>("reverse-blocks", 5, 7)
        .split_blocks(2, 3)
        .declare()
        .unwrap();
    let number = |row, column| (10 * row + column) as u32;
    let written: Vec<_> = grid
        .objects()
        .map(|object| {
            let r = object.region();
            let columns = r.column..r.column + r.columns;
            let rows = r.row..r.row + r.rows;
            let all = rows.flat_map(|i| columns.clone().map(move |j| number(i, j)));
            object.write_async(&all.collect::<Vec<_>>())
        })
        .collect();
    written.into_iter().for_each(|w| w.wait().unwrap());
    // Answered three at a time, the last first: one by one it would hang.
    let expected: Vec<u32> = (0..35).map(|at| number(at / 7, at % 7)).collect();
    assert_eq!(grid.read_all().unwrap(), expected);
}

#[test]
fn sections_and_atomics_work_and_are_counted() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let n = dsm.scalar::<i64>("n").cache(Cache::Mp).declare().unwrap();
    let mut section = n.acquire().unwrap();
    section.write(section.read().unwrap() - 5).unwrap();
    assert_eq!((section.epoch(), section.version()), (1, 0));
    assert_eq!(section.release().unwrap(), 1);
    assert_eq!(n.fetch_add(2).unwrap(), -5);
    let no = n.compare_exchange(7, 8).unwrap();
    assert_eq!((no.previous, no.stored), (-3, false));
    assert!(n.compare_exchange(-3, 8).unwrap().stored);
    assert_eq!(n.read().unwrap(), 8);
    dsm.barrier().unwrap();
    dsm.barrier_named("phase").unwrap();
    dsm.group_barrier().unwrap();
    dsm.publish().unwrap(); // alone in its group, it did not wait

    let counts = dsm.counts();
    assert_eq!(counts.barriers, 3);
    let [object] = &counts.objects[..] else {
        panic!("{counts:?}")
    };
    assert_eq!(&*object.variable, "n");
    let ops = object.ops;
    assert_eq!(
        (ops.reads, ops.writes, ops.acquires, ops.releases),
        (2, 4, 1, 1)
    );
}

#[test]
fn a_memory_process_that_never_answers_is_a_deadline() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let n = dsm.scalar::<i64>("silent").declare().unwrap();
    let hasty = n.with_deadline(Duration::from_millis(20));
    let object = hasty.object(0).unwrap();
    let (read, acquire) = (object.read_async(), object.acquire_async());
    for error in [read.wait().unwrap_err(), acquire.wait().unwrap_err()] {
        assert!(matches!(error, Error::Deadline { .. }), "{error}");
        assert!(error.to_string().contains("silent"), "{error}");
    }
    let error = dsm
        .with_deadline(Duration::from_millis(1))
        .barrier_named("silent")
        .unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::Deadline));
    dsm.barrier().unwrap();
}

#[test]
fn a_shorter_deadline_is_kept_while_a_longer_one_runs() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let n = dsm.scalar::<i64>("silent").declare().unwrap();
    let long = n.read_async();
    let hasty = n.with_deadline(Duration::from_millis(5));
    assert!(hasty.object(0).unwrap().read().is_err());
    dsm.close().unwrap();
    assert!(matches!(long.wait(), Err(Error::Closed { .. })));
}

#[test]
fn when_the_connection_dies_everything_under_way_fails() {
    for name in ["fatal", "deadly"] {
        let fake = Fake::start();
        let dsm = fake.connect();
        let silent = dsm.scalar::<i64>("silent").declare().unwrap();
        let bad = dsm.scalar::<i64>(name).declare().unwrap();
        let waiting = [silent.read_async(), silent.read_async(), bad.read_async()];
        for call in waiting {
            let error = call.wait().unwrap_err();
            assert!(matches!(error, Error::Lost { .. }), "{name}: {error}");
            if name == "fatal" {
                assert!(error.to_string().contains("mp0 crashed"), "{error}");
            }
        }
        let after = silent.write(1).unwrap_err();
        assert!(
            after.to_string().starts_with("write of silent failed"),
            "{after}"
        );
        assert_eq!(dsm.counts().total().failed, 4);
    }
}

#[test]
fn wrong_types_shapes_and_names_are_told() {
    let fake = Fake::start();
    let dsm = fake.connect();
    dsm.matrix::<f64>("grid", 4, 4).declare().unwrap();
    let error = dsm.open::<Matrix<i32>>("grid").unwrap_err();
    let expected = Error::WrongType {
        name: "grid".into(),
        declared: ElementType::F64,
        asked: ElementType::I32,
    };
    assert_eq!(error, expected);
    let error = dsm.open::<Vector<f64>>("grid").unwrap_err();
    assert_eq!(
        error.to_string(),
        "grid is not a vector: it was declared as f64[4][4]"
    );
    assert!(matches!(
        dsm.open::<Scalar<f64>>("grid"),
        Err(Error::WrongShape { .. })
    ));
    assert!(dsm.open::<Variable<f64>>("grid").is_ok());
    let error = dsm.open::<Matrix<f64>>("gird").unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::UnknownVariable));
    assert!(
        error.to_string().starts_with("opening gird was refused"),
        "{error}"
    );
}

#[test]
fn what_is_out_of_range_is_told_without_asking() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let v = dsm.vector::<u8>("bytes", 10).split(3).declare().unwrap();
    let part = v.object(0).unwrap();
    let before = fake.log().len();
    for (error, names) in [
        (v.object(3).unwrap_err(), "object 3 of bytes"),
        (v.get(10).unwrap_err(), "element (0, 10) of bytes"),
        (part.get(4).unwrap_err(), "element 4 of bytes[0]"),
        (
            part.read_range(2..9).unwrap_err(),
            "elements 2..9 of bytes[0]",
        ),
        (
            part.read_range(2..2).unwrap_err(),
            "elements 2..2 of bytes[0]",
        ),
        (part.get(usize::MAX).unwrap_err(), "of bytes[0]"),
        (
            part.write_at(3, &[1, 2]).unwrap_err(),
            "elements 3..5 of bytes[0]",
        ),
        (part.fetch_add(4, 1).unwrap_err(), "element 4 of bytes[0]"),
    ] {
        assert!(matches!(error, Error::OutOfRange { .. }), "{error}");
        assert!(error.to_string().contains(names), "{error}");
    }
    let error = part.write(&[1]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "bytes[0] has 4 elements, the slice 1; use write_at for a part of it"
    );
    assert_eq!(fake.log().len(), before);
}

#[test]
fn declarations_that_make_no_sense_are_told_without_asking() {
    let fake = Fake::start();
    let dsm = fake.connect();
    for (error, says) in [
        (
            dsm.vector::<f64>("v", 3).split(4).declare().unwrap_err(),
            "cannot declare v: 3 columns cannot be split into 4 parts",
        ),
        (
            dsm.scalar::<f64>("").declare().unwrap_err(),
            "1 to 200 bytes",
        ),
        (
            dsm.scalar::<f64>("s")
                .owners([""; 0])
                .declare()
                .unwrap_err(),
            "name one memory process",
        ),
    ] {
        assert!(matches!(error, Error::Declaration { .. }), "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[test]
fn nobody_to_connect_to_is_told_with_the_address() {
    let fake = Fake::start();
    let mut unknown = fake.settings();
    unknown.ap = "stranger".into();
    let error = Dsm::connect(unknown).unwrap_err();
    assert_eq!(error.code(), Some(ErrorCode::UnknownProcess));

    let mut nobody = fake.settings();
    drop(fake);
    nobody.connect_timeout = Duration::from_millis(50);
    let error = Dsm::connect(nobody.clone()).unwrap_err();
    assert!(matches!(error, Error::NotConnected { .. }), "{error}");
    assert!(
        error.to_string().contains(&nobody.address.to_string()),
        "{error}"
    );
}

/// Takes connections before there is anybody behind it: the first ones end, one with an error, the next goes to `target`.
fn forwarder(target: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        // Closed before and after something was read.
        drop(listener.accept().unwrap());
        let (mut second, _) = listener.accept().unwrap();
        let _ = second.read(&mut [0; 4096]);
        drop(second);
        let (near, _) = listener.accept().unwrap();
        let far = TcpStream::connect(target).unwrap();
        let ends = (near.try_clone().unwrap(), far.try_clone().unwrap());
        std::thread::spawn(move || std::io::copy(&mut &ends.0, &mut &ends.1));
        let _ = std::io::copy(&mut &far, &mut &near);
    });
    address
}

#[test]
fn what_takes_connections_before_the_memory_process_is_there_is_asked_again() {
    let fake = Fake::start();
    let mut settings = fake.settings();
    let address = forwarder(fake.address.to_string());
    settings.address = address.to_string().parse().unwrap();
    let dsm = Dsm::connect(settings).unwrap();
    let n = dsm.scalar::<i64>("n").declare().unwrap();
    n.write(1).unwrap();
    drop(n);
    dsm.close().unwrap();
    let log = fake.log();
    assert_eq!(log.iter().filter(|l| l.starts_with("hello")).count(), 1);
    assert_eq!(log.last().unwrap(), "bye ");
}

#[test]
fn after_close_clones_and_handles_say_so() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let n = dsm.scalar::<i64>("n").declare().unwrap();
    dsm.clone().close().unwrap();
    assert!(matches!(n.read(), Err(Error::Closed { .. })));
    assert!(matches!(dsm.close(), Err(Error::Closed { .. })));
}

#[test]
fn the_last_handle_dropped_says_bye() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let n = dsm.scalar::<i64>("n").declare().unwrap();
    drop(dsm);
    n.write(1).unwrap();
    drop(n);
    assert_eq!(fake.log().last().unwrap(), "bye ");
}

#[test]
fn many_threads_share_a_session() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let n = dsm.scalar::<u64>("n").declare().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..250).for_each(|_| assert!(n.fetch_add(1).unwrap() < 1000)));
        }
    });
    assert_eq!(n.read().unwrap(), 1000);
}

#[test]
fn blocking_works_inside_a_runtime_of_the_programs_own() {
    let fake = Fake::start();
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_all().build().unwrap();
    runtime.block_on(async {
        let dsm = fake.connect();
        let n = dsm.scalar::<u64>("n").declare().unwrap();
        assert_eq!(n.fetch_add(1).unwrap(), 0);
        assert_eq!(n.fetch_add_async(1).await.unwrap(), 1);
        drop(n.acquire_async().await.unwrap());
        dsm.barrier().unwrap();
    });
}
