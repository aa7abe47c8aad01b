//! The general solver on a thousand random systems and on hot spots: it converges, or says that it did not.

use crate::common::assert_close;
use dosmos_model::ModelError;
use dosmos_model::lopc::{GeneralInput, GeneralOutput, general, general_variants};

/// Steele, Lea and Flood's SplitMix64: the same systems everywhere.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In [0, 1).
    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[(self.next() % choices.len() as u64) as usize]
    }
}

/// A system with up to 64 nodes: sparse or dense traffic, none or many hops, favourites, nodes without threads.
fn random_system(seed: u64) -> GeneralInput {
    let mut draw = Draw(seed);
    let nodes = 2 + (draw.uniform().powi(2) * 63.0) as usize;
    let density = draw.of(&[0.1, 0.5, 1.0]);
    let hops = draw.of(&[0.5, 1.0, 1.0, 3.0]);
    let favourite = draw.of(&[0.0, 0.0, 0.5, 0.95]);
    let idle = draw.of(&[0.0, 0.0, 0.3]);
    let own = draw.of(&[0.0, 0.0, 1.0]);
    let (mut visits, mut work) = (Vec::new(), Vec::new());
    for i in 0..nodes {
        if i > 0 && draw.uniform() < idle {
            visits.push(vec![0.0; nodes]);
            work.push(None);
            continue;
        }
        let mut row: Vec<f64> = (0..nodes)
            .map(|k| {
                let asked = draw.uniform() < density && (k != i || own > 0.0);
                if asked { draw.uniform() } else { 0.0 }
            })
            .collect();
        let sum: f64 = row.iter().sum();
        for v in &mut row {
            *v *= if sum > 0.0 {
                hops * (1.0 - favourite) / sum
            } else {
                0.0
            };
        }
        row[nodes - 1] += hops * favourite;
        visits.push(row);
        let busy = 10f64.powf(4.0 * draw.uniform());
        work.push(Some(if draw.uniform() < 0.3 { 0.0 } else { busy }));
    }
    GeneralInput {
        visits,
        work,
        handler: draw.of(&[1.0, 10.0, 100.0]),
        latency: draw.of(&[0.0, 5.0, 150.0]),
        c2: draw.of(&[0.0, 0.3, 1.0, 4.0]),
        protocol_processor: draw.of(&[false, true]),
    }
}

/// The unreduced equations hold at the solution, and so does Little's law.
fn assert_solved(input: &GeneralInput, found: &GeneralOutput, what: &str) {
    let kappa = (input.c2 - 1.0) / 2.0;
    let so = input.handler;
    for k in 0..input.nodes() {
        let rate: f64 = (0..input.nodes())
            .map(|i| input.visits[i][k] * found.throughput[i])
            .sum();
        let (uq, uy) = (so * rate, so * found.throughput[k]);
        let (qq, qy) = (found.request_queue[k], found.reply_queue[k]);
        assert_close(found.request_utilisation[k], uq, 1e-9, what);
        assert_close(
            qq,
            rate * found.request[k],
            1e-8,
            &format!("{what}: Little at {k}"),
        );
        let request = so * (1.0 + qq + qy + kappa * (uq + uy));
        assert_close(
            found.request[k],
            request,
            1e-8,
            &format!("{what}: R_q at {k}"),
        );
        assert!(
            qq >= 0.0 && qy >= 0.0 && uq * (1.0 + uy) < 1.0,
            "{what}: node {k}"
        );
        let Some(cycle) = found.cycle[k] else {
            assert_eq!(found.throughput[k], 0.0);
            continue;
        };
        let reply = so * (1.0 + qq + kappa * uq);
        assert_close(
            found.reply[k].unwrap(),
            reply,
            1e-8,
            &format!("{what}: R_y at {k}"),
        );
        assert_close(
            qy,
            found.throughput[k] * reply,
            1e-8,
            &format!("{what}: replies at {k}"),
        );
        let work = input.work[k].unwrap();
        let compute = if input.protocol_processor {
            work
        } else {
            (work + so * qq) / (1.0 - uq)
        };
        assert_close(
            found.compute[k].unwrap(),
            compute,
            1e-8,
            &format!("{what}: R_w at {k}"),
        );
        let away: f64 = (0..input.nodes())
            .map(|j| input.visits[k][j] * (input.latency + found.request[j]))
            .sum();
        let parts = compute + input.latency + reply + away;
        assert_close(cycle, parts, 1e-8, &format!("{what}: R at {k}"));
        assert!(
            cycle >= found.logp_cycle[k].unwrap() * (1.0 - 1e-9),
            "{what}: R_logp at {k}"
        );
    }
}

#[test]
fn a_thousand_random_systems() {
    let (mut largest, mut refused) = (0, 0);
    for seed in 0..1000 {
        let input = random_system(seed);
        let what = format!("seed {seed}, {} nodes", input.nodes());
        let found = general::solve(&input).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_solved(&input, &found, &what);
        largest = largest.max(input.nodes());
        refused += usize::from(schweitzer_refuses(&input, 16, &what));
    }
    assert_eq!(largest, 64);
    assert!(refused < 20, "{refused}");
}

/// Schweitzer's form has a solution for C² ≥ 1. Below, it may ask a busy node for more than all of its time: no
/// solution then, and an error that says so. (Those errors take long to find, hence the limit.)
fn schweitzer_refuses(input: &GeneralInput, most_nodes: usize, what: &str) -> bool {
    if input.c2 < 1.0 && input.nodes() > most_nodes {
        return false;
    }
    match general_variants::bard_schweitzer(input) {
        Ok((found, _)) => {
            assert!(found.total_throughput > 0.0, "{what}");
            false
        }
        Err(ModelError::NotConverged { .. }) if input.c2 < 1.0 => true,
        Err(other) => panic!("{what}: {other}"),
    }
}

/// Everybody asks one node most of the time, without computing.
#[test]
fn hot_spots() {
    for nodes in [2, 3, 8, 32, 64] {
        for share in [0.5, 0.9, 0.99, 1.0] {
            for (work, c2) in [(0.0, 0.0), (0.0, 1.0), (0.0, 8.0), (100.0, 0.0), (1e4, 1.0)] {
                for protocol_processor in [false, true] {
                    let row = |i: usize| -> Vec<f64> {
                        let others = (nodes - 1).max(1) as f64;
                        (0..nodes)
                            .map(|k| {
                                let even = if k == i { 0.0 } else { (1.0 - share) / others };
                                even + if k == 0 { share } else { 0.0 }
                            })
                            .collect()
                    };
                    let input = GeneralInput {
                        visits: (0..nodes).map(row).collect(),
                        work: vec![Some(work); nodes],
                        handler: 100.0,
                        latency: 5.0,
                        c2,
                        protocol_processor,
                    };
                    let what =
                        format!("{nodes} nodes, {share}, W {work}, C2 {c2}, {protocol_processor}");
                    let found = general::solve(&input).unwrap_or_else(|e| panic!("{what}: {e}"));
                    assert_solved(&input, &found, &what);
                    schweitzer_refuses(&input, 8, &what);
                }
            }
        }
    }
}

/// The point found does not depend on the numbering of the nodes.
#[test]
fn numbering_does_not_matter() {
    for seed in 0..50 {
        let input = random_system(seed);
        let n = input.nodes();
        let turned = GeneralInput {
            visits: (0..n)
                .map(|i| (0..n).map(|k| input.visits[n - 1 - i][n - 1 - k]).collect())
                .collect(),
            work: input.work.iter().rev().copied().collect(),
            ..input.clone()
        };
        let (here, there) = (
            general::solve(&input).unwrap(),
            general::solve(&turned).unwrap(),
        );
        for i in 0..n {
            assert_close(
                here.throughput[i],
                there.throughput[n - 1 - i],
                1e-8,
                &format!("seed {seed}"),
            );
        }
    }
}
