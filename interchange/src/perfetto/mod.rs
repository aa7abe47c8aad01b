//! Timelines for [Perfetto](https://ui.perfetto.dev): its protobuf trace format.
//!
//! * A process for each application process: its operations as slices, the waits within them, and its exclusive
//!   sections, from the reply to an acquire to the release. A process for each memory process that served others.
//! * Arrows from a release to the section that followed at another process: hand-overs.
//! * Counters of rates over the whole run.
//! * What is missing: a timeline that says how complete the trace is, with a slice for each reason why it is not.
//!
//! Guarantees: every operation, wait and section is there, whatever the order of the records; slices of one
//! timeline nest or are apart. Records should come roughly in the order of their starts ([`WINDOW`] of them are
//! put in order); if they do not, arrows may lack and processes have more timelines than needed.

mod lanes;
mod packets;
mod rates;
pub mod schema;
mod timeline;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

use dosmos_trace::query::Completeness;
use dosmos_trace::record::Record;

use crate::{Export, Run};
use timeline::Timeline;

/// Records held back to put them in the order of their starts.
pub const WINDOW: usize = 1 << 16;

/// Writes the Perfetto format.
#[derive(Debug)]
pub struct Perfetto<W> {
    timeline: Timeline<W>,
    held: BinaryHeap<Reverse<Held>>,
    taken: u64,
}

/// A record with what orders it: its start, then when it came.
#[derive(Debug)]
struct Held {
    key: (u64, u64),
    record: Record,
    pending: bool,
}

impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl Eq for Held {}
impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Held {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key.cmp(&other.key)
    }
}

impl<W: Write> Perfetto<W> {
    /// Writes to `out`, which should be buffered.
    pub fn new(out: W) -> Self {
        Self {
            timeline: Timeline::new(out),
            held: BinaryHeap::new(),
            taken: 0,
        }
    }

    fn let_go(&mut self, run: &Run) -> io::Result<()> {
        match self.held.pop() {
            Some(Reverse(held)) => self.timeline.put(run, &held.record, held.pending),
            None => Ok(()),
        }
    }
}

impl<W: Write> Export for Perfetto<W> {
    fn begin(&mut self, run: &Run) -> io::Result<()> {
        self.timeline.begin(run)
    }

    fn record(&mut self, run: &Run, record: &Record, pending: bool) -> io::Result<()> {
        self.taken += 1;
        self.held.push(Reverse(Held {
            key: (record.start.0, self.taken),
            record: *record,
            pending,
        }));
        match self.held.len() > WINDOW {
            true => self.let_go(run),
            false => Ok(()),
        }
    }

    fn end(&mut self, run: &Run, lacking: &Completeness) -> io::Result<()> {
        while !self.held.is_empty() {
            self.let_go(run)?;
        }
        self.timeline.end(run, lacking)
    }
}
