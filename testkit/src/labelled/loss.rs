//! What monitoring may lose of a trace: records dropped in bursts, and sampling.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::trace::Labelled;

/// What is lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// Fraction of the records dropped, in bursts of one memory process each.
    pub dropped: f64,
    /// One in N records is kept, counted separately by memory process, operation and origin, as memory
    /// processes do it.
    pub one_in: u32,
}

/// Mean length of a burst, records.
const BURST: f64 = 200.0;

impl Loss {
    /// Takes it out of a trace, and says so in the catalog.
    pub fn apply(&self, trace: &mut Labelled) {
        if self.one_in > 1 {
            self.sample(trace);
        }
        if self.dropped > 0.0 {
            self.drop_bursts(trace);
        }
    }

    fn sample(&self, trace: &mut Labelled) {
        let mut seen: BTreeMap<(u32, u8, u8, bool), u32> = BTreeMap::new();
        trace.records.retain_mut(|r| {
            let kind = (r.mp.0, r.op as u8, r.origin as u8, r.flags.optimized);
            let seen = seen.entry(kind).or_default();
            *seen = (*seen + 1) % self.one_in;
            r.flags.sampled = true;
            *seen == 0
        });
        let kept = trace.records.len() as u64;
        trace.catalog.records = kept;
        trace.catalog.completeness.recorded = kept;
        trace.catalog.completeness.sampling = 1.0 / f64::from(self.one_in);
    }

    fn drop_bursts(&self, trace: &mut Labelled) {
        let mut random = StdRng::seed_from_u64(trace.seed ^ 0x1055);
        let mut dropping: BTreeMap<u32, bool> = BTreeMap::new();
        let begin = self.dropped / (1.0 - self.dropped).max(0.01) / BURST;
        let before = trace.records.len() as u64;
        trace.records.retain(|r| {
            let on = dropping.entry(r.mp.0).or_default();
            let change = if *on { 1.0 / BURST } else { begin };
            if random.random_bool(change.clamp(0.0, 1.0)) {
                *on = !*on;
            }
            !*on
        });
        let kept = trace.records.len() as u64;
        trace.catalog.records = kept;
        trace.catalog.completeness.dropped = before - kept;
    }
}
