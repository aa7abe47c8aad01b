//! Every screen as a user sees it, kept as text.

#![allow(clippy::unwrap_used)] // helpers of tests, too

mod support;

use std::fmt::Write;
use std::sync::Arc;

use dosmos_analysis::Oversubscribed;
use dosmos_client::Run;
use dosmos_proto::{ApId, Component, Nanos, PhaseTimes, Spent, TopologyBuilder};
use dosmos_testkit::Memory;
use dosmos_trace::Origin;
use dosmos_trace::query::{Breakdown, Catalog};
use dosmos_visualizer::state::tree::Node;
use dosmos_visualizer::state::{Action, Found, Hit, ListedRun, Palette, Screen, State, Update};
use dosmos_visualizer::tui::{answer_once, csv};
use dosmos_visualizer::view::{self, Theme};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::style::{Color, Modifier};
use support::{after, answer};

const COLOUR: Theme = Theme {
    palette: Palette::Classic,
    ascii: false,
};
const PLAIN: Theme = Theme {
    palette: Palette::Mono,
    ascii: false,
};

/// The screen, and below it where it is coloured.
fn picture(state: &State, theme: Theme) -> String {
    let mut terminal = Terminal::new(TestBackend::new(state.size.0, state.size.1)).unwrap();
    terminal.draw(|f| view::render(f, state, theme)).unwrap();
    let buffer = terminal.backend().buffer();
    let mut text = String::new();
    let mut colours = String::new();
    for y in 0..state.size.1 {
        for x in 0..state.size.0 {
            let cell = &buffer[(x, y)];
            text.push_str(cell.symbol());
            let green = COLOUR.origin(Origin::Local).fg;
            let yellow = COLOUR.origin(Origin::Intra).fg;
            let red = COLOUR.origin(Origin::Inter).fg;
            colours.push(match Some(cell.fg).filter(|_| cell.fg != Color::Reset) {
                Some(c) if Some(c) == green => 'g',
                Some(c) if Some(c) == yellow => 'y',
                Some(c) if Some(c) == red => 'r',
                _ if cell.modifier.contains(Modifier::REVERSED) => '#',
                _ if cell.modifier.contains(Modifier::UNDERLINED) => '_',
                _ => ' ',
            });
        }
        for t in [&mut text, &mut colours] {
            t.truncate(t.trim_end_matches(' ').len());
            t.push('\n');
        }
    }
    let mut out = text;
    writeln!(out, "{}", "-".repeat(state.size.0.into())).unwrap();
    out.push_str(&colours);
    out
}

const SMALL: (u16, u16) = (80, 24);

#[test]
fn overview() {
    let mut state = after(&support::live(Nanos(300_000_000)), SMALL, &[]);
    answer(&mut state, &support::live(Nanos(590_000_000)));
    insta::assert_snapshot!(picture(&state, COLOUR));
}

#[test]
fn overview_of_a_finished_run() {
    let source = support::finished();
    let state = after(
        &source,
        SMALL,
        &[Action::Down, Action::Enter, Action::Bottom],
    );
    insta::assert_snapshot!(picture(&state, COLOUR));
}

/// Of two phases, a short one of computing and a long one at the barrier.
#[test]
fn where_the_time_of_a_process_went() {
    let phase = |phase, of, ms| {
        let mut spent = Spent::default();
        spent.add(of, Nanos::from_millis(ms), 0);
        PhaseTimes {
            ap: ApId(0),
            phase,
            wall: Nanos::from_millis(ms),
            spent,
            ..PhaseTimes::default()
        }
    };
    let breakdown = Breakdown {
        phases: vec![
            phase(0, Component::Busy, 25),
            phase(1, Component::Barrier, 75),
        ],
        ..Breakdown::default()
    };
    let mut state = after(&support::finished(), SMALL, &[]);
    state.data.take_times(&breakdown);
    let of_ap0 = state
        .tree
        .rows()
        .iter()
        .position(|row| row.node == Node::Ap(ApId(0)));
    state.handle(Action::Top);
    (0..of_ap0.unwrap()).for_each(|_| state.handle(Action::Down));
    let screen = picture(&state, COLOUR);
    assert!(screen.contains("time: busy 25% barrier 75%"), "{screen}");
    let longest = "longest of 2 phases, number 1, 75.0 ms: barrier 100%";
    assert!(screen.contains(longest), "{screen}");
}

/// Three phases of four processes: computing, waiting for a slow one, and reading from others.
fn with_phases(size: (u16, u16)) -> State {
    let piece = |phase: u64, ap: u32, parts: &[(Component, u64)]| {
        let mut spent = Spent::default();
        let ms = |ms: u64| Nanos::from_millis(ms);
        parts.iter().for_each(|(of, n)| spent.add(*of, ms(*n), 1));
        PhaseTimes {
            ap: ApId(ap),
            phase,
            start: Nanos(support::START + 1) + ms(100 * phase),
            wall: spent.total(),
            spent,
        }
    };
    let phases = (0..4).flat_map(|ap| {
        let waits = if ap == 0 { 0 } else { 80 };
        [
            piece(0, ap, &[(Component::Busy, 96), (Component::Lock, 4)]),
            piece(
                1,
                ap,
                &[(Component::Busy, 100 - waits), (Component::Barrier, waits)],
            ),
            piece(2, ap, &[(Component::Busy, 60), (Component::Fault, 40)]),
        ]
    });
    let breakdown = Breakdown {
        phases: phases.collect(),
        ..Breakdown::default()
    };
    let source = support::finished();
    let mut state = after(&source, size, &[]);
    let (mut update, _) = {
        let run = Run::of(Arc::new(source), "");
        futures::executor::block_on(answer_once(run, state.request()))
    };
    update.result.as_mut().unwrap().breakdown = Some(breakdown);
    state.apply(update);
    state
}

#[test]
fn the_overview_shows_the_efficiency_of_each_phase() {
    let mut state = with_phases(SMALL);
    let before = picture(&state, COLOUR);
    state.handle(Action::Phases);
    insta::assert_snapshot!("phases", picture(&state, COLOUR));
    let screen = picture(&state, COLOUR);
    let worst = screen.lines().find(|l| l.contains("worst")).unwrap();
    let words: Vec<&str> = worst.split_whitespace().collect();
    let expected = "▶1 worst 100 ms 40% 40% 100% barriers 60%";
    assert_eq!(words.join(" "), expected);
    let saved = csv(&state);
    let of_1 = saved.lines().find(|l| l.starts_with("1,")).unwrap();
    assert!(
        of_1.starts_with("1,100000000,100000000,0.4000,0.4000,1.0000,"),
        "{saved}"
    );
    // The keys move in the phases, and a phase leads to its time.
    state.handle(Action::Down);
    assert!(picture(&state, COLOUR).contains("phase 2 at 0.200 s: efficiency 60 %"));
    state.handle(Action::Enter);
    assert_eq!(state.navigation.screen(), Screen::Histogram);
    let start = state.data.extent().from;
    let shown = state.timeline.window().resolve(state.data.extent());
    assert_eq!(
        ((shown.from - start).0, (shown.to - start).0),
        (200_000_000, 300_000_000)
    );
    state.handle(Action::Back);
    state.handle(Action::Phases);
    assert_eq!(picture(&state, COLOUR), before);
    let mut wide = with_phases((160, 50));
    wide.handle(Action::Phases);
    insta::assert_snapshot!("phases_wide", picture(&wide, COLOUR));
}

#[test]
fn variables() {
    let keys = [Action::Show(Screen::Variables), Action::Sort, Action::Down];
    let state = after(&support::finished(), SMALL, &keys);
    insta::assert_snapshot!(picture(&state, COLOUR));
}

#[test]
fn variables_on_a_wide_terminal() {
    let state = after(
        &support::finished(),
        (160, 50),
        &[Action::Show(Screen::Variables)],
    );
    insta::assert_snapshot!(picture(&state, COLOUR));
}

#[test]
fn histogram() {
    let keys = [
        Action::Show(Screen::Variables),
        Action::Down,
        Action::Enter,
        Action::Reads,
    ];
    let state = after(&support::finished(), SMALL, &keys);
    insta::assert_snapshot!(picture(&state, COLOUR));
}

#[test]
fn histogram_zoomed_on_a_wide_terminal() {
    let keys = [
        Action::Show(Screen::Histogram),
        Action::ZoomIn,
        Action::ZoomIn,
        Action::Earlier,
    ];
    let state = after(&support::finished(), (160, 50), &keys);
    insta::assert_snapshot!(picture(&state, COLOUR));
}

fn zoomed_history(screen: Screen) -> Vec<Action> {
    let mut keys = vec![Action::Show(screen)];
    keys.extend([Action::ZoomIn; 5]);
    keys
}

#[test]
fn variable_history() {
    let state = after(
        &support::finished(),
        SMALL,
        &zoomed_history(Screen::VariableHistory),
    );
    insta::assert_snapshot!(picture(&state, COLOUR));
}

#[test]
fn process_history() {
    let mut keys = zoomed_history(Screen::ProcessHistory);
    keys.extend([Action::NextTarget, Action::Down]);
    let state = after(&support::finished(), SMALL, &keys);
    insta::assert_snapshot!(picture(&state, COLOUR));
}

#[test]
fn process_history_of_the_whole_run_on_a_wide_terminal() {
    let keys = [Action::Show(Screen::ProcessHistory)];
    let state = after(&support::finished(), (160, 50), &keys);
    insta::assert_snapshot!(picture(&state, COLOUR));
}

/// Much goes on at the sum, everybody far away: something to find.
fn findings_in(size: (u16, u16), screen: Screen) -> State {
    after(&support::crowded_lock(), size, &[Action::Show(screen)])
}

#[test]
fn findings() {
    let state = findings_in(SMALL, Screen::Findings);
    insta::assert_snapshot!(picture(&state, COLOUR));
    let state = findings_in((160, 50), Screen::Findings);
    insta::assert_snapshot!("findings_wide", picture(&state, COLOUR));
}

/// A crowded machine is said above the findings, on as many lines as it takes, and the rows that a click means are below.
#[test]
fn that_processes_lack_processors_is_said_above_the_findings() {
    let lack = Oversubscribed {
        application_processes: 8,
        memory_processes: 8,
        processors: 2,
        gain: 0.77,
        gain_range: [0.76, 0.78],
    };
    for width in [60, 160] {
        let request = findings_in((width, 30), Screen::Findings).request();
        let source = Arc::new(support::crowded_lock());
        let found = futures::executor::block_on(answer_once(Run::of(source, ""), request)).1;
        let seen = |lack: Option<Oversubscribed>| {
            let mut found = found.clone();
            found.result.as_mut().unwrap().analysis.oversubscribed = lack;
            let mut state = findings_in((width, 30), Screen::Findings);
            state.take_found(found);
            let shown = picture(&state, COLOUR);
            let lines: Vec<String> = shown.lines().map(str::to_owned).collect();
            (state, lines)
        };
        let (_, without) = seen(None);
        let (state, with) = seen(Some(lack));
        let titles = |lines: &[String]| lines.iter().position(|l| l.contains("TARGET")).unwrap();
        let more = titles(&with) - titles(&without);
        let said = with[titles(&with) - more..titles(&with)].join(" ");
        let said: Vec<&str> = said.split_whitespace().collect();
        assert_eq!(said.join(" "), lack.sentence());
        assert_eq!(more, if width == 60 { 3 } else { 1 });
        let first = titles(&with) as u16 + 1;
        assert_eq!(view::hit(&state, 5, first), Some(Hit::Row(0)));
    }
}

#[test]
fn groups() {
    let mut state = findings_in(SMALL, Screen::Groups);
    insta::assert_snapshot!(picture(&state, COLOUR));
    state.handle(Action::Enter);
    insta::assert_snapshot!("groups_as_proposed", picture(&state, PLAIN));
}

#[test]
fn health() {
    let keys = [Action::Show(Screen::Health), Action::Down];
    let mut state = after(&support::live(Nanos(300_000_000)), SMALL, &keys);
    answer(&mut state, &support::live(Nanos(590_000_000)));
    insta::assert_snapshot!(picture(&state, COLOUR));
}

#[test]
fn a_filter_being_typed_and_a_command_being_completed() {
    use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    let source = support::finished();
    let mut state = after(&source, SMALL, &[Action::Show(Screen::Variables)]);
    let press = |state: &mut State, code| state.key(KeyEvent::new(code, KeyModifiers::NONE));
    for c in "/!gr".chars() {
        press(&mut state, KeyCode::Char(c));
    }
    answer(&mut state, &source);
    insta::assert_snapshot!("filter_typed", picture(&state, COLOUR));
    press(&mut state, KeyCode::Esc);
    assert!(state.filter().is_none(), "Esc gives the old one back");
    for c in ":record op=".chars() {
        press(&mut state, KeyCode::Char(c));
    }
    press(&mut state, KeyCode::Tab);
    press(&mut state, KeyCode::Tab);
    answer(&mut state, &source);
    insta::assert_snapshot!("command_completed", picture(&state, COLOUR));
}

#[test]
fn the_time_cursor_counts_what_it_points_at() {
    let keys = [
        Action::Show(Screen::Histogram),
        Action::Cursor,
        Action::CursorLeft,
    ];
    let state = after(&support::finished(), SMALL, &keys);
    insta::assert_snapshot!(picture(&state, COLOUR));
}

#[test]
fn only_ascii_characters_in_ascii_mode() {
    let theme = Theme {
        ascii: true,
        ..COLOUR
    };
    for screen in Screen::ALL {
        let state = findings_in(SMALL, screen);
        let text = picture(&state, theme);
        assert!(text.is_ascii(), "{text}");
    }
    let state = findings_in(SMALL, Screen::Overview);
    insta::assert_snapshot!("ascii", picture(&state, theme));
}

#[test]
fn without_colours() {
    let source = support::finished();
    let keys = [Action::Show(Screen::Variables), Action::Down, Action::Enter];
    insta::assert_snapshot!(picture(&after(&source, SMALL, &keys), PLAIN));
    let keys = zoomed_history(Screen::VariableHistory);
    insta::assert_snapshot!(picture(&after(&source, SMALL, &keys), PLAIN));
    let state = after(&support::live(Nanos(90_000_000)), SMALL, &[]);
    insta::assert_snapshot!(picture(&state, PLAIN));
}

#[test]
fn help() {
    let mut state = after(&support::finished(), SMALL, &[Action::Help]);
    insta::assert_snapshot!(picture(&state, COLOUR));
    state.handle(Action::Back);
    assert!(state.help.is_none());
    state.command("help");
    insta::assert_snapshot!("help_commands", picture(&state, COLOUR));
}

#[test]
fn incomplete_paused_and_finished() {
    let mut source = support::live(Nanos(120_000_000));
    let c = &mut source.catalog.completeness;
    c.missing = vec!["emp1 at 127.0.0.1:40123".into()];
    c.dropped = 1_234;
    c.recorded = 56_789;
    c.sampling = 0.1;
    c.corrupt_chunks = 2;
    c.notes = vec!["emp0 knows variable grid differently".into()];
    source.status.event_managers.truncate(1);
    source.status.event_managers[0].trouble = "No space left on device: run/store/emp0".into();
    source.status.event_managers[0].processes[1].connected = false;
    source.status.event_managers[0].processes[1]
        .counters
        .dropped = 1_234;
    let mut state = after(&source, SMALL, &[Action::Down, Action::Down, Action::Pause]);
    state.finish("run finished");
    insta::assert_snapshot!(picture(&state, COLOUR));
}

/// A live run with findings of all levels in it, far more than fits into the title.
fn much_to_say(width: u16) -> State {
    let mut source = support::live(Nanos(590_000_000));
    source.catalog.completeness.dropped = 7;
    let mut topology = TopologyBuilder::from(source.catalog.topology.clone());
    topology.name = "water".into();
    source.catalog.topology = topology.build().unwrap();
    let mut state = after(&source, (width, 24), &[]);
    state.data.catalog.records = 123_456_789;
    state.title = "dosmos-run/20261123-101010".into();
    let request = state.request();
    let crowded = Arc::new(support::crowded_lock());
    let found = futures::executor::block_on(answer_once(Run::of(crowded, ""), request)).1;
    let mut found = Found {
        scope: None,
        ..found
    };
    let part = found.result.as_mut().unwrap();
    let severities = [0.5, 0.1, 0.01].into_iter().cycle();
    let first = part.analysis.findings[0].clone();
    part.analysis.findings = vec![first; 36];
    for (finding, severity) in part.analysis.findings.iter_mut().zip(severities) {
        finding.severity = severity;
    }
    state.take_found(found);
    state
}

#[test]
fn the_title_keeps_the_name_of_the_run_in_every_state() {
    let title = |state: &State| picture(state, COLOUR).lines().next().unwrap().to_owned();
    for width in [60, 80, 100] {
        for (paused, finished, live) in [
            (false, false, true),
            (false, true, true),
            (false, false, false),
            (true, false, true),
            (true, true, true),
            (true, true, false),
        ] {
            let mut state = much_to_say(width);
            state.paused = paused;
            state.data.catalog.live = live;
            if finished {
                state.finish("run finished");
            }
            let shown = title(&state);
            assert!(shown.contains("water"), "{shown}");
            assert!(shown.contains("12 high"), "{shown}");
            assert!(shown.contains("INCOMPLETE"), "{shown}");
            assert_eq!(shown.contains("PAUSED"), paused, "{shown}");
            assert_eq!(shown.contains("finished"), finished, "{shown}");
            if width >= 80 {
                assert!(shown.contains("water · dosmos-"), "{shown}");
            }
        }
    }
    let mut state = much_to_say(80);
    state.paused = true;
    state.finish("run finished");
    insta::assert_snapshot!("title_cut", title(&state));
    let state = much_to_say(200);
    insta::assert_snapshot!("title_whole", title(&state));
}

#[test]
fn the_runs_of_a_folder() {
    let mut state = after(&support::finished(), SMALL, &[Action::Runs]);
    let run = |name: &str, end: &str, here| ListedRun {
        path: name.into(),
        name: name.into(),
        started: "2026-11-23 10:10:10".into(),
        program: if here { "water".into() } else { String::new() },
        end: end.into(),
        here,
    };
    let runs = vec![
        run("20261123-101010-7f3a", "running", false),
        run("20261122-090909-1c2d", "finished", true),
        run(
            "a-run-with-a-long-name-of-its-own",
            "the run failed: ap1 exited with 3",
            false,
        ),
    ];
    state.runs.take("dosmos-run".into(), Ok(runs));
    insta::assert_snapshot!("runs", picture(&state, COLOUR));
    let mut state = State::new("", SMALL);
    state.choose_run(true);
    insta::assert_snapshot!("runs_being_listed", picture(&state, COLOUR));
    state.runs.take("dosmos-run".into(), Ok(Vec::new()));
    assert!(picture(&state, COLOUR).contains("There is no run in this folder."));
}

#[test]
fn nothing_yet() {
    let mut state = State::new("sor", SMALL);
    insta::assert_snapshot!(picture(&state, COLOUR));
    let request = state.request();
    let result = Err("127.0.0.1:7000: cannot reach 127.0.0.1:7000: Connection refused".into());
    state.apply(Update { request, result });
    insta::assert_snapshot!(picture(&state, COLOUR));
    let empty = Memory::new(Catalog::default(), Vec::new());
    for screen in Screen::ALL {
        let state = after(&empty, SMALL, &[Action::Show(screen)]);
        let name = format!("empty {}", screen.name());
        insta::assert_snapshot!(name, picture(&state, COLOUR));
    }
}

#[test]
fn a_terminal_too_small_says_so() {
    let state = after(&support::finished(), (50, 10), &[]);
    insta::assert_snapshot!(picture(&state, COLOUR));
}
