//! Counting accesses in fixed memory: by operation and origin, and how long acquires waited.

use dosmos_proto::Nanos;
use dosmos_trace::meta::Sketch;
use dosmos_trace::record::{Op, Origin, Record};

use super::page::{Page, Value};

/// Upper edges of the buckets of waits, as powers of two of a nanosecond: 1 µs to 69 s, each four times the last.
const EDGES: [u32; 14] = [10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30, 32, 34, 36];

/// What was counted since the process started.
#[derive(Clone, Debug, Default)]
pub struct AccessCounts {
    /// By origin, then operation.
    by_kind: [[u64; 5]; 3],
    optimized: u64,
    waits: Sketch,
    waited: Nanos,
}

impl AccessCounts {
    /// Counts an access; anything else is not counted.
    pub fn count(&mut self, record: &Record) {
        if !record.is_access() {
            return;
        }
        self.by_kind[record.origin as usize - 1][record.op as usize - 1] += record.accesses();
        if record.flags.optimized {
            self.optimized += record.accesses();
        }
        if record.op == Op::Acquire {
            let n = record.accesses();
            self.waits.count(Nanos(record.wait.0 / n), n);
            self.waited += record.wait;
        }
    }

    /// Adds the families `accesses`, `optimized_reads` and `lock_wait_seconds`.
    pub fn add_to(&self, page: &mut Page) {
        let kinds = Origin::ALL
            .into_iter()
            .flat_map(|origin| Op::ALL.map(|op| (origin, op)));
        let series = kinds.map(|(origin, op)| {
            let n = self.by_kind[origin as usize - 1][op as usize - 1];
            let labels = vec![
                ("origin", origin.name().to_owned()),
                ("op", op.name().to_owned()),
            ];
            (labels, n as f64)
        });
        page.counter_of(
            "accesses",
            "Accesses of application processes, by how far they went",
            series,
        );
        page.counter(
            "optimized_reads",
            "Reads served from a copy",
            self.optimized as f64,
        );
        page.histogram(
            "lock_wait_seconds",
            "Time from the request of a lock to its grant",
            self.waits(),
        );
    }

    fn waits(&self) -> Value {
        let mut buckets: Vec<(f64, u64)> = Vec::with_capacity(EDGES.len() + 1);
        let mut below = 0;
        for edge in EDGES {
            let edge = 1u64 << edge;
            let more = self.waits.below(Nanos(edge)) - below;
            buckets.push((edge as f64 / 1e9, more));
            below += more;
        }
        buckets.push((f64::INFINITY, self.waits.total() - below));
        Value::Histogram {
            sum: self.waited.as_secs_f64(),
            count: self.waits.total(),
            buckets,
        }
    }
}
