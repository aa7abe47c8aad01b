//! `dosmos model`: the performance models on the command line.
//!
//! A command reads one JSON document, whose fields are the symbols of the papers, and answers with another.
//! Each model is a function from text to JSON ([`answer`]), so that what is tested is what is printed. An
//! error names the file, and within it the field.

mod lopc;
mod show;

use std::io::Read;
use std::path::Path;

use anyhow::Context;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::args::{DocumentArgs, Format, ModelCommand};
use crate::output;

/// Carries a `dosmos model` command out.
pub(crate) fn run(command: &ModelCommand) -> anyhow::Result<()> {
    let document = match command {
        ModelCommand::Lopc(args) | ModelCommand::ClientServer(args) | ModelCommand::Dvsm(args) => {
            &args.document
        }
        ModelCommand::General(args)
        | ModelCommand::Simulate(args)
        | ModelCommand::Memhier(args)
        | ModelCommand::Cluster(args)
        | ModelCommand::Fit(args) => args,
    };
    let text = read(&document.input)?;
    let file = || document.input.display().to_string();
    let answer = answer(command, &text).with_context(file)?;
    print(&answer, document)
}

/// What a model says to a document.
///
/// # Errors
/// The document is not JSON, lacks or misspells a field, or a field has a value that the model has no
/// meaning for.
pub(crate) fn answer(command: &ModelCommand, text: &str) -> anyhow::Result<Value> {
    match command {
        ModelCommand::Lopc(_) => lopc::homogeneous(text),
        ModelCommand::ClientServer(_) => lopc::client_server(text),
        ModelCommand::General(_) => lopc::general(text),
        ModelCommand::Simulate(_) => lopc::simulate(text),
        ModelCommand::Dvsm(_)
        | ModelCommand::Memhier(_)
        | ModelCommand::Cluster(_)
        | ModelCommand::Fit(_) => anyhow::bail!("not yet on the command line"),
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

/// Reads a document; the error says which field, and where in the text.
fn parse<T: DeserializeOwned>(text: &str) -> anyhow::Result<T> {
    Ok(serde_json::from_str(text)?)
}

/// The document as a tree, to see which question it asks.
fn peek(text: &str) -> anyhow::Result<Value> {
    let tree: Value = parse(text)?;
    anyhow::ensure!(tree.is_object(), "a JSON object is expected: {{\"…\": …}}");
    Ok(tree)
}

/// An output under the names of the papers.
fn named(output: &impl Serialize) -> anyhow::Result<Value> {
    Ok(serde_json::to_value(output)?)
}
