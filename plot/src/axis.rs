//! Axes: what they are called, how they are scaled, what stands at their ticks.

/// An axis.
#[derive(Clone, Debug, Default)]
pub struct Axis {
    pub(crate) label: String,
    pub(crate) range: Option<(f64, f64)>,
    pub(crate) log: bool,
    pub(crate) zero: bool,
    /// Names of the positions 0, 1, 2 … instead of numbers.
    pub(crate) categories: Vec<String>,
}

impl Axis {
    /// An axis with a label, which should give the unit; its range is that of the data.
    pub fn new(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            ..Self::default()
        }
    }
    /// From `least` to `greatest`, whatever the data.
    #[must_use]
    pub fn range(self, least: f64, greatest: f64) -> Self {
        Self {
            range: Some((least, greatest)),
            ..self
        }
    }
    /// Logarithmic; only values greater than zero are shown.
    #[must_use]
    pub fn log(self) -> Self {
        Self { log: true, ..self }
    }
    /// Begins at zero at the latest.
    #[must_use]
    pub fn from_zero(self) -> Self {
        Self { zero: true, ..self }
    }
    /// Names in place of the numbers 0, 1, 2 …
    #[must_use]
    pub fn categories<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
        Self {
            categories: names.into_iter().map(Into::into).collect(),
            ..self
        }
    }

    /// To the scale that is drawn: a logarithmic axis is drawn in powers of ten. None if it has no place.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        let placed = if self.log { value.log10() } else { value };
        placed.is_finite().then_some(placed)
    }

    /// The range to draw, in places, given those of the data.
    pub(crate) fn span(&self, places: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
        let categories = self.categories.len();
        if categories > 0 {
            return Some((-0.6, categories as f64 - 0.4));
        }
        let ends = self.range.map(|(a, b)| (self.place(a), self.place(b)));
        if let Some((Some(least), Some(greatest))) = ends
            && least < greatest
        {
            return Some((least, greatest));
        }
        let (mut least, mut greatest) = (f64::INFINITY, f64::NEG_INFINITY);
        for place in places {
            (least, greatest) = (least.min(place), greatest.max(place));
        }
        if self.zero && !self.log {
            (least, greatest) = (least.min(0.0), greatest.max(0.0));
        }
        if least > greatest {
            return None;
        }
        let margin = if least < greatest {
            (greatest - least) * 0.04
        } else {
            least.abs().max(1.0) * 0.1
        };
        let low = if self.zero && least == 0.0 {
            0.0
        } else {
            least - margin
        };
        Some((low, greatest + margin))
    }

    /// What stands at a tick.
    pub(crate) fn tick(&self, place: f64) -> String {
        if !self.categories.is_empty() {
            let nearest = place.round();
            if (place - nearest).abs() > 0.01 || nearest < 0.0 {
                return String::new();
            }
            return self
                .categories
                .get(nearest as usize)
                .cloned()
                .unwrap_or_default();
        }
        if !self.log {
            return number(place);
        }
        // Between whole powers there is no round number to show.
        if (place - place.round()).abs() > 0.01 {
            return String::new();
        }
        number(10_f64.powi(place.round() as i32))
    }
}

/// A number as short as it can be told apart at a tick.
fn number(value: f64) -> String {
    let size = value.abs();
    let scaled = |by: f64, unit: &str| {
        let text = format!("{:.2}", value / by);
        format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
    };
    match size {
        _ if size < 1e-12 => "0".to_owned(),
        _ if size < 1e-3 => format!("{value:.0e}"),
        _ if size < 1.0 => {
            let text = format!("{value:.3}");
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ if size < 1e4 => scaled(1.0, ""),
        _ if size < 1e6 => scaled(1e3, "k"),
        _ if size < 1e9 => scaled(1e6, "M"),
        _ if size < 1e12 => scaled(1e9, "G"),
        _ => format!("{value:.1e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_short() {
        let all = [
            0.0, 0.25, 3.0, 2.5, 9999.0, 12_500.0, 3e6, 1.5e9, 1e-5, -40.0,
        ];
        let told = all.map(number);
        assert_eq!(
            told,
            [
                "0", "0.25", "3", "2.5", "9999", "12.5k", "3M", "1.5G", "1e-5", "-40"
            ]
        );
        let log = Axis::new("x").log();
        assert_eq!(
            (log.tick(3.0), log.tick(3.5)),
            ("1000".into(), String::new())
        );
    }

    #[test]
    fn a_range_holds_the_data_and_never_is_empty() {
        let axis = Axis::new("x");
        assert_eq!(axis.span(std::iter::empty()), None);
        let (low, high) = axis.span([5.0].into_iter()).unwrap();
        assert!(low < 5.0 && 5.0 < high);
        let (low, _) = axis.clone().from_zero().span([5.0].into_iter()).unwrap();
        assert_eq!(low, 0.0);
        let log = Axis::new("x").log();
        assert_eq!(log.place(0.0), None);
        assert_eq!(log.place(100.0), Some(2.0));
    }
}
