//! What keys do, without a terminal.

#![allow(clippy::unwrap_used)] // helpers of tests, too

mod support;

use dosmos_proto::{ApId, Nanos};
use dosmos_trace::Op;
use dosmos_trace::query::Filter;
use dosmos_trace::query::table::SortKey;
use dosmos_visualizer::state::lanes::LaneKey;
use dosmos_visualizer::state::{Action, Effect, Hit, ListedRun, Question, Screen, State};
use dosmos_visualizer::view;
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
    let keys = [Action::Show(Screen::Variables), Action::Enter];
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
    let mut state = after(&source, SIZE, &[Action::Show(Screen::Variables)]);
    let selected = |s: &State| s.variables.rows()[s.variables.position()].id;
    assert_eq!(selected(&state), SUM);
    for _ in SortKey::ALL {
        state.handle(Action::Sort);
        answer(&mut state, &source);
        assert_eq!(selected(&state), SUM);
    }
    assert_eq!(state.variables.sort(), SortKey::Time);
    state.handle(Action::Reverse);
    answer(&mut state, &source);
    assert_eq!(selected(&state), SUM);
    assert_eq!(state.variables.position(), 1);
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
    assert_eq!(filter(&state).variables, [SUM]);
    state.handle(Action::NextTarget);
    assert_eq!(filter(&state).variables, [GRID]);
    state.handle(Action::NextObject);
    assert_eq!(filter(&state).object, Some(0));
    state.handle(Action::PreviousObject);
    state.handle(Action::PreviousObject);
    assert_eq!(filter(&state).object, Some(7));
    state.handle(Action::PreviousTarget);
    assert_eq!(
        (filter(&state).variables, filter(&state).object),
        (vec![SUM], None)
    );
    state.handle(Action::PreviousTarget);
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
    let asked = dosmos_visualizer::tui::answer_once(run, old);
    state.apply(futures::executor::block_on(asked).0);
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

#[test]
fn the_header_counts_findings_on_every_view_and_leads_to_them() {
    use dosmos_visualizer::state::Hit;
    use dosmos_visualizer::view::hit;
    for width in [80u16, 160] {
        let mut state = after(&support::crowded_lock(), (width, 24), &[]);
        let counted = state.analysis.levels().unwrap();
        assert_eq!(counted.map(|(_, n)| n).iter().sum::<usize>(), 1);
        let at = (0..width).find(|x| hit(&state, *x, 0) == Some(Hit::Screen(Screen::Findings)));
        state.click(hit(&state, at.unwrap(), 0).unwrap());
        assert_eq!(state.navigation.screen(), Screen::Findings);
        // A part of the run without the lock: its findings are not those that the header counts.
        state.handle(Action::ZoomIn);
        assert_eq!(state.analysis.levels().unwrap(), counted);
    }
}

#[test]
fn back_from_a_finding_the_findings_are_those_of_before() {
    let source = support::crowded_lock();
    let mut state = after(&source, SIZE, &[Action::Show(Screen::Findings)]);
    let window = state.timeline.window();
    state.handle(Action::Enter);
    assert_ne!(
        state.timeline.window(),
        window,
        "at the time of the finding"
    );
    state.handle(Action::Back);
    assert_eq!(state.timeline.window(), window);
    assert_eq!(state.analysis.findings().len(), 1);
}

#[test]
fn a_finding_of_a_bad_group_leads_to_the_groups() {
    let source = support::crowded_lock();
    let mut state = after(&source, SIZE, &[Action::Show(Screen::Findings)]);
    let mut part = state.analysis.part().unwrap().clone();
    let finding = &mut part.analysis.findings[0];
    finding.kind = dosmos_analysis::Kind::BadGroup;
    finding.variable = Some("residual".into());
    finding.aps = vec!["ap2".into()];
    state.take_found(dosmos_visualizer::state::Found {
        scope: None,
        result: Ok(Box::new(part)),
        variables: Vec::new(),
    });
    state.handle(Action::Enter);
    assert_eq!(state.navigation.screen(), Screen::Groups);
    assert_eq!(state.analysis.processes().selected(), 2);
    let matrix = &state.analysis.part().unwrap().analysis.groups;
    let first = matrix.by_use()[state.analysis.column()];
    assert_eq!(matrix.variables[first].name, "residual");
}

#[test]
fn the_cursor_tells_what_is_under_it_and_events_are_stepped_through() {
    use dosmos_visualizer::state::WaitedFor;
    let source = support::crowded_lock();
    let keys = [
        Action::Show(Screen::VariableHistory),
        Action::ZoomIn,
        Action::ZoomIn,
        Action::ZoomIn,
        Action::ZoomIn,
        Action::Acquires,
        Action::NextEvent,
        Action::NextEvent,
    ];
    let mut state = after(&source, SIZE, &keys);
    assert_eq!(state.target().variable, Some(SUM));
    let first = *state.event().unwrap();
    assert_eq!(state.timeline.cursor(), Some(first.start));
    let (of, detail) = *state.charts.detail().unwrap();
    assert_eq!((of.start, of.ap), (first.start, first.ap));
    let record = detail.record.unwrap();
    assert_eq!((record.start, record.op), (first.start, Op::Acquire));
    // Sections go round: the one before is that of the process before.
    let before = dosmos_proto::ApId((first.ap.0 + 3) % 4);
    match detail.waited_for {
        Some(WaitedFor::Holder { ap, .. }) => assert_eq!(ap, before),
        other => panic!("{other:?}"),
    }
    state.handle(Action::NextEvent);
    assert!(state.event().unwrap().start > first.start);
    state.handle(Action::PreviousEvent);
    assert_eq!(*state.event().unwrap(), first);
    // No event beyond the last one; the cursor stays.
    (0..1_000).for_each(|_| state.handle(Action::NextEvent));
    assert!(state.output.message().unwrap().text.contains("no later"));
    assert!(state.timeline.cursor().is_some());
}

#[test]
fn each_view_has_a_filter_of_its_own() {
    let source = support::finished();
    let mut state = after(&source, SIZE, &[Action::Show(Screen::Variables)]);
    state.command("filter grid");
    answer(&mut state, &source);
    assert_eq!(state.variables.page().matched, 1);
    state.handle(Action::Show(Screen::ProcessHistory));
    answer(&mut state, &source);
    let lanes = state.charts.lanes().len();
    state.command("filter !grid");
    assert!(state.charts.lanes().len() < lanes);
    state.handle(Action::Show(Screen::Variables));
    answer(&mut state, &source);
    assert_eq!(state.filter().unwrap().typed(), "grid");
    assert_eq!(state.variables.page().matched, 1);
    state.handle(Action::Show(Screen::Overview));
    assert!(state.filter().is_none() && state.tree.rows().len() > 4);
}

#[test]
fn keys_below_the_help_do_nothing_and_it_is_searched() {
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    let mut state = after(&support::finished(), SIZE, &[Action::Help]);
    let place = state.tree.rows().position();
    state.handle(Action::Down);
    state.handle(Action::Pause);
    assert!(state.help.is_some() && !state.paused);
    assert_eq!(state.tree.rows().position(), place);
    let press = |state: &mut State, code| state.key(KeyEvent::new(code, KeyModifiers::NONE));
    "/quit"
        .chars()
        .for_each(|c| press(&mut state, KeyCode::Char(c)));
    assert!(!state.leaving.is_done(), "typed, not pressed");
    let lines = |state: &State| {
        let help = state.help.as_ref().unwrap();
        help.lines(Screen::Overview, &state.keymap, SIZE).len()
    };
    let found = lines(&state);
    press(&mut state, KeyCode::Esc);
    assert!(found < lines(&state));
    press(&mut state, KeyCode::Char('q'));
    assert!(
        state.help.is_none() && !state.leaving.is_done(),
        "q closes it"
    );
}

#[test]
fn quitting_asks_first_where_it_ends_the_program() {
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    let press = |state: &mut State, c| {
        state.key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
    };
    let mut state = after(&support::live(Nanos(90_000_000)), SIZE, &[]);
    state.leaving.ends(Some("sor".into()));
    press(&mut state, 'q');
    assert!(!state.leaving.is_done() && state.leaving.asks() == Some("sor"));
    press(&mut state, 'n');
    assert!(!state.leaving.is_done() && state.leaving.asks().is_none());
    press(&mut state, 'q');
    press(&mut state, 'y');
    assert!(state.leaving.is_done());
    let mut state = after(&support::live(Nanos(90_000_000)), SIZE, &[]);
    state.leaving.ends(Some("sor".into()));
    state.finish("run finished");
    press(&mut state, 'q');
    assert!(state.leaving.is_done(), "nothing is ended any more");
}

#[test]
fn the_runs_of_the_folder_are_asked_for_unless_leaving_would_end_the_program() {
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    let mut state = after(&support::finished(), SIZE, &[]);
    let press = |state: &mut State, c| {
        state.key(KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
    };
    press(&mut state, 'R');
    assert_eq!(state.output.take_effects(), [Effect::ListRuns]);
    assert!(state.runs.shown() && state.runs.listing());
    let run = |name: &str| ListedRun {
        path: name.into(),
        name: name.into(),
        ..ListedRun::default()
    };
    let runs = ["c", "b", "a"].map(run).to_vec();
    state.runs.take("runs".into(), Ok(runs.clone()));
    // Keys and the wheel are for the list, not for what lies below it.
    let below = state.tree.rows().position();
    press(&mut state, '2');
    press(&mut state, 'j');
    state.wheel(false, None);
    state.wheel(true, None);
    assert_eq!(state.navigation.screen(), Screen::Overview);
    assert_eq!(
        (state.tree.rows().position(), state.runs.rows().position()),
        (below, 1)
    );
    // A click selects, a second one opens.
    let at = |state: &State, name: &str| {
        let lines = (0..SIZE.1).filter_map(|y| Some((y, view::hit(state, 5, y)?)));
        let mut lines = lines.collect::<Vec<_>>().into_iter();
        let row = state
            .runs
            .rows()
            .iter()
            .position(|r| r.name == name)
            .unwrap();
        lines.find(|(_, hit)| *hit == Hit::Row(row)).unwrap().1
    };
    let hit = at(&state, "a");
    state.click(hit);
    assert!(state.output.take_effects().is_empty());
    state.click(hit);
    let open = Effect::OpenRun("a".into());
    assert_eq!(state.output.take_effects(), [open]);
    assert_eq!(state.runs.opening(), Some("a"));
    state.runs.fail("gone".into());
    assert_eq!(state.runs.error(), Some("gone"));
    press(&mut state, 'q');
    assert!(!state.runs.shown() && !state.leaving.is_done());

    state.leaving.ends(Some("sor and its cluster".into()));
    state.command("runs");
    assert!(!state.runs.shown() && state.output.take_effects().is_empty());
    let said = state.output.message().unwrap();
    assert!(said.bad && said.text.contains("dosmos top"), "{said:?}");
}

#[test]
fn tables_scroll_to_the_columns_that_do_not_fit() {
    use dosmos_visualizer::state::Hit;
    use dosmos_visualizer::view::hit;
    let source = support::finished();
    let mut state = after(&source, SIZE, &[Action::Show(Screen::Variables)]);
    let sorts = |state: &State| {
        let body = (0..24).find(|y| matches!(hit(state, 1, *y), Some(Hit::Column(_))));
        (0..80).any(|x| hit(state, x, body.unwrap()) == Some(Hit::Column(SortKey::Copies)))
    };
    assert!(!sorts(&state), "COPIES does not fit");
    (0..8).for_each(|_| state.handle(Action::Later));
    assert!(sorts(&state));
    (0..100).for_each(|_| state.handle(Action::Later));
    (0..4).for_each(|_| state.handle(Action::Earlier));
    assert_eq!(
        state.scrolled.of(Screen::Variables),
        12,
        "the last column stays in sight"
    );
    assert_eq!(state.scrolled.of(Screen::Overview), 0);
}

#[test]
fn drawing_the_pointer_over_a_chart_zooms_to_it() {
    use dosmos_visualizer::view::hit;
    let source = support::finished();
    let mut state = after(&source, SIZE, &[Action::Show(Screen::Histogram)]);
    let whole = state.timeline.window();
    state.click(hit(&state, 20, 10).unwrap());
    state.release();
    assert_eq!(state.timeline.window(), whole, "a click only points");
    let scale = state.scale();
    state.click(hit(&state, 20, 10).unwrap());
    state.drag(hit(&state, 50, 12).unwrap());
    state.release();
    let shown = state.timeline.window().resolve(state.data.extent());
    assert_eq!(shown.length(), Nanos(30 * scale.per_column.0));
    // The wheel goes in small steps, in and out again.
    let at = hit(&state, 40, 10);
    state.wheel(true, at);
    let closer = state
        .timeline
        .window()
        .resolve(state.data.extent())
        .length();
    assert_eq!(closer, Nanos(shown.length().0 * 4 / 5));
}

#[test]
fn the_patch_of_a_finding_is_copied() {
    use dosmos_visualizer::state::Effect;
    let source = support::crowded_lock();
    let mut state = after(
        &source,
        SIZE,
        &[Action::Show(Screen::Findings), Action::CopyPatch],
    );
    assert!(state.output.message().unwrap().bad, "it has none");
    let mut part = state.analysis.part().unwrap().clone();
    part.analysis.findings[0].patch = Some("+ policy = \"update\"".into());
    state.take_found(dosmos_visualizer::state::Found {
        scope: None,
        result: Ok(Box::new(part)),
        variables: Vec::new(),
    });
    state.handle(Action::CopyPatch);
    let copied = Effect::Copy("+ policy = \"update\"".into());
    assert_eq!(state.output.take_effects(), [copied]);
}
