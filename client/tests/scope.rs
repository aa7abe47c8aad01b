//! What a user selects, in patterns.

#![allow(clippy::unwrap_used)] // a test may

mod support;

use dosmos_client::Scope;
use dosmos_proto::ApId;
use dosmos_trace::query::Filter;

fn filter(variables: &[&str], processes: &[&str]) -> Result<Filter, String> {
    let texts = |all: &[&str]| all.iter().map(ToString::to_string).collect();
    let scope = Scope {
        variables: texts(variables),
        processes: texts(processes),
        ..Scope::default()
    };
    let filter = scope.filter(&support::catalog(), false);
    filter.map_err(|e| e.to_string())
}

#[test]
fn names_are_globs_or_marked_regular_expressions() {
    let all = [support::GRID, support::SUM, support::BARRIER];
    assert_eq!(filter(&["*"], &[]).unwrap().variables, all);
    assert_eq!(filter(&["gr?d", "grid"], &[]).unwrap().variables, all[..1]);
    assert_eq!(
        filter(&["re:^(grid|res)"], &[]).unwrap().variables,
        all[..2]
    );
    let object = filter(&["grid[3]"], &[]).unwrap();
    assert_eq!(
        (object.variables, object.object),
        (vec![support::GRID], Some(3))
    );
    let some = filter(&[], &["re:[12]$", "ap2"]).unwrap();
    assert_eq!(some.aps, [ApId(1), ApId(2)]);
    assert_eq!(filter(&[], &["ap*"]).unwrap().aps.len(), 4);
}

#[test]
fn a_pattern_that_matches_nothing_or_is_none_is_an_error() {
    for (variables, processes, says) in [
        (
            &["h*"][..],
            &[][..],
            "no variable matches \"h*\"; known: grid, residual",
        ),
        (
            &[],
            &["re:^mp"],
            "no application process matches \"re:^mp\"; known: ap0",
        ),
        (&["re:a("], &[], "\"a(\" is not a regular expression"),
        (
            &["gird"],
            &[],
            "there is no variable \"gird\"; did you mean \"grid\"?",
        ),
    ] {
        let error = filter(variables, processes).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
}
