//! What several measurements of one thing are summed up by.

/// Least, median and greatest of some figures.
pub(crate) fn spread(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => [f64::NAN; 3],
        n if n % 2 == 1 => [values[0], values[n / 2], values[n - 1]],
        n => [
            values[0],
            (values[n / 2 - 1] + values[n / 2]) / 2.0,
            values[n - 1],
        ],
    }
}
