//! Compiles the `.proto` files with `protox`, so that no system `protoc` is needed.

use std::path::PathBuf;

use prost::Message;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files = [
        "dosmos/v1/common.proto",
        "dosmos/v1/memory.proto",
        "dosmos/v1/monitor.proto",
    ];
    for file in files {
        println!("cargo:rerun-if-changed=proto/{file}");
    }
    let descriptors = protox::compile(files, ["proto"])?;
    // For gRPC reflection.
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("descriptors.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        .bytes(".dosmos.v1")
        .compile_fds(descriptors)?;
    Ok(())
}
