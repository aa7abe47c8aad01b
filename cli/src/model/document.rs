//! Documents in, documents out: reading JSON so that an error names the field, by its path.

use std::collections::HashSet;
use std::fmt;

use anyhow::Context;
use dosmos_model::memhier::Named;
use serde::de::{self, DeserializeOwned, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The fields of a document.
pub(super) type Fields = Map<String, Value>;

/// Reads a document; the error says which field is wrong, and where in the text.
pub(super) fn parse<T: DeserializeOwned>(text: &str) -> anyhow::Result<T> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|e| named_error("", &e))?;
    reader.end()?;
    Ok(value)
}

/// The document as fields, to see which question it asks.
pub(super) fn fields(text: &str) -> anyhow::Result<Fields> {
    match parse(text)? {
        Value::Object(fields) => Ok(fields),
        _ => anyhow::bail!("a JSON object is expected: {{\"…\": …}}"),
    }
}

/// Reads a tree that stands under `at` in the document (`""`: the document itself).
pub(super) fn read<T: DeserializeOwned>(at: &str, tree: Value) -> anyhow::Result<T> {
    serde_path_to_error::deserialize(tree).map_err(|e| named_error(at, &e))
}

/// Removes and reads a field that may be absent or null.
pub(super) fn take<T: DeserializeOwned>(
    fields: &mut Fields,
    name: &str,
) -> anyhow::Result<Option<T>> {
    match fields.remove(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => read(name, value).map(Some),
    }
}

/// Removes and reads a field.
pub(super) fn require<T: DeserializeOwned>(fields: &mut Fields, name: &str) -> anyhow::Result<T> {
    take(fields, name)?.with_context(|| format!("missing field `{name}`"))
}

/// A built-in thing by its name, or one described by its fields.
pub(super) fn resolve<T>(
    thing: Named<T>,
    named: impl Fn(&str) -> Result<T, dosmos_model::ModelError>,
) -> anyhow::Result<T> {
    match thing {
        Named::Name(name) => Ok(named(&name)?),
        Named::Given(thing) => Ok(thing),
    }
}

/// Refuses what is left when every known field has been taken.
pub(super) fn nothing_else(fields: &Fields, known: &str) -> anyhow::Result<()> {
    match fields.keys().next() {
        None => Ok(()),
        Some(name) => anyhow::bail!("unknown field `{name}`, expected {known}"),
    }
}

/// An output under the names of the papers.
pub(super) fn named(output: &impl Serialize) -> anyhow::Result<Value> {
    Ok(serde_json::to_value(output)?)
}

fn named_error(at: &str, e: &serde_path_to_error::Error<serde_json::Error>) -> anyhow::Error {
    let (path, inner) = (e.path().to_string(), e.inner().to_string());
    // What is missing or unknown is named by the message already; its path is that of the whole.
    let path = match path.as_str() {
        "." | "?" => "",
        _ if inner.starts_with("unknown field") => path.rsplit_once('.').map_or("", |p| p.0),
        path => path,
    };
    match (at, path) {
        ("", "") => anyhow::anyhow!("{inner}"),
        ("", name) | (name, "") => anyhow::anyhow!("{name}: {inner}"),
        (at, path) if path.starts_with('[') => anyhow::anyhow!("{at}{path}: {inner}"),
        (at, path) => anyhow::anyhow!("{at}.{path}: {inner}"),
    }
}

/// Refuses a field that is given twice in one object: which of the two is meant nobody knows, and a tree of values keeps
/// only the last.
pub(super) fn check_fields_are_unique(text: &str) -> anyhow::Result<()> {
    parse::<Unique>(text).map(|_| ())
}

/// Any JSON value whose objects name each field once.
struct Unique;

impl<'de> Deserialize<'de> for Unique {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Unique {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self, A::Error> {
        while list.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self, A::Error> {
        let mut seen = HashSet::new();
        while let Some(name) = object.next_key::<String>()? {
            object.next_value::<Self>()?;
            if seen.contains(&name) {
                return Err(de::Error::custom(format_args!("duplicate field `{name}`")));
            }
            seen.insert(name);
        }
        Ok(self)
    }
}

/// The number of a document whose magnitude is farthest from 1, and its path: what to look at where a result overflows.
pub(super) fn most_extreme_number(text: &str) -> Option<(String, f64)> {
    fn walk(value: &Value, path: &str, found: &mut Vec<(String, f64)>) {
        match value {
            Value::Number(number) => {
                let number = number.as_f64().filter(|x| *x != 0.0);
                found.extend(number.map(|x| (path.to_owned(), x)));
            }
            Value::Array(list) => {
                for (i, value) in list.iter().enumerate() {
                    walk(value, &format!("{path}[{i}]"), found);
                }
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    let dot = if path.is_empty() { "" } else { "." };
                    walk(value, &format!("{path}{dot}{name}"), found);
                }
            }
            Value::Null | Value::Bool(_) | Value::String(_) => {}
        }
    }
    let mut found = Vec::new();
    walk(&serde_json::from_str(text).ok()?, "", &mut found);
    let magnitude = |x: &f64| x.abs().log10().abs();
    found
        .into_iter()
        .max_by(|(_, a), (_, b)| magnitude(a).total_cmp(&magnitude(b)))
}
