//! Every evaluated case of the memory hierarchy model.

use crate::common::{
    assert_close, assert_matches, cases, number, read, section, tables, tolerance,
};
use dosmos_model::ModelError;
use dosmos_model::memhier::{
    ChoiceInput, FitInput, Locality, Machine, Mode, Named, Network, Program, Sharing, choose,
    estimate, estimates, fit, locality, stack_distances,
};
use serde_json::{Value, json};

fn exact() -> f64 {
    tolerance("closed_form_and_solved")
}

fn mode(name: &str) -> Mode {
    read(&name.into())
}

fn configuration(case: &Value) -> Machine {
    let name = |key: &str| case[key].as_str().unwrap().to_owned();
    Machine::configuration(&name("config"), &name("program")).unwrap()
}

/// Every mode that the case lists.
fn assert_modes(machine: &Machine, modes: &Value, what: &str) {
    for (name, wanted) in modes.as_object().unwrap() {
        let found = estimate(machine, mode(name)).unwrap();
        assert_matches(&found, wanted, exact(), &format!("{what} {name}"));
    }
}

#[test]
fn configurations_and_programs_are_those_of_the_paper() {
    let table = &tables()["du_zhang"];
    for row in table["configs"].as_array().unwrap() {
        let machine = Machine::configuration(row["name"].as_str().unwrap(), "FFT").unwrap();
        assert_eq!(u64::from(machine.n), row["n"].as_u64().unwrap());
        assert_eq!(u64::from(machine.machines), row["N"].as_u64().unwrap());
        assert_eq!(machine.cache, 1024.0 * number(&row["cache_kb"]));
        assert_eq!(machine.memory, 1_048_576.0 * number(&row["memory_mb"]));
        let net = row["network"].as_str().map(|n| Named::Name(n.to_owned()));
        assert_eq!(machine.net, net);
    }
    let programs = table["table2_programs"].as_array().unwrap().iter();
    for row in programs.chain([&table["tpc_c"]]) {
        let name = row["program"].as_str().unwrap_or("TPC-C").to_owned();
        let program = Named::<Program>::Name(name).resolve().unwrap();
        assert_eq!(program.alpha, number(&row["alpha"]));
        assert_eq!(program.beta, number(&row["beta"]));
        assert_eq!(program.gamma, number(&row["gamma"]));
    }
    let latency = &table["latency_cycles_at_200MHz"];
    for (net, key) in [
        ("10Mb bus", "10Mb"),
        ("100Mb bus", "100Mb"),
        ("155Mb switch", "155Mb_switch"),
    ] {
        let network = Named::<Network>::Name(net.to_owned())
            .resolve("net")
            .unwrap();
        assert_eq!(
            network.remote_cycles,
            number(&latency["workstations"]["remote_node"][key])
        );
        let smps = number(&latency["smps"]["remote_node"][key]);
        assert_eq!(network.smp_remote_cycles, Some(smps));
        assert_eq!(network.sharing == Sharing::Switch, net.ends_with("switch"));
    }
    assert_eq!(
        configuration(&json!({"config": "C1", "program": "FFT"})).hz,
        number(&cases()["memhier"]["hz"])
    );
}

#[test]
fn cells() {
    for case in section(&["memhier", "cells"]) {
        let what = format!("{} {}", case["config"], case["program"]);
        assert_modes(&configuration(&case), &case["modes"], &what);
    }
}

#[test]
fn finite_footprints() {
    for case in section(&["memhier", "truncated"]) {
        let machine = Machine {
            x_max: Some(number(&case["x_max"])),
            ..configuration(&case)
        };
        let what = format!("{} {} cut", case["config"], case["program"]);
        assert_modes(&machine, &case["modes"], &what);
    }
}

#[test]
fn other_machines() {
    for case in section(&["memhier", "extra"]) {
        let machine: Machine = read(&case["in"]);
        assert_modes(&machine, &case["out"], &case["in"].to_string());
        assert_matches(
            &estimates(&machine).unwrap(),
            &case["out"],
            exact(),
            "all modes",
        );
    }
}

#[test]
fn locality_law_queue_and_barrier_term() {
    for case in section(&["memhier", "locality"]) {
        let law = Locality {
            alpha: number(&case["alpha"]),
            beta: number(&case["beta"]),
        };
        let (x, q) = (number(&case["x"]), number(&case["procs"]));
        assert_close(law.tail(x, q), number(&case["tail"]), exact(), "tail");
        assert_close(law.cdf(x, q), number(&case["cdf"]), exact(), "cdf");
        assert_close(law.pdf(x, q), number(&case["pdf"]), exact(), "pdf");
    }
    for case in section(&["memhier", "mg1"]) {
        let [tau, lambda, c2] = ["tau", "Lam", "C2"].map(|key| number(&case[key]));
        let found = locality::response(tau, lambda, c2).unwrap();
        assert_close(found, number(&case["response"]), exact(), "response");
    }
    for (q, wanted) in cases()["memhier"]["harmonic_tail"].as_object().unwrap() {
        let found = locality::harmonic_tail(q.parse().unwrap());
        assert_close(found, number(wanted), exact(), "harmonic");
    }
}

#[test]
fn stack_distance_cases() {
    for case in section(&["memhier", "stack_distance"]) {
        let found = stack_distances(&read::<Vec<u64>>(&case["trace"]));
        let wanted: Vec<i64> = read(&case["distances"]);
        let signed = |d: &Option<u64>| d.map_or(-1, |d| i64::try_from(d).unwrap());
        assert_eq!(found.iter().map(signed).collect::<Vec<_>>(), wanted);
        for (size, hits) in case["lru_hits_by_size"].as_object().unwrap() {
            let size: u64 = size.parse().unwrap();
            let found = found.iter().flatten().filter(|d| **d < size).count();
            assert_eq!(found as u64, hits.as_u64().unwrap());
        }
    }
}

#[test]
fn fits_recover_the_law() {
    for case in section(&["memhier", "fit"]) {
        let input = FitInput {
            points: read(&case["points"]),
            ..FitInput::default()
        };
        let found = fit(&input).unwrap();
        let allowed = number(&case["tolerance"]);
        assert_close(found.alpha, number(&case["alpha"]), allowed, "alpha");
        assert_close(found.beta, number(&case["beta"]), allowed, "beta");
    }
}

/// An open level past its pole is said, not computed; the closed mode always answers.
#[test]
fn saturation_is_an_answer_of_its_own() {
    let machine = Machine::configuration("C1", "FFT").unwrap();
    let all = estimates(&machine).unwrap();
    assert_eq!(all.open.reference, None);
    assert_eq!(all.open.saturated.len(), 2);
    assert!(
        all.raw.instruction < all.none.instruction,
        "the printed formula misleads here"
    );
    assert!(all.closed.instruction > all.none.instruction);
    assert!(all.closed.saturated.is_empty());
}

#[test]
fn bad_machines_name_the_field() {
    let good = Machine::configuration("C13", "FFT").unwrap();
    let checks: [(&str, Machine); 7] = [
        (
            "n",
            Machine {
                n: 0,
                ..good.clone()
            },
        ),
        (
            "N",
            Machine {
                net: None,
                ..good.clone()
            },
        ),
        (
            "memory",
            Machine {
                memory: f64::NAN,
                ..good.clone()
            },
        ),
        (
            "memory",
            Machine {
                memory: 1.0,
                ..good.clone()
            },
        ),
        (
            "remote_disk",
            Machine {
                remote_disk: 2.0,
                ..good.clone()
            },
        ),
        (
            "hz",
            Machine {
                hz: 0.0,
                ..good.clone()
            },
        ),
        (
            "program.alpha",
            Machine {
                program: Named::Given(Program {
                    alpha: 1.0,
                    beta: 1.0,
                    gamma: 0.5,
                }),
                ..good.clone()
            },
        ),
    ];
    for (wanted, machine) in checks {
        match estimates(&machine).unwrap_err() {
            ModelError::Invalid { field, .. } => assert_eq!(field, wanted),
            other => panic!("{wanted}: {other}"),
        }
    }
    let unknown = Machine {
        net: Some(Named::Name("token ring".to_owned())),
        ..good
    };
    let message = estimates(&unknown).unwrap_err().to_string();
    assert!(
        message.contains("net: \"token ring\"") && message.contains("155Mb switch"),
        "{message}"
    );
}

fn prices() -> Value {
    json!({
        "budget": 20000, "program": "FFT", "x_max": 3_145_728,
        "machines": [{"n": 1, "price": 1200}, {"n": 2, "price": 4000}, {"n": 4, "price": 15000}],
        "caches": [{"bytes": 262_144, "price": 100}, {"bytes": 524_288, "price": 250}],
        "memories": [{"bytes": 33_554_432, "price": 100}, {"bytes": 67_108_864, "price": 200}],
        "networks": [
            {"net": "10Mb bus", "price": 30}, {"net": "100Mb bus", "price": 100},
            {"net": "155Mb switch", "price": 900}
        ],
    })
}

/// The enumeration against one written down differently.
#[test]
fn the_best_for_a_budget_is_the_best_of_all() {
    let prices = prices();
    let input: ChoiceInput = read(&prices);
    let found = choose(&input).unwrap();
    let list = |key: &str| prices[key].as_array().unwrap().clone();
    let mut networks: Vec<Option<Value>> = list("networks").into_iter().map(Some).collect();
    networks.push(None);
    let (mut best, mut affordable) = (f64::INFINITY, 0);
    for net in networks {
        for count in 1..=64u32 {
            if net.is_none() != (count == 1) {
                continue;
            }
            for machine in list("machines") {
                for cache in list("caches") {
                    for memory in list("memories") {
                        let one = number(&machine["price"])
                            + number(&machine["n"]) * number(&cache["price"])
                            + number(&memory["price"])
                            + net.as_ref().map_or(0.0, |n| number(&n["price"]));
                        if one * f64::from(count) > 20_000.0 {
                            continue;
                        }
                        affordable += 1;
                        let case = json!({
                            "n": machine["n"], "N": count, "cache": cache["bytes"], "memory": memory["bytes"],
                            "net": net.as_ref().map(|n| n["net"].clone()), "program": "FFT", "x_max": 3_145_728
                        });
                        let e = estimate(&read(&case), Mode::Closed)
                            .unwrap()
                            .instruction
                            .unwrap();
                        best = best.min(e);
                    }
                }
            }
        }
    }
    assert_eq!(found.affordable, affordable);
    assert_eq!(found.best.instruction, best);
    assert!(found.ranking.len() == 5 && found.ranking[0] == found.best);
    assert!(found.best.cost <= 20_000.0);
}

#[test]
fn an_upgrade_pays_only_for_what_changes() {
    let mut prices = prices();
    // Without an end of the data, so that every part is worth something.
    prices["x_max"] = Value::Null;
    prices["existing"] = json!({
        "n": 1, "N": 4, "cache": 262_144, "memory": 33_554_432, "net": "10Mb bus"
    });
    // Nothing to spend: what there is.
    prices["budget"] = json!(0);
    let same = choose(&read::<ChoiceInput>(&prices)).unwrap();
    assert_eq!((same.best.cost, same.speedup), (0.0, Some(1.0)));
    // Exactly a new network for the four machines.
    prices["budget"] = json!(400);
    let upgraded = choose(&read::<ChoiceInput>(&prices)).unwrap();
    assert_eq!(upgraded.best.cost, 400.0);
    assert_eq!(
        upgraded.best.configuration.net,
        Some(Named::Name("100Mb bus".to_owned()))
    );
    assert!(upgraded.speedup.unwrap() > 1.0);
}

#[test]
fn budgets_that_pay_for_nothing_say_what_the_cheapest_costs() {
    let mut prices = prices();
    prices["budget"] = json!(1000);
    let message = choose(&read::<ChoiceInput>(&prices))
        .unwrap_err()
        .to_string();
    assert!(message.contains("costs 1400"), "{message}");
    prices["budget"] = json!(20_000);
    prices["mode"] = json!("open");
    prices["x_max"] = Value::Null;
    prices["machines"] = json!([{"n": 4, "price": 15000}]);
    let message = choose(&read::<ChoiceInput>(&prices))
        .unwrap_err()
        .to_string();
    assert!(message.contains("saturated"), "{message}");
}

/// Distances drawn from the cut law: the cut-aware fit finds α and β where a plain one cannot.
#[test]
fn a_cut_is_not_taken_for_locality() {
    let law = Locality {
        alpha: 1.21,
        beta: 103.26,
    };
    let end = 20_000.0;
    let points: Vec<(f64, f64)> = (0..64)
        .map(|i| 1.0 * f64::powf(end, f64::from(i) / 63.0))
        .map(|x| (x, 1.0 - law.cut_tail(x, 1.0, end)))
        .collect();
    let plain = fit(&FitInput {
        points: points.clone(),
        ..FitInput::default()
    })
    .unwrap();
    assert!(plain.alpha > 1.4, "{}", plain.alpha);
    let aware = fit(&FitInput {
        points,
        x_max: Some(end),
        ..FitInput::default()
    })
    .unwrap();
    assert_close(aware.alpha, 1.21, 1e-7, "alpha");
    assert_close(aware.beta, 103.26, 1e-6, "beta");
}

/// Hit rates in proportion to the size say nothing of where locality ends.
#[test]
fn a_fit_that_the_data_do_not_determine_says_so() {
    let points: Vec<(f64, f64)> = (1..=20).map(f64::from).map(|x| (x, x / 1e6)).collect();
    let straight = fit(&FitInput {
        points,
        ..FitInput::default()
    })
    .unwrap();
    assert!(straight.beta > 10.0 * straight.largest_x, "{straight:?}");
    assert_eq!(straight.largest_x, 20.0);
    let note = straight.note.unwrap();
    assert!(note.contains("only (alpha-1)/beta is determined"), "{note}");

    let law = Locality {
        alpha: 1.21,
        beta: 103.26,
    };
    let points = (0..10)
        .map(|i| f64::powi(3.0, i))
        .map(|x| (x, law.cdf(x, 1.0)));
    let bent = fit(&FitInput {
        points: points.collect(),
        ..FitInput::default()
    })
    .unwrap();
    assert_eq!(bent.note, None);
}

#[test]
fn too_little_to_fit_is_said() {
    let shape = fit(&FitInput {
        trace: vec![1, 2, 3],
        ..FitInput::default()
    })
    .unwrap_err();
    assert!(matches!(shape, ModelError::TooLittle { field, .. } if field == "trace"));
    let out_of_range = FitInput {
        points: vec![(1.0, 1.5)],
        ..FitInput::default()
    };
    let invalid = fit(&out_of_range).unwrap_err();
    assert!(matches!(invalid, ModelError::Invalid { field, .. } if field == "points[0][1]"));
}
