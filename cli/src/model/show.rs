//! An answer as tables: numbers and words first, then the lists, one row per node, then lists of things.

use serde_json::{Map, Value};

use crate::args::Format;
use crate::output::Table;

/// The tables of an answer, with empty lines between them.
pub(super) fn tables(answer: &Value, format: Format) -> String {
    let mut single = Table::new(&["quantity", "value"]);
    let mut lists: Vec<(String, &Vec<Value>)> = Vec::new();
    let mut things: Vec<(String, &Vec<Value>)> = Vec::new();
    let mut parts = Vec::new();
    if let Value::Object(fields) = answer {
        let mut any = false;
        flatten("", fields, &mut |name, value| match value {
            Value::Array(items) if items.first().is_some_and(Value::is_object) => {
                things.push((name, items));
            }
            Value::Array(items) if !items.is_empty() => lists.push((name, items)),
            value => {
                any = true;
                single.row([name, cell(value)]);
            }
        });
        if any {
            parts.push(single.render(format));
        }
    }
    while let Some((_, first)) = lists.first() {
        let length = first.len();
        let (alike, rest): (Vec<_>, Vec<_>) = lists
            .into_iter()
            .partition(|(_, items)| items.len() == length);
        parts.push(columns(&alike, length, format));
        lists = rest;
    }
    for (name, items) in things {
        parts.push(rows(&name, items, format));
    }
    parts.join("\n")
}

/// Things of one kind, one per row; the fields of the first are the columns.
fn rows(name: &str, items: &[Value], format: Format) -> String {
    let mut headers = vec![name.to_owned()];
    if let Some(Value::Object(first)) = items.first() {
        flatten("", first, &mut |field, _| headers.push(field));
    }
    let mut table = Table::new(&headers);
    for (i, item) in items.iter().enumerate() {
        let mut cells = vec![i.to_string()];
        if let Value::Object(fields) = item {
            flatten("", fields, &mut |_, value| cells.push(cell(value)));
        }
        table.row(cells);
    }
    table.render(format)
}

/// What the reader asked for comes first, then its parts; the rest follows by name.
const FIRST: [&str; 27] = [
    "R",
    "R_standard_error",
    "X",
    "X_total",
    "Ps_best_int",
    "X_best_int",
    "Ps_opt",
    "X_opt",
    "E",
    "T",
    "total",
    "time_us",
    "efficiency",
    "overhead_us",
    "alpha",
    "beta",
    "R_logp",
    "contention",
    "Rw",
    "Rq",
    "Ry",
    "Rs",
    "Qq",
    "Qy",
    "Uq",
    "Uy",
    "best",
];

fn rank(name: &str) -> usize {
    let position = FIRST.iter().position(|first| *first == name);
    position.unwrap_or(FIRST.len())
}

/// Visits every leaf under its dotted name.
fn flatten<'a>(
    prefix: &str,
    fields: &'a Map<String, Value>,
    visit: &mut impl FnMut(String, &'a Value),
) {
    let mut fields: Vec<_> = fields.iter().collect();
    // Stable: by name within a rank.
    fields.sort_by_key(|(name, _)| rank(name));
    for (name, value) in fields {
        let name = format!("{prefix}{name}");
        match value {
            Value::Object(inner) => flatten(&format!("{name}."), inner, visit),
            value => visit(name, value),
        }
    }
}

/// Lists of one length side by side.
fn columns(lists: &[(String, &Vec<Value>)], length: usize, format: Format) -> String {
    let mut headers = vec!["#".to_owned()];
    headers.extend(lists.iter().map(|(name, _)| name.clone()));
    let mut table = Table::new(&headers);
    for i in 0..length {
        let values = lists.iter().map(|(_, items)| cell(&items[i]));
        table.row(std::iter::once(i.to_string()).chain(values));
    }
    table.render(format)
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::Array(items) if items.is_empty() => "-".to_owned(),
        Value::Number(number) if number.is_f64() => figure(number.as_f64().unwrap_or(f64::NAN)),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

/// Six significant digits.
fn figure(x: f64) -> String {
    let magnitude = x.abs();
    if magnitude == 0.0 || (1e-4..1e9).contains(&magnitude) {
        // Zeros after the point are no digits either.
        let decimals = if magnitude == 0.0 {
            0
        } else if magnitude < 1.0 {
            6 + (-magnitude.log10()).floor() as usize
        } else {
            6usize.saturating_sub(magnitude.log10() as usize)
        };
        let text = format!("{x:.decimals$}");
        match text.contains('.') {
            true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
            false => text,
        }
    } else {
        format!("{x:.5e}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_first_then_lists_of_one_length_together() {
        let answer =
            json!({ "R": [1.5, null], "X": 0.25, "solver": { "steps": 3 }, "W": [2.0, 1e-7] });
        let text = tables(&answer, Format::Csv).replace("\r\n", "\n");
        assert_eq!(
            text,
            "quantity,value\nX,0.25\nsolver.steps,3\n\n#,R,W\n0,1.5,2\n1,-,1.00000e-7\n"
        );
    }

    #[test]
    fn things_are_rows_and_what_was_asked_comes_first() {
        let answer = json!({
            "Qq": 1, "R": 2, "list": [{ "n": 1, "E": 3, "saturated": [] }, { "n": 2, "E": 4, "saturated": ["disk"] }]
        });
        let text = tables(&answer, Format::Csv).replace("\r\n", "\n");
        assert_eq!(
            text,
            "quantity,value\nR,2\nQq,1\n\nlist,E,n,saturated\n0,3,1,-\n1,4,2,disk\n"
        );
    }

    #[test]
    fn figures_keep_six_digits() {
        assert_eq!(figure(696.969_253_894), "696.9693");
        assert_eq!(figure(0.000_174_916_3), "0.000174916");
        assert_eq!(figure(0.436_249_363), "0.436249");
        assert_eq!(figure(0.0), "0");
        assert_eq!(figure(123_456_789.5), "123456790");
        assert_eq!(figure(6.042e-8), "6.04200e-8");
    }
}
