//! Compiles `proto/proto/dosmos/v1/*.proto` with `protox`, which needs no system `protoc`.
//!
//! What it makes is committed in `proto/src/generated`: a new user's first build would otherwise spend a minute of
//! processor time on the compiler of a language that only those who change a message need. A test compares the two.

use std::path::{Path, PathBuf};

use prost::Message;

const SOURCES: [&str; 4] = [
    "dosmos/v1/common.proto",
    "dosmos/v1/memory.proto",
    "dosmos/v1/monitor.proto",
    "dosmos/v1/rendezvous.proto",
];

/// One generated file.
pub struct Generated {
    /// Its name in [`directory`].
    pub name: &'static str,
    /// What it should contain.
    pub content: Vec<u8>,
}

/// Where the generated files are committed.
pub fn directory() -> PathBuf {
    crate_of_messages().join("src/generated")
}

fn crate_of_messages() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Compiles the `.proto` files: the messages and services as Rust, and the descriptors for gRPC reflection.
///
/// # Errors
/// If a `.proto` file is missing or wrong, or the temporary directory cannot be written.
pub fn generate() -> Result<[Generated; 2], Box<dyn std::error::Error>> {
    let descriptors = protox::compile(SOURCES, [crate_of_messages().join("proto")])?;
    let encoded = descriptors.encode_to_vec();
    let out = tempfile::tempdir()?;
    tonic_prost_build::configure()
        .bytes(".dosmos.v1")
        // Read with bounds.
        .extern_path(
            ".dosmos.v1.Placement.Explicit",
            "crate::wire_owners::WireOwners",
        )
        .out_dir(out.path())
        .compile_fds(descriptors)?;
    Ok([
        Generated {
            name: "dosmos.v1.rs",
            content: std::fs::read(out.path().join("dosmos.v1.rs"))?,
        },
        Generated {
            name: "descriptors.bin",
            content: encoded,
        },
    ])
}
