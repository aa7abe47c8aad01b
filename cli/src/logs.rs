//! What the processes of a cluster log, and where: one line per event, whatever names from outside it has.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;

use anyhow::Context;
use dosmos_client::text::clean_line;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Logs to standard error: `info`, or what `RUST_LOG` asks for, such as `warn,dosmos_memproc=debug`.
///
/// # Errors
/// If `RUST_LOG` is something else.
pub(crate) fn to_stderr() -> anyhow::Result<()> {
    let to_stderr = tracing_subscriber::fmt::layer()
        .with_writer(|| Lines(io::stderr()))
        .with_ansi(false);
    tracing_subscriber::registry()
        .with(levels()?)
        .with(to_stderr)
        .init();
    Ok(())
}

/// Logs to a file; errors of process `name` to standard error too, where a launcher collects what many ranks print.
///
/// # Errors
/// If `RUST_LOG` names no levels.
pub(crate) fn to_file(file: File, name: &str) -> anyhow::Result<()> {
    let file = Arc::new(file);
    let to_file = tracing_subscriber::fmt::layer()
        .with_writer(move || Lines(file.clone()))
        .with_ansi(false)
        .with_filter(levels()?);
    let errors = tracing_subscriber::fmt::layer()
        .with_writer(|| Lines(io::stderr()))
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

/// Takes an event at a time, and writes it as one line without what controls a terminal.
struct Lines<W>(W);

impl<W: Write> Write for Lines<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = clean_line(text.trim_end_matches('\n'));
        self.0.write_all(format!("{line}\n").as_bytes())?;
        Ok(event.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_name_adds_no_line_to_a_log_and_controls_no_terminal() {
        let kept = Kept::default();
        let writer = kept.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || Lines(writer.clone()))
            .with_ansi(false)
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            let name = "mp0\n2026-01-01T00:00:00Z  INFO all is well\u{1b}[2J\u{202e}x";
            tracing::warn!("refused a peer: {name} is unknown");
            tracing::info!("second");
        });
        let bytes = kept.0.lock().unwrap().clone();
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(
            !text.contains('\u{1b}') && !text.contains('\u{202e}'),
            "{text}"
        );
        assert!(text.contains("refused a peer: mp0?2026"), "{text}");
    }
}
