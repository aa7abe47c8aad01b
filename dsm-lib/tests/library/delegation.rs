//! Objects that this process has to itself: what is sent, and when, seen by the memory process.

use crate::fake::Fake;
use dsm_lib::{Cache, Dsm, Error, ErrorCode, Vector};

/// A vector of four elements that is cached in application processes, of a name that the fake gives away.
fn own(dsm: &Dsm) -> Vector<i64> {
    dsm.vector("own", 4).cache(Cache::Ap).declare().unwrap()
}

/// What the fake was sent since the last `mark`.
fn since(fake: &Fake, mark: usize) -> Vec<String> {
    let log = fake.log();
    log[mark..].to_vec()
}

#[test]
fn what_is_edited_is_no_copy_of_what_is_here() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let kept = dsm.vector::<i64>("kept", 4).cache(Cache::Ap);
    let object = kept.declare().unwrap().object(0).unwrap();
    let here = object.read().unwrap().as_ptr();
    let mut edit = object.edit().unwrap();
    assert_eq!(edit.as_ptr(), here);
    edit[0] = 1;
    edit.finish().unwrap();
    assert_eq!(object.read().unwrap().as_ptr(), here);
}

#[test]
fn an_object_of_its_own_is_read_and_changed_without_a_message_until_it_is_recalled() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let v = own(&dsm);
    let object = v.object(0).unwrap();
    let mut edit = object.edit().unwrap();
    edit[0] = 1;
    edit.finish().unwrap();
    let mark = fake.log().len();
    for i in 0..100 {
        object.edit().unwrap()[1] += i;
        v.set(2, i).unwrap();
        assert_eq!(v.fetch_add(3, 2).unwrap(), 2 * i);
        assert!(v.compare_exchange(2, i, -i).unwrap().stored);
        assert!(!v.compare_exchange(2, 1, 0).unwrap().stored);
        assert_eq!(v.get(2).unwrap(), -i);
    }
    object.accumulate_at(2, &[1000, 1]).unwrap();
    object.accumulate_async(&[0, 0, -1000, -1]).wait().unwrap();
    let view = object.read().unwrap();
    assert_eq!(view[..], [1, 4950, -99, 200]);
    object.edit().unwrap()[0] = 2;
    assert_eq!(view[0], 1, "a view stays as it was");
    dsm.barrier_named("recall").unwrap();
    dsm.publish().unwrap();
    let log = since(&fake, mark);
    let count = |text: &str| {
        let numbers = log
            .iter()
            .filter_map(|l| l.strip_suffix(text)?.trim().parse::<u64>().ok());
        numbers.sum::<u64>()
    };
    assert_eq!(
        (count("cached reads"), count("local writes")),
        (202, 504),
        "{log:?}"
    );
    let sent = |text: &str| log.iter().filter(|l| l.contains(text)).count();
    assert_eq!(
        (sent("read own"), sent("write own"), sent("atomic")),
        (0, 0, 0),
        "{log:?}"
    );
    assert_eq!(sent("returned 1 parts, version 1"), 1, "{log:?}");
    // What was counted comes before what was made of it.
    let at = |text: &str| log.iter().position(|l| l.contains(text)).unwrap();
    assert!(at("local writes") < at("returned"), "{log:?}");
    // It keeps a copy, and writes by message again.
    let mark = fake.log().len();
    assert_eq!(object.read().unwrap()[..], [2, 4950, -99, 200]);
    v.set(0, 3).unwrap();
    assert_eq!(object.read().unwrap()[..], [3, 4950, -99, 200]);
    let log = since(&fake, mark);
    assert!(log.iter().any(|l| l == "write own"), "{log:?}");
    let done = dsm.counts().total();
    assert_eq!((done.reads, done.writes), (205, 505));
}

#[test]
fn an_object_that_is_changed_again_and_again_is_asked_for() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let v = own(&dsm);
    let mark = fake.log().len();
    for i in 0..50 {
        v.set(1, i).unwrap();
    }
    assert_eq!(v.get(1).unwrap(), 49);
    let log = since(&fake, mark);
    let sent = |text: &str| log.iter().filter(|l| *l == text).count();
    assert_eq!((sent("write own"), sent("read own")), (2, 1), "{log:?}");
    // A scalar too.
    let n = dsm
        .scalar::<i64>("own-sum")
        .cache(Cache::Ap)
        .declare()
        .unwrap();
    let mark = fake.log().len();
    for _ in 0..50 {
        n.fetch_add(2).unwrap();
    }
    assert_eq!(n.read().unwrap(), 100);
    let log = since(&fake, mark);
    let sent = |text: &str| log.iter().filter(|l| *l == text).count();
    assert_eq!(
        (sent("atomic own-sum"), sent("read own-sum")),
        (2, 1),
        "{log:?}"
    );
}

#[test]
fn an_object_that_is_changed_ahead_of_time_is_asked_for_too() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let v = own(&dsm);
    let mark = fake.log().len();
    let object = v.object(0).unwrap();
    let next = |i| assert_eq!(object.fetch_add_async(1, 1).wait().unwrap(), i);
    (0..3).for_each(next);
    // The reply to this comes behind the object, which was asked for behind the third change.
    dsm.publish().unwrap();
    (3..50).for_each(next);
    assert_eq!(v.get(1).unwrap(), 50);
    let log = since(&fake, mark);
    let sent = |text: &str| log.iter().filter(|l| *l == text).count();
    assert_eq!((sent("read own"), sent("atomic own")), (1, 3), "{log:?}");
}

#[test]
fn sections_of_an_object_of_its_own_send_nothing() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let object = own(&dsm).object(0).unwrap();
    let mark = fake.log().len();
    for i in 0..50 {
        let mut section = object.acquire().unwrap();
        assert_eq!(section.get(1).unwrap(), i);
        section.set(1, i + 1).unwrap();
        section.values_mut().unwrap()[2] -= 1;
        if i >= 2 {
            let seen = object.get(1).unwrap();
            assert_eq!(seen, i, "others see it when it is released");
        }
        section.release().unwrap();
        assert_eq!(object.get(1).unwrap(), i + 1);
    }
    dsm.barrier().unwrap();
    let log = since(&fake, mark);
    let sent = |text: &str| log.iter().filter(|l| *l == text).count();
    // Two by messages, then it is asked for.
    assert_eq!(sent("acquire own"), 2, "{log:?}");
    let here = log.iter().filter(|l| l.contains("local sections"));
    assert_eq!(
        here.collect::<Vec<_>>(),
        [
            "48 local sections, version 2 to 50",
            "48 reads in local sections",
            "96 writes in local sections"
        ],
        "{log:?}"
    );
    let done = dsm.counts().total();
    assert_eq!((done.acquires, done.releases, done.failed), (50, 50, 0));
    assert_eq!(done.writes, 100);
}

#[test]
fn which_elements_were_accessed_without_a_message_is_reported() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let v = own(&dsm);
    let object = v.object(0).unwrap();
    drop(object.edit().unwrap());
    dsm.barrier().unwrap();
    let reported = |accesses: &dyn Fn(), expected: &[&str]| {
        let mark = fake.log().len();
        accesses();
        dsm.barrier().unwrap();
        let log = since(&fake, mark);
        assert_eq!(log[..expected.len()], *expected, "{log:?}");
    };
    reported(
        &|| {
            v.get(3).unwrap();
            object.read_range(1..2).unwrap();
            v.set(2, 5).unwrap();
        },
        &["2 cached reads", "of 1 to 4", "1 local writes", "of 2 to 3"],
    );
    reported(
        &|| {
            let mut section = object.acquire().unwrap();
            section.get(1).unwrap();
            section.read_range(1..3).unwrap();
            section.set(0, 7).unwrap();
            section.set(1, 7).unwrap();
            section.release().unwrap();
        },
        &[
            "1 local sections, version 1 to 2",
            "2 reads in local sections",
            "of 1 to 3",
            "2 writes in local sections",
            "of 0 to 2",
        ],
    );
    reported(
        &|| object.edit().unwrap()[3] = 1,
        &["1 cached reads", "of 0 to 4", "1 local writes", "of 0 to 4"],
    );
}

#[test]
fn what_others_read_of_an_object_with_sections_is_published_as_a_whole() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let object = own(&dsm).object(0).unwrap();
    drop(object.edit().unwrap());
    // Others read one element.
    dsm.barrier_named("part").unwrap();
    dsm.publish().unwrap();
    let mut section = object.acquire().unwrap();
    section.write(&[1, 2, 3, 4]).unwrap();
    section.release().unwrap();
    dsm.barrier().unwrap();
    // Nobody sees a part of a section, also if this process ends now.
    let log = fake.log();
    let mut published = log.iter().filter(|l| l.starts_with("published"));
    let last = published.next_back().unwrap();
    assert!(last.ends_with("4 elements"), "{log:?}");
}

#[test]
fn what_others_read_is_published_if_it_changed() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let object = own(&dsm).object(0).unwrap();
    drop(object.edit().unwrap());
    dsm.barrier_named("part").unwrap(); // others read 1 to 3
    dsm.publish().unwrap();
    let published = |change: &dyn Fn()| {
        let mark = fake.log().len();
        change();
        dsm.barrier().unwrap();
        let log = since(&fake, mark);
        let published = log.into_iter().filter(|l| l.starts_with("published"));
        published.collect::<Vec<_>>()
    };
    let said = published(&|| object.set(3, 1).unwrap());
    assert_eq!(said, ["published 0 parts, version 2, 0 elements"]);
    let said = published(&|| object.set(2, 1).unwrap());
    assert!(
        said.len() == 1 && said[0].ends_with("1 elements"),
        "{said:?}"
    );
    let said = published(&|| object.edit().unwrap()[0] = 1);
    assert!(
        said.len() == 1 && said[0].ends_with("2 elements"),
        "{said:?}"
    );
}

#[test]
fn a_section_goes_on_when_its_object_is_asked_for() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let object = own(&dsm).object(0).unwrap();
    object.edit().unwrap()[0] = 7;
    let mut section = object.acquire().unwrap();
    assert_eq!(section.epoch(), 41, "one higher than the owner's last");
    section.set(0, 8).unwrap();
    let mark = fake.log().len();
    // Others see it as it was before the section, which the owner knows of from now on.
    dsm.barrier_named("recall").unwrap();
    dsm.publish().unwrap();
    let log = since(&fake, mark);
    assert!(
        log.contains(&"returned 1 parts, version 1, in section 41".to_owned()),
        "{log:?}"
    );
    assert_eq!(object.get(0).unwrap(), 7);
    section.set(1, 9).unwrap();
    assert_eq!(section.release().unwrap(), 2);
    assert_eq!(object.read().unwrap()[..2], [8, 9]);
    let log = since(&fake, mark);
    assert!(
        log.contains(&"2 writes with the release".to_owned()),
        "{log:?}"
    );
    let done = dsm.counts().total();
    assert_eq!((done.acquires, done.releases, done.failed), (1, 1, 0));
}

#[test]
fn a_section_publishes_what_was_written_by_messages_before_it() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let object = own(&dsm).object(0).unwrap();
    let other = dsm.scalar::<i64>("other").declare().unwrap();
    drop(object.edit().unwrap());
    object.acquire().unwrap().release().unwrap();
    let mark = fake.log().len();
    other.write(1).unwrap();
    object.acquire().unwrap().release().unwrap();
    let log = since(&fake, mark);
    let at = |text: &str| log.iter().position(|l| l.contains(text)).unwrap();
    assert!(at("write other") < at("in section 42"), "{log:?}");
    assert!(at("in section 42") < at("release own"), "{log:?}");
    // Nothing is left to publish: it may be asked for again, and does without messages.
    drop(object.edit().unwrap());
    let mark = fake.log().len();
    object.acquire().unwrap().release().unwrap();
    assert!(since(&fake, mark).is_empty());
}

#[test]
fn a_section_of_an_object_that_was_taken_away_is_lost() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let object = own(&dsm).object(0).unwrap();
    drop(object.edit().unwrap());
    let mut section = object.acquire().unwrap();
    section.set(0, 1).unwrap();
    dsm.barrier_named("steal").unwrap();
    let failed = section.release().unwrap_err();
    assert!(matches!(failed.error, Error::TakenBack { .. }), "{failed}");
    let again = failed.section.release().unwrap_err();
    assert_eq!(again.error.code(), Some(ErrorCode::NotHeld), "{again}");
    assert_eq!(object.get(0).unwrap(), 0);
}

#[test]
fn what_others_read_is_published_before_this_process_synchronises() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let v = own(&dsm);
    v.object(0).unwrap().edit().unwrap()[1] = 5;
    dsm.barrier_named("part").unwrap();
    let mark = fake.log().len();
    v.object(0).unwrap().edit().unwrap()[2] = 6;
    dsm.barrier().unwrap();
    let log = since(&fake, mark);
    let at = |text: &str| log.iter().position(|l| l.contains(text)).unwrap();
    assert!(at("published 1 parts") < at("barrier"), "{log:?}");
    // It is still its own, and nothing new is not published again.
    let mark = fake.log().len();
    dsm.barrier().unwrap();
    assert_eq!(v.get(2).unwrap(), 6);
    let log = since(&fake, mark);
    assert!(
        !log.iter()
            .any(|l| l.contains("published") || l.contains("read own")),
        "{log:?}"
    );
}

#[test]
fn what_others_read_is_published_before_a_recall_is_answered() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let v = own(&dsm);
    let asks = dsm.vector::<i64>("recall", 1).declare().unwrap();
    v.object(0).unwrap().edit().unwrap()[1] = 5;
    dsm.barrier_named("part").unwrap();
    let mark = fake.log().len();
    v.object(0).unwrap().edit().unwrap()[2] = 6;
    // A read tells nobody of a change; the answer to the recall, which comes with its reply, may.
    asks.get(0).unwrap();
    dsm.publish().unwrap();
    let log = since(&fake, mark);
    let at = |text: &str| log.iter().position(|l| l.contains(text));
    let (published, returned) = (at("published 1 parts"), at("returned 1 parts"));
    assert!(published.is_some() && published < returned, "{log:?}");
}

#[test]
fn a_recall_is_answered_at_the_end_of_an_edit() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let v = own(&dsm);
    let object = v.object(0).unwrap();
    let mut edit = object.edit().unwrap();
    edit[0] = 1;
    let other = dsm.clone();
    std::thread::spawn(move || other.barrier_named("recall").unwrap())
        .join()
        .unwrap();
    let mark = fake.log().len();
    edit[0] = 2;
    edit.finish().unwrap();
    dsm.publish().unwrap();
    let log = since(&fake, mark);
    assert!(
        log.iter().any(|l| l == "returned 1 parts, version 1"),
        "{log:?}"
    );
    assert_eq!(object.read().unwrap()[0], 2);
}

#[test]
fn a_process_that_leaves_gives_back_what_it_has() {
    let fake = Fake::start();
    let dsm = fake.connect();
    own(&dsm).object(0).unwrap().edit().unwrap()[3] = 9;
    dsm.close().unwrap();
    let log = fake.log();
    let at = |text: &str| log.iter().position(|l| l.contains(text)).unwrap();
    assert!(at("returned 1 parts") < at("bye"), "{log:?}");
}

#[test]
fn an_object_that_was_taken_away_is_said_once() {
    let fake = Fake::start();
    let dsm = fake.connect();
    let v = own(&dsm);
    v.object(0).unwrap().edit().unwrap()[0] = 1;
    dsm.barrier_named("steal").unwrap();
    let error = dsm.barrier().unwrap_err();
    assert!(matches!(error, Error::TakenBack { .. }), "{error}");
    assert!(error.to_string().contains("own"), "{error}");
    dsm.barrier().unwrap();
    assert_eq!(v.get(0).unwrap(), 0, "as nobody saw it");
}

#[test]
fn a_process_that_lost_an_object_can_still_leave() {
    for closes in [true, false] {
        let fake = Fake::start();
        let dsm = fake.connect();
        own(&dsm).object(0).unwrap().edit().unwrap()[0] = 1;
        dsm.barrier_named("steal").unwrap();
        let (left, has_left) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            match closes {
                true => dsm.close().unwrap(),
                false => drop(dsm),
            }
            left.send(()).unwrap();
        });
        has_left
            .recv_timeout(std::time::Duration::from_secs(20))
            .unwrap();
        assert!(fake.log().iter().any(|l| l.starts_with("bye")));
    }
}
