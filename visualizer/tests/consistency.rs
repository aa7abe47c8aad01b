//! What stands on the screen does not contradict itself, does not claim what nobody knows, and does not jump.

#![allow(clippy::unwrap_used)] // helpers of tests, too

mod support;

use std::sync::Arc;

use dosmos_analysis::GainFrom;
use dosmos_client::Run;
use dosmos_proto::{ApId, Component, Nanos, PhaseTimes, Spent};
use dosmos_trace::query::{Breakdown, Histogram, OriginCounts};
use dosmos_visualizer::state::tree::Count;
use dosmos_visualizer::state::{Action, Answer, Found, Screen, State, Update};
use dosmos_visualizer::tui::{answer_once, csv};
use dosmos_visualizer::view;
use dosmos_visualizer::view::Theme;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;
use support::{after, answer};

const SMALL: (u16, u16) = (80, 24);

/// The screen, line by line.
fn lines(state: &State) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(state.size.0, state.size.1)).unwrap();
    let theme = Theme::from(state.look);
    terminal.draw(|f| view::render(f, state, theme)).unwrap();
    let buffer = terminal.backend().buffer();
    let rows = buffer.content.chunks(usize::from(state.size.0));
    let line = |row: &[ratatui::buffer::Cell]| {
        row.iter()
            .map(ratatui::buffer::Cell::symbol)
            .collect::<String>()
    };
    rows.map(|row| line(row).trim_end().to_owned()).collect()
}

/// The screen as one text: lines that were broken are joined.
fn words(state: &State) -> String {
    let lines: Vec<String> = lines(state).iter().map(|l| l.trim().to_owned()).collect();
    lines.join(" ")
}

/// What a round of asking and a search for findings bring now.
fn brought(state: &State, source: dosmos_testkit::Memory) -> (Update, Found) {
    let run = Run::of(Arc::new(source), "");
    futures::executor::block_on(answer_once(run, state.request()))
}

#[test]
fn nothing_jumps_on_the_overview_when_figures_arrive() {
    let place = |state: &State, word: &str| {
        let lines = lines(state);
        lines.iter().position(|line| line.contains(word))
    };
    let words = [
        "GROUP, PROCESS",
        "mp0",
        "lp.south",
        "EVENT MANAGER",
        "emp1",
        "quit",
    ];
    // The lines about the selected row begin with its name.
    let about = |state: &State| format!("{}: ", state.tree.rows().selected().unwrap().label);
    let places = |state: &State| {
        let places = words.map(|word| place(state, word));
        (places, place(state, &about(state)))
    };
    let mut state = after(&support::live(Nanos(90_000_000)), SMALL, &[]);
    let first = places(&state);
    assert!(
        first.0.iter().all(Option::is_some) && first.1.is_some(),
        "{first:?}"
    );
    // Rates, their course, findings, and where the time went come later.
    for ms in [200u64, 400, 590] {
        answer(&mut state, &support::live(Nanos::from_millis(ms)));
        assert_eq!(places(&state), first, "after {ms} ms");
    }
    let mut spent = Spent::default();
    spent.add(Component::Busy, Nanos(1_000), 0);
    let piece = |phase, ap| PhaseTimes {
        ap: ApId(ap),
        phase,
        start: Nanos(support::START),
        wall: Nanos(1_000),
        spent,
    };
    let (mut update, _) = brought(&state, support::live(Nanos(590_000_000)));
    update.result.as_mut().unwrap().breakdown = Some(Breakdown {
        phases: (0..8).map(|i| piece(u64::from(i / 4), i % 4)).collect(),
        ..Breakdown::default()
    });
    state.apply(update);
    assert!(self::words(&state).contains("efficiency 100 %"));
    // Whatever is selected.
    for _ in 0..state.tree.rows().len() {
        assert_eq!(places(&state), first, "{}", state.tree.rows().position());
        state.handle(Action::Down);
    }
}

#[test]
fn a_long_error_is_whole_and_the_keys_stay_below_it() {
    for screen in Screen::ALL {
        let mut state = after(&support::finished(), SMALL, &[Action::Show(screen)]);
        let keys = lines(&state).pop().unwrap();
        let error = "there is no operation \"jump\"; operations: read, write, acquire, release, barrier, and these \
                     are the last words of a sentence that is far longer than one line";
        state.output.complain(error);
        assert!(words(&state).contains(error), "{}", words(&state));
        assert_eq!(lines(&state).pop().unwrap(), keys);
        // An error of the source stands in the header, and the keys stay as well.
        let request = state.request();
        let result = Err(format!("127.0.0.1:7000: {error}"));
        state.output.clear_message();
        state.apply(Update { request, result });
        assert!(words(&state).contains(error), "{}", words(&state));
        assert_eq!(lines(&state).pop().unwrap(), keys);
    }
}

#[test]
fn the_cursor_of_a_histogram_counts_its_column_and_not_the_window() {
    let mut state = after(
        &support::finished(),
        SMALL,
        &[Action::Show(Screen::Histogram), Action::Cursor],
    );
    let (mut update, _) = brought(&state, support::finished());
    let bucket = |local, inter| OriginCounts {
        local,
        inter,
        ..OriginCounts::default()
    };
    let columns = usize::from(update.request.scale.columns);
    let mut buckets = vec![bucket(3, 4); columns];
    let middle = update
        .request
        .scale
        .column(state.timeline.cursor().unwrap());
    buckets[usize::try_from(middle).unwrap()] = bucket(100, 23);
    let reply = update.result.as_mut().unwrap();
    let Answer::Histogram(histogram) = &reply.answer else {
        panic!("no histogram");
    };
    reply.answer = Answer::Histogram(Histogram {
        buckets,
        ..histogram.clone()
    });
    state.apply(update);
    let at = |state: &State| {
        let found = lines(state)
            .into_iter()
            .find(|line| line.starts_with(" at "));
        found.unwrap().split_once(": ").unwrap().1.to_owned()
    };
    let here = "123 accesses: 100 local (0 cached reads), 0 intra, 23 inter";
    assert_eq!(at(&state), here);
    state.handle(Action::CursorRight);
    let beside = "7 accesses: 3 local (0 cached reads), 0 intra, 4 inter";
    assert_eq!(at(&state), beside);
}

#[test]
fn a_mark_of_several_processes_names_none_of_them() {
    let keys = [Action::Show(Screen::VariableHistory), Action::Acquires];
    let mut state = after(&support::crowded_lock(), SMALL, &keys);
    let (mut update, _) = brought(&state, support::crowded_lock());
    let Answer::History(history) = &mut update.result.as_mut().unwrap().answer else {
        panic!("no history");
    };
    history.points.truncate(1);
    (history.points[0].count, history.points[0].several.aps) = (40, true);
    state.apply(update);
    // The lane of what cannot be told apart is the last one.
    state.handle(Action::Bottom);
    state.handle(Action::NextEvent);
    let screen = lines(&state);
    let said = " 40 acquires of residual by several processes";
    let at = screen.iter().position(|line| line.starts_with(said));
    let at = at.unwrap_or_else(|| panic!("{screen:#?}"));
    let about = &screen[at - 1..];
    assert!(about[0].contains(" all processes: "), "{about:#?}");
    for ap in ["ap0", "ap1", "ap2", "ap3"] {
        assert!(about.iter().all(|line| !line.contains(ap)), "{about:#?}");
    }
    let table = csv(&state);
    let row = table.lines().nth(1).unwrap();
    assert!(row.contains(",acquire,") && !row.contains("ap"), "{row}");
}

#[test]
fn evidence_is_told_in_words() {
    let source = support::crowded_lock();
    let mut state = after(&source, (80, 40), &[Action::Show(Screen::Findings)]);
    let (_, mut found) = brought(&state, source);
    let finding = &mut found.result.as_mut().unwrap().analysis.findings[0];
    let evidence = json!({
        "busy_ns": { "ap0": 1_500_000, "ap1": 2_000 }, "objects": [4, 0, 1, 2, 9], "returns": 0.5,
        "symptoms": [{ "kind": "ping-pong", "target": "grid[3]", "severity": 0.123 }],
    });
    finding.evidence = evidence.as_object().unwrap().clone();
    state.take_found(found);
    let screen = words(&state);
    for told in [
        "busy: ap0 1.50 ms, ap1 2.00 µs",
        "objects: 0 to 2, 4, 9",
        "also explains: ping-pong of grid[3] (12.3 %)",
    ] {
        assert!(screen.contains(told), "{told}: {screen}");
    }
    assert!(!screen.contains(['{', '"', '_']), "{screen}");
}

#[test]
fn a_gain_that_is_an_estimate_is_marked_and_says_where_it_comes_from() {
    let shown = |from: Option<GainFrom>, gain: Option<f64>| {
        let source = support::crowded_lock();
        let mut state = after(&source, SMALL, &[Action::Show(Screen::Findings)]);
        let (_, mut found) = brought(&state, source);
        let finding = &mut found.result.as_mut().unwrap().analysis.findings[0];
        (finding.predicted_gain, finding.gain_from) = (gain, from);
        state.take_found(found);
        (words(&state), csv(&state))
    };
    let (costs, table) = shown(Some(GainFrom::Costs), Some(0.49));
    assert!(costs.contains(" ~49% "), "{costs}");
    let said = "gain: about 49 % of the run time, estimated from the costs of accesses in this part of the run";
    assert!(costs.contains(said), "{costs}");
    assert!(table.contains(",0.4900,costs,"), "{table}");
    let (replayed, table) = shown(Some(GainFrom::Replay), Some(0.49));
    assert!(
        replayed.contains(" 49% ") && !replayed.contains('~'),
        "{replayed}"
    );
    let said = "gain: 49 % of the run time, by a replay of the run";
    assert!(replayed.contains(said), "{replayed}");
    assert!(table.contains(",0.4900,replay,"), "{table}");
    let (none, _) = shown(None, None);
    assert!(!none.contains("gain:"), "{none}");
}

#[test]
fn what_stores_do_not_tell_of_a_process_is_a_dash_and_no_zero() {
    let row = |state: &State, name: &str| {
        let mut rows = state.tree.rows().iter();
        rows.find(|row| row.label == name).unwrap().figures.clone()
    };
    let mut source = support::finished();
    source.catalog.completeness.dropped = 5;
    let state = after(&source, SMALL, &[]);
    for name in ["lp.north", "mp0", "/ocean"] {
        assert_eq!(row(&state, name).dropped, Count::Unknown, "{name}");
    }
    assert_eq!(row(&state, "lp.north").accesses, Count::Unknown);
    assert_eq!(row(&state, "/ocean").accesses, Count::Exactly(3_360));
    let screen = lines(&state);
    let link = screen.iter().find(|l| l.contains("lp.north")).unwrap();
    assert_eq!(
        (link.matches('–').count(), link.contains('0')),
        (2, false),
        "{link}"
    );
    let link = csv(&state);
    let link = link.lines().find(|l| l.starts_with("lp.north")).unwrap();
    assert_eq!(link, "lp.north,2,,,,,,");

    source.catalog.completeness.dropped = 0;
    let state = after(&source, SMALL, &[]);
    assert_eq!(
        row(&state, "mp0").dropped,
        Count::Exactly(0),
        "nobody dropped any"
    );
    let mut state = after(&source, SMALL, &[]);
    let mut counted = state.data.by_ap.clone();
    counted.remove(&ApId(3));
    state.data.take_aps(counted);
    state.handle(Action::Show(Screen::Variables));
    state.handle(Action::Show(Screen::Overview));
    for name in ["ap3", "mp3"] {
        assert_eq!(row(&state, name).accesses, Count::Unknown, "{name}");
    }
    for (name, known) in [("/south", 900), ("/ocean", 2_580)] {
        assert_eq!(row(&state, name).accesses, Count::AtLeast(known), "{name}");
    }
    assert!(words(&state).contains(" ≥2,580 "));
    assert_eq!(row(&state, "/north").accesses, Count::Exactly(1_680));
}

#[test]
fn a_run_without_times_says_why_there_is_no_breakdown() {
    let state = after(&support::finished(), SMALL, &[Action::Phases]);
    let screen = words(&state);
    assert!(screen.contains(dosmos_client::NO_BREAKDOWN), "{screen}");
    let reason = "efficiency unknown: recorded without times (recording was off, or imported)";
    assert!(screen.contains(reason), "{screen}");
    let state = after(&support::live(Nanos(90_000_000)), SMALL, &[Action::Phases]);
    assert!(words(&state).contains("not measured yet"));
}
