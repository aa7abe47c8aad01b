//! The dosmos binary with SQL.

use std::process::ExitCode;

fn main() -> ExitCode {
    dosmos_cli::main_with(&dosmos_sql::WithSql)
}
