//! The visualization process (docs/design/overview.md#processes): asks every event manager concerned, merges what they say,
//! and draws it in a terminal.
//!
//! * [`source`]: [`source::RemoteSource`], an event manager asked over gRPC; [`source::Fused`], many
//!   sources asked as one; [`source::Memory`], records at hand (tests, previews).
//! * [`state`]: what the terminal shows. Pure: events and answers in, requests out.
//! * [`view`]: state drawn to a frame. Pure.
//! * [`report`]: a run as one page.
//! * [`tui`]: the loop around both, with the terminal, the signals and the polling.
//!
//! Invariant: a source that does not answer makes what is shown incomplete, and says so on every
//! screen; it never makes it wrong, and never stops the rest.

pub mod report;
pub mod source;
pub mod state;
pub mod tui;
pub mod view;
