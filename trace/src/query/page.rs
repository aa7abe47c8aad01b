//! Records page by page, from any source.
//!
//! Guarantees: pages one after another hold every record once, in order of start, also where many start
//! at the same instant, as long as no older records arrive in between.

use std::fmt;
use std::str::FromStr;

use dosmos_proto::Nanos;

use super::{BadCursor, Filter, QueryError, Records, TimeRange, TraceSource};

/// The place after a record: its start, and how many records of that start came up to there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cursor {
    /// When the record starts.
    pub at: Nanos,
    /// Records that start then and came before this place.
    pub skip: u64,
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}+{}", self.at.0, self.skip)
    }
}

impl FromStr for Cursor {
    type Err = BadCursor;
    fn from_str(text: &str) -> Result<Self, BadCursor> {
        let parsed = text.split_once('+').and_then(|(at, skip)| {
            Some(Self {
                at: Nanos(at.parse().ok()?),
                skip: skip.parse().ok()?,
            })
        });
        parsed.ok_or_else(|| BadCursor(text.to_owned()))
    }
}

/// At most `limit` (at least 1) records that `filter` matches, from the beginning or after a page before;
/// and where the next page begins, if there is one.
///
/// # Errors
/// As the source's.
pub async fn page(
    source: &dyn TraceSource,
    filter: &Filter,
    after: Option<Cursor>,
    limit: u64,
) -> Result<(Records, Option<Cursor>), QueryError> {
    let after = after.unwrap_or_default();
    let range = filter.range.unwrap_or(TimeRange::ALL);
    let asked = Filter {
        range: Some(TimeRange {
            from: range.from.max(after.at),
            ..range
        }),
        once: true,
        ..filter.clone()
    };
    let limit = limit.max(1);
    // Those that the cursor skips come first, for they start first.
    let most = limit.saturating_add(after.skip).saturating_add(1);
    let mut found = source.records(&asked, most).await?;
    let known = found.iter().take_while(|r| r.start == after.at).count() as u64;
    let skipped = after.skip.min(known) as usize;
    let length = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = found.len() - skipped > length;
    found.records.truncate(skipped.saturating_add(length));
    let next = found.last().filter(|_| more).map(|last| Cursor {
        at: last.start,
        skip: found
            .iter()
            .rev()
            .take_while(|r| r.start == last.start)
            .count() as u64,
    });
    found.records.drain(..skipped);
    Ok((found, next))
}
