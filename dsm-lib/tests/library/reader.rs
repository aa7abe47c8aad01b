//! Readers: they see what the object itself gives, and all that they read is counted.

use crate::fake::Fake;
use dsm_lib::{Cache, Dsm, Object, Vector};

fn object(dsm: &Dsm, name: &str) -> Object<u64> {
    let declared = dsm.vector(name, 4).cache(Cache::Ap).declare();
    let v: Vector<u64> = declared.unwrap();
    v.object(0).unwrap()
}

fn messages(fake: &Fake) -> usize {
    fake.log().iter().filter(|l| *l == "read v").count()
}

/// Reads that the memory process was told of.
fn told(fake: &Fake) -> u64 {
    let log = fake.log();
    let numbers = log.iter().filter_map(|l| l.strip_suffix(" cached reads"));
    numbers.map(|n| n.parse::<u64>().unwrap()).sum()
}

#[test]
fn a_reader_sees_what_the_object_gives_and_all_it_reads_is_counted() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let object = object(&dsm, "v");
    let mut reader = object.reader();
    assert_eq!(reader.get(3).unwrap(), 0); // fetches all of it
    for _ in 0..50 {
        assert_eq!(reader.read().unwrap()[..], [0; 4]);
        assert_eq!(reader.get(2).unwrap(), 0);
        assert_eq!(object.get(1).unwrap(), 0);
    }
    assert!(reader.get(4).is_err());
    assert_eq!(messages(&fake), 1);
    dsm.barrier_named("change").unwrap(); // by somebody else: it is void before the barrier returns
    assert_eq!(reader.get(0).unwrap(), 1);
    assert_eq!(reader.read().unwrap()[..], [1, 0, 0, 0]);
    assert_eq!(messages(&fake), 2);
    object.set(1, 7).unwrap(); // by this process
    assert_eq!(reader.read().unwrap()[..], [1, 7, 0, 0]);
    assert_eq!(
        reader.read().unwrap().version(),
        object.read().unwrap().version()
    );
    assert_eq!(messages(&fake), 3);
    let reads = 1 + 150 + 2 + 3;
    // Another one, which ends without a word, and one that never reads.
    let mut other = object.reader();
    for at in 0..100 {
        other.get(at % 4).unwrap();
    }
    drop((other, object.reader()));
    assert_eq!(dsm.counts().total().reads, reads + 100);
    for _ in 0..7 {
        reader.read().unwrap(); // behind what was counted
    }
    assert_eq!(dsm.counts().total().reads, reads + 107);
    dsm.close().unwrap();
    assert_eq!(told(&fake), reads + 107 - 3);
    assert!(
        reader.read().is_err() && reader.get(0).is_err(),
        "the session is over"
    );
}

#[test]
fn what_changes_while_a_thread_reads_is_seen_and_every_read_counted_once() {
    const CHANGES: u64 = 30;
    let fake = Fake::start();
    let dsm = fake.connect();
    let object = object(&dsm, "v");
    let mut reader = object.reader();
    let reads = std::thread::scope(|scope| {
        let reads = scope.spawn(move || {
            let (mut reads, mut last) = (0, 0);
            while last < CHANGES {
                let now = match reads % 3 {
                    0 => reader.read().unwrap()[0],
                    _ => reader.get(0).unwrap(),
                };
                assert!(now >= last, "{now} after {last}");
                (reads, last) = (reads + 1, now);
            }
            reads
        });
        for _ in 0..CHANGES {
            dsm.barrier_named("change").unwrap();
        }
        // The fake changes what it has given away: until its copy is out again there is nothing to change.
        while !reads.is_finished() {
            dsm.barrier_named("change").unwrap();
        }
        reads.join().unwrap()
    });
    assert_eq!(dsm.counts().total().reads, reads);
    dsm.close().unwrap();
    assert_eq!(told(&fake) + messages(&fake) as u64, reads);
}

#[test]
fn who_waits_by_a_reader_says_that_it_awaits_news() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let object = object(&dsm, "v");
    let mut reader = object.reader();
    let said = || fake.log().iter().filter(|l| *l == "awaits news").count();
    for at in 0..10_000 {
        reader.get(at % 2).unwrap(); // not the same
    }
    dsm.publish().unwrap();
    assert_eq!(said(), 0);
    for _ in 0..10_000 {
        reader.get(1).unwrap();
    }
    dsm.publish().unwrap();
    assert_eq!(said(), 1);
}

#[test]
fn an_object_of_its_own_is_read_as_it_is_after_each_change() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let object = object(&dsm, "own");
    let mut reader = object.reader();
    reader.read().unwrap();
    object.edit().unwrap()[0] = 1; // from now on it is this process's
    let mark = fake.log().len();
    for i in 2..50 {
        object.set(0, i).unwrap();
        let place = object.read().unwrap().as_ptr();
        assert_eq!(reader.get(0).unwrap(), i);
        object.set(3, 1).unwrap();
        let now = object.read().unwrap().as_ptr();
        assert_eq!(now, place, "nothing is copied");
        object.edit().unwrap()[1] = i;
        assert_eq!(reader.read().unwrap()[..2], [i, i]);
        assert_eq!(reader.get(1).unwrap(), i);
        let mut section = object.acquire().unwrap();
        section.set(2, i).unwrap();
        section.release().unwrap();
        assert_eq!(reader.read().unwrap()[..3], [i, i, i]);
        // What it keeps of the object it gives up with the next read of an element.
        assert_eq!(reader.get(3).unwrap(), 1);
    }
    let sent: Vec<String> = fake.log()[mark..].to_vec();
    assert!(
        !sent
            .iter()
            .any(|l| l.starts_with("read") || l.starts_with("write")),
        "{sent:?}"
    );
    dsm.barrier_named("recall").unwrap();
    assert_eq!(reader.read().unwrap()[..], [49, 49, 49, 1]);
}
