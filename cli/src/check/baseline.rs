//! An earlier answer, to tell what is new or worse.

use std::path::Path;

use anyhow::Context;
use dosmos_analysis::{Finding, Kind, Thresholds};
use serde::{Deserialize, Serialize};

/// What became of a finding since the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Change {
    New,
    Worse,
    Known,
}

/// The findings of an answer in JSON; other keys of it do not matter.
#[derive(Debug, Deserialize)]
pub(super) struct Baseline {
    findings: Vec<Known>,
}

#[derive(Debug, Deserialize)]
struct Known {
    kind: Kind,
    variable: Option<String>,
    object: Option<u32>,
    severity: f64,
}

impl Baseline {
    pub(super) fn read(file: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        serde_json::from_str(&text).with_context(|| {
            format!(
                "{} is not the output of `dosmos check --format json`",
                file.display()
            )
        })
    }

    /// A finding is known if there was one of its kind with the same target, and worse if it costs more
    /// by the thresholds `worse` (as a fraction of what it cost) and `negligible_loss`.
    pub(super) fn change(&self, finding: &Finding, t: &Thresholds) -> Change {
        let same = |k: &&Known| {
            k.kind == finding.kind && k.variable == finding.variable && k.object == finding.object
        };
        let known = self.findings.iter().filter(same);
        match known.map(|k| k.severity).max_by(f64::total_cmp) {
            None => Change::New,
            Some(before) => {
                let more = finding.severity - before;
                let worse = more > t.worse * before && more > t.negligible_loss;
                if worse { Change::Worse } else { Change::Known }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use dosmos_trace::query::TimeRange;

    use super::*;

    #[test]
    fn new_worse_known() {
        let text = r#"{"complete":1.0,"findings":[
            {"kind":"ping-pong","variable":"x","object":0,"severity":0.2,"extra":1},
            {"kind":"imbalance","variable":null,"object":null,"severity":0.1}]}"#;
        let baseline: Baseline = serde_json::from_str(text).unwrap();
        let change = |kind, variable: Option<&str>, object, severity| {
            let mut finding = Finding::new(kind, TimeRange::ALL);
            finding.variable = variable.map(str::to_owned);
            (finding.object, finding.severity) = (object, severity);
            baseline.change(&finding, &Thresholds::default())
        };
        assert_eq!(
            change(Kind::PingPong, Some("x"), Some(0), 0.21),
            Change::Known
        );
        assert_eq!(
            change(Kind::PingPong, Some("x"), Some(0), 0.3),
            Change::Worse
        );
        assert_eq!(change(Kind::PingPong, Some("x"), Some(1), 0.2), Change::New);
        assert_eq!(
            change(Kind::Bottleneck, Some("x"), Some(0), 0.2),
            Change::New
        );
        assert_eq!(change(Kind::Imbalance, None, None, 0.01), Change::Known);
    }
}
