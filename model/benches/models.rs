//! Time of the solvers and the simulator: `cargo bench -p dosmos-model`.
//!
//! CPU time of the thread, not time of day: the code waits for nothing, and other programs on the machine
//! shall not be part of the figures.

#![allow(missing_docs, clippy::unwrap_used)] // what criterion's macros make; a benchmark may

use std::hint::black_box;
use std::time::Duration;

use cpu_time::ThreadTime;
use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use dosmos_model::lopc::{
    ClientServerInput, GeneralInput, HomogeneousInput, client_server, general, homogeneous,
};
use dosmos_model::memhier::{Machine, Mode, StackDistances, estimate};
use dosmos_model::sim::{Distribution, SimInput, simulate};

/// CPU time of this thread.
struct CpuTime;

impl Measurement for CpuTime {
    type Intermediate = ThreadTime;
    type Value = Duration;

    fn start(&self) -> ThreadTime {
        ThreadTime::now()
    }
    fn end(&self, start: ThreadTime) -> Duration {
        start.elapsed()
    }
    fn add(&self, a: &Duration, b: &Duration) -> Duration {
        *a + *b
    }
    fn zero(&self) -> Duration {
        Duration::ZERO
    }
    fn to_f64(&self, value: &Duration) -> f64 {
        value.as_nanos() as f64
    }
    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}

/// All-to-any traffic between `n` nodes, a tenth of it to a hot spot.
fn hot_spot(n: usize, work: f64) -> GeneralInput {
    let row = |i: usize| {
        let share = |k: usize| if k == i { 0.0 } else { 0.9 / (n - 1) as f64 };
        (0..n)
            .map(|k| share(k) + if k == 0 { 0.1 } else { 0.0 })
            .collect()
    };
    GeneralInput {
        visits: (0..n).map(row).collect(),
        work: vec![Some(work); n],
        handler: 200.0,
        latency: 6.0,
        c2: 1.0,
        protocol_processor: false,
    }
}

/// 32 nodes as in the paper's validation.
fn validation(work: f64) -> HomogeneousInput {
    HomogeneousInput {
        processors: 32,
        work,
        handler: 200.0,
        latency: 6.0,
        c2: 1.0,
        protocol_processor: false,
    }
}

fn solvers(c: &mut Criterion<CpuTime>) {
    let input = validation(1000.0);
    c.bench_function("LoPC homogeneous", |b| {
        b.iter(|| homogeneous::solve(black_box(&input)).unwrap());
    });
    let pile = ClientServerInput {
        processors: 32,
        servers: 5.0,
        work: 500.0,
        handler: 131.0,
        latency: 6.0,
        c2: 1.0,
    };
    c.bench_function("LoPC client-server optimum", |b| {
        b.iter(|| client_server::optimum(black_box(&pile)).unwrap());
    });
    let spot = hot_spot(64, 1000.0);
    c.bench_function("LoPC general, 64 nodes", |b| {
        b.iter(|| general::solve(black_box(&spot)).unwrap());
    });
    // Nobody computes: the hot node is all but saturated.
    let worse = hot_spot(64, 0.0);
    c.bench_function("LoPC general, 64 nodes, no work", |b| {
        b.iter(|| general::solve(black_box(&worse)).unwrap());
    });
    let machine = Machine::configuration("C15", "FFT").unwrap();
    c.bench_function("memory hierarchy, closed", |b| {
        b.iter(|| estimate(black_box(&machine), Mode::Closed).unwrap());
    });
}

/// Events a second on one core.
fn simulator(c: &mut Criterion<CpuTime>) {
    let mut group = c.benchmark_group("simulator, events");
    group.sample_size(10);
    let all_to_any = SimInput::homogeneous(&HomogeneousInput {
        c2: 0.0,
        ..validation(1000.0)
    });
    let exponential = SimInput {
        work: Distribution::Exponential,
        c2: 1.0,
        ..all_to_any.clone()
    };
    let uneven = SimInput::general(&hot_spot(64, 1000.0));
    for (name, input) in [
        ("32 nodes, constant times", all_to_any),
        ("32 nodes, exponential times", exponential),
        ("64 nodes, hot spot", uneven),
    ] {
        let events = simulate(&input).unwrap().events;
        group.throughput(Throughput::Elements(events));
        group.bench_function(name, |b| {
            b.iter(|| simulate(black_box(&input)).unwrap());
        });
    }
    group.finish();
}

/// References per second, over 100,000 items.
fn distances(c: &mut Criterion<CpuTime>) {
    const REFERENCES: u64 = 1_000_000;
    let mut group = c.benchmark_group("stack distances, references");
    group.sample_size(10);
    group.throughput(Throughput::Elements(REFERENCES));
    group.bench_function("100,000 items", |b| {
        b.iter(|| {
            let mut distances = StackDistances::default();
            let mut item: u64 = 1;
            for _ in 0..REFERENCES {
                item = item.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                black_box(distances.push((item >> 33) % 100_000));
            }
        });
    });
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().with_measurement(CpuTime);
    targets = solvers, simulator, distances
}
criterion_main!(benches);
