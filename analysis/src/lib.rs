//! From records to findings: what is wrong with the sharing, what it costs, and what to change.
//!
//! Two steps, both pure:
//!
//! 1. [`profile::ProfileBuilder`] reads records once, in order of their start, and keeps what the
//!    detectors need: sums per object and application process, hand-overs of locks, written ranges,
//!    barrier phases. Its size depends on the objects and processes touched, never on the number of
//!    records.
//! 2. [`detect`] runs every detector over the profile, lists findings that another one explains under that one's
//!    evidence, and withholds those that what was not recorded could explain.
//!
//! A third where a whole run is known: [`Analysis::predict_gains`] asks the model of the run what following each
//! advice would save ([`gain`]).
//!
//! [`analyse`] does the first two; [`conclude`] is the second step for a profile gathered slice by slice. The same on a live window and on a whole store. Invariant: no I/O, no clock, no chance.

mod analyse;
pub mod compare;
pub mod cure;
pub mod detectors;
pub mod efficiency;
pub mod finding;
pub mod gain;
pub mod groups;
pub mod oversubscribed;
mod patch;
pub mod path;
pub mod profile;
pub mod ranges;
pub mod thresholds;

pub use analyse::{Analysis, Input, analyse, conclude};
pub use cure::{Cure, GainFrom};
pub use detectors::detect;
pub use efficiency::Efficiency;
pub use finding::{Dismissed, Finding, Kind, Level, RaceSearch, UnknownKind, Withheld};
pub use groups::GroupMatrix;
pub use oversubscribed::Oversubscribed;
pub use path::{CriticalPath, Delay, PathBuilder, PathKind, PathPart};
pub use profile::{Profile, ProfileBuilder};
pub use thresholds::{InvalidThreshold, Thresholds};
