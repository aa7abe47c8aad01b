//! Writes the generated files: run it after every change of a `.proto` file.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = dosmos_proto_generate::directory();
    std::fs::create_dir_all(&directory)?;
    for file in dosmos_proto_generate::generate()? {
        std::fs::write(directory.join(file.name), file.content)?;
    }
    Ok(())
}
