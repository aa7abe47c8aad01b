//! Which findings make `dosmos check` exit with 1.

use std::str::FromStr;

use dosmos_analysis::{Finding, Kind, UnknownKind};

/// A kind, a least severity, or both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FailOn {
    kind: Option<Kind>,
    severity: f64,
}

impl FromStr for FailOn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (kind, severity) = match text.split_once(':') {
            Some((kind, severity)) => (Some(kind), Some(severity)),
            None if text.starts_with(|c: char| c.is_ascii_digit() || c == '.') => {
                (None, Some(text))
            }
            None => (Some(text), None),
        };
        Ok(Self {
            kind: kind
                .map(str::parse)
                .transpose()
                .map_err(|e: UnknownKind| e.to_string())?,
            severity: severity.map_or(Ok(0.0), fraction)?,
        })
    }
}

/// `0.05` or `5%`.
fn fraction(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix('%') {
        Some(number) => (number, 100.0),
        None => (text, 1.0),
    };
    match number.trim().parse::<f64>() {
        Ok(n) if (0.0..=unit).contains(&n) => Ok(n / unit),
        _ => Err(format!(
            "{text:?} is not a severity between 0 and 1; examples: 0.05, 5%"
        )),
    }
}

/// Whether any of the conditions (none: always) is met.
pub(super) fn any(conditions: &[FailOn], finding: &Finding) -> bool {
    let met = |c: &FailOn| {
        c.kind.is_none_or(|kind| kind == finding.kind) && finding.severity >= c.severity
    };
    conditions.is_empty() || conditions.iter().any(met)
}

#[cfg(test)]
mod tests {
    use dosmos_trace::query::TimeRange;

    use super::*;

    #[test]
    fn kinds_and_severities() {
        let mut finding = Finding::new(Kind::PingPong, TimeRange::ALL);
        finding.severity = 0.08;
        let met = |texts: &[&str]| {
            let conditions: Vec<FailOn> = texts.iter().map(|t| t.parse().unwrap()).collect();
            any(&conditions, &finding)
        };
        assert!(met(&[]) && met(&["ping-pong"]) && met(&["5%"]) && met(&["ping-pong:0.08"]));
        assert!(!met(&["deadlock"]) && !met(&["0.1"]) && !met(&["ping-pong:10%"]));
        assert!(met(&["deadlock", "0.01"]));
        for bad in ["pingpong", "5", "-1", "ping-pong:lots", "101%", "", "NaN:1"] {
            assert!(bad.parse::<FailOn>().is_err(), "{bad}");
        }
    }
}
