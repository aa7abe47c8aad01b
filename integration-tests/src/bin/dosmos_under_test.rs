//! The dosmos binary, built together with the tests that run it.

use std::process::ExitCode;

fn main() -> ExitCode {
    dosmos_cli::main()
}
