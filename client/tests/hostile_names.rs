//! Names of runs, variables and processes come from files and sockets that others wrote: none of them controls a
//! terminal, and none is a formula in a spreadsheet.

use std::borrow::Cow;

use dosmos_client::text::{clean, clean_line, csv};

#[test]
fn what_controls_a_terminal_never_reaches_it() {
    assert!(matches!(clean("plain 温度\n"), Cow::Borrowed(_)));
    assert_eq!(clean("a\u{1b}[2Jb\rc\u{9b}d\u{7}\te\n"), "a?[2Jb?c?d?\te\n");
    assert_eq!(clean("x\u{202e}gnp"), "x?gnp");
    assert_eq!(clean_line("one\nnothing found"), "one?nothing found");
}

#[test]
fn formulas_are_text_in_csv_and_numbers_stay() {
    let row = ["=1+1", "+cmd", "-2.5", "+3.0 %", "-", "@x", "a,\"b\""];
    let text = csv([row.map(str::to_owned)]);
    assert_eq!(text, "'=1+1,'+cmd,-2.5,+3.0 %,-,'@x,\"a,\"\"b\"\"\"\r\n");
}
