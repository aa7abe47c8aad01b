//! Traces in the formats of other tools.
//!
//! * [`jsonl`]: the project's own exchange format, one JSON object a line, written and read.
//! * [`csv`]: one row per record, for spreadsheets and data frames.
//! * [`otf2`]: the archives of Score-P, Vampir and Scalasca, written and read.
//! * [`perfetto`]: timelines for a viewer.
//! * [`otlp`]: locks and barriers as spans.
//! * [`escape`]: names in all of these, and on a terminal.
//! * [`export()`]: goes through stores, one chunk in memory at a time, and feeds an [`Export`].
//!
//! The formats are described in `docs/guide/interchange.md`. Guarantees: what is missing in a trace is
//! said, with counts, in every file; a bad line is an error that names it, and leaves no store behind.

pub mod csv;
pub mod escape;
mod export;
pub mod jsonl;
mod lanes;
mod names;
pub mod otf2;
pub mod otlp;
pub mod perfetto;
mod sections;

pub use export::{Export, ExportError, Exported, Progress, Run, export};
pub use names::Names;
