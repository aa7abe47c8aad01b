//! What the terminal shows, without a terminal: keys and answers go in, requests come out.
//!
//! [`State`] routes them to the parts that own what is shown: the way from place to place ([`Navigation`]), the time
//! ([`Timeline`]), and for each view its rows with their selection ([`tree::Tree`], [`table::VariableTable`],
//! [`Charts`], [`Analysis`]).
//!
//! Invariant: nothing here draws, waits, or reads a clock; so every behaviour of the screens is
//! tested by feeding it keys and answers.

pub mod analysis;
mod charts;
pub mod command;
mod complete;
pub mod data;
pub mod health;
mod input;
pub mod keys;
pub mod lanes;
pub mod list;
mod look;
mod navigation;
mod obey;
mod output;
mod prompt;
mod question;
mod request;
mod screen;
pub mod table;
mod terminal;
mod timeline;
pub mod tree;
pub mod variables;
pub mod window;

pub use analysis::Analysis;
pub use charts::Charts;
pub use data::Data;
pub use input::Hit;
pub use keys::Action;
pub use look::{Look, Palette};
pub use navigation::Navigation;
pub use output::{Effect, Message, Output};
pub use prompt::{Asked, Prompt};
pub use question::{Answer, ApFigures, Charted, Question, Reply, Request, Update};
pub(crate) use request::{HISTOGRAM_LABEL, lane_label};
pub use screen::{Place, Screen};
pub use terminal::{Page, State};
pub use timeline::Timeline;
