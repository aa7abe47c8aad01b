//! Applies the patch of a finding (`analysis/src/patch.rs`) to the text of a cluster file. What the patch does not name stays as it
//! is, comments too.

use toml_edit::{
    ArrayOfTables, Decor, DocumentMut, InlineTable, Item, Table, TableLike, TomlError, Value,
};

use super::cluster::Cluster;

/// Keys of a `[[variable]]` of which it has one at most.
const EXCLUSIVE: [&str; 2] = ["owners", "placement"];

/// Why a patch cannot be applied to a cluster file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PatchError {
    /// The cluster file cannot be read.
    #[error("the cluster file is not TOML; correct it first: {0}")]
    File(#[source] TomlError),
    /// The patch cannot be read.
    #[error(
        "this is not a whole patch: {0}; take it from `dosmos check --format json`, not from what is shown"
    )]
    Patch(String),
    /// A table that is to be changed is not there.
    #[error(
        "the cluster file has no [[{table}]] with {with}; give the file of the run that was checked"
    )]
    NoTable {
        /// Name of the tables.
        table: String,
        /// The keys that it was looked for by.
        with: String,
    },
    /// What is to be replaced is not there.
    #[error(
        "[[{table}]] {of}: {key} is {found} in the cluster file, but was {expected} in the run; give the file of that run"
    )]
    Differs {
        /// Name of the tables.
        table: String,
        /// The keys that it was found by.
        of: String,
        /// The key to change.
        key: String,
        /// Its value in the file.
        found: String,
        /// Its value in the patch.
        expected: String,
    },
    /// A key holds something else than tables.
    #[error("`{0}` is not a list of tables in the cluster file; write each as [[{0}]]")]
    NotTables(String),
    /// With the patch the file would not be a cluster file.
    #[error("with the patch the cluster file would be wrong; correct it first: {}", .0.join("; "))]
    Inconsistent(Vec<String>),
}

/// The text of the cluster file `file` with `patch` applied. A `[[variable]]` that is there already gets the keys of the patch and
/// keeps its others.
///
/// # Errors
/// If the two do not fit, or the result would not be a cluster file.
pub fn apply_patch(file: &str, patch: &str) -> Result<String, PatchError> {
    let mut document: DocumentMut = file.parse().map_err(PatchError::File)?;
    for hunk in hunks(patch)? {
        hunk.apply(&mut document)?;
    }
    let text = document.to_string();
    Cluster::parse(&text).map_err(PatchError::Inconsistent)?;
    Ok(text)
}

/// The part of a patch that concerns one table.
struct Hunk {
    /// Name of the tables of which this is one.
    table: String,
    /// Keys that say which one, with their values.
    context: Table,
    /// What is taken out.
    removed: Table,
    /// What comes in.
    added: Table,
    /// Whether it is added if it is not there.
    is_new: bool,
}

/// The hunks of a patch: each begins with the header of its table.
fn hunks(patch: &str) -> Result<Vec<Hunk>, PatchError> {
    let mut parts: Vec<(char, &str, [String; 3])> = Vec::new();
    for line in patch.lines() {
        let mut rest = line.chars();
        let sign = rest.next().unwrap_or(' ');
        let (body, at) = (rest.as_str(), " -+".find(sign));
        let header = body.strip_prefix("[[").and_then(|b| b.strip_suffix("]]"));
        match (header, at, parts.last_mut()) {
            (Some(table), Some(_), _) => parts.push((sign, table, Default::default())),
            (None, Some(at), Some((_, _, texts))) => texts[at] += &format!("{body}\n"),
            _ => return Err(PatchError::Patch(format!("{line:?} belongs to no table"))),
        }
    }
    if parts.is_empty() {
        return Err(PatchError::Patch("it is empty".to_owned()));
    }
    let hunk = |(sign, table, [context, removed, added]): (char, &str, [String; 3])| {
        let (mut context, removed, mut added) = (keys(&context)?, keys(&removed)?, keys(&added)?);
        let is_new = sign == '+';
        if is_new && let Some(name) = added.remove("name") {
            context.insert("name", name);
        }
        let table = table.to_owned();
        match context.is_empty() {
            true => Err(PatchError::Patch(format!(
                "it does not say which [[{table}]]"
            ))),
            false => Ok(Hunk {
                table,
                context,
                removed,
                added,
                is_new,
            }),
        }
    };
    parts.into_iter().map(hunk).collect()
}

/// Keys with values as a table.
fn keys(text: &str) -> Result<Table, PatchError> {
    let document: Result<DocumentMut, TomlError> = text.parse();
    let document = document.map_err(|e| PatchError::Patch(e.to_string()))?;
    Ok(document.as_table().clone())
}

impl Hunk {
    fn apply(self, document: &mut DocumentMut) -> Result<(), PatchError> {
        let last = last_position(document.as_table());
        let tables = document.entry(&self.table);
        let tables = tables.or_insert_with(|| Item::ArrayOfTables(ArrayOfTables::new()));
        let all = elements(tables).ok_or_else(|| PatchError::NotTables(self.table.clone()))?;
        let fits = |table: &&mut dyn TableLike| {
            let mut keys = self.context.iter();
            keys.all(|(key, value)| table.get(key).is_some_and(|found| same(found, value)))
        };
        match all.into_iter().find(fits) {
            Some(table) => self.change(table),
            None if self.is_new => {
                self.add(tables, last);
                Ok(())
            }
            None => Err(PatchError::NoTable {
                with: self.name(),
                table: self.table,
            }),
        }
    }

    /// The keys that say which table.
    fn name(&self) -> String {
        let keys = self.context.iter();
        let keys = keys.map(|(key, value)| format!("{key} = {}", shown(value)));
        keys.collect::<Vec<_>>().join(", ")
    }

    fn change(&self, table: &mut dyn TableLike) -> Result<(), PatchError> {
        for (key, expected) in &self.removed {
            let found = table.get(key);
            if !found.is_some_and(|found| same(found, expected)) {
                return Err(PatchError::Differs {
                    table: self.table.clone(),
                    of: self.name(),
                    key: key.to_owned(),
                    found: found.map_or("not set".to_owned(), shown),
                    expected: shown(expected),
                });
            }
            if !self.added.contains_key(key) {
                table.remove(key);
            }
        }
        let added = self.added.iter();
        for (key, value) in added.filter_map(|(key, item)| Some((key, item.as_value()?))) {
            set(table, key, value.clone());
        }
        Ok(())
    }

    /// Adds the table behind all others of the file.
    fn add(&self, tables: &mut Item, last: isize) {
        let all = || self.context.iter().chain(self.added.iter());
        match tables {
            Item::ArrayOfTables(tables) => {
                let mut table = Table::new();
                for (key, value) in all() {
                    table.insert(key, value.clone());
                }
                table.decor_mut().set_prefix("\n");
                table.set_position(Some(last + 1));
                tables.push(table);
            }
            Item::Value(Value::Array(tables)) => {
                let mut table = InlineTable::new();
                for (key, value) in all().filter_map(|(k, item)| Some((k, item.as_value()?))) {
                    table.insert(key, value.clone());
                }
                tables.push(table);
            }
            _ => {}
        }
    }
}

/// The tables of a list of them, however it is written; none if it is something else.
fn elements(item: &mut Item) -> Option<Vec<&mut dyn TableLike>> {
    match item {
        Item::ArrayOfTables(tables) => {
            let tables = tables.iter_mut();
            Some(tables.map(|t| t as &mut dyn TableLike).collect())
        }
        Item::Value(Value::Array(values)) => {
            let values = values.iter_mut();
            values.map(inline).collect()
        }
        _ => None,
    }
}

fn inline(value: &mut Value) -> Option<&mut dyn TableLike> {
    let table = value.as_inline_table_mut()?;
    Some(table)
}

/// Gives a key this value. Comments stay, also those of the key that it excludes.
fn set(table: &mut dyn TableLike, key: &str, mut value: Value) {
    if let Some(old) = table.get_mut(key).and_then(Item::as_value_mut) {
        *value.decor_mut() = old.decor().clone();
        *old = value;
        return;
    }
    let mut comments: Option<Decor> = None;
    if EXCLUSIVE.contains(&key) {
        for other in EXCLUSIVE {
            comments = comments.or(table.key(other).map(|k| k.leaf_decor().clone()));
            if let Some(old) = table.remove(other).as_ref().and_then(Item::as_value) {
                *value.decor_mut() = old.decor().clone();
            }
        }
    }
    table.insert(key, Item::Value(value));
    if let (Some(comments), Some(mut key)) = (comments, table.key_mut(key)) {
        *key.leaf_decor_mut() = comments;
    }
}

/// Whether two values are the same, however they are written.
fn same(a: &Item, b: &Item) -> bool {
    match (a.as_str(), b.as_str()) {
        (Some(a), Some(b)) => a == b,
        _ => shown(a) == shown(b),
    }
}

/// A value without spaces and comments around it.
fn shown(item: &Item) -> String {
    match item.as_value() {
        Some(value) => value.clone().decorated("", "").to_string(),
        None => item.to_string(),
    }
}

/// Where in the file the last table stands.
fn last_position(table: &Table) -> isize {
    let own = table.position().unwrap_or(0);
    let below = table.iter().map(|(_, item)| match item {
        Item::Table(table) => last_position(table),
        Item::ArrayOfTables(tables) => tables.iter().map(last_position).max().unwrap_or(0),
        _ => 0,
    });
    below.fold(own, isize::max)
}

#[cfg(test)]
mod tests;
