//! What is published of an object that is delegated to this process.

use super::held::{Back, Held, Hits, Made, Wanted};

type Content = Vec<u32>;

const OBJECT: u64 = 1;

fn delegated() -> Held<Content> {
    let mut held = Held::default();
    assert!(held.entrust(OBJECT, Some((0..100).collect()), 1, (7, 0)));
    held
}

fn ranges(back: Option<Back<Content>>) -> Vec<(u32, u32)> {
    match back.map(|back| back.made) {
        Some(Made::Parts(_, ranges)) => ranges,
        None => Vec::new(),
        Some(made) => panic!("{made:?}"),
    }
}

fn change(held: &mut Held<Content>, first: u32, end: u32) {
    let all = |content: &mut Content| content[first as usize..end as usize].fill(0);
    held.change((first, end), 4, all).unwrap();
}

fn watch(held: &mut Held<Content>, first: u32, end: u32) -> Vec<(u32, u32)> {
    match held.recall(7, Wanted::Elements(first, end)) {
        super::held::Answer::Now(back) => ranges(Some(back)),
        super::held::Answer::Later => panic!("nothing is edited"),
    }
}

#[test]
fn ranges_that_meet_are_published_once() {
    let mut held = delegated();
    assert_eq!(watch(&mut held, 0, 40), [(0, 40)]);
    assert_eq!(watch(&mut held, 35, 60), [(35, 60)]);
    assert_eq!(watch(&mut held, 10, 20), [(10, 20)]);
    assert_eq!(watch(&mut held, 80, 90), [(80, 90)]);
    change(&mut held, 0, 100);
    let mut published = ranges(held.publish());
    published.sort_unstable();
    assert_eq!(published, [(0, 60), (80, 90)]);
}

#[test]
fn what_did_not_change_is_not_published() {
    let mut held = delegated();
    watch(&mut held, 0, 40);
    change(&mut held, 50, 60);
    // The new version is.
    let back = held.publish().unwrap();
    assert_eq!((back.version, ranges(Some(back))), (2, vec![]));
    // What was changed before it is watched comes with the answer.
    assert_eq!(watch(&mut held, 50, 70), [(50, 70)]);
    change(&mut held, 30, 35);
    assert_eq!(ranges(held.publish()), [(30, 35)]);
    assert!(held.publish().is_none());
    change(&mut held, 65, 100);
    assert_eq!(ranges(held.publish()), [(65, 70)]);
}

#[test]
fn sections_are_published_as_a_whole() {
    let mut held = delegated();
    watch(&mut held, 0, 10);
    let mut section = |first: u32, end: u32| {
        let (_, entered) = held.begin_section().unwrap();
        let wrote = Hits {
            count: 1,
            elements: (first, end),
            ..Hits::default()
        };
        let used = (Hits::default(), wrote);
        held.end_section(entered, used, Some(|_: &mut Content| ()))
            .unwrap();
        ranges(held.publish())
    };
    let all = [(0, u32::MAX)];
    assert_eq!(section(50, 60), all);
    assert_eq!(section(20, 30), [(20, 30)], "the rest is known");
    assert_eq!(section(5, 70), [(5, 70)]);
    assert_eq!(watch(&mut held, 0, 10), all);
}
