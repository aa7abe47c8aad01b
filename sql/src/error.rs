//! Why a query cannot be answered, and what to do.

use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The run cannot be opened.
    #[error(transparent)]
    Run(#[from] dosmos_client::Error),
    /// The query cannot be carried out; says what is wrong and what to do.
    #[error("{message}")]
    Query {
        /// In words.
        message: String,
        /// As the engine says it: longer, not clearer, so it is not shown as the cause.
        engine: Box<DataFusionError>,
    },
    /// Every event manager of a running run stopped answering.
    #[error("nobody answers any more: {}", .0.join(", "))]
    NobodyAnswers(Vec<String>),
    /// A file or socket of this process.
    #[error("{what}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
}

impl Error {
    /// An error of the engine, in words, given the names of the tables there are.
    pub(crate) fn of_engine(engine: DataFusionError, tables: &[String]) -> Self {
        Self::Query {
            message: message(&engine, tables),
            engine: Box::new(engine),
        }
    }
}

/// Statements that are answered.
const READS: &str = "dosmos sql only reads: use SELECT, WITH, EXPLAIN, DESCRIBE or SHOW TABLES";

fn message(error: &DataFusionError, tables: &[String]) -> String {
    let root = error.find_root();
    match root {
        DataFusionError::External(e) => return dosmos_client::text::with_causes(e.as_ref()),
        DataFusionError::SchemaError(e, _) => {
            if let SchemaError::FieldNotFound {
                field,
                valid_fields,
            } = e.as_ref()
            {
                let known: Vec<&str> = valid_fields.iter().map(|f| f.name.as_str()).collect();
                return unknown("column", &field.name, &known);
            }
        }
        _ => {}
    }
    let text = root.strip_backtrace();
    let text = [
        "Error during planning: ",
        "Execution error: ",
        "SQL error: ",
    ]
    .iter()
    .fold(text.as_str(), |text, noise| {
        text.strip_prefix(noise).unwrap_or(text)
    });
    let missing = text
        .strip_prefix("table '")
        .and_then(|rest| rest.strip_suffix("' not found"));
    if let Some(name) = missing {
        let name = name.rsplit('.').next().unwrap_or(name);
        let known: Vec<&str> = tables.iter().map(String::as_str).collect();
        return unknown("table", name, &known);
    }
    let not_a_read = [
        "DDL not supported",
        "DML not supported",
        "Statement not supported",
    ];
    match not_a_read.iter().any(|refused| text.starts_with(refused)) {
        true => format!("{READS} ({text})"),
        false => text.to_owned(),
    }
}

/// There is no such name: the nearest one, and what there is.
fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    let distance = |k: &&&str| strsim::damerau_levenshtein(k, name);
    let nearest = known.iter().min_by_key(distance);
    let near = nearest.filter(|near| distance(near) <= 1 + name.chars().count() / 3);
    let near = near.map_or(String::new(), |near| format!("did you mean {near:?}? "));
    let mut known: Vec<&str> = known.to_vec();
    known.sort_unstable();
    known.dedup();
    format!(
        "there is no {what} {name:?}; {near}{what}s: {}",
        known.join(", ")
    )
}
