//! What a name may be.

use crate::Malformed;

/// Longest name of a variable or barrier, in bytes.
pub const MAX_NAME_BYTES: usize = 200;

/// Checks a name of a variable or barrier: 1 to [`MAX_NAME_BYTES`] bytes, no control characters.
///
/// # Errors
/// If it is not so.
pub fn check_name(what: &'static str, name: &str) -> Result<(), Malformed> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return Err(Malformed::new(
            what,
            format!(
                "a name has 1 to {MAX_NAME_BYTES} bytes, this one {}",
                name.len()
            ),
        ));
    }
    if name.chars().any(char::is_control) {
        return Err(Malformed::new(
            what,
            format!("{name:?} has control characters"),
        ));
    }
    Ok(())
}
