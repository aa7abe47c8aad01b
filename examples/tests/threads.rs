//! Threads of one application process: each in a section of its own object, and in turn in sections of one
//! (docs/guide/locks.md#threads).
#![allow(clippy::unwrap_used)] // also in the helpers

use std::sync::{Barrier, Mutex};

use dsm_lib::testing::Cluster;
use dsm_lib::{Cache, ErrorCode, Vector};

/// A rank of a cluster of two, and a vector of two objects at the other's memory process.
fn with_vector(cache: Cache, test: impl Fn(&Vector<u64>)) {
    let cluster = Cluster::start(2).unwrap();
    let dsm = cluster.join(0).unwrap();
    let v = dsm.vector("v", 2).split(2).owner("mp1").cache(cache);
    test(&v.declare().unwrap());
}

#[test]
fn threads_are_in_sections_of_different_objects_at_once() {
    with_vector(Cache::Mp, |v| {
        let both_hold = Barrier::new(2);
        std::thread::scope(|scope| {
            for index in 0..2 {
                let both_hold = &both_hold;
                scope.spawn(move || {
                    let mut section = v.object(index).unwrap().acquire().unwrap();
                    both_hold.wait();
                    section.update(|all| all[0] = 7 + index as u64).unwrap();
                    section.release().unwrap();
                });
            }
        });
        assert_eq!(v.read_all().unwrap(), [7, 8]);
    });
}

#[test]
fn a_second_section_of_one_object_is_refused_with_what_to_do() {
    for cache in [Cache::Mp, Cache::Ap] {
        with_vector(cache, |v| {
            let object = v.object(0).unwrap();
            let section = object.acquire().unwrap();
            let twice = std::thread::scope(|scope| {
                let other = scope.spawn(|| object.acquire().map(drop));
                other.join().unwrap()
            });
            let error = twice.unwrap_err();
            assert_eq!(error.code(), Some(ErrorCode::AlreadyHeld), "{error}");
            let said = error.to_string();
            assert!(said.contains("ap0 already holds v[0]"), "{said}");
            assert!(said.contains("a mutex of the program"), "{said}");
            section.release().unwrap();
        });
    }
}

#[test]
fn threads_that_take_turns_by_a_mutex_count_together() {
    with_vector(Cache::Mp, |v| {
        let object = v.object(1).unwrap();
        let turn = Mutex::new(());
        let count = || {
            for _ in 0..25 {
                let _turn = turn.lock().unwrap();
                let mut section = object.acquire().unwrap();
                section.update(|all| all[0] += 1).unwrap();
                section.release().unwrap();
            }
        };
        std::thread::scope(|scope| {
            [scope.spawn(count), scope.spawn(count)].map(|t| t.join().unwrap())
        });
        assert_eq!(object.get(0).unwrap(), 50);
    });
}
