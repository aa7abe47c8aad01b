//! The models as the command line offers them: every evaluated case, what is wrong with bad documents, curves,
//! and the examples of the guide.

#![allow(clippy::unwrap_used)] // a test may

mod bad_documents;
mod cases;
#[path = "../../../../model/tests/models/common.rs"]
mod common;

use clap::Parser;
use serde_json::{Value, json};

use super::answer;
use crate::args::{Cli, Command, ModelCommand};

/// The command as the user would type it.
fn command(model: &str) -> ModelCommand {
    let line = ["dosmos", "model", model, "--input", "document.json"];
    match Cli::try_parse_from(line).unwrap().command {
        Command::Model { command } => command,
        other => panic!("{other:?}"),
    }
}

/// The answer to a document.
fn ask(model: &str, document: &Value) -> Value {
    answer(&command(model), &document.to_string()).unwrap_or_else(|e| panic!("{e:#} in {document}"))
}

/// Why there is no answer to a text.
fn refusal(model: &str, text: &str) -> String {
    match answer(&command(model), text) {
        Ok(answer) => panic!("{model} answers {text} with {answer}"),
        Err(e) => format!("{e:#}"),
    }
}

#[test]
fn curves_show_what_was_asked_and_its_bounds() {
    let lopc = json!({ "P": 32, "W": 1000, "So": 200, "Sl": 6 });
    let pile = json!({ "P": 32, "Ps": 3, "W": 500, "So": 131, "Sl": 6 });
    let case = common::section(&["dvsm", "applications"]).swap_remove(1);
    let application = json!({
        "name": case["name"], "sequential_us": case["sequential_us"], "phases": case["phases"], "network": "atm"
    });
    for (model, document, labels) in [
        ("lopc", &lopc, &["asked", "LogP", "3.452"][..]),
        ("client-server", &pile, &["asked", "best: ", "P_s/S_o"]),
        (
            "dvsm",
            &application,
            &["asked", "b = 0.5", "processor speed"],
        ),
    ] {
        let svg = super::curve(&command(model), &document.to_string()).unwrap();
        assert!(svg.starts_with("<svg "));
        for label in labels {
            assert!(svg.contains(label), "{model}: no {label} in {svg}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{model}");
    }
    let fault =
        json!({ "network": "atm", "op": { "parts": 1, "request": 12, "reply": 20 } }).to_string();
    let refused = super::curve(&command("dvsm"), &fault).unwrap_err();
    assert!(format!("{refused:#}").contains("phases"), "{refused:#}");
}

/// Every block marked as a document of a model in the guide has an answer.
#[test]
fn the_examples_of_the_guide_have_answers() {
    let guide = include_str!("../../../../docs/guide/models.md");
    let mut blocks = 0;
    for block in guide.split("```json ").skip(1) {
        let (model, rest) = block.split_once('\n').unwrap();
        let (document, _) = rest.split_once("```").unwrap();
        answer(&command(model.trim()), document)
            .unwrap_or_else(|e| panic!("{model}: {e:#} in {document}"));
        blocks += 1;
    }
    assert!(
        blocks >= 8,
        "an example for each of the models, not {blocks}"
    );
}
