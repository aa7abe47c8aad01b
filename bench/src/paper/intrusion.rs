//! Paper 001, tables 1 and 2: what monitoring costs the program that suffers most.

use dosmos_cli::args::Format;
use dosmos_plot::Block;

use super::effort::Effort;
use crate::args::IntrusionArgs;
use crate::intrusion;

pub(super) async fn blocks(effort: Effort) -> anyhow::Result<Vec<Block>> {
    let args = IntrusionArgs {
        runs: effort.runs,
        rounds: if effort.quick { 50 } else { 1000 },
        format: Format::Table,
    };
    let measured = intrusion::measure(&args).await?;
    Ok(vec![
        Block::text(
            "Four processes acquire, write, release and read one variable and do nothing else; R is the time they compute over \
             that they access. The paper had four workstations; here all processes share one processor, and only in configuration \
             4 the event manager has another.",
        ),
        intrusion::table(&measured).page(),
    ])
}
