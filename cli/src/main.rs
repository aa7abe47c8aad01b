//! The dosmos binary.

use std::process::ExitCode;

fn main() -> ExitCode {
    dosmos_cli::main()
}
