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

/// A mean, and how far from it the mean of all possible measurements is at most, in 95 of 100 cases.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    pub(crate) mean: f64,
    pub(crate) half_width: f64,
}

impl Interval {
    /// The lower end.
    pub(crate) fn low(self) -> f64 {
        self.mean - self.half_width
    }

    /// The upper end.
    pub(crate) fn high(self) -> f64 {
        self.mean + self.half_width
    }

    /// A fraction as per cent: `+3.1 (+1.3 to +5.0)`; a dash for none.
    pub(crate) fn percent(interval: Option<Self>) -> String {
        interval.map_or("–".to_owned(), |i| {
            let [mean, low, high] = [i.mean, i.low(), i.high()].map(|f| 100.0 * f);
            format!("{mean:+.1} ({low:+.1} to {high:+.1})")
        })
    }

    /// The same as JSON.
    pub(crate) fn percent_item(self) -> serde_json::Value {
        let [mean, low, high] = [self.mean, self.low(), self.high()].map(|f| 100.0 * f);
        serde_json::json!({ "mean": mean, "low": low, "high": high })
    }
}

/// The mean of figures with its 95 % interval by Student's t; none of fewer than two. Of differences within pairs it is the
/// interval of a paired t-test.
pub(crate) fn interval(values: &[f64]) -> Option<Interval> {
    let n = values.len() as f64;
    if values.len() < 2 {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    let error = (squares / (n - 1.0) / n).sqrt();
    Some(Interval {
        mean,
        half_width: t_975(values.len() - 1) * error,
    })
}

/// The quantile 0.975 of Student's t distribution.
fn t_975(degrees: usize) -> f64 {
    const FEW: [f64; 10] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    ];
    if let Some(t) = degrees.checked_sub(1).and_then(|i| FEW.get(i)) {
        return *t;
    }
    // The normal quantile z and the first two terms of its expansion in 1/n, (z³ + z)/4 and (5z⁵ + 16z³ + 3z)/96.
    let n = degrees as f64;
    1.959_964 + 2.372_3 / n + 2.822_5 / (n * n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_the_t_test() {
        // Four values, s = 1.29099: 3.182 s / 2.
        let found = interval(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(found.mean, 2.5);
        assert!((found.half_width - 2.054).abs() < 0.001, "{found:?}");
        assert_eq!(
            (found.low(), found.high()),
            (2.5 - found.half_width, 2.5 + found.half_width)
        );
        assert_eq!(interval(&[7.0]), None);
        assert_eq!(interval(&[7.0; 3]).unwrap().half_width, 0.0);
    }

    #[test]
    fn quantiles_agree_with_the_printed_table() {
        for (degrees, printed) in [
            (1, 12.706),
            (10, 2.228),
            (11, 2.201),
            (15, 2.131),
            (30, 2.042),
            (120, 1.980),
        ] {
            assert!((t_975(degrees) - printed).abs() < 0.003, "{degrees}");
        }
    }
}
