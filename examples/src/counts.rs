//! What a process did, written down for those who check what the monitor says of it.
//!
//! One JSON object a line: `{"variable","object","reads","writes","acquires","releases","failed"}` for
//! each object touched, and `{"barriers"}` at the end. `FILE` becomes `FILE.<process name>`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use dsm_lib::Dsm;
use serde_json::json;

use crate::error::{Error, Result};

/// Writes the counts of this process beside `base`.
pub(crate) fn write(dsm: &Dsm, base: &Path) -> Result<()> {
    let mut path = base.as_os_str().to_owned();
    path.push(".");
    path.push(dsm.name());
    let path = PathBuf::from(path);
    std::fs::write(&path, lines(dsm)).map_err(|source| Error::File { path, source })
}

fn lines(dsm: &Dsm) -> String {
    let counts = dsm.counts();
    let mut text = String::new();
    for object in &counts.objects {
        let ops = object.ops;
        let line = json!({
            "variable": &*object.variable,
            "object": object.object.index,
            "reads": ops.reads,
            "writes": ops.writes,
            "acquires": ops.acquires,
            "releases": ops.releases,
            "failed": ops.failed,
        });
        // Writing to a string does not fail.
        let _ = writeln!(text, "{line}");
    }
    let _ = writeln!(text, "{}", json!({ "barriers": counts.barriers }));
    text
}
