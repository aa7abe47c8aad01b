//! Everything that is printed: results to standard output, the rest to standard error.

mod table;

use std::io::{self, IsTerminal, Write};

use dosmos_client::text::clean;

pub use table::{Cell, Column, Table};

/// Prints a result, without what controls a terminal. A reader that stopped reading is not an error.
pub fn text(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out
        .write_all(clean(text).as_bytes())
        .and_then(|()| out.flush());
}

/// Says how things go.
pub fn note(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", clean(text));
}

/// Where results go that are written piece by piece.
pub fn stdout() -> impl Write + Send {
    io::stdout()
}

/// Whether writing failed because nobody reads any more.
pub fn is_closed(error: &anyhow::Error) -> bool {
    let io = error.chain().filter_map(|e| e.downcast_ref::<io::Error>());
    io.map(io::Error::kind)
        .any(|kind| kind == io::ErrorKind::BrokenPipe)
}

/// Shows how far long work is: one line that the next replaces. Only on a terminal.
pub fn progress(text: &str) {
    let mut err = io::stderr().lock();
    if err.is_terminal() {
        let _ = write!(err, "\r\x1b[K{text}").and_then(|()| err.flush());
    }
}

/// Says what went wrong.
pub fn error(text: &str) {
    note(&format!("dosmos: {text}"));
}

/// Shows help, or what is wrong with the command line.
pub fn usage(e: &clap::Error) {
    let _ = e.print();
}

#[cfg(test)]
mod tests {
    use dosmos_client::text;

    #[test]
    fn a_cause_is_said_once() {
        let io = std::io::Error::other("no room");
        let error = dosmos_trace::store::StoreError::Io {
            path: "log.000".into(),
            source: io,
        };
        let error = anyhow::Error::from(error).context("cannot compact");
        assert_eq!(
            text::with_causes(error.as_ref()),
            "cannot compact: log.000: no room"
        );
    }
}
