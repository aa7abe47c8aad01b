//! The critical path and who was waited for why, in the findings view: for the run and for a part of it, filtered, selected,
//! and from there to the process or the object.

#![allow(clippy::unwrap_used)] // helpers of tests, too

mod support;

use dosmos_proto::{ApId, Nanos};
use dosmos_testkit::Memory;
use dosmos_trace::query::Catalog;
use dosmos_visualizer::state::{Action, Hit, PathRow, Screen, State};
use dosmos_visualizer::tui::csv;
use dosmos_visualizer::view::{self, Theme};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use support::after;

const SIZES: [(u16, u16); 4] = [(60, 16), (80, 24), (120, 40), (200, 60)];
const SMALL: (u16, u16) = (80, 24);
const PATH: [Action; 2] = [Action::Show(Screen::Findings), Action::Path];

fn lines(state: &State) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(state.size.0, state.size.1)).unwrap();
    let theme = Theme::from(state.look);
    terminal.draw(|f| view::render(f, state, theme)).unwrap();
    let buffer = terminal.backend().buffer();
    let rows = buffer.content.chunks(usize::from(state.size.0));
    let line = |row: &[ratatui::buffer::Cell]| {
        let symbols = row.iter().map(ratatui::buffer::Cell::symbol);
        symbols.collect::<String>().trim_end().to_owned()
    };
    rows.map(line).collect()
}

fn words(state: &State) -> String {
    let lines: Vec<String> = lines(state).iter().map(|l| l.trim().to_owned()).collect();
    lines.join(" ")
}

fn keys(state: &mut State, source: &Memory, keys: &[Action]) {
    for key in keys {
        state.handle(*key);
        support::answer(state, source);
    }
}

/// Selects the first wait.
fn to_the_waits(state: &mut State) {
    for _ in 0..state.path.parts() {
        state.handle(Action::Down);
    }
    assert!(matches!(
        state.path.rows().selected(),
        Some(PathRow::Delay(_))
    ));
}

#[test]
fn of_a_crowded_lock_the_path_is_its_sections_and_every_holder_is_waited_for() {
    for size in SIZES {
        let mut state = after(&support::crowded_lock(), size, &PATH);
        let what = format!("path {}x{}", size.0, size.1);
        insta::assert_snapshot!(what.clone(), lines(&state).join("\n"));
        to_the_waits(&mut state);
        insta::assert_snapshot!(format!("{what} waits"), lines(&state).join("\n"));
    }
}

#[test]
fn the_selection_leads_to_the_object_that_was_waited_for_and_back() {
    let source = support::crowded_lock();
    let mut state = after(&source, SMALL, &PATH);
    to_the_waits(&mut state);
    let screen = words(&state);
    assert!(screen.contains("was waited for by"), "{screen}");
    assert!(screen.contains("waiting, "), "{screen}");
    keys(&mut state, &source, &[Action::Enter]);
    let place = state.navigation.place();
    assert_eq!(place.screen, Screen::VariableHistory);
    let name = state.data.variable(place.variable.unwrap()).unwrap();
    assert_eq!((name.spec().name(), place.object), ("residual", Some(0)));
    let before = state.path.rows().position();
    keys(&mut state, &source, &[Action::Back]);
    assert_eq!(state.navigation.screen(), Screen::Findings);
    assert!(state.path.shown());
    assert_eq!(state.path.rows().position(), before);
    // The same key shows the findings again.
    state.handle(Action::Path);
    assert!(words(&state).contains("bottleneck"));
    assert!(!words(&state).contains("WAITED FOR"));
}

#[test]
fn computing_leads_to_the_process() {
    let source = support::finished();
    let mut state = after(&source, SMALL, &PATH);
    let computing = |row: &PathRow| matches!(row, PathRow::Part(p) if p.doing == "computing");
    let at = state.path.rows().iter().position(computing).unwrap();
    for _ in 0..at {
        state.handle(Action::Down);
    }
    let Some(PathRow::Part(part)) = state.path.rows().selected().cloned() else {
        panic!("a part of the path is selected");
    };
    keys(&mut state, &source, &[Action::Enter]);
    let place = state.navigation.place();
    assert_eq!(place.screen, Screen::ProcessHistory);
    let ap: ApId = place.process.unwrap();
    assert_eq!(Some(state.data.catalog.topology.ap_name(ap)), part.process);
}

#[test]
fn a_part_of_the_run_has_a_path_of_its_own() {
    let source = support::crowded_lock();
    let whole = after(&source, SMALL, &PATH);
    let chart = [Action::Show(Screen::Histogram), Action::ZoomIn];
    let part = after(&source, SMALL, &[&chart[..], &PATH].concat());
    let length = |state: &State| {
        let path = state
            .analysis
            .part()
            .unwrap()
            .analysis
            .critical_path
            .as_ref();
        path.unwrap().length_ns
    };
    assert!(
        length(&part) < length(&whole),
        "{} {}",
        length(&part),
        length(&whole)
    );
    let heading = |state: &State| lines(state)[2].clone();
    assert_ne!(heading(&part), heading(&whole));
    assert!(
        heading(&part).contains("critical path of "),
        "{}",
        heading(&part)
    );
}

#[test]
fn the_filter_keeps_the_rows_of_a_process_and_says_when_there_is_none() {
    let mut state = after(&support::crowded_lock(), SMALL, &PATH);
    let all = state.path.rows().len();
    state.command("filter ap2");
    assert!(state.path.rows().len() < all && !state.path.rows().is_empty());
    let about = |row: &PathRow| match row {
        PathRow::Part(p) => p.process.as_deref() == Some("ap2"),
        PathRow::Delay(d) => {
            let named = [&d.process, &d.because_by].map(|p| p.as_deref() == Some("ap2"));
            named.contains(&true) || d.waiting.iter().any(|w| w == "ap2")
        }
    };
    assert!(
        state.path.rows().iter().all(about),
        "{:?}",
        state.path.rows()
    );
    state.command("filter nobody");
    assert!(words(&state).contains("Nothing matches the filter."));
}

#[test]
fn a_click_selects_what_is_drawn_there() {
    for size in SIZES {
        let mut state = after(&support::crowded_lock(), size, &PATH);
        to_the_waits(&mut state);
        let marked = lines(&state)
            .iter()
            .position(|l| l.starts_with('▶'))
            .unwrap();
        let hit = view::hit(&state, 3, marked as u16);
        assert_eq!(
            hit,
            Some(Hit::Row(state.path.rows().position())),
            "{size:?}"
        );
        // Nothing is selected by a click on a title or on the first lines.
        for y in [2, 3] {
            assert_eq!(view::hit(&state, 3, y), None, "{size:?} {y}");
        }
    }
}

#[test]
fn the_figures_are_saved_as_a_table() {
    let state = after(&support::crowded_lock(), SMALL, &PATH);
    let saved = csv(&state);
    let kinds: Vec<&str> = saved
        .lines()
        .map(|l| l.split(',').next().unwrap())
        .collect();
    assert_eq!(kinds[0], "row");
    assert_eq!(
        kinds.iter().filter(|k| **k == "path").count(),
        state.path.parts()
    );
    assert_eq!(kinds.len() - 1, state.path.rows().len());
}

#[test]
fn without_records_there_is_no_path_and_without_waits_none_is_told() {
    let state = after(&Memory::new(Catalog::default(), Vec::new()), SMALL, &PATH);
    assert!(words(&state).contains("No operation was recorded in this part of the run."));
    let state = after(&support::live(Nanos(20_000_000)), SMALL, &PATH);
    assert!(
        words(&state).contains("critical path of "),
        "{}",
        words(&state)
    );
}
