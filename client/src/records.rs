//! All records of a source, handed out in order of their start, a slice of time after another, so that
//! memory does not grow with the run.

use dosmos_proto::Nanos;
use dosmos_trace::query::{Catalog, Completeness, Filter, QueryError, TimeRange, TraceSource};
use dosmos_trace::record::Record;

/// Records a slice should hold, about: tens of megabytes.
const SLICE: u64 = 400_000;

/// Hands every record of `range` (none: of the run) to `each`: owners' records, failed operations and
/// waiting notices too; of a record that stands for several accesses, those in the range. Says what they lack.
///
/// # Errors
/// As [`TraceSource::records`].
pub async fn each(
    source: &dyn TraceSource,
    catalog: &Catalog,
    range: Option<TimeRange>,
    each: &mut (dyn FnMut(&Record) + Send),
) -> Result<Completeness, QueryError> {
    let mut lacking = catalog.completeness.clone();
    for (i, slice) in slices(catalog, range).into_iter().enumerate() {
        let filter = Filter {
            everything: true,
            range: Some(slice),
            // Of what began before the range, the first slice has the rest.
            once: i > 0,
            ..Filter::default()
        };
        let records = source.records(&filter, 0).await?;
        // The last answer knows what the ones before found damaged.
        lacking.clone_from(&records.completeness);
        for record in records {
            match range {
                Some(range) => record.within(range).iter().for_each(&mut *each),
                None => each(&record),
            }
        }
    }
    Ok(lacking)
}

/// `range` in equal parts, as many as the run's number of records asks for.
fn slices(catalog: &Catalog, range: Option<TimeRange>) -> Vec<TimeRange> {
    let Some(extent) = catalog.extent else {
        return Vec::new();
    };
    let range = range.unwrap_or(extent);
    let length = range.length().0;
    let count = (catalog.records / SLICE + 1).min(length.max(1));
    let at = |i: u64| {
        let into = u128::from(length) * u128::from(i) / u128::from(count);
        Nanos(range.from.0 + into as u64)
    };
    (0..count)
        .map(|i| TimeRange {
            from: at(i),
            to: at(i + 1),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_cover_the_range_without_a_gap() {
        let catalog = Catalog {
            extent: Some(TimeRange {
                from: Nanos(10),
                to: Nanos(1_000_003),
            }),
            records: 5 * SLICE,
            ..Catalog::default()
        };
        let slices = slices(&catalog, None);
        assert_eq!(slices.len(), 6);
        assert_eq!(
            (slices[0].from, slices[5].to),
            (Nanos(10), Nanos(1_000_003))
        );
        assert!(slices.windows(2).all(|w| w[0].to == w[1].from));
        assert!(super::slices(&Catalog::default(), None).is_empty());
    }
}
