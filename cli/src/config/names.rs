//! Names in cluster files.

/// What a name must look like, for messages.
pub(super) const NAME_RULE: &str =
    "a name has 1 to 64 letters, digits, dots, dashes or underscores";

/// Names appear in paths of files and groups.
pub(super) fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    (1..=64).contains(&name.len()) && name.chars().all(fits) && !name.starts_with('.')
}

/// `; did you mean x?`, or the first names that are known.
pub(super) fn did_you_mean<'a>(
    name: &str,
    known: impl Iterator<Item = &'a String> + Clone,
) -> String {
    let near = known
        .clone()
        .map(|k| (strsim::damerau_levenshtein(name, k), k))
        .filter(|(d, _)| *d <= 2)
        .min();
    match near {
        Some((_, k)) => format!("; did you mean {k}?"),
        None => {
            let all: Vec<&str> = known.take(8).map(String::as_str).collect();
            if all.is_empty() {
                String::new()
            } else {
                format!("; known: {}", all.join(", "))
            }
        }
    }
}
