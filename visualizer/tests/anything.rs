//! Nothing panics: any terminal size, any keys, odd data.

#![allow(clippy::unwrap_used)] // helpers of tests, too

mod support;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use dosmos_proto::topology::{ApplicationProcess, EventManager, Group, MemoryProcess};
use dosmos_proto::{
    EmpId, GroupId, GroupPath, MpId, Nanos, TopologyBuilder, Variable, VariableSpec,
};
use dosmos_testkit::Memory;
use dosmos_trace::Record;
use dosmos_trace::query::{Catalog, TimeRange};
use dosmos_visualizer::state::{Palette, State};
use dosmos_visualizer::tui;
use dosmos_visualizer::view::{self, Theme};
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

fn crowd(n: u32) -> Memory {
    let topology = TopologyBuilder {
        name: "crowd".into(),
        groups: vec![Group {
            path: GroupPath::from("/all"),
            parent: None,
        }],
        memory_processes: vec![MemoryProcess {
            name: "mp0".into(),
            group: GroupId(0),
            event_manager: EmpId(0),
            link: false,
        }],
        application_processes: (0..n)
            .map(|i| ApplicationProcess {
                name: format!("ap{i}"),
                memory_process: MpId(0),
            })
            .collect(),
        event_managers: vec![EventManager {
            name: "emp0".into(),
        }],
    }
    .build()
    .unwrap();
    let template = support::records(1)[0];
    let records = (0..n).map(|i| Record {
        ap: dosmos_proto::ApId(i),
        start: Nanos(template.start.0 + u64::from(i) * 1_000),
        ..template
    });
    let records = records.collect();
    Memory::new(
        Catalog {
            run: None,
            topology,
            ..support::catalog()
        },
        records,
    )
}

/// What a careless or unlucky event manager may say.
fn odd_sources() -> Vec<Memory> {
    let one = vec![support::records(1)[0]];
    let mut named = support::live(Nanos(50_000_000));
    for (i, name) in [(0, "温度場👨‍👩‍👧e\u{301}".repeat(5)), (1, "x".repeat(200))] {
        let known = &named.catalog.variables[i];
        let spec = VariableSpec::new(name, known.spec().layout()).unwrap();
        let renamed = Variable::new(known.id(), spec, known.owners().to_vec(), known.group());
        named.catalog.variables[i] = renamed.unwrap();
    }
    let mut topology = TopologyBuilder::from(named.catalog.topology.clone());
    topology.application_processes[0].name = "a\tvery\u{7}odd name".repeat(9);
    topology.name = "ü".repeat(300);
    named.catalog.topology = topology.build().unwrap();
    named.catalog.completeness.missing = vec!["emp\n1".repeat(90); 20];
    named.catalog.completeness.sampling = 0.0;
    named.catalog.completeness.dropped = u64::MAX;
    named.status.event_managers[0].trouble = "no\nspace".repeat(90);
    let mut nowhen = support::finished();
    nowhen.catalog.extent = Some(TimeRange {
        from: Nanos(9),
        to: Nanos(9),
    });
    let mut forever = support::finished();
    forever.catalog.extent = Some(TimeRange::ALL);
    // Records of processes and variables that nobody has heard of.
    let unknown = Memory::new(Catalog::default(), support::records(2));
    vec![
        Memory::new(Catalog::default(), Vec::new()),
        Memory::new(support::catalog(), Vec::new()),
        Memory::new(support::catalog(), one),
        support::finished(),
        named,
        nowhen,
        forever,
        unknown,
        crowd(1_000),
    ]
}

fn key() -> impl Strategy<Value = KeyCode> {
    let special = [
        KeyCode::Enter,
        KeyCode::Esc,
        KeyCode::Tab,
        KeyCode::BackTab,
        KeyCode::Up,
        KeyCode::Down,
        KeyCode::Left,
        KeyCode::Right,
        KeyCode::PageUp,
        KeyCode::PageDown,
        KeyCode::Home,
        KeyCode::End,
        KeyCode::F(1),
        KeyCode::Delete,
    ];
    let chars: Vec<char> = "12345678 pkjhlgGf0+-=_vVoOrwasS?xc<>{}/:!(*"
        .chars()
        .collect();
    prop_oneof![
        prop::sample::select(special.to_vec()),
        prop::sample::select(chars).prop_map(KeyCode::Char),
    ]
}

fn draw(state: &State, theme: Theme) {
    let backend = TestBackend::new(state.size.0, state.size.1);
    let mut terminal = Terminal::new(backend).unwrap();
    terminal.draw(|f| view::render(f, state, theme)).unwrap();
    for (x, y) in [(0, 0), (9, 1), (30, 1), (12, 5), (40, 8), (79, 12), (3, 20)] {
        view::hit(state, x, y);
    }
}

proptest! {
    #![proptest_config(dosmos_testseeds::config(96))]
    #[test]
    fn no_size_no_key_and_no_data_panics(
        which in 0usize..9,
        steps in prop::collection::vec((key(), prop::option::of((1u16..=200, 1u16..=60))), 0..24),
        size in (1u16..=200, 1u16..=60),
        (_, palette) in prop::sample::select(Palette::ALL.to_vec()),
        ascii in any::<bool>(),
        lazy in any::<bool>(),
    ) {
        let source = odd_sources().swap_remove(which);
        let theme = Theme { palette, ascii };
        let mut state = State::new("odd", size);
        draw(&state, theme);
        support::answer(&mut state, &source);
        for (code, resized) in steps {
            state.key(KeyEvent::new(code, KeyModifiers::NONE));
            if let Some(size) = resized {
                state.size = size;
            }
            draw(&state, theme);
            if !lazy {
                support::answer(&mut state, &source);
                draw(&state, theme);
            }
        }
        tui::csv(&state);
        prop_assert!(tui::svg(&state).ends_with("</svg>\n"));
    }
}

#[test]
fn every_small_size_is_drawn() {
    let source = support::live(Nanos(100_000_000));
    for screen in dosmos_visualizer::state::Screen::ALL {
        let keys = [dosmos_visualizer::state::Action::Show(screen)];
        let mut state = support::after(&source, (80, 24), &keys);
        for width in (1..90).step_by(3) {
            for height in 1..30 {
                state.size = (width, height);
                draw(&state, Theme::default());
            }
        }
    }
}
