//! Text from outside, where it is shown or written: names of runs, variables and processes come from files and sockets that
//! others wrote.

use std::borrow::Cow;

/// `text` for a terminal: what could move the cursor, change colours or reorder characters becomes `?`. Line ends and tabs stay.
pub fn clean(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| match c {
        '\n' | '\t' => false,
        // Marks that reorder text or are not seen: two names that look the same would be two.
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    };
    match text.contains(harmful) {
        true => text.replace("\r\n", "\n").replace(harmful, "?").into(),
        false => text.into(),
    }
}

/// The same on one line.
pub fn clean_line(text: &str) -> String {
    clean(text).replace(['\n', '\t'], "?")
}

/// `cell` of a CSV file: text that a spreadsheet would take for a formula gets a leading `'`; numbers stay.
pub fn csv_cell(cell: &str) -> Cow<'_, str> {
    let clean = clean(cell);
    let number = clean.trim_end_matches([' ', '%']);
    // The wide forms are the same to spreadsheets of East Asian languages.
    let formulas = ['=', '+', '-', '@', '\t', '\n', '＝', '＋', '－', '＠'];
    match clean.starts_with(formulas) {
        true if clean != "-" && number.parse::<f64>().is_err() => format!("'{clean}").into(),
        _ => clean,
    }
}
