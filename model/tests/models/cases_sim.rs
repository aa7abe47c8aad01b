//! The simulator against the evaluated cases, against exact theory, and against Little's law.

use crate::common::{assert_close, cases, number, read, section, tolerance};
use dosmos_model::lopc::{ClientServerInput, GeneralInput, HomogeneousInput};
use dosmos_model::lopc::{general_variants, homogeneous, variants};
use dosmos_model::sim::{
    Distribution, LatencyModel, SimInput, compare, mesh_mean_hops, simulate, work_pile,
};
use serde_json::Value;

/// Fails unless `value` lies in the accepted band.
fn assert_within(value: f64, band: &Value, what: &str) {
    let (low, high) = (number(&band[0]), number(&band[1]));
    assert!(
        (low..=high).contains(&value),
        "{what}: {value} not in [{low}, {high}]"
    );
}

#[test]
fn claims() {
    for case in section(&["lopc", "simulation", "claims"]) {
        let input: HomogeneousInput = read(&case["in"]);
        let model = homogeneous::solve(&input).unwrap();
        let simulated = simulate(&SimInput {
            network: LatencyModel::Mesh { columns: 16 },
            warmup: 20_000,
            ..SimInput::homogeneous(&input)
        })
        .unwrap();
        let accept = &case["accept"];
        let of_r = number(&accept["sim_R_percent"]) / 100.0;
        assert_close(simulated.cycle, number(&case["sim_R"]), of_r, "R");
        let found = compare(&model, input.handler, &simulated);
        assert_within(
            found.total_over_percent,
            &accept["total_over_percent"],
            "total",
        );
        let band = &accept["contention_over_percent"];
        assert_within(found.contention_over_percent, band, "contention");
        assert_within(
            found.reply_over_percent,
            &accept["reply_over_percent"],
            "reply",
        );
        assert_within(
            found.logp_under_percent,
            &accept["logp_under_percent"],
            "LogP",
        );
    }
}

#[test]
fn agrees_with_mva_where_mva_is_exact() {
    for case in section(&["lopc", "simulation", "exactness"]) {
        let input: HomogeneousInput = read(&case["in"]);
        let exact = variants::mva(&input).unwrap().cycle;
        assert_close(
            exact,
            number(&case["mva_R"]),
            tolerance("mva_recursions"),
            "MVA",
        );
        for work in [Distribution::Constant, Distribution::Exponential] {
            let sim = SimInput {
                work,
                ..SimInput::homogeneous(&input)
            };
            let found = simulate(&sim).unwrap();
            let allowed = number(&case["accept_percent"]) / 100.0;
            assert_close(found.cycle, exact, allowed, "R");
            assert_close(found.cycle, number(&case["sim_R"]), allowed, "sim_R");
            let off = (found.cycle - exact).abs();
            assert!(
                off < 5.0 * found.cycle_error,
                "{off} is over five standard errors"
            );
        }
    }
}

#[test]
fn work_piles() {
    for case in section(&["lopc", "simulation", "workpile"]) {
        let mut fields = case["in"].clone();
        let work = read(&fields.as_object_mut().unwrap().remove("work").unwrap());
        let input: ClientServerInput = read(&fields);
        let best = case["sim_best_Ps"].as_u64().unwrap();
        let range = u32::try_from(best).unwrap() - 2..=u32::try_from(best).unwrap() + 3;
        let pile = work_pile(&input, range, |sim| SimInput {
            work,
            warmup: 5_000,
            cycles: 40_000,
            network: LatencyModel::Mesh { columns: 16 },
            ..sim
        })
        .unwrap();
        let exact = tolerance("closed_form_and_solved");
        assert_close(pile.model_x, number(&case["X_opt"]), exact, "X_opt");
        assert_close(pile.model_servers, number(&case["Ps_opt"]), exact, "Ps_opt");
        assert_close(
            pile.sim_best_x,
            number(&case["sim_best_X"]),
            0.01,
            "sim_best_X",
        );
        assert!(u64::from(pile.sim_best_servers).abs_diff(best) <= 1);
        assert_within(pile.error_percent, &case["accept_error_percent"], "error");
    }
}

#[test]
fn mesh_distances() {
    for case in section(&["lopc", "mesh_mean_hops"]) {
        let (p, columns) = (case["P"].as_u64().unwrap(), case["cols"].as_u64().unwrap());
        let mean = mesh_mean_hops(p as usize, columns as usize).unwrap();
        assert_close(mean, number(&case["mean"]), 1e-12, "mean hops");
    }
}

/// A general system with multi-hop requests and a server without a thread.
fn uneven(protocol_processor: bool) -> GeneralInput {
    GeneralInput {
        visits: vec![
            vec![0.0, 0.6, 0.4, 0.8],
            vec![0.5, 0.0, 0.5, 0.0],
            vec![0.2, 0.3, 0.0, 1.0],
            vec![0.0; 4],
        ],
        work: vec![Some(150.0), Some(40.0), Some(0.0), None],
        handler: 50.0,
        latency: 5.0,
        c2: 1.0,
        protocol_processor,
    }
}

#[test]
fn multi_hop_systems_agree_with_the_subset_recursion() {
    let input = uneven(true);
    let exact = general_variants::mva(&input).unwrap();
    let found = simulate(&SimInput {
        cycles: 200_000,
        ..SimInput::general(&input)
    })
    .unwrap();
    for (simulated, wanted) in found.thread_cycle.iter().zip(&exact.cycle) {
        match (simulated, wanted) {
            (Some(simulated), Some(wanted)) => assert_close(*simulated, *wanted, 0.012, "R_i"),
            (None, None) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn littles_law_and_the_parts_of_the_cycle() {
    for protocol_processor in [false, true] {
        let input = uneven(protocol_processor);
        let sim = SimInput {
            work: Distribution::C2(0.4),
            ..SimInput::general(&input)
        };
        let found = simulate(&sim).unwrap();
        let arrivals = found.requests as f64 / found.elapsed;
        let queued: f64 = found.request_queue.iter().sum();
        assert_close(queued, arrivals * found.request, 0.002, "requests");
        let queued: f64 = found.reply_queue.iter().sum();
        assert_close(queued, found.throughput * found.reply, 0.002, "replies");
        let hops = found.requests as f64 / found.cycles as f64;
        let parts =
            found.compute + found.reply + input.latency + hops * (input.latency + found.request);
        assert_close(found.cycle, parts, 0.002, "R");
        for (uq, uy) in found
            .request_utilisation
            .iter()
            .zip(&found.reply_utilisation)
        {
            assert!(uq + uy <= 1.0 + 1e-9);
        }
        assert!(
            found.request_utilisation[3] > 0.1,
            "the server without a thread works"
        );
        assert_eq!(found.reply_utilisation[3], 0.0);
    }
}

#[test]
fn the_seed_decides_everything() {
    let sim = SimInput {
        cycles: 2_000,
        warmup: 0,
        ..SimInput::general(&uneven(false))
    };
    let again = SimInput {
        seed: 2,
        ..sim.clone()
    };
    assert_eq!(simulate(&sim).unwrap(), simulate(&sim).unwrap());
    assert_ne!(
        simulate(&sim).unwrap().cycle,
        simulate(&again).unwrap().cycle
    );
}

#[test]
fn inputs_read_as_json() {
    let text = cases()["lopc"]["general"][0]["in"].clone();
    let sim: SimInput = read(&text);
    assert_eq!(sim, SimInput::general(&read(&text)));
}
