//! Names of runs, variables and processes come from files and sockets that others wrote: none of them controls a
//! terminal, and none is a formula in a spreadsheet.

use std::borrow::Cow;

use dosmos_client::text::{clean, clean_line, csv};

#[test]
fn what_controls_a_terminal_never_reaches_it() {
    assert!(matches!(clean("plain 温度\n"), Cow::Borrowed(_)));
    assert_eq!(clean("a\u{1b}[2Jb\rc\u{9b}d\u{7}\te\n"), "a?[2Jb?c?d?\te\n");
    assert_eq!(clean("x\u{202e}gnp"), "x?gnp");
    // What reorders, and what nobody sees.
    for mark in "\u{61c}\u{200e}\u{2066}\u{2069}\u{feff}\u{2060}\u{ad}\u{e0041}".chars() {
        assert_eq!(
            clean(&format!("grid{mark}x")),
            "grid?x",
            "{}",
            mark.escape_unicode()
        );
    }
    assert_eq!(clean_line("one\nnothing found"), "one?nothing found");
}

#[test]
fn formulas_are_text_in_csv_and_numbers_stay() {
    let row = ["=1+1", "+cmd", "-2.5", "+3.0 %", "-", "@x", "a,\"b\""];
    let text = csv([row.map(str::to_owned)]);
    assert_eq!(text, "'=1+1,'+cmd,-2.5,+3.0 %,-,'@x,\"a,\"\"b\"\"\"\r\n");
    for (cell, written) in [
        ("＝1+1", "'＝1+1\r\n"),
        ("＠SUM(A1)", "'＠SUM(A1)\r\n"),
        ("\n=1", "\"'\n=1\"\r\n"),
        ("\r=1", "?=1\r\n"),
        ("\u{feff}=1", "?=1\r\n"),
        ("-2+3+cmd|' /C calc'!A0", "'-2+3+cmd|' /C calc'!A0\r\n"),
    ] {
        assert_eq!(csv([[cell.to_owned()]]), written);
    }
}
