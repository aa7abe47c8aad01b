//! Counters: what went on in each of a fixed number of buckets of the run.

use dosmos_proto::Nanos;
use dosmos_trace::Spread;
use dosmos_trace::query::TimeRange;
use dosmos_trace::record::{Origin, Record};

/// Buckets of a run.
const BUCKETS: usize = 1000;

/// What is counted.
pub(super) const COUNTERS: [(&str, &str); 5] = [
    ("local accesses", "1/s"),
    ("intra-group accesses", "1/s"),
    ("inter-group accesses", "1/s"),
    ("bytes read and written", "B/s"),
    ("processes waiting", "mean"),
];

/// Counts by bucket.
#[derive(Debug)]
pub(super) struct Rates {
    /// Length of a bucket in nanoseconds.
    width: u64,
    accesses: [Vec<u64>; 3],
    bytes: Vec<u64>,
    /// Time waited at the edges of waits, nanoseconds.
    partly: Vec<u64>,
    /// How many more waits fill a bucket than the one before it.
    wholly: Vec<i64>,
}

impl Rates {
    /// For a run of `length` nanoseconds.
    pub(super) fn new(length: u64) -> Self {
        let zeros = || vec![0; BUCKETS];
        Self {
            width: (length / BUCKETS as u64).max(1),
            accesses: [zeros(), zeros(), zeros()],
            bytes: zeros(),
            partly: zeros(),
            wholly: vec![0; BUCKETS + 1],
        }
    }

    /// Counts the accesses of a record that began at `at` nanoseconds of the run.
    pub(super) fn count(&mut self, at: u64, record: &Record) {
        let origin = match record.origin {
            Origin::Local => 0,
            Origin::Intra => 1,
            Origin::Inter => 2,
        };
        let spread = Spread::new(Nanos(at), record.duration, record.accesses());
        let first = self.bucket(at);
        let within = TimeRange {
            from: Nanos(first as u64 * self.width),
            to: Nanos(self.end()),
        };
        let mut counted = 0;
        let mut bytes = 0;
        if within.from < within.to {
            spread.over(within, (BUCKETS - first) as u32, |bucket, part| {
                self.accesses[origin][first + bucket] += part.count();
                let sum = &mut self.bytes[first + bucket];
                *sum = sum.saturating_add(part.share(record.bytes));
                counted += part.count();
                bytes += part.share(record.bytes);
            });
        }
        // What is later than the run is said to be belongs to its end.
        self.accesses[origin][BUCKETS - 1] += spread.count() - counted;
        let rest = &mut self.bytes[BUCKETS - 1];
        *rest = rest.saturating_add(record.bytes - bytes);
        self.waited(at, at.saturating_add(record.wait.0));
    }

    fn bucket(&self, at: u64) -> usize {
        ((at / self.width) as usize).min(BUCKETS - 1)
    }

    fn waited(&mut self, from: u64, to: u64) {
        let last_end = self.width.saturating_mul(BUCKETS as u64);
        let (from, to) = (from.min(last_end), to.min(last_end));
        let (first, last) = (self.bucket(from), self.bucket(to));
        if first == last {
            self.partly[first] += to - from;
            return;
        }
        self.partly[first] += (first as u64 + 1) * self.width - from;
        self.partly[last] += to - last as u64 * self.width;
        self.wholly[first + 1] += 1;
        self.wholly[last] -= 1;
    }

    /// Begin of each bucket in nanoseconds of the run, with a value for each of [`COUNTERS`].
    pub(super) fn values(&self) -> impl Iterator<Item = (u64, [f64; 5])> {
        let seconds = self.width as f64 / 1e9;
        let mut filled = 0;
        (0..BUCKETS).map(move |i| {
            filled += self.wholly[i];
            let rate = |n: u64| n as f64 / seconds;
            let [local, intra, inter] = [0, 1, 2].map(|o: usize| rate(self.accesses[o][i]));
            let waiting = filled as f64 + self.partly[i] as f64 / self.width as f64;
            let at = i as u64 * self.width;
            (at, [local, intra, inter, rate(self.bytes[i]), waiting])
        })
    }

    /// Where the last bucket ends, nanoseconds of the run.
    pub(super) fn end(&self) -> u64 {
        self.width.saturating_mul(BUCKETS as u64)
    }
}
