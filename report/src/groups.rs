//! Who uses what, and in which group each stands: today against proposed.

use dosmos_analysis::GroupMatrix;
use dosmos_plot::{Block, Cell, Color, Table};

use dosmos_client::text;

/// A smaller gain is noise.
const WORTH_SHOWING: f64 = 0.02;
/// Columns of the matrix: the most accessed variables.
const COLUMNS: usize = 12;

pub(super) fn blocks(matrix: &GroupMatrix) -> Vec<Block> {
    if matrix.groups.len() < 2 || matrix.aps.is_empty() {
        return Vec::new();
    }
    let sum = |v: usize| -> u64 { matrix.accesses.iter().map(|row| row[v]).sum() };
    let mut columns: Vec<usize> = (0..matrix.variables.len()).collect();
    columns.sort_by_key(|&v| (std::cmp::Reverse(sum(v)), v));
    columns.truncate(COLUMNS);
    let gain = 1.0 - matrix.cost_proposed_ns / matrix.cost_today_ns.max(1.0);
    let changed = matrix.proposes_a_change() && gain >= WORTH_SHOWING;
    let mut table = Table::new(headers(matrix, &columns, changed));
    let most = columns
        .iter()
        .flat_map(|&v| matrix.accesses.iter().map(move |row| row[v]));
    let most = most.max().unwrap_or(1).max(1) as f64;
    for (ap, row) in matrix.aps.iter().zip(&matrix.accesses) {
        let mut cells: Vec<Cell> = vec![ap.name.clone().into(), group(matrix, ap.today).into()];
        if changed {
            cells.push(moved(matrix, ap.today, ap.proposed));
        }
        for &v in &columns {
            let away = !matrix.variables[v].today.contains(&ap.today);
            let color = if away { Color::Inter } else { Color::Local };
            cells.push(Cell::shaded(
                text::count(row[v]),
                color,
                row[v] as f64 / most,
            ));
        }
        table.row(cells);
    }
    let mut blocks = vec![
        Block::text(
            "Accesses of each process to each variable. Green: the variable has an owner in the process's group; red: all its owners are in other groups.",
        ),
        Block::Table(table),
    ];
    if columns.len() < matrix.variables.len() {
        let hidden = (matrix.variables.len() - columns.len()) as u64;
        blocks.push(Block::text(format!(
            "{} with fewer accesses not shown.",
            text::plural(hidden, "variable")
        )));
    }
    blocks.push(Block::text(if changed {
        format!(
            "Another assignment would lower the cost of all accesses by {:.0} %.",
            100.0 * gain
        )
    } else {
        "No other assignment found lowers the cost of the accesses enough to be worth a change."
            .to_owned()
    }));
    blocks
}

fn headers(matrix: &GroupMatrix, columns: &[usize], changed: bool) -> Vec<String> {
    let mut headers = vec!["process".to_owned(), "group".to_owned()];
    if changed {
        headers.push("proposed".to_owned());
    }
    for &v in columns {
        let variable = &matrix.variables[v];
        let owners = |groups: &[usize]| match groups {
            [one] => group(matrix, *one),
            many => format!("{} groups", many.len()),
        };
        let mut header = format!("{} ({}", variable.name, owners(&variable.today));
        if changed && variable.today != variable.proposed {
            header += &format!(" → {}", owners(&variable.proposed));
        }
        headers.push(header + ")");
    }
    headers
}

fn group(matrix: &GroupMatrix, index: usize) -> String {
    matrix.groups.get(index).cloned().unwrap_or_default()
}

fn moved(matrix: &GroupMatrix, today: usize, proposed: usize) -> Cell {
    let name = group(matrix, proposed);
    if today == proposed {
        name.into()
    } else {
        Cell::shaded(name, Color::Intra, 0.8)
    }
}
