//! Every evaluated case through the command line's own functions; the count shows that none was left out.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::ask;
use super::common::{assert_close, assert_matches, cases, number, tables, tolerance};

/// A section by its path, and how one of its cases is asked for and checked.
type Section = (&'static str, fn(&Value));

const SECTIONS: [Section; 25] = [
    ("lopc.homogeneous", homogeneous),
    ("lopc.rhs", right_hand_side),
    ("lopc.contention_bound_handlers", contention_bound),
    ("lopc.client_server", client_server),
    ("lopc.client_server_opt", client_server_optimum),
    ("lopc.general", general),
    ("lopc.alewife", sparse_matrix),
    ("lopc.mesh_mean_hops", mesh_hops),
    ("lopc.simulation.claims", claims),
    ("lopc.simulation.exactness", exactness),
    ("lopc.simulation.workpile", work_pile),
    ("dvsm.table_reproduction", printed_tables),
    ("dvsm.what_if_ops", what_if),
    ("dvsm.primitives", primitive),
    ("dvsm.barriers", barrier),
    ("dvsm.applications", application),
    ("dvsm.techs", technology),
    (
        "dvsm.max_error_of_totals_vs_sums_of_printed_entries_us",
        printed_error,
    ),
    ("memhier.cells", configuration),
    ("memhier.truncated", configuration),
    ("memhier.extra", machine),
    ("memhier.locality", locality),
    ("memhier.mg1", queue),
    ("memhier.stack_distance", stack_distance),
    ("memhier.fit", fit),
];

/// Sections whose cases are the entries of an object: (key, value) pairs.
const BY_KEY: [&str; 2] = ["dvsm.techs", "memhier.harmonic_tail"];

#[test]
fn every_case_passes_and_none_is_left_out() {
    let mut wanted = BTreeMap::new();
    for model in ["lopc", "dvsm", "memhier"] {
        inventory(model, &cases()[model], &mut wanted);
    }
    let mut checked = BTreeMap::new();
    for (path, check) in SECTIONS {
        let list = entries(path);
        list.iter().for_each(check);
        checked.insert(path.to_owned(), list.len());
    }
    // Two sections that are not lists of documents.
    for (procs, term) in cases()["memhier"]["harmonic_tail"].as_object().unwrap() {
        let procs: u32 = procs.parse().unwrap();
        let answer = ask("memhier", &json!({ "procs": procs }));
        assert_matches(&answer, &json!({ "harmonic_tail": term }), exact(), "H");
        *checked
            .entry("memhier.harmonic_tail".to_owned())
            .or_default() += 1;
    }
    let hz = cases()["memhier"]["hz"].clone();
    let plain = json!({ "config": "C13", "program": "LU" });
    let stated = json!({ "config": "C13", "program": "LU", "hz": hz });
    assert_eq!(ask("memhier", &plain), ask("memhier", &stated));
    checked.insert("memhier.hz".to_owned(), 1);
    assert_eq!(checked, wanted);
    assert_eq!(
        cases().as_object().unwrap().len(),
        4,
        "meta and three models"
    );
}

/// Counts the cases under each path.
fn inventory(path: &str, value: &Value, found: &mut BTreeMap<String, usize>) {
    match value {
        Value::Array(list) => {
            found.insert(path.to_owned(), list.len());
        }
        Value::Object(entries) if BY_KEY.contains(&path) => {
            found.insert(path.to_owned(), entries.len());
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                inventory(&format!("{path}.{name}"), value, found);
            }
        }
        Value::String(_) => assert!(path.ends_with(".note"), "{path}"),
        _ => {
            found.insert(path.to_owned(), 1);
        }
    }
}

/// The cases of a section.
fn entries(path: &str) -> Vec<Value> {
    let section = path.split('.').fold(cases(), |value, key| &value[key]);
    match section {
        Value::Array(list) => list.clone(),
        Value::Object(entries) => entries
            .iter()
            .map(|(name, value)| json!({ "name": name, "value": value }))
            .collect(),
        value => vec![value.clone()],
    }
}

fn exact() -> f64 {
    tolerance("closed_form_and_solved")
}

/// A document with further fields.
fn with(document: &Value, more: &Value) -> Value {
    let mut all = document.clone();
    let fields = all.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    all
}

fn assert_within(value: &Value, band: &Value, what: &str) {
    let (value, low, high) = (number(value), number(&band[0]), number(&band[1]));
    assert!(
        (low..=high).contains(&value),
        "{what}: {value} not in [{low}, {high}]"
    );
}

fn homogeneous(case: &Value) {
    let answer = ask("lopc", &case["in"]);
    assert_matches(&answer, &case["out"], exact(), "lopc");
    assert_matches(
        &answer["bard_schweitzer_R"],
        &case["bard_schweitzer_R"],
        exact(),
        "Bard–Schweitzer",
    );
    assert_matches(
        &answer["mva_R"],
        &case["mva_R"],
        tolerance("mva_recursions"),
        "MVA",
    );
}

fn right_hand_side(case: &Value) {
    assert_matches(
        &ask("lopc", &case["in"]),
        &json!({ "F": case["F"] }),
        exact(),
        "F",
    );
}

fn contention_bound(case: &Value) {
    for (variant, protocol_processor) in [("interrupt", false), ("protocol_processor", true)] {
        let document = json!({
            "P": 9, "W": 50, "So": 3, "Sl": 1, "C2": case["C2"], "protocol_processor": protocol_processor
        });
        let found = &ask("lopc", &document)["bound_handlers"];
        assert_matches(found, &case[variant], exact(), variant);
    }
}

fn client_server(case: &Value) {
    let answer = ask("client-server", &case["in"]);
    assert_matches(&answer, &case["out"], exact(), "client-server");
    assert_matches(
        &answer["mva_X"],
        &case["mva_X"],
        tolerance("mva_recursions"),
        "MVA",
    );
}

fn client_server_optimum(case: &Value) {
    assert!(case["in"].get("Ps").is_none());
    assert_matches(
        &ask("client-server", &case["in"]),
        &case["out"],
        exact(),
        "optimum",
    );
}

fn general(case: &Value) {
    let label = case["label"].as_str().unwrap();
    let answer = ask("general", &case["in"]);
    assert_matches(&answer, &case["out"], tolerance("general"), label);
    let sharper = &answer["bard_schweitzer_R"];
    assert_matches(
        sharper,
        &case["bard_schweitzer_R"],
        tolerance("general"),
        label,
    );
    // The recursion over subsets leaves its range here and there: the case has no or a negative cycle.
    let meaningful = case["mva_R"]
        .as_array()
        .is_some_and(|cycles| cycles.iter().all(|r| r.as_f64().is_none_or(|r| r > 0.0)));
    let wanted = if meaningful {
        case["mva_R"].clone()
    } else {
        Value::Null
    };
    assert_matches(
        &answer["mva_R"],
        &wanted,
        tolerance("mva_recursions"),
        label,
    );
}

fn sparse_matrix(case: &Value) {
    let document = json!({
        "P": case["P"], "rows": 13000, "nonzeros": 654_800, "multiply_add_cycles": 59, "So": 145, "Sl": 6
    });
    assert_matches(
        &ask("lopc", &document),
        case,
        exact(),
        "sparse matrix–vector",
    );
}

fn mesh_hops(case: &Value) {
    let document = json!({
        "P": case["P"], "W": 10, "So": 1, "Sl": 1, "network": { "mesh": { "columns": case["cols"] } },
        "warmup": 0, "cycles": 100
    });
    assert_matches(
        &ask("simulate", &document)["mean_hops"],
        &case["mean"],
        1e-12,
        "mean hops",
    );
}

fn claims(case: &Value) {
    let document = with(
        &case["in"],
        &json!({ "network": { "mesh": { "columns": 16 } }, "warmup": 20000 }),
    );
    let answer = ask("simulate", &document);
    let accept = &case["accept"];
    assert_matches(
        &answer["R"],
        &case["sim_R"],
        number(&accept["sim_R_percent"]) / 100.0,
        "R",
    );
    let mut claims = 0;
    for (claim, band) in accept.as_object().unwrap() {
        if claim != "sim_R_percent" {
            assert_within(&answer["model"][claim], band, claim);
            claims += 1;
        }
    }
    assert!(claims > 0);
}

fn exactness(case: &Value) {
    let allowed = number(&case["accept_percent"]) / 100.0;
    let answer = ask("simulate", &case["in"]);
    assert_matches(&answer["R"], &case["mva_R"], allowed, "R");
    assert_matches(&answer["R"], &case["sim_R"], allowed, "R");
    assert_matches(
        &ask("lopc", &case["in"])["mva_R"],
        &case["mva_R"],
        tolerance("mva_recursions"),
        "MVA",
    );
}

fn work_pile(case: &Value) {
    let more = json!({
        "Ps": "best", "network": { "mesh": { "columns": 16 } }, "warmup": 5000, "cycles": 40000
    });
    let answer = ask("simulate", &with(&case["in"], &more));
    assert_matches(&answer["X_opt"], &case["X_opt"], exact(), "X_opt");
    assert_matches(&answer["Ps_opt"], &case["Ps_opt"], exact(), "Ps_opt");
    assert_matches(
        &answer["sim_best_X"],
        &case["sim_best_X"],
        0.01,
        "sim_best_X",
    );
    let (found, wanted) = (number(&answer["sim_best_Ps"]), number(&case["sim_best_Ps"]));
    assert!(
        (found - wanted).abs() <= 1.0,
        "{found} servers, wanted {wanted}"
    );
    assert_within(
        &answer["error_percent"],
        &case["accept_error_percent"],
        "error",
    );
}

/// Printed inputs are whole microseconds: 0.15 % or 3.5 µs.
fn assert_printed(found: &Value, printed: &Value, what: &str) {
    let (found, printed) = (number(found), number(printed));
    let allowed = (0.0015 * printed).max(3.5);
    assert!(
        (found - printed).abs() <= allowed,
        "{what}: found {found}, printed {printed}"
    );
}

fn printed_tables(case: &Value) {
    let document = json!({ "network": case["network"], "op": case["op"] });
    let (table, network) = (
        case["table"].as_str().unwrap(),
        case["network"].as_str().unwrap(),
    );
    let tables = &tables()["parsons"];
    if table == "table6" {
        assert_matches(&ask("dvsm", &document), &case["out"], exact(), table);
        // Table 6 fits without the software header.
        let bare = with(
            &tables["table2"][network],
            &json!({ "software_overhead_bytes": 0 }),
        );
        let answer = ask("dvsm", &with(&document, &json!({ "network": bare })));
        assert_printed(&answer["total"], &case["printed_total"], table);
        let wanted = case.get("out_without_sw_header").unwrap_or(&case["out"]);
        assert_matches(&answer, wanted, exact(), table);
    } else {
        let column = number(&case["phase"]) as usize - 1;
        let most = &tables[table][network][column]["max_signal_handling"];
        let answer = ask(
            "dvsm",
            &with(&document, &json!({ "max_signal_handling": most })),
        );
        assert_matches(&answer, &case["out"], exact(), table);
        assert_matches(
            &answer["max_dest_total"],
            &case["max_dest_total"],
            exact(),
            table,
        );
        assert_printed(&answer["total"], &case["sum_of_printed_entries"], table);
        assert_printed(
            &answer["max_dest_total"],
            &case["sum_max_of_printed_entries"],
            table,
        );
    }
}

/// The largest error of a total against the sum of the printed entries of its column, Tables 4 and 5.
fn printed_error(stated: &Value) {
    let mut worst: f64 = 0.0;
    for table in ["table4", "table5"] {
        let table = &tables()["parsons"][table];
        for network in ["fast_ethernet", "atm"] {
            let columns = table[network].as_array().unwrap();
            let replies = table["reply_bytes_by_phase"].as_array().unwrap();
            for (column, reply) in columns.iter().zip(replies) {
                let mut op = json!({
                    "request": table["request_bytes"], "reply": reply,
                    "handler": column["handler_compute"], "delay": column["remote_delay"],
                });
                for name in [
                    "parts",
                    "extra_send",
                    "extra_recv",
                    "signal",
                    "remote_compute",
                    "extra_dest",
                ] {
                    op[name] = column[name].clone();
                }
                let answer = ask("dvsm", &json!({ "network": network, "op": op }));
                worst = worst.max((number(&answer["total"]) - number(&column["sum"])).abs());
            }
        }
    }
    assert_close(worst, number(stated), 1e-6, "largest error");
}

/// A DVSM document with the named network and the technology spelt out.
fn on_system(case: &Value, more: &Value) -> Value {
    let technology = &cases()["dvsm"]["techs"][case["tech"].as_str().unwrap()];
    with(
        &json!({ "network": case["network"], "tech": technology }),
        more,
    )
}

fn what_if(case: &Value) {
    let answer = ask(
        "dvsm",
        &on_system(case, &json!({ "kind": case["kind"], "op": case["op"] })),
    );
    assert_matches(&answer, &case["out"], exact(), "operation");
    for field in ["prefetched", "service"] {
        if let Some(wanted) = case.get(field) {
            assert_matches(&answer[field], wanted, exact(), field);
        }
    }
    // The kind shows in the fields.
    assert_eq!(
        ask("dvsm", &on_system(case, &json!({ "op": case["op"] }))),
        answer
    );
}

fn primitive(case: &Value) {
    let answer = ask("dvsm", &on_system(case, &json!({ "bytes": case["bytes"] })));
    let mut wanted = case.clone();
    for field in ["network", "bytes", "tech"] {
        wanted.as_object_mut().unwrap().remove(field).unwrap();
    }
    assert_matches(&answer, &wanted, exact(), "message");
}

fn barrier(case: &Value) {
    let answer = ask(
        "dvsm",
        &on_system(case, &json!({ "op": case["op"], "procs": case["procs"] })),
    );
    assert_matches(&answer, &case["out"], exact(), "barrier");
}

fn application(case: &Value) {
    let (mut times, mut reductions) = (0, 0);
    for result in case["results"].as_array().unwrap() {
        let document = on_system(
            result,
            &json!({
                "name": case["name"], "sequential_us": case["sequential_us"], "phases": case["phases"],
                "overhead_reduction_vs": result.get("overhead_reduction_vs"),
            }),
        );
        let answer = ask("dvsm", &document);
        let what = format!("{} {} {}", case["name"], result["network"], result["tech"]);
        if result.get("overhead_reduction_vs").is_some() {
            let (found, wanted) = (
                number(&answer["overhead_reduction"]),
                number(&result["value"]),
            );
            assert!(
                (found - wanted).abs() < 1e-9,
                "{what}: {found}, wanted {wanted}"
            );
            reductions += 1;
        } else {
            let mut wanted = result.clone();
            wanted
                .as_object_mut()
                .unwrap()
                .retain(|name, _| name != "network" && name != "tech");
            assert_matches(&answer, &wanted, exact(), &what);
            times += 1;
        }
    }
    assert!(times > 0 && reductions > 0);
}

/// A what-if by its name is the one spelt out.
fn technology(case: &Value) {
    let price = |tech: &Value| {
        ask(
            "dvsm",
            &json!({ "network": "atm", "tech": tech, "bytes": 100 }),
        )
    };
    assert_eq!(price(&case["name"]), price(&case["value"]));
}

fn configuration(case: &Value) {
    let document = with(&json!({}), case);
    let mut document = document.as_object().unwrap().clone();
    let modes = document.remove("modes").unwrap();
    let all = ask("memhier", &document.clone().into());
    assert_matches(&all, &modes, exact(), "all modes");
    for (mode, wanted) in modes.as_object().unwrap() {
        document.insert("mode".to_owned(), mode.as_str().into());
        let one = ask("memhier", &document.clone().into());
        assert_matches(&one, wanted, exact(), mode);
    }
}

fn machine(case: &Value) {
    assert_matches(
        &ask("memhier", &case["in"]),
        &case["out"],
        exact(),
        "machine",
    );
}

/// A document of these fields of the case.
fn only(case: &Value, fields: &[&str]) -> Value {
    fields
        .iter()
        .map(|name| ((*name).to_owned(), case[name].clone()))
        .collect()
}

fn locality(case: &Value) {
    let answer = ask("memhier", &only(case, &["x", "alpha", "beta", "procs"]));
    assert_matches(
        &answer,
        &only(case, &["tail", "cdf", "pdf"]),
        exact(),
        "locality",
    );
}

fn queue(case: &Value) {
    let answer = ask("memhier", &only(case, &["tau", "Lam", "C2"]));
    assert_matches(&answer, &only(case, &["response"]), exact(), "response");
}

fn stack_distance(case: &Value) {
    let sizes = case["lru_hits_by_size"].as_object().unwrap().keys();
    let sizes: Vec<u64> = sizes.map(|size| size.parse().unwrap()).collect();
    let document = json!({ "trace": case["trace"], "distances": true, "lru_sizes": sizes });
    let answer = ask("fit", &document);
    assert_eq!(answer["distances"], case["distances"]);
    assert_eq!(answer["lru_hits_by_size"], case["lru_hits_by_size"]);
}

fn fit(case: &Value) {
    let answer = ask("fit", &only(case, &["points"]));
    assert_matches(
        &answer,
        &only(case, &["alpha", "beta"]),
        number(&case["tolerance"]),
        "fit",
    );
}
