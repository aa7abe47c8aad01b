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
        instructions: false,
        once: None,
        format: Format::Table,
    };
    let measured = intrusion::measure(&args).await?;
    Ok(vec![
        Block::text(
            "Four processes acquire, write, release and read one variable and do nothing else; R is computing time divided by \
             access time. The paper had four workstations; here all processes share one processor, except that the event manager \
             has another one in configuration 4. Each configuration runs on, off, off, on; what monitoring adds is the mean ratio within such \
             pairs, with its 95 % interval: of the time, of the processor time of application and memory processes, and of that of all.",
        ),
        intrusion::table(&measured).page(),
    ])
}
