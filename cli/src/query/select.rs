//! From what people write to what is asked: names to numbers, times to instants.

use anyhow::{Context, bail};
use chrono::{DateTime, NaiveTime, Utc};
use dosmos_proto::{Nanos, ObjectId};
use dosmos_trace::query::{Catalog, Filter, MetaQuery, TimeRange};
use dosmos_trace::record::{Op, Origin};

use crate::args::SelectArgs;

/// The records the command line asks for.
pub(crate) fn filter(
    catalog: &Catalog,
    args: &SelectArgs,
    everything: bool,
) -> anyhow::Result<Filter> {
    let mut filter = Filter {
        everything,
        ..Filter::default()
    };
    for name in &args.var {
        let (variable, object) = variable(catalog, name)?;
        filter.variables.push(variable);
        if object.is_some() {
            if args.var.len() > 1 {
                bail!("{name} names one object; ask for it alone");
            }
            filter.object = object;
        }
    }
    for name in &args.ap {
        let ap = catalog.topology.find_ap(name).with_context(|| {
            let known: Vec<_> = catalog
                .topology
                .application_processes()
                .iter()
                .map(|p| p.name.as_str())
                .collect();
            format!(
                "no application process {name}; there is {}",
                known.join(", ")
            )
        })?;
        filter.aps.push(ap);
    }
    for name in &args.op {
        filter
            .ops
            .push(one_of("operation", name, Op::ALL, Op::name)?);
    }
    for name in &args.origin {
        filter
            .origins
            .push(one_of("origin", name, Origin::ALL, Origin::name)?);
    }
    filter.range = between(catalog, args.from.as_deref(), args.to.as_deref())?;
    Ok(filter)
}

/// The meta-objects the command line asks for.
pub(super) fn meta_query(catalog: &Catalog, args: &SelectArgs) -> anyhow::Result<MetaQuery> {
    let mut query = MetaQuery::default();
    for name in &args.var {
        match variable(catalog, name)? {
            (v, Some(index)) => query.objects.push(ObjectId::new(v, index)),
            (v, None) => query.variables.push(v),
        }
    }
    Ok(query)
}

/// `NAME` or `NAME[INDEX]`; a variable, or `barrier` for barriers without a name.
fn variable(catalog: &Catalog, text: &str) -> anyhow::Result<(dosmos_proto::VarId, Option<u32>)> {
    if let Some(v) = catalog.variable(text) {
        return Ok((v.id(), None));
    }
    if let Some((name, index)) = text.strip_suffix(']').and_then(|t| t.rsplit_once('['))
        && let Some(v) = catalog.variable(name)
    {
        let index = index
            .parse()
            .with_context(|| format!("{text}: the index is not a number"))?;
        let objects = v.spec().layout().objects();
        if index >= objects {
            bail!("{text}: {name} has {objects} objects, 0 to {}", objects - 1);
        }
        return Ok((v.id(), Some(index)));
    }
    if let Some(b) = catalog
        .barriers
        .iter()
        .find(|b| catalog.name_of(b.id) == text)
    {
        return Ok((b.id, None));
    }
    let mut known: Vec<_> = catalog.variables.iter().map(|v| v.spec().name()).collect();
    known.truncate(20);
    bail!("no variable {text}; there is {}", known.join(", "))
}

fn one_of<T: Copy, const N: usize>(
    what: &str,
    text: &str,
    all: [T; N],
    name: fn(T) -> &'static str,
) -> anyhow::Result<T> {
    all.into_iter().find(|&t| name(t) == text).with_context(|| {
        format!(
            "{text:?} is not an {what}; write one of {}",
            all.map(name).join(", ")
        )
    })
}

/// The range of time from `from` to `to`, as people write them; none if neither is given.
///
/// # Errors
/// If one is not a time, there is nothing yet to count times from, or the range is empty.
pub(crate) fn between(
    catalog: &Catalog,
    from: Option<&str>,
    to: Option<&str>,
) -> anyhow::Result<Option<TimeRange>> {
    if from.is_none() && to.is_none() {
        return Ok(None);
    }
    let extent = catalog
        .extent
        .context("there is no record yet, so no time to choose")?;
    let point = |text: Option<&str>, otherwise| match text {
        Some(text) => instant(text, extent.from),
        None => Ok(otherwise),
    };
    let range = TimeRange {
        from: point(from, extent.from)?,
        to: point(to, extent.to)?,
    };
    if range.from >= range.to {
        bail!("--from is not before --to");
    }
    Ok(Some(range))
}

/// `+1.5s` after `start`, a time of `start`'s day (UTC), or RFC 3339.
fn instant(text: &str, start: Nanos) -> anyhow::Result<Nanos> {
    if let Some(offset) = text.strip_prefix('+') {
        return Ok(start + duration(offset)?);
    }
    let from_utc = |t: DateTime<Utc>| {
        let nanos = t.timestamp_nanos_opt().and_then(|n| u64::try_from(n).ok());
        nanos
            .map(Nanos)
            .with_context(|| format!("{text} is out of range"))
    };
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return from_utc(time.to_utc());
    }
    if let Ok(time) = NaiveTime::parse_from_str(text, "%H:%M:%S%.f") {
        let day = DateTime::from_timestamp_nanos(start.0 as i64).date_naive();
        return from_utc(day.and_time(time).and_utc());
    }
    bail!("{text:?} is not a time; write +1.5s, 12:03:04.5 or 2026-01-02T12:03:04Z")
}

fn duration(text: &str) -> anyhow::Result<Nanos> {
    let units = [
        ("ns", 1.0),
        ("us", 1e3),
        ("µs", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
        ("m", 60e9),
        ("h", 3600e9),
    ];
    for (unit, nanos) in units {
        if let Some(number) = text.strip_suffix(unit)
            && let Ok(number) = number.parse::<f64>()
            && number >= 0.0
        {
            return Ok(Nanos((number * nanos) as u64));
        }
    }
    bail!("{text:?} is not a duration; write 1.5s, 200ms, 2m")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_people_write_them() {
        let start = Nanos(1_767_225_600_000_000_000); // 2026-01-01T00:00:00Z
        let at = |text| instant(text, start).unwrap().0 - start.0;
        assert_eq!(at("+1.5s"), 1_500_000_000);
        assert_eq!(at("+20ms"), 20_000_000);
        assert_eq!(at("00:01:00.5"), 60_500_000_000);
        assert_eq!(at("2026-01-01T01:00:00+00:00"), 3_600_000_000_000);
        for bad in ["soon", "+1", "+-1s", "25:00:00", ""] {
            assert!(instant(bad, start).is_err(), "{bad}");
        }
    }
}
