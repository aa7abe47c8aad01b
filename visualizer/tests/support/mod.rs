//! The made-up run, and the terminal's state over it.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used)] // each test, and the preview, uses its part

#[path = "../../../client/tests/support/mod.rs"]
mod run;

use std::sync::Arc;

use dosmos_client::Run;
use dosmos_testkit::Memory;
use dosmos_visualizer::state::{Action, State};
use dosmos_visualizer::tui::answer_once;

#[allow(unused_imports)] // each test uses its part
pub use run::*;

/// Answers what `state` wants, as the polling thread does.
pub fn answer(state: &mut State, source: &Memory) {
    let run = Run::of(Arc::new(source.clone()), "");
    let (update, found) = futures::executor::block_on(answer_once(run, state.request()));
    state.apply(update);
    state.take_found(found);
}

/// The state after `keys`, everything wanted having been answered.
pub fn after(source: &Memory, size: (u16, u16), keys: &[Action]) -> State {
    let mut state = State::new("sor", size);
    answer(&mut state, source);
    for key in keys {
        state.handle(*key);
        answer(&mut state, source);
    }
    answer(&mut state, source);
    state
}
