//! What the processes of a cluster log, and where.

use std::fs::File;
use std::sync::Mutex;

use anyhow::Context;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Logs to standard error: `info`, or what `RUST_LOG` asks for, such as `warn,dosmos_memproc=debug`.
pub(crate) fn to_stderr() -> anyhow::Result<()> {
    let to_stderr = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false);
    tracing_subscriber::registry()
        .with(levels()?)
        .with(to_stderr)
        .init();
    Ok(())
}

/// Logs to a file; warnings of process `name` to standard error too, where a launcher collects what many ranks print.
pub(crate) fn to_file(file: File, name: &str) -> anyhow::Result<()> {
    let to_file = tracing_subscriber::fmt::layer()
        .with_writer(Mutex::new(file))
        .with_ansi(false)
        .with_filter(levels()?);
    let errors = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .without_time()
        .with_filter(LevelFilter::ERROR);
    tracing_subscriber::registry()
        .with(to_file)
        .with(errors)
        .init();
    tracing::info!("this is {name}, process {}", std::process::id());
    Ok(())
}

fn levels() -> anyhow::Result<Targets> {
    match std::env::var("RUST_LOG") {
        Ok(levels) => levels.parse::<Targets>().with_context(|| {
            format!(
                "RUST_LOG={levels}: a level, or levels of modules as in warn,dosmos_memproc=debug"
            )
        }),
        Err(_) => Ok(Targets::new().with_default(LevelFilter::INFO)),
    }
}
