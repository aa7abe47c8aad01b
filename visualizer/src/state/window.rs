//! Time: which part of the run is shown, and how it falls onto columns.

use dosmos_proto::Nanos;
use dosmos_trace::query::TimeRange;

/// No window is shorter: below, one sees the clock's grain.
const SHORTEST: Nanos = Nanos(1_000);

/// The part of the run that is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Window {
    /// All of it, growing with it.
    #[default]
    Whole,
    /// The last so much of it, moving with it.
    Latest(Nanos),
    /// This part.
    Fixed(TimeRange),
}

impl Window {
    /// The times shown of a run of this extent.
    pub fn resolve(self, extent: TimeRange) -> TimeRange {
        match self {
            Self::Whole => extent,
            Self::Latest(span) => TimeRange {
                from: (extent.to - span).max(extent.from),
                to: extent.to,
            },
            Self::Fixed(range) => range,
        }
    }

    /// Half as much, twice as large. What `about` points at stays where it is; without it the end of a
    /// `live` run does, elsewhere the middle.
    #[must_use]
    pub fn zoomed_in(self, extent: TimeRange, live: bool, about: Option<Nanos>) -> Self {
        self.zoomed((1, 2), extent, live, about)
    }

    /// Twice as much, until all is shown.
    #[must_use]
    pub fn zoomed_out(self, extent: TimeRange, about: Option<Nanos>) -> Self {
        self.zoomed((2, 1), extent, false, about)
    }

    /// As much as this fraction says.
    #[must_use]
    pub fn zoomed(
        self,
        (part, whole): (u64, u64),
        extent: TimeRange,
        live: bool,
        about: Option<Nanos>,
    ) -> Self {
        let shown = self.resolve(extent);
        let scaled = |n: Nanos| {
            let scaled = u128::from(n.0) * u128::from(part) / u128::from(whole.max(1));
            Nanos(u64::try_from(scaled).unwrap_or(u64::MAX))
        };
        let span = scaled(shown.length());
        if span < SHORTEST && part < whole {
            return self;
        }
        if span >= extent.length() {
            return Self::Whole;
        }
        match (self, about.filter(|at| shown.contains(*at))) {
            (_, Some(about)) => Self::fixed(about - scaled(about - shown.from), span, extent),
            (Self::Latest(_), None) => Self::Latest(span),
            (Self::Whole, None) if live => Self::Latest(span),
            _ => {
                let middle = shown.from + Nanos(shown.length().0 / 2);
                Self::fixed(middle - Nanos(span.0 / 2), span, extent)
            }
        }
    }

    /// A quarter of what is shown earlier.
    #[must_use]
    pub fn earlier(self, extent: TimeRange) -> Self {
        let shown = self.resolve(extent);
        if self == Self::Whole || shown.from <= extent.from {
            return self;
        }
        let step = Nanos(shown.length().0 / 4);
        Self::fixed(shown.from - step, shown.length(), extent)
    }

    /// A quarter of what is shown later; at the end of a `live` run it moves along.
    #[must_use]
    pub fn later(self, extent: TimeRange, live: bool) -> Self {
        let Self::Fixed(shown) = self else {
            return self;
        };
        let from = shown.from + Nanos(shown.length().0 / 4);
        if live && from + shown.length() >= extent.to {
            return Self::Latest(shown.length());
        }
        Self::fixed(from, shown.length(), extent)
    }

    /// As much as now, at the end of the run and moving with it.
    #[must_use]
    pub fn following(self) -> Self {
        match self {
            Self::Fixed(range) => Self::Latest(range.length()),
            other => other,
        }
    }

    /// Whether it moves with a run that goes on.
    pub fn follows(self) -> bool {
        !matches!(self, Self::Fixed(_))
    }

    /// `span` from `from` on, moved into the extent.
    fn fixed(from: Nanos, span: Nanos, extent: TimeRange) -> Self {
        let last = (extent.to - span).max(extent.from);
        let from = from.clamp(extent.from, last);
        Self::Fixed(TimeRange {
            from,
            to: from + span,
        })
    }
}

/// Times on columns: column `i` covers `per_column` from `from + i · per_column` on.
///
/// Columns are round lengths of time, on a grid that starts with the run: so what is drawn of a
/// running program stays where it is while more comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Start of the run: what times are shown relative to.
    pub start: Nanos,
    /// Start of column 0.
    pub from: Nanos,
    /// Length of a column, at least 1 ns.
    pub per_column: Nanos,
    /// Number of columns, at least 1.
    pub columns: u16,
}

impl Scale {
    /// `shown` on `columns` columns.
    pub fn new(shown: TimeRange, start: Nanos, columns: u16) -> Self {
        let columns = columns.max(1);
        let whole = |per: u64| {
            let into = (shown.from - start).0 / per * per;
            let from = start + Nanos(into);
            let reach = u128::from(from.0) + u128::from(per) * u128::from(columns);
            (reach >= u128::from(shown.to.0)).then_some((Nanos(per), from))
        };
        let (per_column, from) = round_lengths()
            .find_map(whole)
            .unwrap_or((Nanos::MAX, start));
        Self {
            start,
            from,
            per_column,
            columns,
        }
    }

    /// What the columns cover together.
    pub fn range(&self) -> TimeRange {
        let length = self
            .per_column
            .0
            .saturating_mul(u64::from(self.columns.max(1)));
        TimeRange {
            from: self.from,
            to: self.from + Nanos(length),
        }
    }

    /// The column `at` falls on; negative or too large if outside.
    pub fn column(&self, at: Nanos) -> i64 {
        let per = i128::from(self.per_column.0.max(1));
        let into = i128::from(at.0) - i128::from(self.from.0);
        i64::try_from(into.div_euclid(per)).unwrap_or(i64::MAX)
    }

    /// Start and end of a column; none if it is outside.
    pub fn bounds(&self, column: i64) -> Option<(Nanos, Nanos)> {
        let column = u64::try_from(column).ok()?;
        (column < u64::from(self.columns)).then(|| {
            let from = self.from + Nanos(self.per_column.0.saturating_mul(column));
            (from, from + self.per_column)
        })
    }

    /// The fraction of each column, from the first to the last one touched, that `[from, to)` covers.
    pub fn cover(&self, from: Nanos, to: Nanos) -> impl Iterator<Item = (usize, f64)> + use<> {
        let scale = *self;
        let first = scale.column(from).clamp(0, i64::from(scale.columns));
        let last = scale.column(to).clamp(-1, i64::from(scale.columns) - 1);
        (first..=last).map(move |column| {
            let start = scale.from + Nanos(scale.per_column.0.saturating_mul(column as u64));
            let end = start + scale.per_column;
            let covered = to.min(end) - from.max(start);
            let share = covered.0 as f64 / scale.per_column.0.max(1) as f64;
            (column as usize, share)
        })
    }
}

/// 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30 … nanoseconds.
fn round_lengths() -> impl Iterator<Item = u64> {
    const MANTISSAS: [u64; 10] = [10, 12, 15, 20, 25, 30, 40, 50, 60, 80];
    (0..20u32).flat_map(|power| {
        MANTISSAS.into_iter().filter_map(move |m| {
            let value = u128::from(m) * 10u128.pow(power);
            if value % 10 != 0 {
                return None;
            }
            u64::try_from(value / 10).ok()
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(from: u64, to: u64) -> TimeRange {
        TimeRange {
            from: Nanos(from),
            to: Nanos(to),
        }
    }

    const RUN: TimeRange = TimeRange {
        from: Nanos(1_000_000),
        to: Nanos(9_000_000),
    };

    #[test]
    fn zooming_keeps_the_end_of_a_live_run_and_the_middle_of_a_finished_one() {
        let live = Window::Whole.zoomed_in(RUN, true, None);
        assert_eq!(live, Window::Latest(Nanos(4_000_000)));
        assert_eq!(live.resolve(RUN), range(5_000_000, 9_000_000));
        let done = Window::Whole.zoomed_in(RUN, false, None);
        assert_eq!(done.resolve(RUN), range(3_000_000, 7_000_000));
        assert_eq!(done.zoomed_out(RUN, None), Window::Whole);
        assert_eq!(live.zoomed_out(RUN, None), Window::Whole);
    }

    #[test]
    fn zooming_keeps_what_is_pointed_at_in_its_place() {
        let at = Nanos(3_000_000);
        let closer = Window::Whole.zoomed_in(RUN, true, Some(at));
        assert_eq!(closer.resolve(RUN), range(2_000_000, 6_000_000));
        let closer = closer.zoomed_in(RUN, true, Some(at));
        assert_eq!(closer.resolve(RUN), range(2_500_000, 4_500_000));
        let out = closer.zoomed_out(RUN, Some(at));
        assert_eq!(out.resolve(RUN), range(2_000_000, 6_000_000));
        assert_eq!(out.zoomed_out(RUN, Some(at)), Window::Whole);
    }

    #[test]
    fn panning_stops_at_the_ends() {
        let mut w = Window::Whole
            .zoomed_in(RUN, false, None)
            .zoomed_in(RUN, false, None);
        assert_eq!(w.resolve(RUN).length(), Nanos(2_000_000));
        for _ in 0..20 {
            w = w.earlier(RUN);
        }
        assert_eq!(w.resolve(RUN), range(1_000_000, 3_000_000));
        for _ in 0..20 {
            w = w.later(RUN, false);
        }
        assert_eq!(w.resolve(RUN), range(7_000_000, 9_000_000));
        assert_eq!(w.later(RUN, true), Window::Latest(Nanos(2_000_000)));
        assert_eq!(Window::Whole.earlier(RUN), Window::Whole);
        assert!(w.following().follows());
    }

    #[test]
    fn zooming_in_ends_at_a_microsecond() {
        let mut w = Window::Whole;
        for _ in 0..100 {
            w = w.zoomed_in(RUN, false, None);
        }
        assert!(w.resolve(RUN).length() >= SHORTEST);
    }

    #[test]
    fn columns_stay_put_while_the_run_grows() {
        let before = Scale::new(range(1_000, 101_000), Nanos(1_000), 60);
        let after = Scale::new(range(1_000, 101_900), Nanos(1_000), 60);
        assert_eq!(before, after);
        assert_eq!(before.per_column, Nanos(2_000));
    }

    proptest! {
        #![proptest_config(dosmos_testseeds::config(256))]

        #[test]
        fn the_scale_covers_what_is_shown(
            start in 0u64..1_000_000_000_000,
            into in 0u64..1_000_000_000,
            length in 0u64..1_000_000_000_000,
            columns in 1u16..300,
        ) {
            let shown = range(start + into, start + into + length);
            let scale = Scale::new(shown, Nanos(start), columns);
            prop_assert!(scale.range().from <= shown.from);
            prop_assert!(scale.range().to >= shown.to);
            let shares: f64 = scale.cover(shown.from, shown.to).map(|(_, share)| share).sum();
            let expected = length as f64 / scale.per_column.0 as f64;
            prop_assert!((shares - expected).abs() < 1e-6 * expected.max(1.0));
        }
    }

    #[test]
    fn nonsense_does_not_overflow() {
        for shown in [range(0, 0), range(5, 1), range(0, u64::MAX), TimeRange::ALL] {
            for columns in [0, 1, 80, u16::MAX] {
                let scale = Scale::new(shown, Nanos(7), columns);
                scale.range();
                scale.cover(Nanos(0), Nanos(u64::MAX)).count();
            }
        }
    }
}
