//! Tables: aligned columns for people, CSV in base units for programs.

use dosmos_client::text::{clean_line, csv};
use dosmos_proto::Nanos;

use crate::args::Format;

/// A column: its heading, and its name in CSV.
#[derive(Clone, Debug)]
pub struct Column {
    heading: String,
    key: String,
}

impl Column {
    /// A column of texts and numbers without a unit. Its name in CSV is the heading in `snake_case`.
    pub fn plain(heading: &str) -> Self {
        Self::named(heading, &identifier(heading))
    }

    /// A column of lengths of time: with their unit in tables, in nanoseconds in CSV, where its name ends with `_ns`.
    pub fn time(heading: &str) -> Self {
        Self::named(heading, &format!("{}_ns", identifier(heading)))
    }

    /// A column that has another name in CSV.
    pub fn named(heading: &str, key: &str) -> Self {
        Self {
            heading: heading.to_owned(),
            key: key.to_owned(),
        }
    }
}

/// Letters, digits and single underscores; a heading without any stays as it is.
fn identifier(heading: &str) -> String {
    let parts = heading.split(|c: char| !c.is_alphanumeric() && c != '_');
    let parts: Vec<&str> = parts.filter(|p| !p.is_empty()).collect();
    match parts.is_empty() {
        true => heading.to_owned(),
        false => parts.join("_"),
    }
}

/// A cell: what people read, and what programs read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cell {
    shown: String,
    /// None: the same.
    csv: Option<String>,
}

impl Cell {
    /// A fraction: in percent in tables, as it is in CSV.
    pub fn share(fraction: f64) -> Self {
        Self::two(format!("{:.1} %", 100.0 * fraction), fraction.to_string())
    }

    /// Two forms of one thing.
    pub fn two(shown: impl Into<String>, csv: impl Into<String>) -> Self {
        Self {
            shown: shown.into(),
            csv: Some(csv.into()),
        }
    }

    /// Nothing: a dash in tables, empty in CSV.
    pub fn none() -> Self {
        Self::two("-", "")
    }

    /// What people read.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    fn csv(&self) -> &str {
        self.csv.as_ref().unwrap_or(&self.shown)
    }
}

impl From<String> for Cell {
    fn from(shown: String) -> Self {
        Self { shown, csv: None }
    }
}

impl From<&str> for Cell {
    fn from(shown: &str) -> Self {
        shown.to_owned().into()
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        number.to_string().into()
    }
}

impl From<Nanos> for Cell {
    fn from(time: Nanos) -> Self {
        Self::two(time.to_string(), time.0.to_string())
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Self {
        cell.map_or_else(Self::none, Into::into)
    }
}

/// Rows under headings.
#[derive(Debug, Default)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table without rows, of plain columns with these headings.
    pub fn new(headings: &[impl ToString]) -> Self {
        let columns = headings.iter().map(|h| Column::plain(&h.to_string()));
        Self::of(columns)
    }

    /// A table without rows, of these columns.
    pub fn of(columns: impl IntoIterator<Item = Column>) -> Self {
        Self {
            columns: columns.into_iter().collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = impl Into<Cell>>) {
        let cells = cells.into_iter().map(Into::into);
        let clean = cells.map(|cell: Cell| Cell {
            shown: clean_line(&cell.shown),
            csv: cell.csv.map(|csv| clean_line(&csv)),
        });
        self.rows.push(clean.collect());
    }

    /// As aligned columns (numbers to the right) or as CSV (RFC 4180) in base units.
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
        let headings = self.columns.iter().map(|c| c.heading.clone());
        let mut table = dosmos_plot::Table::new(headings);
        for row in &self.rows {
            table.row(row.iter().map(|c| c.shown.clone()));
        }
        dosmos_plot::Block::Table(table)
    }

    fn csv(&self) -> String {
        let keys: Vec<String> = self.columns.iter().map(|c| c.key.clone()).collect();
        let cells = |row: &Vec<Cell>| row.iter().map(|c| c.csv().to_owned()).collect();
        let rows = self.rows.iter().map(cells);
        csv(std::iter::once(keys).chain(rows))
    }

    fn aligned(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|r| r.get(column));
            let widest = cells.map(|c| c.shown.chars().count()).max().unwrap_or(0);
            widest.max(self.columns[column].heading.chars().count())
        };
        let numeric = |column: usize| {
            let mut cells = self.rows.iter().filter_map(|r| r.get(column));
            let is_number = |c: &Cell| {
                let text = c.shown.trim_start_matches(['+', '~']);
                c.shown == "-"
                    || text
                        .trim_start_matches('-')
                        .starts_with(|c: char| c.is_ascii_digit())
            };
            !self.rows.is_empty() && cells.all(is_number)
        };
        let columns: Vec<(usize, bool)> = (0..self.columns.len())
            .map(|c| (width(c), numeric(c)))
            .collect();
        let headings = self.columns.iter().map(|c| c.heading.as_str()).collect();
        let rows = self
            .rows
            .iter()
            .map(|r| r.iter().map(Cell::shown).collect());
        let mut text = String::new();
        for row in std::iter::once::<Vec<&str>>(headings).chain(rows) {
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

    #[test]
    fn csv_is_in_base_units_under_names_that_programs_can_use() {
        let columns = ["variable name", "at (s)"].map(Column::plain);
        let mut t = Table::of(
            columns
                .into_iter()
                .chain([Column::time("mean wait"), Column::plain("share")]),
        );
        t.row([
            Cell::from("a"),
            "0.5".into(),
            Nanos(294_600).into(),
            Cell::share(0.125),
        ]);
        t.row([
            Cell::from("b"),
            Cell::none(),
            None::<u64>.into(),
            Cell::share(0.0),
        ]);
        assert_eq!(
            t.render(Format::Csv),
            "variable_name,at_s,mean_wait_ns,share\r\na,0.5,294600,0.125\r\nb,,,0\r\n"
        );
        assert_eq!(
            t.render(Format::Table),
            "variable name  at (s)  mean wait   share\na                 0.5   294.6 µs  12.5 %\nb                   -          -   0.0 %\n"
        );
    }
}
