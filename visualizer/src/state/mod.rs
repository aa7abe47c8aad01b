//! What the terminal shows, without a terminal: keys and answers go in, requests come out.
//!
//! Invariant: nothing here draws, waits, or reads a clock; so every behaviour of the screens is
//! tested by feeding it keys and answers.

pub mod command;
mod complete;
mod cursor;
pub mod data;
pub mod findings;
pub mod health;
pub mod keys;
pub mod lanes;
pub mod list;
mod look;
mod mouse;
mod navigate;
mod obey;
mod prompt;
mod refresh;
mod request;
mod screen;
mod target;
mod terminal;
pub mod tree;
mod typing;
pub mod variables;
pub mod window;

pub use data::{Answer, ApFigures, Charted, Data, Question, Reply, Request, Update};
pub use keys::Action;
pub use look::{Look, Palette};
pub use mouse::Hit;
pub use prompt::{Asked, Prompt};
pub(crate) use request::{HISTOGRAM_LABEL, lane_label};
pub use screen::{Place, Screen};
pub use terminal::{Effect, Message, Page, State};
