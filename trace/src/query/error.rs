//! Why a question has no answer.

/// Why a question has no answer at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The question makes no sense; says which part and what would.
    #[error("{0}")]
    BadQuery(String),
    /// The event manager or the store cannot be asked.
    #[error("{source_name}: {why}")]
    Unavailable {
        /// Who was asked.
        source_name: String,
        /// What went wrong.
        why: String,
    },
}

/// A place in a list of records that is none.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a place in a list of records; write the `next` of the page before")]
pub struct BadCursor(pub String);

/// A column that the table of variables does not have.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no column {name:?}; columns: {}", .known.join(", "))]
pub struct UnknownColumn {
    /// What was asked for.
    pub name: String,
    /// What there is.
    pub known: Vec<&'static str>,
}

/// A filter of names that is not a regular expression.
#[derive(Debug, thiserror::Error)]
#[error("{text:?} is not a regular expression: {source}")]
pub struct BadPattern {
    /// What was written.
    pub text: String,
    /// What is wrong with it.
    pub source: regex_lite::Error,
}
