//! Contents go from process to process in shared memory; nobody writes over what somebody reads.
#![allow(clippy::unwrap_used)] // a test may

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use bytes::Bytes;
use dosmos_shm::{Inbox, LARGE, Outbox, Sent, copy_of};
use dosmos_testseeds::{Random, seed};

/// A content that is mapped, and one that is copied.
const MAPPED: usize = 80 << 10;
const COPIED: usize = LARGE;

/// What a connection sends first, if it is mapped.
const FILE: Sent = Sent::File {
    number: 0,
    offset: 0,
};

fn content(seed: u64, length: usize) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut all: Vec<u8> = (0..length.div_ceil(8))
        .flat_map(|_| random.below(u64::MAX).to_le_bytes())
        .collect();
    all.truncate(length);
    all
}

/// One way of a connection.
fn connection() -> (Outbox, Inbox) {
    let inbox = Inbox::create().unwrap();
    (Outbox::open(inbox.name()).unwrap(), inbox)
}

fn path(inbox: &Inbox) -> PathBuf {
    let user = std::fs::metadata("/proc/self").unwrap().uid();
    PathBuf::from(format!("/dev/shm/dosmos-{user}")).join(inbox.name())
}

fn inode(inbox: &Inbox, sent: Sent) -> u64 {
    let Sent::File { number, .. } = sent else {
        panic!("it is in the ring");
    };
    let file = path(inbox).join(number.to_string());
    std::fs::metadata(file).unwrap().ino()
}

#[test]
fn zeros_are_said_and_not_sent() {
    let (mut outbox, inbox) = connection();
    let mut all = vec![0; MAPPED];
    assert_eq!(outbox.put(&all).unwrap(), Sent::Zeros);
    assert_eq!(std::fs::read_dir(path(&inbox)).unwrap().count(), 0);
    assert!(inbox.take(Sent::Zeros, MAPPED, true).unwrap() == all);
    for at in [0, MAPPED / 2, MAPPED - 1] {
        all[at] = 1;
        let sent = outbox.put(&all).unwrap();
        assert_ne!(sent, Sent::Zeros, "byte {at} is not zero");
        assert!(inbox.take(sent, MAPPED, true).unwrap() == all);
        all[at] = 0;
    }
}

#[test]
fn what_was_put_is_taken() {
    let (mut outbox, inbox) = connection();
    for length in [COPIED, COPIED + 1, MAPPED, MAPPED + 4097, 20 << 20] {
        for wanted in [false, true] {
            let sent = content(length as u64, length);
            let number = outbox.put(&sent).unwrap();
            assert!(inbox.take(number, length, wanted).unwrap() == sent);
        }
    }
    let left = std::fs::read_dir(path(&inbox)).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["ring"]);
}

#[test]
fn a_content_is_copied_once_however_many_it_goes_to() {
    let ways = [(); 3].map(|()| connection());
    let [
        (mut first, at_first),
        (mut second, at_second),
        (mut third, at_third),
    ] = ways;
    let sent = copy_of(&content(1, MAPPED));
    let numbers = [first.put(&sent).unwrap(), second.put(&sent).unwrap()];
    assert_eq!(
        inode(&at_first, numbers[0]),
        inode(&at_second, numbers[1]),
        "both have the file that the copy is in"
    );
    // What was taken goes on as it came.
    let file = inode(&at_first, numbers[0]);
    let taken = at_first.take(numbers[0], MAPPED, false).unwrap();
    let number = third.put(&taken).unwrap();
    assert_eq!(inode(&at_third, number), file);
    drop(taken);
    assert!(at_third.take(number, MAPPED, true).unwrap() == sent);
}

#[test]
fn a_part_of_a_content_is_handed_on_without_a_copy() {
    let [(mut first, at_first), (mut second, at_second)] = [(); 2].map(|()| connection());
    let length = 16 * MAPPED;
    let sent = copy_of(&content(2, length));
    let number = first.put(&sent).unwrap();
    let file = inode(&at_first, number);
    let taken = at_first.take(number, length, false).unwrap();
    // Parts of the content, and parts of those parts.
    let (first_byte, in_part) = (4096 + 7, 5 * MAPPED);
    let part = taken.slice(first_byte..first_byte + 12 * MAPPED);
    let parts = [part.clone(), part.slice(in_part..), taken.slice(..MAPPED)];
    let numbers = parts.each_ref().map(|part| second.put(part).unwrap());
    for (number, part) in numbers.into_iter().zip(&parts) {
        assert_eq!(inode(&at_second, number), file);
        let arrived = at_second.take(number, part.len(), true).unwrap();
        assert!(arrived == *part);
        // And from there again.
        let half = arrived.slice(..part.len() - 3);
        if half.len() < 64 << 10 {
            continue;
        }
        let number = second.put(&half).unwrap();
        assert_eq!(inode(&at_second, number), file);
        assert!(at_second.take(number, half.len(), true).unwrap() == half);
    }
    // One that is small beside the whole is copied: the whole would be kept for it.
    let number = second.put(&taken.slice(..length / 16 - 1)).unwrap();
    assert_ne!(inode(&at_second, number), file);
}

#[test]
fn parts_that_wait_count_as_what_they_keep() {
    let [(mut first, at_first), (mut second, at_second)] = [(); 2].map(|()| connection());
    let length = 40 << 20;
    let number = first.put(&content(3, length)).unwrap();
    let whole = at_first.take(number, length, false).unwrap();
    let part = whole.slice(..3 << 20);
    let waiting = [(); 2].map(|()| second.put(&part).unwrap());
    // Both keep the whole, and that is more than may wait.
    let full = second.put(&part).unwrap_err();
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    assert!(at_second.take(waiting[0], part.len(), true).unwrap() == part);
    second.put(&part).unwrap();
}

#[test]
fn a_file_is_filled_anew_when_nobody_has_its_content_and_not_before() {
    let (mut outbox, inbox) = connection();
    // No other test has contents of this length.
    let length = 331 << 10;
    let mut send = |seed: u64| {
        let number = outbox.put(&content(seed, length)).unwrap();
        let file = inode(&inbox, number);
        (file, inbox.take(number, length, true).unwrap())
    };
    let (first_file, first) = send(1);
    let (second_file, second) = send(2);
    assert_ne!(first_file, second_file);
    drop(first);
    let (third_file, third) = send(3);
    assert_eq!(third_file, first_file);
    assert!(second == content(2, length) && third == content(3, length));
}

#[test]
fn contents_outlive_their_connection_unchanged() {
    let (mut outbox, inbox) = connection();
    let length = 517 << 10;
    let number = outbox.put(&content(1, length)).unwrap();
    let taken = inbox.take(number, length, false).unwrap();
    let left = path(&inbox);
    drop((outbox, inbox));
    assert!(!left.exists());
    let (mut outbox, inbox) = connection();
    for seed in 2..10 {
        let number = outbox.put(&content(seed, length)).unwrap();
        inbox.take(number, length, false).unwrap();
    }
    assert!(taken == content(1, length));
}

#[test]
fn what_a_killed_process_had_is_free_when_its_connection_ends() {
    // Its inbox and its home are left, unlocked, with a name of a content.
    let user = std::fs::metadata("/proc/self").unwrap().uid();
    let base = PathBuf::from(format!("/dev/shm/dosmos-{user}"));
    let (mut outbox, inbox) = connection();
    let length = 733 << 10;
    let place = outbox.put(&content(1, length)).unwrap();
    let Sent::File { number, .. } = place else {
        panic!("it is in the ring");
    };
    let first = seed() + (u64::from(std::process::id()) << 24);
    let left = [first, first + 1].map(|n| base.join(format!("{n:016x}")));
    let locks = left.each_ref().map(|directory| {
        std::fs::create_dir(directory).unwrap();
        let directory = File::open(directory).unwrap();
        directory.lock().unwrap();
        directory
    });
    let of_killed = left[1].join("0");
    std::fs::hard_link(path(&inbox).join(number.to_string()), &of_killed).unwrap();
    let killed = left[0].file_name().unwrap().to_str().unwrap();
    let to_killed = Outbox::open(killed).unwrap();
    inbox.take(place, length, true).unwrap();
    assert!(of_killed.exists());
    drop(locks);
    drop(to_killed);
    assert!(!left[0].exists() && !left[1].exists());
}

#[test]
fn who_does_not_take_is_sent_a_bounded_number() {
    let (mut outbox, inbox) = connection();
    let length = 23 << 10;
    let mut sent = VecDeque::new();
    let full = loop {
        match outbox.put(&content(sent.len() as u64, length)) {
            Ok(place) => sent.push_back(place),
            Err(full) => break full,
        }
    };
    assert_eq!(full.kind(), std::io::ErrorKind::StorageFull);
    let files = sent
        .iter()
        .filter(|s| matches!(s, Sent::File { .. }))
        .count();
    assert_eq!((files, sent.len()), (64, 64 + (256 << 10) / length));
    for (seed, place) in sent.iter().enumerate() {
        assert!(inbox.take(*place, length, true).unwrap() == content(seed as u64, length));
    }
    // The ring begins at its front when it is empty.
    let place = outbox.put(&content(0, length)).unwrap();
    assert!(matches!(place, Sent::InRing(place) if place % (256 << 10) == 0));
    // The bytes are bounded, too, but for a single content.
    let (mut outbox, inbox) = connection();
    let large = content(1, 65 << 20);
    let place = outbox.put(&large).unwrap();
    assert!(outbox.put(&large[..MAPPED]).is_err());
    assert!(inbox.take(place, large.len(), false).unwrap() == large);
    outbox.put(&large[..MAPPED]).unwrap();
}

#[test]
fn what_is_not_there_is_an_error_and_ends_nothing() {
    let (mut outbox, inbox) = connection();
    assert!(inbox.take(FILE, MAPPED, true).is_err());
    assert!(inbox.take(Sent::InRing(0), COPIED, true).is_err());
    let place = outbox.put(&content(1, MAPPED)).unwrap();
    // Files are whole pages.
    assert!(inbox.take(place, MAPPED + 5000, true).is_err());
    assert!(inbox.take(place, MAPPED, true).unwrap() == content(1, MAPPED));
    assert!(inbox.take(place, MAPPED, true).is_err(), "it was taken");
    assert!(inbox.take(FILE, 0, false).is_err());
    let places = [2, 3].map(|seed| outbox.put(&content(seed, COPIED)).unwrap());
    let Sent::InRing(second) = places[1] else {
        panic!("it is not in the ring");
    };
    for (place, length) in [(second, 250 << 10), (u64::MAX, 1), (second, usize::MAX)] {
        assert!(inbox.take(Sent::InRing(place), length, true).is_err());
    }
    assert!(inbox.take(places[1], COPIED, true).unwrap() == content(3, COPIED));
    assert!(
        inbox.take(places[0], COPIED, true).is_err(),
        "it may be gone"
    );
    drop(inbox);
    assert!(outbox.put(&content(1, MAPPED)).is_err());
}

#[test]
fn a_ring_goes_round_whatever_the_lengths() {
    let (mut outbox, inbox) = connection();
    let mut random = Random::new(seed());
    let mut waiting = VecDeque::new();
    for step in 0..2_000 {
        let length = LARGE + random.below(48 << 10) as usize;
        let place = outbox.put(&content(step, length)).unwrap();
        waiting.push_back((place, step, length));
        while waiting.len() as u64 > random.below(8) {
            let (place, step, length) = waiting.pop_front().unwrap();
            let taken = inbox.take(place, length, true).unwrap();
            assert!(taken == content(step, length), "step {step}");
        }
    }
}

#[test]
fn whatever_is_taken_kept_handed_on_and_dropped_stays_what_it_was() {
    let mut random = Random::new(seed());
    let mut ways: Vec<_> = (0..3).map(|_| connection()).collect();
    // What is here: of which content, and from which byte of it on.
    let mut kept: Vec<(Bytes, u64, usize)> = Vec::new();
    let mut count = 0;
    for step in 0..1_000 {
        let (outbox, inbox) = &mut ways[random.below(3) as usize];
        // A new one, or one that is here, or a part of it.
        let (bytes, of, first) = match kept.len() {
            n if n > 0 && random.below(3) == 0 => {
                let (bytes, of, first) = kept[random.below(n as u64) as usize].clone();
                let skipped = random.below((bytes.len() - LARGE) as u64 + 1) as usize;
                match random.below(2) {
                    0 => (bytes, of, first),
                    _ => (bytes.slice(skipped..), of, first + skipped),
                }
            }
            _ => {
                count += 1;
                let length = LARGE + random.below(240 << 10) as usize;
                let made = content(count, length);
                match random.below(2) {
                    0 => (copy_of(&made), count, 0),
                    _ => (Bytes::from(made), count, 0),
                }
            }
        };
        let number = outbox.put(&bytes).unwrap();
        let taken = inbox.take(number, bytes.len(), random.below(2) == 0);
        kept.push((taken.unwrap(), of, first));
        while kept.len() as u64 > random.below(60) {
            let at = random.below(kept.len() as u64) as usize;
            let (bytes, of, first) = kept.swap_remove(at);
            let whole = content(of, first + bytes.len());
            assert!(bytes == whole[first..], "step {step}");
        }
    }
}
