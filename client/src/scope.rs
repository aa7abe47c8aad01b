//! Select: from the words of a user to a filter: names to numbers, times to instants.

use chrono::{DateTime, NaiveTime, Utc};
use dosmos_proto::{ApId, Nanos, ObjectId, VarId};
use dosmos_trace::pattern::Pattern;
use dosmos_trace::query::{BarrierName, Catalog, Filter, MetaQuery, TimeRange};
use dosmos_trace::record::{Op, Origin};

use crate::Error;

/// The part of a run to look at, in the words of a user. Empty lists mean everything. Names may be patterns
/// ([`Pattern`]).
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Names of variables, of barriers, or `NAME[INDEX]` for one object.
    pub variables: Vec<String>,
    /// Names of application processes.
    pub processes: Vec<String>,
    /// Names of operations.
    pub operations: Vec<String>,
    /// Names of origins: local, intra, inter.
    pub origins: Vec<String>,
    /// The beginning, as [`time_range`] reads it.
    pub from: Option<String>,
    /// The end.
    pub to: Option<String>,
}

impl Scope {
    /// The records asked for; `everything` includes records of owners, failed operations and waiting notices.
    ///
    /// # Errors
    /// If something named does not exist in the run; says what does.
    pub fn filter(&self, catalog: &Catalog, everything: bool) -> Result<Filter, Error> {
        let mut filter = Filter {
            everything,
            ..Filter::default()
        };
        for name in &self.variables {
            for (variable, object) in variables(catalog, name)? {
                if !filter.variables.contains(&variable) {
                    filter.variables.push(variable);
                }
                if object.is_some() {
                    if self.variables.len() > 1 {
                        return Err(bad(format!("{name} names one object; ask for it alone")));
                    }
                    filter.object = object;
                }
            }
        }
        for name in &self.processes {
            for ap in processes(catalog, name)? {
                if !filter.aps.contains(&ap) {
                    filter.aps.push(ap);
                }
            }
        }
        for name in &self.operations {
            filter
                .ops
                .push(one_of("operation", name, Op::ALL, Op::name)?);
        }
        for name in &self.origins {
            filter
                .origins
                .push(one_of("origin", name, Origin::ALL, Origin::name)?);
        }
        filter.range = time_range(catalog, self.from.as_deref(), self.to.as_deref())?;
        Ok(filter)
    }

    /// The meta-objects asked for.
    ///
    /// # Errors
    /// If a variable or object does not exist in the run.
    pub fn meta_query(&self, catalog: &Catalog) -> Result<MetaQuery, Error> {
        let mut query = MetaQuery::default();
        for name in &self.variables {
            for chosen in variables(catalog, name)? {
                match chosen {
                    (v, Some(index)) => query.objects.push(ObjectId::new(v, index)),
                    (v, None) if query.variables.contains(&v) => {}
                    (v, None) => query.variables.push(v),
                }
            }
        }
        Ok(query)
    }
}

fn bad(why: String) -> Error {
    Error::Selection(why)
}

/// At most this many names are in a message.
const NAMES: usize = 20;

/// There is no such name; the nearest one, or what there is.
fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> Error {
    let known: Vec<&str> = known.collect();
    let distance = |k: &&&str| strsim::damerau_levenshtein(k, name);
    let nearest = known.iter().min_by_key(distance);
    bad(match nearest {
        None => format!("there is no {what} {name:?}; the run has none"),
        Some(_) if name.contains(['*', '?']) || name.starts_with("re:") => {
            format!("no {what} matches {name:?}; known: {}", shortened(&known))
        }
        Some(near) if distance(&near) <= 1 + name.chars().count() / 4 => {
            format!("there is no {what} {name:?}; did you mean {near:?}?")
        }
        Some(_) => {
            format!("there is no {what} {name:?}; known: {}", shortened(&known))
        }
    })
}

fn shortened(known: &[&str]) -> String {
    let shown = known[..known.len().min(NAMES)].join(", ");
    match known.len().saturating_sub(NAMES) {
        0 => shown,
        n => format!("{shown} and {n} more"),
    }
}

fn pattern(text: &str) -> Result<Pattern, Error> {
    Pattern::parse(text).map_err(|e| bad(e.to_string()))
}

/// The application processes that a pattern chooses.
fn processes(catalog: &Catalog, text: &str) -> Result<Vec<ApId>, Error> {
    let pattern = pattern(text)?;
    let all = catalog.topology.application_processes();
    let numbered = (0..).map(ApId).zip(all);
    let chosen = numbered.filter(|(_, p)| pattern.matches(&p.name));
    let chosen: Vec<ApId> = chosen.map(|(id, _)| id).collect();
    match chosen.is_empty() {
        true => {
            let known = all.iter().map(|p| p.name.as_str());
            Err(unknown("application process", text, known))
        }
        false => Ok(chosen),
    }
}

/// The variables and barriers that a pattern chooses, or the one object that a name with an index names.
fn variables(catalog: &Catalog, text: &str) -> Result<Vec<(VarId, Option<u32>)>, Error> {
    let pattern = pattern(text)?;
    if !pattern.is_general() {
        return Ok(vec![variable(catalog, text)?]);
    }
    let variables = catalog.variables.iter();
    let variables = variables.map(|v| (v.id(), v.spec().name().to_owned()));
    let barriers = catalog.barriers.iter();
    let barriers = barriers.map(|b| (b.id, catalog.name_of(b.id)));
    let chosen = variables.chain(barriers);
    let chosen = chosen.filter(|(_, name)| pattern.matches(name));
    let chosen: Vec<_> = chosen.map(|(id, _)| (id, None)).collect();
    match chosen.is_empty() {
        true => {
            let known = catalog.variables.iter().map(|v| v.spec().name());
            Err(unknown("variable", text, known))
        }
        false => Ok(chosen),
    }
}

/// `NAME` or `NAME[INDEX]`: a variable, an object of it, or a barrier.
fn variable(catalog: &Catalog, text: &str) -> Result<(VarId, Option<u32>), Error> {
    if let Some(v) = catalog.variable(text) {
        return Ok((v.id(), None));
    }
    if let Some((name, index)) = text.strip_suffix(']').and_then(|t| t.rsplit_once('['))
        && let Some(v) = catalog.variable(name)
    {
        let objects = v.spec().layout().objects();
        return match index.parse() {
            Ok(index) if index < objects => Ok((v.id(), Some(index))),
            Ok(_) => Err(bad(format!(
                "{text}: {name} has {objects} objects, 0 to {}",
                objects - 1
            ))),
            Err(_) => Err(bad(format!("{text}: the index is not a number"))),
        };
    }
    let barrier = |b: &&BarrierName| catalog.name_of(b.id) == text;
    if let Some(b) = catalog.barriers.iter().find(barrier) {
        return Ok((b.id, None));
    }
    let known = catalog.variables.iter().map(|v| v.spec().name());
    Err(unknown("variable", text, known))
}

fn one_of<T: Copy, const N: usize>(
    what: &str,
    text: &str,
    all: [T; N],
    name: fn(T) -> &'static str,
) -> Result<T, Error> {
    let found = all.into_iter().find(|&t| name(t) == text);
    found.ok_or_else(|| {
        let names = all.map(name).join(", ");
        bad(format!("{text:?} is not an {what}; use one of {names}"))
    })
}

/// The range of time from `from` to `to` as people write them: `+1.5s` into the run, a time of day, or RFC 3339;
/// none if neither is given.
///
/// # Errors
/// If one is not a time, there is nothing yet to count times from, or the range is empty.
pub fn time_range(
    catalog: &Catalog,
    from: Option<&str>,
    to: Option<&str>,
) -> Result<Option<TimeRange>, Error> {
    if from.is_none() && to.is_none() {
        return Ok(None);
    }
    let Some(extent) = catalog.extent else {
        return Err(bad(
            "nothing has been recorded yet, so there is no time range to choose".into(),
        ));
    };
    let point = |text: Option<&str>, otherwise| match text {
        Some(text) => instant(text, extent.from),
        None => Ok(otherwise),
    };
    let range = TimeRange {
        from: point(from, extent.from)?,
        to: point(to, extent.to)?,
    };
    if range.from >= range.to {
        return Err(bad("--from is not before --to".into()));
    }
    Ok(Some(range))
}

/// `+1.5s` after `start`, a time of `start`'s day (UTC), or RFC 3339.
fn instant(text: &str, start: Nanos) -> Result<Nanos, Error> {
    if let Some(offset) = text.strip_prefix('+') {
        return Ok(start + duration(offset)?);
    }
    let from_utc = |t: DateTime<Utc>| {
        let nanos = t.timestamp_nanos_opt().and_then(|n| u64::try_from(n).ok());
        nanos
            .map(Nanos)
            .ok_or_else(|| bad(format!("{text} is out of range")))
    };
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return from_utc(time.to_utc());
    }
    if let Ok(time) = NaiveTime::parse_from_str(text, "%H:%M:%S%.f") {
        let day = DateTime::from_timestamp_nanos(start.0 as i64).date_naive();
        return from_utc(day.and_time(time).and_utc());
    }
    Err(bad(format!(
        "{text:?} is not a time; examples: +1.5s, 12:03:04.5 or 2026-01-02T12:03:04Z"
    )))
}

/// A length of time as people write it: `1.5s`, `200ms`, `7d`.
///
/// # Errors
/// If it is none; shows some.
pub fn duration(text: &str) -> Result<Nanos, Error> {
    let units = [
        ("ns", 1.0),
        ("us", 1e3),
        ("µs", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
        ("m", 60e9),
        ("h", 3600e9),
        ("d", 86_400e9),
    ];
    for (unit, nanos) in units {
        if let Some(number) = text.strip_suffix(unit)
            && let Ok(number) = number.parse::<f64>()
            && number >= 0.0
        {
            return Ok(Nanos((number * nanos) as u64));
        }
    }
    Err(bad(format!(
        "{text:?} is not a duration; examples: 1.5s, 200ms or 2m"
    )))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // tests may
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
