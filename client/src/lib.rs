//! Looking at a run, live or ended: **open → select → analyse**. Every command that looks at a run goes
//! through here: `check`, `diff`, `report`, `model`, `query`, `export` and the terminal.
//!
//! * open: [`Target`] says what to look at (event managers, stores, a run directory), [`Run::open`] finds it.
//!   Behind a [`Run`] is a [`Fused`]: many sources asked as one, each a [`RemoteSource`] (a running event
//!   manager) or a store. [`Run::launch`]: how the run was started and how it ended.
//! * select: [`Scope`] says which part in the words of a user, [`Scope::filter`] turns it into a filter.
//! * analyse: [`Run::analyse`], [`Run::phases`] and [`Run::measure`] read the records once, slice by slice ([`records`]);
//!   [`Run::analyse_end`] reads as much of the end of a range as may be read, again and again.
//! * verify: [`Run::verify`] reads all records once and says whether they keep the consistency contract.
//! * [`runs`]: the runs of a folder.
//! * [`evidence`], [`text`]: figures and names as people read them.
//!
//! Invariant: a source that does not answer makes an answer incomplete, never wrong or absent.

mod analyse;
mod chosen;
mod error;
mod evidence;
mod fused;
mod identity;
mod launch;
mod member;
mod merge;
mod open;
mod races;
mod recent;
pub mod records;
mod remote;
mod runs;
mod scope;
mod table;
pub mod text;
mod variables;
mod verify;

pub use analyse::{Analysed, NO_BREAKDOWN, Phased, network_here, read_network, read_thresholds};
pub use error::Error;
pub use evidence::evidence;
pub use fused::Fused;
pub use launch::Launch;
pub use open::{RUNS, Run, Target, run_dir, store_dirs, stores};
pub use recent::Part;
pub use remote::RemoteSource;
pub use runs::{RunEntry, RunFigures, runs};
pub use scope::{Scope, duration, time_range};
pub use variables::Variables;
pub use verify::Verified;
