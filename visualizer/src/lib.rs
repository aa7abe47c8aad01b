//! The terminal: what a run looks like while it runs, and afterwards. Whom to ask and how answers are merged is in
//! `dosmos-client`.
//!
//! * [`state`]: what the terminal shows. Pure: events and answers in, requests out.
//! * [`view`]: state drawn to a frame. Pure.
//! * [`tui`]: the loop around both, with the terminal, the signals and the polling.
//!
//! Invariant: a source that does not answer makes what is shown incomplete, and says so on every
//! screen; it never makes it wrong, and never stops the rest.

pub mod state;
pub mod tui;
pub mod view;
