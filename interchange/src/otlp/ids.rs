//! Identifiers of traces and spans: hashes of the run and of what tells an operation apart, so that they are the same in every
//! export of the run.

use std::collections::HashMap;
use std::hash::Hasher;

use dosmos_proto::{ApId, Nanos, ObjectId};
use dosmos_trace::record::{Op, Record};
use twox_hash::XxHash64;

use super::schema::{SpanId, TraceId};
use crate::Run;

/// Seeds of hashes, so that what is hashed for one use is never equal to what is for another.
const OPERATION: u64 = 1;
const SECTION: u64 = 2;
const WHOLE: u64 = 3;
const TRACE: [u64; 2] = [4, 5];
const BARRIER: [u64; 2] = [6, 7];

/// Makes identifiers.
#[derive(Debug, Default)]
pub(super) struct Ids {
    /// The identity of the run.
    run: [u8; 16],
    /// The start of the last operation,
    at: Nanos,
    /// and the operations that start then: for those of which even that does not tell which is which.
    here: HashMap<(ApId, ObjectId, Op), u64>,
}

impl Ids {
    /// Those of a run.
    pub(super) fn of(run: &Run) -> Self {
        Self {
            run: run.catalog.run.map_or([0; 16], |id| *id.as_bytes()),
            ..Self::default()
        }
    }

    /// Of the span of an operation. Operations come in the order of their starts.
    pub(super) fn operation(&mut self, r: &Record) -> SpanId {
        if r.start != self.at {
            self.here.clear();
            self.at = r.start;
        }
        let nth = self.here.entry((r.ap, r.object, r.op)).or_insert(0);
        *nth += 1;
        let object = [r.object.var.0, r.object.index].map(u64::from);
        let words = [
            r.start.0,
            u64::from(r.ap.0),
            object[0],
            object[1],
            r.op as u64,
            *nth,
        ];
        SpanId::new(self.hash(OPERATION, &words))
    }

    /// Of the section that an acquire began.
    pub(super) fn section(&self, acquire: SpanId) -> SpanId {
        SpanId::new(self.hash(SECTION, &[acquire.number()]))
    }

    /// Of the span over the whole run.
    pub(super) fn whole(&self) -> SpanId {
        SpanId::new(self.hash(WHOLE, &[]))
    }

    /// Of the trace that begins with a span.
    pub(super) fn trace(&self, first: SpanId) -> TraceId {
        TraceId::new(TRACE.map(|seed| self.hash(seed, &[first.number()])))
    }

    /// Of the trace of one opening of a barrier.
    pub(super) fn opening(&self, r: &Record) -> TraceId {
        let words = [
            u64::from(r.object.var.0),
            u64::from(r.object.index),
            r.version,
        ];
        TraceId::new(BARRIER.map(|seed| self.hash(seed, &words)))
    }

    fn hash(&self, seed: u64, words: &[u64]) -> u64 {
        let mut hasher = XxHash64::with_seed(seed);
        hasher.write(&self.run);
        for word in words {
            hasher.write(&word.to_le_bytes());
        }
        hasher.finish()
    }
}
