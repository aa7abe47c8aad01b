//! What an event manager knows of one memory process that reports to it.

use dosmos_node::correction::Corrector;
use dosmos_proto::clock::ClockEstimate;
use dosmos_proto::{Nanos, ProcessCounters};
use dosmos_trace::store::RecordingCounters;

/// What is known of a memory process from what it says of itself.
#[derive(Debug, Default)]
pub struct Link {
    counters: ProcessCounters,
    last_record: Nanos,
    /// Corrects the times of its batches, by what its last probe said.
    pub(super) clock: Corrector,
    said: Option<RecordingCounters>,
    /// How old the newest record of the last batch was on arrival.
    lag: Nanos,
}

impl Link {
    /// Takes what a batch says of its process; returns what is new about completeness.
    pub(super) fn batch(
        &mut self,
        counters: Option<ProcessCounters>,
        sampling: f64,
        last_record: Nanos,
    ) -> Option<RecordingCounters> {
        self.last_record = self.last_record.max(last_record);
        self.counters = counters?;
        let says = RecordingCounters {
            recorded: self.counters.recorded,
            dropped: self.counters.dropped,
            extra_dropped: self.counters.extra_dropped,
            unselected: self.counters.unselected,
            sampling,
        };
        let told = |s: RecordingCounters| (s.dropped, s.unselected, s.sampling);
        let news = self.said.map(told) != Some(told(says));
        news.then(|| {
            self.said = Some(says);
            says
        })
    }

    /// What it has counted, all told.
    pub(super) fn counted(&self) -> Option<RecordingCounters> {
        let said = self.said?;
        Some(RecordingCounters {
            recorded: self.counters.recorded,
            ..said
        })
    }

    /// A batch arrived at `now`, with records up to `last`.
    pub(super) fn arrived(&mut self, now: Nanos, last: Nanos) {
        self.lag = now - last;
    }

    /// What its last batch said that it has counted.
    pub fn counters(&self) -> &ProcessCounters {
        &self.counters
    }

    /// The end of its newest record.
    pub fn last_record(&self) -> Nanos {
        self.last_record
    }

    /// What it makes of its clock.
    pub fn clock(&self) -> Option<&ClockEstimate> {
        self.clock.estimate()
    }

    /// How old the newest record of its last batch was on arrival.
    pub fn lag(&self) -> Nanos {
        self.lag
    }
}
