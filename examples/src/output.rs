//! The one place where programs print: what they return is their output.
#![allow(clippy::print_stdout)] // printing is what it is for

/// Prints what a program has to say, if anything.
pub(crate) fn print(text: &str) {
    if !text.is_empty() {
        println!("{}", text.trim_end());
    }
}
