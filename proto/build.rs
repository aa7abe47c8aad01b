//! Compiles the `.proto` files with `protox`, so that no system `protoc` is needed.

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
    tonic_prost_build::configure()
        .bytes(".dosmos.v1")
        .compile_fds(descriptors)?;
    Ok(())
}
