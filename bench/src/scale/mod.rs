//! `dosmos-bench scale`: what a large system takes, by parts of it that are real: memory per object, copy, meta-object, chunk and
//! connection, each in a process of its own; and how long many event managers take to answer one question together, and how
//! much they send.

mod answers;
mod memory;

use anyhow::ensure;
use dosmos_cli::args::Format;
use dosmos_cli::output::{self, Table};
use serde_json::json;

use crate::args::ScaleArgs;
use crate::machine::machine;

pub(crate) async fn run(args: ScaleArgs) -> anyhow::Result<()> {
    ensure!(
        args.objects > 0 && args.processes > 0 && args.chunks > 0,
        "--objects, --processes and --chunks must be at least 1"
    );
    ensure!(
        args.rounds > 0 && args.variables > 0 && args.managers.iter().all(|&m| m > 0),
        "--rounds, --variables and each of --managers must be at least 1"
    );
    if let Some(part) = &args.part {
        output::text(&format!("{}\n", memory::here(part, &args).await?));
        return Ok(());
    }
    let sizes = memory::all(&args)?;
    let answers = answers::all(&args).await?;
    if args.format == Format::Json {
        let all = json!({"machine": machine(), "memory": sizes, "answers": answers});
        output::text(&format!("{all:#}\n"));
        return Ok(());
    }
    let mut table = Table::new(&["what", "number", "bytes of memory, each"]);
    for size in &sizes {
        let each = format!("{:.0}", size.bytes_each);
        table.row([size.what.to_owned(), size.number.to_string(), each]);
    }
    let mut more = Table::new(&[
        "event managers",
        "question",
        "median (ms)",
        "spread",
        "of it who asks (ms)",
        "received (bytes)",
    ]);
    for answer in &answers {
        more.row([
            answer.managers.to_string(),
            answer.question.to_owned(),
            format!("{:.2}", answer.median_ms),
            format!("{:.2}–{:.2}", answer.least_ms, answer.most_ms),
            format!("{:.2}", answer.asker_ms),
            answer.received.to_string(),
        ]);
    }
    output::text(&format!(
        "{}\n\n{}\n{}",
        machine(),
        table.render(args.format),
        more.render(args.format)
    ));
    Ok(())
}
