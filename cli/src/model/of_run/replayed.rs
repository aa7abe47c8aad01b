//! What a replay says of a change: of places, processors and the number of processes, which is all that it knows.

use dosmos_client::Run;
use dosmos_model::dvsm::Technology;
use dosmos_model::inputs::{Change, NetworkRecord};
use dosmos_replay::{Calibrated, Costs, Scale};
use dosmos_trace::query::Catalog;
use serde::Serialize;

/// A change as a replay of the run has it.
#[derive(Debug, Serialize)]
pub(super) struct Replayed {
    /// Fraction of the run time that it saves; below 0: costs.
    gain: f64,
    least: f64,
    most: f64,
    expected_us: f64,
    /// The part of the run that was replayed.
    part: f64,
}

impl Replayed {
    /// None if the change is one of technology, or of the number of processes where its [laws](Scale) do not apply, or the replay
    /// does not come to an end.
    pub(super) async fn of(
        run: &Run,
        network: &NetworkRecord,
        asked: &Change,
        catalog: &Catalog,
    ) -> anyhow::Result<Option<Self>> {
        let Some(change) = change(asked, catalog) else {
            return Ok(None);
        };
        let script = run.script().await?;
        let replay = script.and_then(|script| Calibrated::new(script, &Costs::of(network)));
        let replay = match asked.processes {
            Some(processes) => replay.and_then(|r| {
                r.scaled(&Scale {
                    processes: Some(processes as usize),
                    ..Scale::default()
                })
            }),
            None => replay,
        };
        let Some((replay, gain)) = replay.and_then(|r| r.gain(&change).map(|gain| (r, gain)))
        else {
            return Ok(None);
        };
        let script = replay.script();
        Ok(Some(Self {
            gain: gain.gain,
            least: gain.least,
            most: gain.most,
            expected_us: script.measured().0 as f64 / 1e3 * (1.0 - gain.gain) / script.part(),
            part: script.part(),
        }))
    }

    /// The same as a sentence.
    pub(super) fn line(&self) -> String {
        let (gain, verb) = in_words(self.gain);
        let of = |bound: f64| if self.gain < 0.0 { -bound } else { bound };
        let mut bounds = [self.least, self.most].map(|bound| 100.0 * of(bound));
        bounds.sort_by(f64::total_cmp);
        let [least, most] = bounds;
        let mut text = format!(
            "by a replay of the run the change {verb} {gain:.1} % ({least:.1} to {most:.1} %): expect {:.3} ms\n",
            self.expected_us / 1e3
        );
        if self.part < 1.0 {
            text += &format!(
                "the first {:.0} % of the run were replayed\n",
                100.0 * self.part
            );
        }
        text
    }
}

/// What a change gains: as percent, and whether it saves or costs that.
pub(super) fn in_words(gain: f64) -> (f64, &'static str) {
    match gain < 0.0 {
        true => (-100.0 * gain, "costs"),
        false => (100.0 * gain, "saves"),
    }
}

fn change(asked: &Change, catalog: &Catalog) -> Option<dosmos_replay::Change> {
    let both = asked.processes.is_some() && asked.placement.is_some();
    if asked.technology != Technology::default() || both {
        return None;
    }
    let mut change = dosmos_replay::Change {
        processors: asked.processors,
        ..dosmos_replay::Change::default()
    };
    if let Some(placement) = &asked.placement {
        change.topology = Some(placement.topology.clone());
        change.owners.clone_from(&placement.objects);
        for variable in &catalog.variables {
            let Some(owners) = placement
                .moved
                .get(&variable.id())
                .filter(|o| !o.is_empty())
            else {
                continue;
            };
            let moved = variable.objects().zip(owners.iter().copied().cycle());
            change.owners.extend(moved);
        }
    }
    Some(change)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_not_a_negative_gain() {
        let line = |gain, least, most| {
            let replayed = Replayed {
                gain,
                least,
                most,
                expected_us: 1500.0,
                part: 1.0,
            };
            replayed.line()
        };
        assert_eq!(
            line(-0.457, -0.717, -0.457),
            "by a replay of the run the change costs 45.7 % (45.7 to 71.7 %): expect 1.500 ms\n"
        );
        assert!(line(0.1, -0.05, 0.1).contains("saves 10.0 % (-5.0 to 10.0 %)"));
    }
}
