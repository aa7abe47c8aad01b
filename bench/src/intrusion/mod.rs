//! `dosmos-bench intrusion`: what monitoring costs the program that suffers most from it (docs/bibliography.md#dosmos-trace, section 8, tables 1
//! and 2), in the paper's four configurations:
//!
//! 1. no monitoring, 2. an event manager beside each memory process, 3. one for all beside one of them,
//! 4. one for all on a processor of its own.
//!
//! The paper had four workstations. Here everything but the event manager of 4 shares the first processor,
//! so that only there monitoring has a processor to itself.
//!
//! Runs with and without monitoring are next to each other, on, off, off, on, so that a machine that becomes slower or faster concerns both
//! alike. What is told of them are the ratios within such pairs: of the time, and of the processor time.
//!
//! | module | what |
//! |---|---|
//! | `runs` | one run: its clusters, its time and its processor time |
//! | `instructions` | the instructions of its processes, under valgrind |
//! | `show` | tables |

mod instructions;
mod runs;
mod show;

pub(super) use show::table;

use anyhow::bail;
use dosmos_cli::args::Format;
use dosmos_cli::output;
use serde_json::json;

use crate::args::IntrusionArgs;
use crate::machine::machine;
use crate::statistics::{Interval, interval};
use runs::{Affinity, Run};

/// Computing time over access time (table 2); 0 is table 1.
const RATIOS: [u64; 4] = [0, 1, 2, 3];

/// The monitored configurations; 0 is without monitoring.
const MONITORED: [usize; 3] = [1, 2, 3];

pub(crate) async fn run(args: IntrusionArgs) -> anyhow::Result<()> {
    if let Some(configuration) = args.once {
        let run = runs::one(configuration, args.rounds, 0).await?;
        output::text(&format!("{:.3} s\n", run.seconds));
        return Ok(());
    }
    if args.runs == 0 || args.rounds == 0 {
        bail!("--runs and --rounds must be at least 1");
    }
    let measured = measure(&args).await?;
    let counted = match args.instructions {
        true => Some(instructions::count(args.runs)?),
        false => None,
    };
    match args.format {
        Format::Json => {
            let all = json!({
                "machine": machine(), "rounds": args.rounds, "rows": show::items(&measured),
                "instructions": counted.as_ref().map(instructions::Counted::items),
            });
            output::text(&(serde_json::to_string_pretty(&all)? + "\n"));
        }
        format => {
            let mut text = format!("{}\n\n{}", machine(), table(&measured).render(format));
            if let Some(counted) = &counted {
                text += &format!("\n{}", counted.table().render(format));
            }
            output::text(&text);
        }
    }
    Ok(())
}

/// Runs with and without monitoring that were next to each other.
pub(super) struct Pair {
    on: Run,
    off: Run,
}

/// All pairs of one ratio and one monitored configuration.
pub(super) struct Row {
    ratio: u64,
    configuration: usize,
    pairs: Vec<Pair>,
}

impl Row {
    /// What monitoring adds to a figure of a run, as a fraction; the interval of a paired t-test of the logarithms, taken back. None
    /// of a single pair.
    fn overhead(&self, of: impl Fn(&Run) -> f64) -> Option<Interval> {
        let ratios = self.pairs.iter().map(|p| (of(&p.on) / of(&p.off)).ln());
        let logarithms = interval(&ratios.collect::<Vec<_>>())?;
        // Symmetric within less than a point where it is a few per cent wide.
        let [low, high] = [logarithms.low(), logarithms.high()].map(|l| l.exp() - 1.0);
        Some(Interval {
            mean: logarithms.mean.exp() - 1.0,
            half_width: (high - low) / 2.0,
        })
    }
}

/// Measures; everything runs on the first processor meanwhile.
pub(super) async fn measure(args: &IntrusionArgs) -> anyhow::Result<Vec<Row>> {
    let _affinity = Affinity::first_processor()?;
    let rows = RATIOS.iter().flat_map(|&ratio| {
        MONITORED.map(|configuration| Row {
            ratio,
            configuration,
            pairs: Vec::new(),
        })
    });
    let mut rows: Vec<Row> = rows.collect();
    // A first run without monitoring tells how long a round takes, and so how long to compute.
    let alone = runs::one(0, args.rounds, 0).await?;
    let round_us = alone.seconds * 1e6 / args.rounds as f64;
    for turn in 0..args.runs {
        for row in &mut rows {
            let (ratio, configuration) = (row.ratio, row.configuration);
            output::note(&format!(
                "turn {} of {}, R = {ratio}, configuration {}",
                turn + 1,
                args.runs,
                configuration + 1
            ));
            // Four processes share a processor: each computes a quarter of the time.
            let compute = (round_us * ratio as f64 / 4.0).round() as u64;
            let run = async |configuration| runs::one(configuration, args.rounds, compute).await;
            for monitored_first in [true, false] {
                let (on, off) = match monitored_first {
                    true => (run(configuration).await?, run(0).await?),
                    false => {
                        let off = run(0).await?;
                        (run(configuration).await?, off)
                    }
                };
                row.pairs.push(Pair { on, off });
            }
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_monitoring_adds_is_the_mean_ratio_within_pairs() {
        let run = |seconds| Run {
            seconds,
            processor: 2.0 * seconds,
            managers: 0.0,
        };
        let pair = |off: f64, ratio: f64| Pair {
            on: run(off * ratio),
            off: run(off),
        };
        let row = |pairs| Row {
            ratio: 0,
            configuration: 1,
            pairs,
        };
        // A machine that becomes five times slower does not matter.
        let told = row(vec![pair(1.0, 1.1), pair(5.0, 1.1)]).overhead(|r| r.seconds);
        let told = told.unwrap();
        assert!(
            (told.mean - 0.1).abs() < 1e-9 && told.half_width < 1e-9,
            "{told:?}"
        );
        let told = row(vec![pair(1.0, 1.2), pair(1.0, 1.0 / 1.2)]).overhead(|r| r.processor);
        let told = told.unwrap();
        assert!(told.mean.abs() < 1e-9 && told.half_width > 1.0, "{told:?}");
        assert!(row(vec![pair(1.0, 1.2)]).overhead(|r| r.seconds).is_none());
    }
}
