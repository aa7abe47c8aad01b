//! Meetings, message by message.

use super::*;
use crate::config::Post;

const LONG: Duration = Duration::from_secs(60);

fn seconds(s: u64) -> Nanos {
    Nanos(s * 1_000_000_000)
}

fn rank(rank: u32) -> Announcement {
    Announcement {
        seat: Seat {
            rank,
            host: format!("n{}", rank / 4),
            switch: None,
        },
        size: 8,
        start: 100 + u64::from(rank),
        process: 1_000 + rank,
        address: format!("10.0.0.{rank}:1"),
        cluster_file: 7,
    }
}

fn gathering() -> Meeting {
    let hosts = vec!["n0".to_owned(), "n1".to_owned(), "n2".to_owned()];
    Meeting::new(8, 7, hosts, LONG, seconds(0))
}

/// On each of two hosts an event manager, a memory process, a link process and an application process.
fn posts() -> Vec<Post> {
    let roles = [
        (Role::EventManager, "emp"),
        (Role::Memory, "mp"),
        (Role::Link, "lp"),
        (Role::Application, "ap"),
    ];
    let post = |rank: u32| {
        let (role, kind) = roles[rank as usize % 4];
        Post {
            rank,
            host: format!("n{}", rank / 4),
            role,
            name: format!("{kind}{}", rank / 4),
        }
    };
    (0..8).map(post).collect()
}

fn all_there() -> Meeting {
    all_there_with(false)
}

fn all_there_with(in_application: bool) -> Meeting {
    let mut meeting = gathering();
    for r in 0..7 {
        assert_eq!(meeting.announce(rank(r)), Ok(vec![]));
    }
    assert_eq!(meeting.announce(rank(7)), Ok(vec![Output::Complete]));
    let out = meeting.posts(&posts(), in_application, seconds(1));
    assert_eq!(to(&out, &Order::TakePlace), [0, 1, 2, 3, 4, 5, 6, 7]);
    meeting
}

fn running() -> Meeting {
    begun(all_there())
}

fn begun(mut meeting: Meeting) -> Meeting {
    for r in [0, 1, 2, 4, 5] {
        assert_eq!(meeting.report(r, Report::Ready, seconds(1)), []);
    }
    let out = meeting.report(6, Report::Ready, seconds(1));
    assert_eq!(to(&out, &Order::Record), [0, 4]);
    assert_eq!(to(&out, &Order::Start), [3, 7]);
    meeting
}

/// Who gets this order.
fn to(out: &[Output], order: &Order) -> Vec<u32> {
    let to = out.iter().filter_map(|o| match o {
        Output::Order(rank, o) if o == order => Some(*rank),
        _ => None,
    });
    to.collect()
}

fn ends(meeting: &mut Meeting, rank: u32, exit: Exit) -> Vec<Output> {
    let words = "bye".to_owned();
    meeting.report(rank, Report::Ended { exit, words }, seconds(2))
}

fn well(meeting: &mut Meeting, rank: u32) -> Vec<Output> {
    ends(meeting, rank, Exit::Code(0))
}

#[test]
fn ranks_end_in_the_order_in_which_no_record_is_lost() {
    let mut meeting = running();
    assert_eq!(well(&mut meeting, 3), []);
    let out = well(&mut meeting, 7);
    assert_eq!(to(&out, &Order::End), [1, 2, 5, 6]);
    for r in [1, 2, 5] {
        assert_eq!(well(&mut meeting, r), []);
    }
    let out = well(&mut meeting, 6);
    let record_then_end = [
        Output::Order(0, Order::Record),
        Output::Order(4, Order::Record),
        Output::Order(0, Order::End),
        Output::Order(4, Order::End),
    ];
    assert_eq!(out, record_then_end);
    assert_eq!(well(&mut meeting, 4), []);
    let out = well(&mut meeting, 0);
    assert_eq!(to(&out, &Order::Go), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(meeting.phase(), Phase::Over);
    assert!(meeting.troubles().is_empty());
    let well = (Exit::Code(0), "bye".to_owned());
    assert!(meeting.outcomes().all(|o| o.ended == Some(&well)));
}

#[test]
fn who_runs_the_program_hears_who_has_ended_if_memory_processes_are_within() {
    let mut meeting = begun(all_there_with(true));
    let left = Order::Left("ap0".to_owned());
    let out = ends(&mut meeting, 3, Exit::Signal(9));
    assert_eq!(out, [Output::Order(7, left)]);
    // Nobody is left to hear it.
    let out = well(&mut meeting, 7);
    assert_eq!(to(&out, &Order::Left("ap1".to_owned())), [0u32; 0]);
    assert_eq!(to(&out, &Order::End), [1, 2, 5, 6]);
}

#[test]
fn missing_ranks_and_hosts_are_named_at_the_deadline() {
    let mut meeting = gathering();
    for r in [0, 1, 2, 3, 5, 6] {
        meeting.announce(rank(r)).unwrap();
    }
    assert_eq!(meeting.tick(seconds(60)), []);
    let out = meeting.tick(seconds(61));
    let Some(Output::Order(0, Order::Refused(why))) = out.first() else {
        panic!("{out:?}");
    };
    assert!(
        why.contains("ranks 4, 7 of 8 did not come within 60s; no rank came from n2;"),
        "{why}"
    );
    assert_eq!(out.len(), 6);
    // Who comes later is told the same.
    assert_eq!(meeting.announce(rank(7)), Err(why.clone()));
}

#[test]
fn a_duplicate_rank_is_named_with_both_processes() {
    let mut meeting = gathering();
    meeting.announce(rank(0)).unwrap();
    meeting.announce(rank(5)).unwrap();
    let twice = Announcement {
        start: 1,
        process: 4_444,
        ..rank(5)
    };
    let why = "rank 5 is there twice: process 1005 on n1 and process 4444 on n1";
    assert_eq!(meeting.announce(twice.clone()), Err(why.to_owned()));
    let out = meeting.tick(seconds(1));
    assert_eq!(to(&out, &Order::Refused(why.to_owned())), [0, 5]);
    // One that left before the run began may be started again.
    let mut meeting = gathering();
    meeting.announce(rank(5)).unwrap();
    meeting.lost(5, 105, seconds(1));
    assert_eq!(meeting.announce(twice.clone()), Ok(vec![]));
    assert_eq!(meeting.tick(seconds(2)), []);
    // Once the run goes on, only the second is refused.
    let mut meeting = running();
    assert_eq!(meeting.announce(twice), Err(why.to_owned()));
    assert_eq!(meeting.phase(), Phase::Running);
}

#[test]
fn ranks_of_another_start_or_with_another_file_are_refused() {
    let mut meeting = gathering();
    let other = Announcement { size: 9, ..rank(1) };
    let error = meeting.announce(other).unwrap_err();
    assert!(error.contains("rank 1 of 9"), "{error}");
    let other = Announcement {
        cluster_file: 8,
        ..rank(1)
    };
    let error = meeting.announce(other).unwrap_err();
    assert!(error.contains("another cluster file"), "{error}");
    assert_eq!(meeting.announce(rank(1)), Ok(vec![]), "its place is free");
}

#[test]
fn a_process_that_does_not_answer_is_named() {
    let mut meeting = all_there();
    for r in [0, 1, 2, 4, 6] {
        meeting.report(r, Report::Ready, seconds(1));
    }
    let out = meeting.tick(seconds(62));
    let Some(Output::Order(_, Order::Refused(why))) = out.first() else {
        panic!("{out:?}");
    };
    assert!(
        why.contains("mp1 (rank 5, process 1005 on n1) did not answer"),
        "{why}"
    );
}

#[test]
fn after_a_failure_the_others_may_go_on_for_a_while() {
    let mut meeting = running();
    assert_eq!(ends(&mut meeting, 3, Exit::Signal(9)), []);
    assert_eq!(meeting.tick(seconds(7)), []);
    assert_eq!(to(&meeting.tick(seconds(8)), &Order::End), [7]);
    let out = ends(&mut meeting, 7, Exit::Signal(15));
    assert_eq!(to(&out, &Order::End), [1, 2, 5, 6]);
    let stopped: Vec<bool> = meeting.outcomes().map(|o| o.stopped).collect();
    assert_eq!(stopped, [false, true]);
}

#[test]
fn a_memory_process_that_ends_ends_the_run_and_an_event_manager_does_not() {
    let mut meeting = running();
    let out = ends(&mut meeting, 4, Exit::Code(2));
    assert!(
        matches!(&out[..], [Output::Note(n)] if n.contains("emp1")),
        "{out:?}"
    );
    let out = ends(&mut meeting, 5, Exit::Signal(9));
    assert_eq!(to(&out, &Order::End), [3, 7]);
    well(&mut meeting, 3);
    let out = well(&mut meeting, 7);
    assert_eq!(to(&out, &Order::End), [1, 2, 6], "not who has ended");
    for r in [1, 2, 6, 0] {
        well(&mut meeting, r);
    }
    assert_eq!(meeting.phase(), Phase::Over);
    assert!(meeting.troubles()[0].contains("mp1 ended unexpectedly"));
}

#[test]
fn a_signal_ends_the_program_first() {
    let mut meeting = running();
    let out = meeting.report(5, Report::AskedToEnd, seconds(3));
    assert_eq!(to(&out, &Order::End), [3, 7]);
    assert_eq!(meeting.report(0, Report::AskedToEnd, seconds(3)), []);
    let mut meeting = all_there();
    let out = meeting.report(5, Report::AskedToEnd, seconds(3));
    assert_eq!(out.len(), 8, "{out:?}");
}

#[test]
fn a_rank_whose_stream_breaks_may_come_back_for_a_while() {
    let mut meeting = running();
    meeting.lost(7, 107, seconds(10));
    assert_eq!(meeting.tick(seconds(39)), []);
    assert_eq!(meeting.announce(rank(7)), Ok(vec![]));
    assert_eq!(meeting.tick(seconds(60)), []);
    // The end of a stream that was replaced says nothing.
    meeting.lost(7, 1, seconds(60));
    assert_eq!(meeting.tick(seconds(100)), []);
    meeting.lost(7, 107, seconds(100));
    well(&mut meeting, 3);
    let out = meeting.tick(seconds(131));
    assert_eq!(to(&out, &Order::End), [1, 2, 5, 6], "it counts as ended");
}
