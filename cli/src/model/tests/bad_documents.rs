//! What is wrong with a document is said by the name of the field.

use serde_json::{Value, json};

use super::refusal;

/// Refused with a message that begins with the field's name.
fn assert_names(field: &str, model: &str, document: &Value) {
    let message = refusal(model, &document.to_string());
    assert!(
        message.starts_with(&format!("{field}: ")),
        "{model} {document}: {message}"
    );
}

#[test]
fn values_out_of_range() {
    for (field, model, document) in [
        ("P", "lopc", json!({ "P": 1, "W": 0, "So": 1, "Sl": 1 })),
        ("P", "lopc", json!({ "P": -3, "W": 0, "So": 1, "Sl": 1 })),
        ("P", "lopc", json!({ "P": 2.5, "W": 0, "So": 1, "Sl": 1 })),
        ("W", "lopc", json!({ "P": 2, "W": -1, "So": 1, "Sl": 1 })),
        ("So", "lopc", json!({ "P": 2, "W": 0, "So": -1, "Sl": 1 })),
        ("Sl", "lopc", json!({ "P": 2, "W": 0, "So": 1, "Sl": -1 })),
        (
            "C2",
            "lopc",
            json!({ "P": 2, "W": 0, "So": 1, "Sl": 1, "C2": -0.5 }),
        ),
        ("W", "lopc", json!({ "P": 2, "W": 0, "So": 0, "Sl": 0 })),
        ("W", "lopc", json!({ "P": 2, "W": null, "So": 1, "Sl": 1 })),
        (
            "W",
            "lopc",
            json!({ "P": 2, "W": "long", "So": 1, "Sl": 1 }),
        ),
        (
            "protocol_processor",
            "lopc",
            json!({ "P": 2, "W": 1, "So": 1, "Sl": 1, "protocol_processor": 1 }),
        ),
        (
            "R",
            "lopc",
            json!({ "P": 2, "R": 1, "W": 0, "So": 1, "Sl": 1 }),
        ),
        (
            "Ps",
            "client-server",
            json!({ "P": 8, "Ps": 8, "W": 1, "So": 1, "Sl": 1 }),
        ),
        (
            "Ps",
            "client-server",
            json!({ "P": 8, "Ps": 0, "W": 1, "So": 1, "Sl": 1 }),
        ),
        (
            "P",
            "client-server",
            json!({ "P": 1, "W": 1, "So": 1, "Sl": 1 }),
        ),
        (
            "So",
            "client-server",
            json!({ "P": 8, "W": 1, "So": 0, "Sl": 1 }),
        ),
        (
            "V",
            "general",
            json!({ "V": [[0]], "W": [1], "So": 1, "Sl": 1 }),
        ),
        (
            "V[1]",
            "general",
            json!({ "V": [[0, 1], [1]], "W": [1, 1], "So": 1, "Sl": 1 }),
        ),
        (
            "V[0][1]",
            "general",
            json!({ "V": [[0, -1], [1, 0]], "W": [1, 1], "So": 1, "Sl": 1 }),
        ),
        (
            "V[1][0]",
            "general",
            json!({ "V": [[0, 1], ["x", 0]], "W": [1, 1], "So": 1, "Sl": 1 }),
        ),
        (
            "V[1][0]",
            "general",
            json!({ "V": [[0, 1], [1, 0]], "W": [1, null], "So": 1, "Sl": 1 }),
        ),
        (
            "W",
            "general",
            json!({ "V": [[0, 1], [1, 0]], "W": [1], "So": 1, "Sl": 1 }),
        ),
        (
            "W[1]",
            "general",
            json!({ "V": [[0, 1], [1, 0]], "W": [1, -1], "So": 1, "Sl": 1 }),
        ),
        (
            "P",
            "simulate",
            json!({ "P": 100_000, "W": 1, "So": 1, "Sl": 1 }),
        ),
        (
            "P",
            "simulate",
            json!({ "P": 100_000, "Ps": 5, "W": 1, "So": 1, "Sl": 1 }),
        ),
        (
            "Ps",
            "simulate",
            json!({ "P": 10, "Ps": 2.5, "W": 1, "So": 1, "Sl": 1 }),
        ),
        (
            "cycles",
            "simulate",
            json!({ "P": 10, "W": 1, "So": 1, "Sl": 1, "cycles": 0 }),
        ),
        (
            "cycles",
            "simulate",
            json!({ "P": 10, "W": 1, "So": 1, "Sl": 1, "cycles": 1_000_000_000_000_000_u64 }),
        ),
        (
            "seed",
            "simulate",
            json!({ "P": 10, "W": 1, "So": 1, "Sl": 1, "seed": -1 }),
        ),
        (
            "columns",
            "simulate",
            json!({ "P": 10, "W": 1, "So": 1, "Sl": 1, "network": { "mesh": { "columns": 0 } } }),
        ),
        (
            "tech",
            "dvsm",
            json!({ "network": "atm", "tech": "warp", "bytes": 1 }),
        ),
        (
            "tech.speed",
            "dvsm",
            json!({ "network": "atm", "tech": { "speed": "fast" }, "bytes": 1 }),
        ),
        (
            "tech: speed",
            "dvsm",
            json!({ "network": "atm", "tech": { "speed": 0 }, "bytes": 1 }),
        ),
        (
            "network",
            "dvsm",
            json!({ "network": "token ring", "bytes": 1 }),
        ),
        ("bytes", "dvsm", json!({ "network": "atm", "bytes": -1 })),
        (
            "op.parts",
            "dvsm",
            json!({ "network": "atm", "op": { "parts": 0, "request": 1, "reply": 1 } }),
        ),
        (
            "op.reply",
            "dvsm",
            json!({ "network": "atm", "op": { "parts": 1, "request": 1, "reply": -1 } }),
        ),
        (
            "op.messages",
            "dvsm",
            json!({ "network": "atm", "op": { "messages": 1, "request": 1, "reply": 1 } }),
        ),
        (
            "procs",
            "dvsm",
            json!({ "network": "atm", "op": { "arrive_bytes": 1, "release_bytes": 1 }, "procs": 0 }),
        ),
        (
            "phases",
            "dvsm",
            json!({ "network": "atm", "sequential_us": 1, "phases": [] }),
        ),
        (
            "phases[0].procs[0].busy",
            "dvsm",
            json!({ "network": "atm", "sequential_us": 1, "phases": [
                { "procs": [{ "busy": -1 }], "barrier": { "arrive_bytes": 1, "release_bytes": 1 } }
            ] }),
        ),
        ("tau", "memhier", json!({ "tau": 1, "Lam": 1 })),
        (
            "config",
            "memhier",
            json!({ "config": "C16", "program": "FFT" }),
        ),
        (
            "program",
            "memhier",
            json!({ "config": "C1", "program": "Quicksort" }),
        ),
        ("alpha", "memhier", json!({ "x": 1, "alpha": 1, "beta": 1 })),
        (
            "memory",
            "memhier",
            json!({ "config": "C1", "program": "FFT", "memory": 1 }),
        ),
        (
            "net.remote_cycles",
            "memhier",
            json!({ "config": "C7", "program": "FFT", "net": { "sharing": "bus", "remote_cycles": "x" } }),
        ),
        (
            "points[1][1]",
            "fit",
            json!({ "points": [[1, 0.1], [2, 1.2], [3, 0.4]] }),
        ),
        (
            "points[0][1]",
            "fit",
            json!({ "points": [[4, 0.3], [1, 0.1], [2, 0.4], [8, 0.5]] }),
        ),
        (
            "points[2][1]",
            "fit",
            json!({ "points": [[1, 0.1], [2, 0.3], [2, 0.4], [8, 0.5]] }),
        ),
        ("points", "fit", json!({ "points": [[1, 0.1], [2, 0.2]] })),
        ("trace", "fit", json!({ "trace": [1, 2, 3] })),
        ("trace[1]", "fit", json!({ "trace": [1, -2, 3] })),
        (
            "machines",
            "cluster",
            json!({ "budget": 1, "program": "FFT", "machines": [], "caches": [], "memories": [] }),
        ),
        (
            "budget",
            "cluster",
            json!({ "budget": -1, "program": "FFT", "machines": [], "caches": [], "memories": [] }),
        ),
    ] {
        assert_names(field, model, &document);
    }
}

#[test]
fn fields_that_are_missing_or_unknown() {
    for (message, model, document) in [
        (
            "missing field `So`",
            "lopc",
            json!({ "P": 2, "W": 0, "Sl": 1 }),
        ),
        (
            "unknown field `Pz`",
            "lopc",
            json!({ "P": 2, "Pz": 2, "W": 0, "So": 1, "Sl": 1 }),
        ),
        (
            "unknown field `servers`",
            "client-server",
            json!({ "P": 2, "servers": 2, "W": 0, "So": 1, "Sl": 1 }),
        ),
        (
            "unknown field `P`",
            "general",
            json!({ "P": 2, "V": [[0, 1], [1, 0]], "W": [1, 1], "So": 1, "Sl": 1 }),
        ),
        (
            "unknown field `threads`",
            "simulate",
            json!({ "P": 2, "threads": 2, "W": 0, "So": 1, "Sl": 1 }),
        ),
        (
            "missing field `P`",
            "simulate",
            json!({ "W": 0, "So": 1, "Sl": 1 }),
        ),
        ("missing field `network`", "dvsm", json!({ "bytes": 1 })),
        ("`op`", "dvsm", json!({ "network": "atm" })),
        (
            "unknown field `byte`",
            "dvsm",
            json!({ "network": "atm", "bytes": 1, "byte": 1 }),
        ),
        (
            "op: unknown field `part`",
            "dvsm",
            json!({ "network": "atm", "op": { "part": 1, "parts": 1, "request": 1, "reply": 1 } }),
        ),
        (
            "missing field `procs`",
            "dvsm",
            json!({ "network": "atm", "op": { "arrive_bytes": 1, "release_bytes": 1 } }),
        ),
        (
            "missing field `program`",
            "memhier",
            json!({ "config": "C1" }),
        ),
        (
            "unknown field `cash`",
            "memhier",
            json!({ "config": "C1", "program": "FFT", "cash": 1 }),
        ),
        (
            "unknown field `xmax`",
            "fit",
            json!({ "points": [], "xmax": 1 }),
        ),
        (
            "unknown field `budgets`",
            "cluster",
            json!({ "budgets": 1 }),
        ),
    ] {
        let found = refusal(model, &document.to_string());
        assert!(found.contains(message), "{model} {document}: {found}");
    }
}

/// Where a result overflows, the number farthest from all others is named, and the result.
#[test]
fn numbers_too_far_apart() {
    for (field, model, document) in [
        (
            "W",
            "lopc",
            json!({ "P": 2, "W": 1.7e308, "So": 1e308, "Sl": 1 }),
        ),
        (
            "So",
            "lopc",
            json!({ "P": 2, "W": 1, "So": 1e308, "Sl": 1 }),
        ),
        (
            "C2",
            "lopc",
            json!({ "P": 2, "W": 1, "So": 1e10, "Sl": 1, "C2": 1e305 }),
        ),
        (
            "Sl",
            "lopc",
            json!({ "P": 2, "W": 0, "So": 0, "Sl": 5e-324 }),
        ),
        (
            "Sl",
            "client-server",
            json!({ "P": 8, "Ps": 2, "W": 1, "So": 1, "Sl": 1e308 }),
        ),
        (
            "C2",
            "client-server",
            json!({ "P": 8, "W": 1, "So": 1, "Sl": 1, "C2": 1e308 }),
        ),
        (
            "V[1][0]",
            "general",
            json!({ "V": [[0, 1], [1e308, 0]], "W": [1, 1], "So": 100, "Sl": 1 }),
        ),
        (
            "W[0]",
            "general",
            json!({ "V": [[0, 1], [1, 0]], "W": [1.7e308, 1], "So": 1e307, "Sl": 1e307 }),
        ),
        (
            "So",
            "simulate",
            json!({ "P": 4, "W": 1, "So": 1e306, "Sl": 1 }),
        ),
        (
            "C2",
            "memhier",
            json!({ "tau": 1e200, "Lam": 9e-201, "C2": 1e300 }),
        ),
    ] {
        assert_names(field, model, &document);
    }
}

#[test]
fn fields_given_twice() {
    for (field, model, text) in [
        (
            "P",
            "simulate",
            r#"{"P": 4, "W": 1, "P": 8, "So": 1, "Sl": 1}"#,
        ),
        (
            "Ps",
            "simulate",
            r#"{"P": 4, "Ps": 1, "Ps": 2, "W": 1, "So": 1, "Sl": 1}"#,
        ),
        ("P", "lopc", r#"{"P": 2, "P": 4, "W": 0, "So": 1, "Sl": 1}"#),
        (
            "speed",
            "dvsm",
            r#"{"network": "atm", "tech": {"speed": 1, "speed": 2}, "bytes": 1}"#,
        ),
        ("x_max", "fit", r#"{"points": [], "x_max": 1, "x_max": 2}"#),
    ] {
        let message = refusal(model, text);
        let expected = format!("duplicate field `{field}`");
        assert!(message.contains(&expected), "{model}: {message}");
    }
}

/// The recursion of MVA takes a step per client: beyond ten million its answer is null, and does not take for ever.
#[test]
fn four_billion_processors_are_answered() {
    let document = json!({ "P": 4_000_000_000_u32, "Ps": 5, "W": 1, "So": 1, "Sl": 1 });
    let answer = super::ask("client-server", &document);
    assert_eq!(answer["mva_X"], Value::Null);
    assert!(answer["X"].as_f64().unwrap() > 0.0);
}

#[test]
fn what_is_no_json() {
    let message = refusal("lopc", r#"{"P": 2, "W": NaN, "So": 1, "Sl": 1}"#);
    assert!(
        message.starts_with("W: ") && message.contains("line 1"),
        "{message}"
    );
    let message = refusal("lopc", r#"{"P": 2, "W": 1e999, "So": 1, "Sl": 1}"#);
    assert!(message.starts_with("W: number out of range"), "{message}");
    for text in ["", "[1]", "7", "{} {}", "{\"P\": 2"] {
        refusal("lopc", text);
        refusal("memhier", text);
        refusal("dvsm", text);
        refusal("fit", text);
    }
}

/// Saturation is told, not computed: in the open formula as an answer, in the closed one it cannot happen.
#[test]
fn a_saturated_level_has_no_number() {
    let document = json!({ "config": "C1", "program": "FFT", "mode": "open" });
    let answer = super::ask("memhier", &document);
    assert_eq!(answer["E"], Value::Null);
    assert_eq!(answer["saturated"], json!(["memory", "disk"]));
    let message = refusal("memhier", r#"{"tau": 2, "Lam": 0.6}"#);
    assert!(message.contains("saturated"), "{message}");
}
