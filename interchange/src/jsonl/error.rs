//! What can go wrong with an import.

use std::io;
use std::path::PathBuf;

use dosmos_proto::Malformed;
use dosmos_trace::store::StoreError;

/// Why there is no import. No store is left behind.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A line is not as it should be.
    #[error("line {line}: {why}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// What is wrong with it.
        #[source]
        why: BadLine,
    },
    /// There is something already.
    #[error("{0} exists; an import makes a new store: name another directory")]
    Exists(PathBuf),
    /// The file cannot be read, or the directory not be made.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The store cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It was asked to stop.
    #[error("stopped; no store was made")]
    Stopped,
}

/// What is wrong with a line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadLine {
    /// It is not JSON, or has not the fields of its type.
    #[error("column {}: {}", .0.column(), without_place(.0))]
    Json(#[source] serde_json::Error),
    /// The run does not start at a time.
    #[error("start {text:?} is not a time as in RFC 3339: {source}")]
    Time {
        /// What stands there.
        text: String,
        /// What is wrong with it.
        source: chrono::ParseError,
    },
    /// A name or a topology that is not possible.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A variable that is not possible.
    #[error("variable {name}: {source}")]
    Variable {
        /// Its name.
        name: String,
        /// What is wrong with it.
        source: Box<BadLine>,
    },
    /// It does not fit what the lines before say, or contradicts itself.
    #[error("{0}")]
    Meaning(String),
}

impl BadLine {
    /// The same, said of a variable.
    pub(super) fn of_variable(self, name: &str) -> Self {
        Self::Variable {
            name: name.to_owned(),
            source: Box::new(self),
        }
    }
}

impl From<String> for BadLine {
    fn from(why: String) -> Self {
        Self::Meaning(why)
    }
}

/// What the JSON reader says, without the place: its line is the one that was given to it, not the file's.
fn without_place(error: &serde_json::Error) -> String {
    let why = error.to_string();
    let why = why.split(" at line 1 column").next().unwrap_or(&why);
    why.to_owned()
}
