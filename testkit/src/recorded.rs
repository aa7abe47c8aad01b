//! Traces of real runs, recorded once by `.ci/record`: every pathology of the examples and its cure. What depends on how
//! fast a machine is was decided when they were recorded, so a test may assert it.

use std::path::Path;

/// The recorded run of this name (`ping-pong-sick`, `ping-pong-cured` …), as JSONL.
///
/// # Errors
/// If there is no such file, or it is not compressed as it should be.
pub fn jsonl(name: &str) -> std::io::Result<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recorded");
    let compressed = std::fs::File::open(folder.join(format!("{name}.jsonl.zst")))?;
    zstd::stream::decode_all(compressed)
}
