//! Documents in, documents out: reading JSON so that an error names the field, by its path.

use anyhow::Context;
use dosmos_model::memhier::Named;
use serde::Serialize;
use serde::de::DeserializeOwned;
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
