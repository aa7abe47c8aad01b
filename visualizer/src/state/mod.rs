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
mod columns;
pub mod command;
mod complete;
pub mod data;
mod event;
mod filters;
pub mod health;
mod help;
mod input;
pub mod keymap;
pub mod keys;
pub mod lanes;
mod leaving;
pub mod list;
mod look;
mod navigation;
mod obey;
mod output;
pub mod pace;
mod path;
mod phases;
mod prompt;
mod question;
mod request;
mod runs;
mod screen;
pub mod settings;
pub mod table;
mod terminal;
mod timeline;
pub mod tree;
pub mod variables;
pub mod window;

pub use analysis::Analysis;
pub use charts::Charts;
pub use data::Data;
pub use event::{EventDetail, EventQuery, WaitedFor};
pub use filters::{Filters, Scrolled};
pub use help::{Help, HelpLine};
pub use input::Hit;
pub use keymap::Keymap;
pub use keys::Action;
pub use leaving::Leaving;
pub use look::{Colours, Look, Palette, Palettes, Rgb, contrast};
pub(crate) use look::{drawn, parts};
pub use navigation::Navigation;
pub use output::{Effect, Message, Output};
pub(crate) use path::variables_named;
pub use path::{PathRow, PathRows};
pub use phases::{Phase, Phases};
pub use prompt::{Asked, Prompt};
pub use question::{Answer, ApFigures, Charted, Found, Question, Reply, Request, Update};
pub(crate) use request::{HISTOGRAM_LABEL, lane_label};
pub use runs::{ListedRun, RunList};
pub(crate) use screen::VARIABLE_COLUMNS;
pub use screen::{Place, Screen};
pub use terminal::State;
pub use timeline::Timeline;
