//! Timelines for [Perfetto](https://ui.perfetto.dev): its protobuf trace format.
//!
//! * A process for each application process: its operations as slices, the waits within them, and its exclusive
//!   sections, from the reply to an acquire to the release. A process for each memory process that served others.
//! * Arrows from a release to the section that followed at another process: hand-overs.
//! * Counters of rates over the whole run.
//! * What is missing: a timeline that says how complete the trace is, with a slice for each reason why it is not.
//!
//! Guarantees: every operation, wait and section is there; slices of one timeline nest or are apart. The records of
//! all stores come together, in the order of their starts.

mod packets;
mod rates;
pub mod schema;
mod timeline;

use std::io::{self, Write};

use dosmos_trace::query::Completeness;
use dosmos_trace::record::Record;

use crate::{Export, Run};
use timeline::Timeline;

/// Writes the Perfetto format.
#[derive(Debug)]
pub struct Perfetto<W> {
    timeline: Timeline<W>,
}

impl<W: Write> Perfetto<W> {
    /// Writes to `out`, which should be buffered.
    pub fn new(out: W) -> Self {
        Self {
            timeline: Timeline::new(out),
        }
    }
}

impl<W: Write> Export for Perfetto<W> {
    fn begin(&mut self, run: &Run) -> io::Result<()> {
        self.timeline.begin(run)
    }

    fn in_order_of_start(&self) -> bool {
        true
    }

    fn record(&mut self, run: &Run, record: &Record, pending: bool) -> io::Result<()> {
        self.timeline.put(run, record, pending)
    }

    fn end(&mut self, run: &Run, lacking: &Completeness) -> io::Result<()> {
        self.timeline.end(run, lacking)
    }
}
