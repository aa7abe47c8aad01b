//! What keys do, without a terminal.

#![allow(clippy::unwrap_used)] // helpers of tests, too

mod support;

use dosmos_proto::{ApId, Nanos};
use dosmos_trace::Op;
use dosmos_trace::query::Filter;
use dosmos_trace::query::table::SortKey;
use dosmos_visualizer::state::lanes::LaneKey;
use dosmos_visualizer::state::{Action, Question, Screen, State};
use support::{GRID, SUM, after, answer};

const SIZE: (u16, u16) = (80, 24);

fn filter(state: &State) -> Filter {
    match state.request().question {
        Question::Histogram(q) => q.filter,
        Question::History(q) => q.filter,
        other => panic!("no chart is asked for: {other:?}"),
    }
}

#[test]
fn digits_and_tab_choose_the_screen() {
    let mut state = after(&support::finished(), SIZE, &[]);
    for screen in Screen::ALL {
        assert_eq!(state.navigation.screen(), screen);
        state.handle(Action::NextScreen);
    }
    assert_eq!(state.navigation.screen(), Screen::Overview);
    state.handle(Action::PreviousScreen);
    assert_eq!(state.navigation.screen(), Screen::Health);
    state.handle(Action::Show(Screen::Variables));
    assert_eq!(state.navigation.screen(), Screen::Variables);
}

#[test]
fn enter_drills_from_variable_to_process_and_escape_returns() {
    let source = support::finished();
    let keys = [Action::Show(Screen::Variables), Action::Down, Action::Enter];
    let mut state = after(&source, SIZE, &keys);
    assert_eq!(state.navigation.screen(), Screen::Histogram);
    assert_eq!(filter(&state).variables, [SUM]);
    state.handle(Action::Enter);
    answer(&mut state, &source);
    assert_eq!(state.navigation.screen(), Screen::VariableHistory);
    assert_eq!(state.charts.lanes().len(), 4);
    state.handle(Action::Down);
    state.handle(Action::Down);
    state.handle(Action::Enter);
    answer(&mut state, &source);
    assert_eq!(state.navigation.screen(), Screen::ProcessHistory);
    assert_eq!(filter(&state).aps, [ApId(2)]);
    assert!(
        state
            .charts
            .lanes()
            .iter()
            .any(|l| matches!(l.key, LaneKey::Barrier(_)))
    );
    for screen in [
        Screen::VariableHistory,
        Screen::Histogram,
        Screen::Variables,
    ] {
        state.handle(Action::Back);
        assert_eq!(state.navigation.screen(), screen);
    }
    state.handle(Action::Back);
    assert_eq!(state.navigation.screen(), Screen::Variables);
}

#[test]
fn a_process_of_the_tree_opens_its_history_and_a_group_folds() {
    let source = support::finished();
    let mut state = after(&source, SIZE, &[]);
    let open = state.tree.rows().len();
    state.handle(Action::Down);
    state.handle(Action::Enter);
    assert_eq!(state.tree.rows().len(), open - 5);
    state.handle(Action::Enter);
    assert_eq!(state.tree.rows().len(), open);
    state.handle(Action::Down);
    state.handle(Action::Enter);
    assert_eq!(
        state.navigation.screen(),
        Screen::Overview,
        "a memory process has no history"
    );
    state.handle(Action::Down);
    state.handle(Action::Enter);
    assert_eq!(state.navigation.place().process, Some(ApId(0)));
    assert_eq!(state.navigation.screen(), Screen::ProcessHistory);
}

#[test]
fn the_selection_stays_on_its_variable_when_the_order_changes() {
    let source = support::finished();
    let mut state = after(
        &source,
        SIZE,
        &[Action::Show(Screen::Variables), Action::Down],
    );
    let selected = |s: &State| s.variables.rows()[s.variables.position()].id;
    assert_eq!(selected(&state), SUM);
    for _ in SortKey::ALL {
        state.handle(Action::Sort);
        answer(&mut state, &source);
        assert_eq!(selected(&state), SUM);
    }
    assert_eq!(state.variables.sort(), SortKey::Name);
    state.handle(Action::Reverse);
    answer(&mut state, &source);
    assert_eq!(selected(&state), SUM);
    assert_eq!(state.variables.position(), 0);
}

#[test]
fn variables_objects_and_operations_are_chosen() {
    let mut state = after(
        &support::finished(),
        SIZE,
        &[Action::Show(Screen::Histogram)],
    );
    assert!(filter(&state).variables.is_empty());
    assert_eq!(filter(&state).ops, Op::ALL[..4]);
    state.handle(Action::NextTarget);
    assert_eq!(filter(&state).variables, [GRID]);
    state.handle(Action::NextObject);
    assert_eq!(filter(&state).object, Some(0));
    state.handle(Action::PreviousObject);
    state.handle(Action::PreviousObject);
    assert_eq!(filter(&state).object, Some(7));
    state.handle(Action::NextTarget);
    assert_eq!(
        (filter(&state).variables, filter(&state).object),
        (vec![SUM], None)
    );
    state.handle(Action::NextTarget);
    assert!(filter(&state).variables.is_empty());
    state.handle(Action::Writes);
    assert_eq!(filter(&state).ops, [Op::Write]);
    state.handle(Action::Reads);
    assert_eq!(filter(&state).ops, [Op::Read]);
    state.handle(Action::Reads);
    assert_eq!(filter(&state).ops, Op::ALL[..4]);
    state.handle(Action::Show(Screen::ProcessHistory));
    state.handle(Action::PreviousTarget);
    assert_eq!(filter(&state).aps, [ApId(3)]);
}

#[test]
fn zoom_and_pan_change_what_is_asked_for() {
    let mut state = after(
        &support::finished(),
        SIZE,
        &[Action::Show(Screen::Histogram)],
    );
    let asked = |s: &State| filter(s).range.unwrap();
    let whole = asked(&state);
    state.handle(Action::ZoomIn);
    let closer = asked(&state);
    assert!(closer.length() < whole.length());
    assert!(whole.from < closer.from && closer.to < whole.to);
    state.handle(Action::Earlier);
    assert!(asked(&state).from < closer.from);
    state.handle(Action::Later);
    state.handle(Action::ZoomOut);
    assert_eq!(asked(&state), whole);
    state.handle(Action::ZoomIn);
    state.handle(Action::Whole);
    assert_eq!(asked(&state), whole);
}

#[test]
fn a_live_window_follows_the_end_until_one_looks_back() {
    let early = support::live(Nanos(200_000_000));
    let late = support::live(Nanos(400_000_000));
    let keys = [Action::Show(Screen::Histogram), Action::ZoomIn];
    let mut state = after(&early, SIZE, &keys);
    let shown = |s: &State| s.timeline.window().resolve(s.data.extent());
    let before = shown(&state);
    answer(&mut state, &late);
    assert!(shown(&state).from > before.from, "it follows");
    state.handle(Action::Earlier);
    let fixed = shown(&state);
    answer(&mut state, &early);
    answer(&mut state, &late);
    assert_eq!(shown(&state), fixed, "it stays");
    state.handle(Action::Follow);
    assert_eq!(shown(&state).to, state.data.extent().to);
}

#[test]
fn pause_holds_the_picture_but_not_the_keys() {
    let early = support::live(Nanos(200_000_000));
    let late = support::live(Nanos(400_000_000));
    let keys = [Action::Show(Screen::Histogram), Action::Pause];
    let mut state = after(&early, SIZE, &keys);
    assert!(!state.request().repeat);
    let records = state.data.catalog.records;
    answer(&mut state, &late);
    assert_eq!(state.data.catalog.records, records);
    state.handle(Action::ZoomIn);
    answer(&mut state, &late);
    let drawn = state.charts.histogram().unwrap();
    assert_eq!(
        Some(drawn.answer.range),
        filter(&state).range,
        "zooming works while paused"
    );
    state.handle(Action::Pause);
    answer(&mut state, &late);
    assert!(state.data.catalog.records > records);
}

#[test]
fn an_answer_to_an_old_question_is_not_shown() {
    let source = support::finished();
    let mut state = after(&source, SIZE, &[Action::Show(Screen::Histogram)]);
    let old = state.request();
    state.handle(Action::NextTarget);
    assert!(state.charts.histogram().is_none());
    let run = dosmos_client::Run::of(std::sync::Arc::new(source), "");
    let update = dosmos_visualizer::tui::answer_once(run, old);
    state.apply(futures::executor::block_on(update));
    assert!(state.charts.histogram().is_none());
}

#[test]
fn rates_are_those_of_the_last_seconds() {
    let mut state = after(&support::live(Nanos(100_000_000)), SIZE, &[]);
    answer(&mut state, &support::live(Nanos(300_000_000)));
    // 20 sweeps of 56 accesses in 0.2 s.
    let rate = state.tree.rows()[0].figures.rate.unwrap();
    assert!((rate - 5_600.0).abs() < 1.0, "{rate}");
}

#[test]
fn a_window_that_moves_with_the_run_is_asked_for_at_the_next_beat_and_one_moved_by_a_key_at_once() {
    let early = support::live(Nanos(200_000_000));
    let late = support::live(Nanos(400_000_000));
    let keys = [Action::Show(Screen::Histogram), Action::ZoomIn];
    let mut state = after(&early, SIZE, &keys);
    state.command("window 20ms");
    answer(&mut state, &early);
    let before = state.request();
    answer(&mut state, &late);
    let moved = state.request();
    assert_ne!(moved, before, "the run went on");
    assert!(moved.only_moved(&before));
    state.handle(Action::Earlier);
    let panned = state.request();
    assert!(!panned.only_moved(&moved));
    state.handle(Action::Reads);
    assert!(!state.request().only_moved(&panned));
}

#[test]
fn commands_choose_variables_windows_and_what_is_recorded() {
    use dosmos_visualizer::state::Effect;
    let live = support::live(Nanos(300_000_000));
    let mut state = after(&live, SIZE, &[]);
    state.command("variable residual[0]");
    answer(&mut state, &live);
    answer(&mut state, &live);
    assert_eq!(state.navigation.screen(), Screen::VariableHistory);
    assert_eq!(
        (
            state.navigation.place().variable,
            state.navigation.place().object
        ),
        (Some(SUM), Some(0))
    );
    state.command("variable nowhere");
    answer(&mut state, &live);
    let said = state.output.message().cloned().unwrap();
    assert!(said.bad && said.text.contains("nowhere"), "{said:?}");
    state.command("goto 0.1");
    assert_eq!(
        state.timeline.cursor(),
        Some(Nanos(support::START + 100_000_000 + 1))
    );
    state.command("record op=write");
    let [Effect::Record(selection)] = &state.output.take_effects()[..] else {
        panic!("no order");
    };
    assert_eq!(selection.ops, [Op::Write]);
    state.command("save x.png");
    assert!(state.output.take_effects().is_empty() && state.output.message().unwrap().bad);

    let mut over = after(&support::finished(), SIZE, &[]);
    over.command("record off");
    assert!(over.output.take_effects().is_empty() && over.output.message().unwrap().bad);
}

#[test]
fn a_finding_leads_to_the_history_of_its_variable() {
    let source = support::crowded_lock();
    let mut state = after(&source, SIZE, &[Action::Show(Screen::Findings)]);
    assert_eq!(state.analysis.findings().len(), 1);
    state.handle(Action::Enter);
    answer(&mut state, &source);
    assert_eq!(state.navigation.screen(), Screen::VariableHistory);
    assert_eq!(filter(&state).variables, [SUM]);
    assert_eq!(state.charts.lanes().len(), 4);
    state.handle(Action::Back);
    assert_eq!(state.navigation.screen(), Screen::Findings);
}

#[test]
fn a_click_selects_a_second_one_looks_closer_and_titles_sort() {
    use dosmos_visualizer::state::Hit;
    use dosmos_visualizer::view::hit;
    let source = support::finished();
    let mut state = after(&source, SIZE, &[]);
    // The tab of the table.
    let tab = (0..80).find(|x| hit(&state, *x, 1) == Some(Hit::Screen(Screen::Variables)));
    let at = hit(&state, tab.unwrap(), 1).unwrap();
    state.click(at);
    answer(&mut state, &source);
    assert_eq!(state.navigation.screen(), Screen::Variables);
    assert_eq!(hit(&state, 5, 4), Some(Hit::Row(1)));
    assert_eq!(hit(&state, 5, 12), None);
    state.click(Hit::Row(1));
    assert_eq!(state.variables.position(), 1);
    state.click(Hit::Row(1));
    answer(&mut state, &source);
    assert_eq!(state.navigation.screen(), Screen::Histogram);
    let Some(Hit::Time(at, None)) = hit(&state, 40, 10) else {
        panic!("the chart is hit");
    };
    state.click(Hit::Time(at, None));
    assert_eq!(state.timeline.cursor(), Some(at));
    state.handle(Action::Show(Screen::Variables));
    answer(&mut state, &source);
    let title = (0..80).find(|x| hit(&state, *x, 2) == Some(Hit::Column(SortKey::Writes)));
    state.click(hit(&state, title.unwrap(), 2).unwrap());
    assert_eq!(
        (state.variables.sort(), state.variables.reverse()),
        (SortKey::Writes, false)
    );
}
