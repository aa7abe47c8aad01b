//! Everything that is printed: results to standard output, the rest to standard error.

use std::io::{self, IsTerminal, Write};

use dosmos_client::text::{clean, clean_line, csv};

use crate::args::Format;

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

/// Shows how far long work is: one line that the next replaces. Only on a terminal.
pub fn progress(text: &str) {
    let mut err = io::stderr().lock();
    if err.is_terminal() {
        let _ = write!(err, "\r\x1b[K{text}").and_then(|()| err.flush());
    }
}

/// What went wrong and why. A cause that the message above it ends with is not said again.
pub fn with_causes(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let said = cause.to_string();
        if text.is_empty() {
            text = said;
        } else if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
    }
    text
}

/// Says what went wrong.
pub fn error(text: &str) {
    note(&format!("dosmos: {text}"));
}

/// Shows help, or what is wrong with the command line.
pub fn usage(e: &clap::Error) {
    let _ = e.print();
}

/// Rows under headers.
#[derive(Debug, Default)]
pub struct Table {
    headers: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these headers and no rows.
    pub fn new(headers: &[impl ToString]) -> Self {
        Self {
            headers: headers.iter().map(ToString::to_string).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let clean = cells.into_iter().map(|cell| clean_line(&cell));
        self.rows.push(clean.collect());
    }

    /// As aligned columns (numbers to the right) or as CSV (RFC 4180).
    pub fn render(&self, format: Format) -> String {
        match format {
            Format::Csv => self.csv(),
            Format::Table | Format::Json => self.aligned(),
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// As a table of a page.
    pub fn page(&self) -> dosmos_plot::Block {
        let mut table = dosmos_plot::Table::new(self.headers.clone());
        for row in &self.rows {
            table.row(row.clone());
        }
        dosmos_plot::Block::Table(table)
    }

    fn csv(&self) -> String {
        let rows = std::iter::once(&self.headers).chain(&self.rows);
        csv(rows.map(|row| row.iter().cloned()))
    }

    fn aligned(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|r| r.get(column));
            let widest = cells.map(|c| c.chars().count()).max().unwrap_or(0);
            widest.max(self.headers[column].chars().count())
        };
        let numeric = |column: usize| {
            let mut cells = self.rows.iter().filter_map(|r| r.get(column));
            let is_number =
                |c: &String| c == "-" || c.chars().next().is_some_and(|c| c.is_ascii_digit());
            !self.rows.is_empty() && cells.all(is_number)
        };
        let columns: Vec<(usize, bool)> = (0..self.headers.len())
            .map(|c| (width(c), numeric(c)))
            .collect();
        let mut text = String::new();
        for row in std::iter::once(&self.headers).chain(&self.rows) {
            let mut line = String::new();
            for (cell, (width, right)) in row.iter().zip(&columns) {
                if *right {
                    line += &format!("{cell:>width$}  ");
                } else {
                    line += &format!("{cell:<width$}  ");
                }
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_said_once() {
        let io = std::io::Error::other("no room");
        let error = dosmos_trace::store::StoreError::Io {
            path: "log.000".into(),
            source: io,
        };
        let error = anyhow::Error::from(error).context("cannot compact");
        assert_eq!(with_causes(&error), "cannot compact: log.000: no room");
    }

    #[test]
    fn names_cannot_add_lines_or_control_the_terminal() {
        let mut t = Table::new(&["name"]);
        t.row(["x\nnothing found\u{1b}[31m".to_owned()]);
        assert_eq!(t.render(Format::Table), "name\nx?nothing found?[31m\n");
    }

    #[test]
    fn tables_align_and_csv_quotes() {
        let mut t = Table::new(&["name", "n"]);
        t.row(["a,b".to_owned(), "7".to_owned()]);
        t.row(["say \"x\"".to_owned(), "12".to_owned()]);
        assert_eq!(
            t.render(Format::Table),
            "name      n\na,b       7\nsay \"x\"  12\n"
        );
        assert_eq!(
            t.render(Format::Csv),
            "name,n\r\n\"a,b\",7\r\n\"say \"\"x\"\"\",12\r\n"
        );
    }
}
