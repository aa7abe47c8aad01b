//! What a replay says of a change: of places, processors, links, software and the number of processes, which is all that it knows.

use dosmos_client::Run;
use dosmos_model::dvsm;
use dosmos_model::inputs::{Change, NetworkRecord};
use dosmos_replay::{Calibrated, Costs, Scale, Technology};
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
    /// The error says why a replay cannot say what the change does.
    pub(super) async fn of(
        run: &Run,
        network: &NetworkRecord,
        asked: &Change,
        catalog: &Catalog,
    ) -> anyhow::Result<Result<Self, &'static str>> {
        let technology = match technology(asked, network) {
            Ok(technology) => technology,
            Err(reason) => return Ok(Err(reason)),
        };
        if asked.processes.is_some() && asked.placement.is_some() {
            return Ok(Err(
                "it does not know other groups for another number of processes",
            ));
        }
        let Some(script) = run.script().await? else {
            return Ok(Err(
                "the processes of the run did not say where their time went",
            ));
        };
        let said = || {
            let replay = Calibrated::new(script, &Costs::of(network)).ok_or(ENDLESS)?;
            let replay = replay.with_technology(&technology);
            let replay = match asked.processes {
                Some(processes) => replay.scaled(&Scale {
                    processes: Some(processes as usize),
                    ..Scale::default()
                }),
                None => Some(replay),
            };
            let replay = replay.ok_or(PLACELESS)?;
            let gain = replay.gain(&change(asked, catalog)).ok_or(ENDLESS)?;
            let script = replay.script();
            Ok(Self {
                gain: gain.gain,
                least: gain.least,
                most: gain.most,
                expected_us: script.measured().0 as f64 / 1e3 * (1.0 - gain.gain) / script.part(),
                part: script.part(),
            })
        };
        Ok(said())
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

/// Why a replay cannot say something.
const ENDLESS: &str = "the replay does not come to its end, as records are missing";
const PLACELESS: &str = "no law says where that many processes would be: the run must have one group, and a memory process for each application process";

/// Other processors and links, as a replay has them.
fn technology(asked: &Change, network: &NetworkRecord) -> Result<Technology, &'static str> {
    let other = asked.technology;
    let known = dvsm::Technology {
        speed: other.speed,
        system_benefit: other.system_benefit,
        protocol: other.protocol,
        interface_us: other.interface_us,
        switch_us: other.switch_us,
        bandwidth_mbps: other.bandwidth_mbps,
        ..dvsm::Technology::default()
    };
    if other != known {
        return Err(
            "it does not know that a program waits for less (prefetch, cold, locks), and this system has no signals",
        );
    }
    let now = &network.network;
    let interface_us = other.interface_us.unwrap_or(now.interface_us) - now.interface_us;
    let switch_us = other.switch_us.unwrap_or(now.switch_us) - now.switch_us;
    let byte_us = other
        .bandwidth_mbps
        .map_or(0.0, |mbps| 8.0 / mbps - now.wire_us_per_byte);
    Ok(Technology {
        speed: other.speed,
        software: other.protocol / other.system_speed(),
        way_ns: 1e3 * (2.0 * interface_us + switch_us),
        way_ns_per_byte: 1e3 * byte_us,
    })
}

fn change(asked: &Change, catalog: &Catalog) -> dosmos_replay::Change {
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
    change
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_processors_and_links_are_those_of_the_replay_and_what_a_program_waits_for_is_not() {
        let network = NetworkRecord::typical();
        let asked = |technology| Change {
            technology,
            ..Change::default()
        };
        let future = dvsm::Technology {
            speed: 8.0,
            system_benefit: 0.5,
            protocol: 0.2,
            interface_us: Some(network.network.interface_us + 1.0),
            switch_us: Some(3.0),
            bandwidth_mbps: Some(1000.0),
            ..dvsm::Technology::default()
        };
        let there = technology(&asked(future), &network).unwrap();
        assert_eq!(there.speed, 8.0);
        // Half a benefit of each doubling.
        assert!((there.software - 0.2 / 3.375).abs() < 1e-9, "{there:?}");
        assert!((there.way_ns - 5_000.0).abs() < 1e-6, "{there:?}");
        assert!((there.way_ns_per_byte - 8.0).abs() < 1e-9, "{there:?}");
        let same = technology(&asked(dvsm::Technology::default()), &network);
        assert_eq!(same, Ok(Technology::default()));
        let hidden = dvsm::Technology {
            prefetch_fault: 0.5,
            ..future
        };
        assert!(
            technology(&asked(hidden), &network)
                .unwrap_err()
                .contains("prefetch")
        );
    }

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
