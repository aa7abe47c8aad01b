//! What the simulation measures: means over the window, and their spread.

use serde::{Deserialize, Serialize};

/// Batches by which the standard error of R is estimated.
const BATCHES: u64 = 20;

/// Results of a simulation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimOutput {
    /// Mean cycle over all threads.
    #[serde(rename = "R")]
    pub cycle: f64,
    /// Standard error of R from 20 batches; 0 with fewer than 40 cycles.
    #[serde(rename = "R_standard_error")]
    pub cycle_error: f64,
    /// Mean time from a reply to the next request, interruptions included.
    #[serde(rename = "Rw")]
    pub compute: f64,
    /// Mean queueing and service of a request.
    #[serde(rename = "Rq")]
    pub request: f64,
    /// Mean queueing and service of a reply.
    #[serde(rename = "Ry")]
    pub reply: f64,
    /// Cycles per time, all threads.
    #[serde(rename = "X")]
    pub throughput: f64,
    /// Mean cycle of each thread; `None` (null) where no thread runs or none of its cycles ended.
    #[serde(rename = "R_threads")]
    pub thread_cycle: Vec<Option<f64>>,
    /// Time average of requests at each node.
    #[serde(rename = "Qq")]
    pub request_queue: Vec<f64>,
    /// Time average of replies at each node.
    #[serde(rename = "Qy")]
    pub reply_queue: Vec<f64>,
    /// Share of time each node handles requests.
    #[serde(rename = "Uq")]
    pub request_utilisation: Vec<f64>,
    /// Share of time each node handles replies.
    #[serde(rename = "Uy")]
    pub reply_utilisation: Vec<f64>,
    /// Cycles measured.
    pub cycles: u64,
    /// Requests completed in the window.
    pub requests: u64,
    /// Events processed, warm-up included.
    pub events: u64,
    /// Length of the window in simulated time.
    pub elapsed: f64,
}

/// A sum and a count.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    pub(super) fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    /// 0 where nothing was added.
    fn value(self) -> f64 {
        if self.count == 0 {
            0.0
        } else {
            self.sum / self.count as f64
        }
    }
}

/// Messages of one kind at one node.
#[derive(Debug, Clone, Copy, Default)]
struct Station {
    present: u32,
    changed: f64,
    area: f64,
    busy: f64,
}

impl Station {
    fn advance(&mut self, now: f64) {
        self.area += f64::from(self.present) * (now - self.changed);
        self.changed = now;
    }
}

/// Accumulators of one window.
pub(super) struct Measures {
    start: f64,
    pub(super) compute: Mean,
    pub(super) request: Mean,
    pub(super) reply: Mean,
    cycles: u64,
    goal: u64,
    threads: Vec<Mean>,
    batches: Vec<Mean>,
    /// Requests, then replies, of each node.
    stations: Vec<[Station; 2]>,
}

impl Measures {
    pub(super) fn new(nodes: usize, goal: u64) -> Self {
        Self {
            start: 0.0,
            compute: Mean::default(),
            request: Mean::default(),
            reply: Mean::default(),
            cycles: 0,
            goal,
            threads: vec![Mean::default(); nodes],
            batches: vec![Mean::default(); BATCHES as usize],
            stations: vec![[Station::default(); 2]; nodes],
        }
    }

    /// Starts the window over, keeping who is where.
    pub(super) fn restart(&mut self, now: f64, goal: u64) {
        let mut fresh = Self::new(self.threads.len(), goal);
        fresh.start = now;
        for (new, old) in fresh
            .stations
            .iter_mut()
            .flatten()
            .zip(self.stations.iter().flatten())
        {
            new.present = old.present;
            new.changed = now;
        }
        *self = fresh;
    }

    /// Whether the window has all its cycles.
    pub(super) fn complete(&self) -> bool {
        self.cycles >= self.goal
    }

    pub(super) fn cycle(&mut self, thread: usize, length: f64) {
        // The goal divides the cycles into batches of (nearly) equal size.
        let batch = u128::from(self.cycles) * u128::from(BATCHES) / u128::from(self.goal.max(1));
        if let Some(batch) = self.batches.get_mut(batch as usize) {
            batch.add(length);
        }
        self.cycles += 1;
        self.threads[thread].add(length);
    }

    pub(super) fn arrival(&mut self, node: usize, reply: bool, now: f64) {
        let station = &mut self.stations[node][usize::from(reply)];
        station.advance(now);
        station.present += 1;
    }

    /// The end of a handler that started at `started`; time before the window does not count.
    pub(super) fn departure(&mut self, node: usize, reply: bool, started: f64, now: f64) {
        let station = &mut self.stations[node][usize::from(reply)];
        station.advance(now);
        station.present -= 1;
        station.busy += now - started.max(self.start);
    }

    pub(super) fn output(mut self, now: f64, events: u64) -> SimOutput {
        let elapsed = now - self.start;
        for station in self.stations.iter_mut().flatten() {
            station.advance(now);
        }
        let share = |kind: usize, value: fn(&Station) -> f64| -> Vec<f64> {
            self.stations
                .iter()
                .map(|s| value(&s[kind]) / elapsed)
                .collect()
        };
        let all = self
            .threads
            .iter()
            .fold(Mean::default(), |all, thread| Mean {
                sum: all.sum + thread.sum,
                count: all.count + thread.count,
            });
        SimOutput {
            cycle: all.value(),
            cycle_error: standard_error(&self.batches),
            compute: self.compute.value(),
            request: self.request.value(),
            reply: self.reply.value(),
            throughput: self.cycles as f64 / elapsed,
            thread_cycle: self
                .threads
                .iter()
                .map(|t| (t.count > 0).then(|| t.value()))
                .collect(),
            request_queue: share(0, |s| s.area),
            reply_queue: share(1, |s| s.area),
            request_utilisation: share(0, |s| s.busy),
            reply_utilisation: share(1, |s| s.busy),
            cycles: self.cycles,
            requests: self.request.count,
            events,
            elapsed,
        }
    }
}

/// Standard error of the mean by batch means.
fn standard_error(batches: &[Mean]) -> f64 {
    if batches.iter().any(|b| b.count < 2) {
        return 0.0;
    }
    let n = batches.len() as f64;
    let mean = batches.iter().map(|b| b.value() / n).sum::<f64>();
    if mean == 0.0 {
        return 0.0;
    }
    // Relative to the mean, so that no square can overflow.
    let variance = batches
        .iter()
        .map(|b| (b.value() / mean - 1.0).powi(2))
        .sum::<f64>()
        / (n - 1.0);
    mean * (variance / n).sqrt()
}
