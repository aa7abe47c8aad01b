//! `dosmos model`: the performance models on the command line.
//!
//! A command reads one JSON document, whose fields are the symbols of the papers, and answers with another.
//! Each model is a function from text to JSON ([`answer`]), so that what is tested is what is printed. An
//! error names the file, and within it the field. `inputs` and `predict` start from a run instead ([`of_run`]).

mod curve;
mod document;
mod dvsm;
mod lopc;
mod memhier;
pub mod of_run;
mod show;
#[cfg(test)]
mod tests;

use std::io::Read;
use std::path::Path;

use anyhow::Context;
use dosmos_model::ModelError;
use serde_json::Value;

use crate::args::{DocumentArgs, Format, ModelCommand};
use crate::output;
use crate::runtime::block_on;

/// Carries a `dosmos model` command out.
pub(crate) fn run(command: &ModelCommand) -> anyhow::Result<()> {
    let (document, plot) = match command {
        ModelCommand::Lopc(args) | ModelCommand::ClientServer(args) | ModelCommand::Dvsm(args) => {
            (&args.document, args.plot.as_deref())
        }
        ModelCommand::General(args)
        | ModelCommand::Simulate(args)
        | ModelCommand::Memhier(args)
        | ModelCommand::Cluster(args)
        | ModelCommand::Fit(args) => (args, None),
        ModelCommand::Inputs(args) => return block_on(of_run::inputs(args)),
        ModelCommand::Predict(args) => return block_on(of_run::predict(args)),
    };
    let text = read(&document.input)?;
    let file = || document.input.display().to_string();
    let answer = answer(command, &text).with_context(file)?;
    if let Some(path) = plot {
        let svg = curve(command, &text).with_context(file)?;
        std::fs::write(path, svg).with_context(|| format!("cannot write {}", path.display()))?;
    }
    print(&answer, document)
}

/// The answer of a model to a document.
///
/// # Errors
/// The document is not JSON, lacks or misspells a field, or a field has a value that the model has no
/// meaning for.
fn answer(command: &ModelCommand, text: &str) -> anyhow::Result<Value> {
    document::check_fields_are_unique(text)?;
    computed(command, text).map_err(|e| match e.downcast_ref::<ModelError>() {
        Some(ModelError::Overflow { .. }) => match document::most_extreme_number(text) {
            Some((field, value)) => e.context(format!("{field}: {value:e} is not allowed")),
            None => e,
        },
        _ => e,
    })
}

fn computed(command: &ModelCommand, text: &str) -> anyhow::Result<Value> {
    match command {
        ModelCommand::Lopc(_) => lopc::homogeneous(text),
        ModelCommand::ClientServer(_) => lopc::client_server(text),
        ModelCommand::General(_) => lopc::general(text),
        ModelCommand::Simulate(_) => lopc::simulate(text),
        ModelCommand::Dvsm(_) => dvsm::answer(text),
        ModelCommand::Memhier(_) => memhier::time(text),
        ModelCommand::Cluster(_) => memhier::cluster(text),
        ModelCommand::Fit(_) => memhier::locality(text),
        ModelCommand::Inputs(_) | ModelCommand::Predict(_) => {
            anyhow::bail!("this model reads a run, not a document")
        }
    }
}

/// The curve that a document's point lies on, as SVG.
fn curve(command: &ModelCommand, text: &str) -> anyhow::Result<String> {
    match command {
        ModelCommand::Lopc(_) => curve::cycle_over_work(text),
        ModelCommand::ClientServer(_) => curve::throughput_over_servers(text),
        ModelCommand::Dvsm(_) => curve::efficiency_over_speed(text),
        _ => anyhow::bail!("--plot: this model has no curve to draw"),
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    if path == Path::new("-") {
        std::io::stdin()
            .read_to_string(&mut text)
            .context("cannot read standard input")?;
    } else {
        text = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
    }
    Ok(text)
}

fn print(answer: &Value, document: &DocumentArgs) -> anyhow::Result<()> {
    match document.format {
        Format::Json => output::text(&(serde_json::to_string_pretty(answer)? + "\n")),
        format => output::text(&show::tables(answer, format)),
    }
    Ok(())
}
