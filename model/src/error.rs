//! The one error type of the crate, and the checks that produce it.
//!
//! Every check names the offending field by the symbol under which it is serialised, so that the
//! message points into the document the user wrote.

/// Why a model gave no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A field holds a value that the model has no meaning for.
    #[error("{field}: {value} is not allowed, it must be {expected}")]
    Invalid {
        /// Serialised name of the field, with indices where it is a list (`V[2][3]`).
        field: String,
        /// The value found.
        value: f64,
        /// What would be accepted.
        expected: &'static str,
    },
    /// A list or matrix has the wrong length.
    #[error("{field}: has {found} entries, {expected} are needed")]
    Shape {
        /// Serialised name of the field.
        field: String,
        /// The length found.
        found: usize,
        /// The length needed.
        expected: usize,
    },
    /// Too few of the data given say anything.
    #[error("{field}: only {found} {what}, {needed} are needed")]
    TooLittle {
        /// Serialised name of the field.
        field: String,
        /// How many there are.
        found: usize,
        /// Of what.
        what: &'static str,
        /// How many it takes.
        needed: usize,
    },
    /// A name is not in the table it is looked up in.
    #[error("{field}: {name:?} is unknown, use one of {known}")]
    Unknown {
        /// Serialised name of the field.
        field: String,
        /// The name found.
        name: String,
        /// The names accepted, separated by commas.
        known: String,
    },
    /// A resource is asked for at least as much as it can give, so that no steady state exists.
    #[error(
        "{resource}: saturated (utilisation {utilisation:.3}), the model has no steady state here"
    )]
    Saturated {
        /// The resources concerned, separated by commas.
        resource: String,
        /// The utilisation of the worst of them.
        utilisation: f64,
    },
    /// The recursion of an approximate variant left the range in which it means anything.
    #[error(
        "{field}: the recursion gives {value}, outside its range of validity; use the general solver"
    )]
    Unphysical {
        /// The quantity concerned.
        field: String,
        /// Its meaningless value.
        value: f64,
    },
    /// A result that is too large for a double: the inputs are valid, and too far apart in magnitude.
    #[error("{result} comes out as {value}: the inputs are too far apart in magnitude")]
    Overflow {
        /// Name of the result or of the step towards it.
        result: String,
        /// What it comes out as: infinite, or not a number.
        value: f64,
    },
    /// The solver used up its budget.
    #[error("no convergence after {steps} steps (residual {residual:.3e})")]
    NotConverged {
        /// Steps taken in all.
        steps: usize,
        /// Largest relative mismatch of the equations at the last point.
        residual: f64,
    },
    /// No configuration satisfies the constraints.
    #[error("no configuration fits a budget of {budget}: {reason}")]
    NothingFits {
        /// The budget given.
        budget: f64,
        /// What was found instead.
        reason: String,
    },
}

/// An error for `field` holding `value`.
pub(crate) fn invalid(field: impl Into<String>, value: f64, expected: &'static str) -> ModelError {
    ModelError::Invalid {
        field: field.into(),
        value,
        expected,
    }
}

/// Accepts finite values ≥ 0.
pub(crate) fn non_negative(field: &str, value: f64) -> Result<(), ModelError> {
    if value.is_finite() && value >= 0.0 {
        Ok(())
    } else {
        Err(invalid(field, value, "finite and at least 0"))
    }
}

/// Accepts finite values > 0.
pub(crate) fn positive(field: &str, value: f64) -> Result<(), ModelError> {
    if value.is_finite() && value > 0.0 {
        Ok(())
    } else {
        Err(invalid(field, value, "finite and greater than 0"))
    }
}

/// Accepts values in `[0, 1]`.
pub(crate) fn fraction(field: &str, value: f64) -> Result<(), ModelError> {
    if (0.0..=1.0).contains(&value) {
        Ok(())
    } else {
        Err(invalid(field, value, "between 0 and 1"))
    }
}

/// Accepts a list of the right length.
pub(crate) fn length(field: &str, found: usize, expected: usize) -> Result<(), ModelError> {
    if found == expected {
        Ok(())
    } else {
        Err(ModelError::Shape {
            field: field.to_owned(),
            found,
            expected,
        })
    }
}

/// Turns an overflow of otherwise valid input into an error instead of an infinite answer.
pub(crate) fn finite_result(result: &str, value: f64) -> Result<f64, ModelError> {
    if value.is_finite() {
        Ok(value)
    } else {
        Err(ModelError::Overflow {
            result: result.to_owned(),
            value,
        })
    }
}
