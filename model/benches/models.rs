//! Time of the solvers: `cargo bench -p dosmos-model`.

#![allow(missing_docs, clippy::unwrap_used)] // what criterion's macros make; a benchmark may

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use dosmos_model::lopc::{GeneralInput, HomogeneousInput, general, homogeneous};

/// All-to-any traffic between `n` nodes, a little of it to a hot spot.
fn hot_spot(n: usize) -> GeneralInput {
    let row = |i: usize| {
        let share = |k: usize| if k == i { 0.0 } else { 0.9 / (n - 1) as f64 };
        (0..n)
            .map(|k| share(k) + if k == 0 { 0.1 } else { 0.0 })
            .collect()
    };
    GeneralInput {
        visits: (0..n).map(row).collect(),
        work: vec![Some(1000.0); n],
        handler: 200.0,
        latency: 6.0,
        c2: 1.0,
        protocol_processor: false,
    }
}

fn solvers(c: &mut Criterion) {
    let input = HomogeneousInput {
        processors: 32,
        work: 1000.0,
        handler: 200.0,
        latency: 6.0,
        c2: 1.0,
        protocol_processor: false,
    };
    c.bench_function("LoPC homogeneous", |b| {
        b.iter(|| homogeneous::solve(black_box(&input)).unwrap());
    });
    let input = hot_spot(64);
    c.bench_function("LoPC general, 64 nodes", |b| {
        b.iter(|| general::solve(black_box(&input)).unwrap());
    });
}

criterion_group!(benches, solvers);
criterion_main!(benches);
