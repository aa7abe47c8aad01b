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
