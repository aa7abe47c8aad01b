//! DOSMOS-Trace (docs/bibliography.md#dosmos-trace), tables 1 and 2: what monitoring costs the program that suffers most.

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
            "Four processes acquire, write, release and read one variable and do nothing else; R is computing time divided by \
             access time. The paper had four workstations; here all processes share one processor, except that the event manager \
             has another one in configuration 4.",
        ),
        intrusion::table(&measured).page(),
    ])
}
