//! scratch
use dosmos_client::{Run, Target};
use dosmos_model::inputs::NetworkRecord;
use dosmos_replay::{Calibrated, Change, Costs};
use std::path::Path;
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    for dir in std::env::args().skip(1) {
        let run = Run::open(&Target::run(Path::new(&dir))).await?;
        let Some(script) = run.script().await? else {
            println!("{dir}: no script");
            continue;
        };
        let costs = Costs {
            processors: 2,
            ..Costs::of(&NetworkRecord::typical())
        };
        let plain = script.replay(&costs, &Change::default());
        println!(
            "{dir}: measured {:.1} ms, plain {:.1} ms whole {} messages {} cpu {:.1} ms ops {}",
            script.measured().0 as f64 / 1e6,
            plain.length.0 as f64 / 1e6,
            plain.is_whole(),
            plain.messages,
            plain.processor.0 as f64 / 1e6,
            script.operations()
        );
        let Some(fit) = Calibrated::new(script, &costs) else {
            println!("  does not end: {:?}", plain.ended);
            continue;
        };
        println!("  errors {:?} costs {:?}", fit.errors(), fit.costs());
        let analysed = run
            .analyse(
                None,
                &dosmos_analysis::Thresholds::default(),
                NetworkRecord::typical(),
            )
            .await?;
        for f in &analysed.analysis.findings {
            println!(
                "  {} {} severity {:.3} gain {:?} {:?} {:?}",
                f.kind,
                f.target(),
                f.severity,
                f.predicted_gain,
                f.gain_range,
                f.gain_from
            );
        }
    }
    Ok(())
}
