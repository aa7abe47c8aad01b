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
//! | `pairs` | runs with and without monitoring next to each other: what it adds |
//! | `runs` | one run: its clusters, its time and its processor time |
//! | `instructions` | the instructions of its processes, under valgrind |
//! | `show` | tables |

mod instructions;
mod pairs;
mod runs;
mod show;

pub(super) use show::table;

use anyhow::bail;
use dosmos_cli::args::Format;
use dosmos_cli::output;
use serde_json::json;

use crate::args::IntrusionArgs;
use crate::machine::machine;
use pairs::{Pair, Row};
use runs::Affinity;

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
