//! What the case tests share: the evaluated cases and tables, and a comparison of JSON values.

#![allow(dead_code, reason = "each test binary uses its own part")]

use std::sync::LazyLock;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The evaluated cases.
pub(crate) fn cases() -> &'static Value {
    static CASES: LazyLock<Value> =
        LazyLock::new(|| from_text(include_str!("../data/model-cases.json")));
    &CASES
}

/// The papers' tables.
pub(crate) fn tables() -> &'static Value {
    static TABLES: LazyLock<Value> =
        LazyLock::new(|| from_text(include_str!("../data/tables.json")));
    &TABLES
}

fn from_text(text: &str) -> Value {
    serde_json::from_str(text).expect("the data file is JSON")
}

/// A section of the cases as a list that is not empty.
pub(crate) fn section(path: &[&str]) -> Vec<Value> {
    let mut value = cases();
    for key in path {
        value = &value[key];
    }
    let list = value
        .as_array()
        .unwrap_or_else(|| panic!("{path:?} is not a list"))
        .clone();
    assert!(!list.is_empty(), "{path:?} is empty");
    list
}

/// The tolerance that the cases state for a kind of result.
pub(crate) fn tolerance(kind: &str) -> f64 {
    cases()["meta"]["tolerance"][kind]
        .as_f64()
        .expect("a stated tolerance")
}

/// Reads an input as the command line would.
pub(crate) fn read<T: DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_else(|e| panic!("{e} in {value}"))
}

/// A number.
pub(crate) fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is not a number"))
}

/// Fails unless `found` is within `tolerance`, relative (absolute below 1e-9, where relative means
/// nothing).
pub(crate) fn assert_close(found: f64, wanted: f64, tolerance: f64, what: &str) {
    let allowed = tolerance * wanted.abs().max(1e-9);
    assert!(
        (found - wanted).abs() <= allowed,
        "{what}: found {found:?}, wanted {wanted:?}"
    );
}

/// Fails unless every field of `wanted` is in the serialised `found` and agrees.
pub(crate) fn assert_matches(found: &impl Serialize, wanted: &Value, tolerance: f64, what: &str) {
    let found = serde_json::to_value(found).expect("outputs serialise");
    compare(&found, wanted, tolerance, what);
}

fn compare(found: &Value, wanted: &Value, tolerance: f64, what: &str) {
    match wanted {
        Value::Object(fields) => {
            assert!(
                !fields.is_empty() || found == wanted,
                "{what}: {found} is not empty"
            );
            for (key, value) in fields {
                let field = found
                    .get(key)
                    .unwrap_or_else(|| panic!("{what}: no field {key}"));
                compare(field, value, tolerance, &format!("{what}.{key}"));
            }
        }
        Value::Array(items) => {
            let list = found
                .as_array()
                .unwrap_or_else(|| panic!("{what}: {found} is not a list"));
            assert_eq!(list.len(), items.len(), "{what}: length");
            for (i, (f, w)) in list.iter().zip(items).enumerate() {
                compare(f, w, tolerance, &format!("{what}[{i}]"));
            }
        }
        Value::Number(_) => assert_close(number(found), number(wanted), tolerance, what),
        _ => assert_eq!(found, wanted, "{what}"),
    }
}
