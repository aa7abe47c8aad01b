//! Writes the inputs to begin with: `corpus DIRECTORY` makes a folder per fuzz target.

use std::path::PathBuf;

fn main() -> std::io::Result<()> {
    let Some(to) = std::env::args_os().nth(1).map(PathBuf::from) else {
        return Err(std::io::Error::other("name the directory for the inputs"));
    };
    for entry in dosmos_inputs::ALL {
        let folder = to.join(entry.name);
        std::fs::create_dir_all(&folder)?;
        for (number, seed) in (entry.seeds)().iter().enumerate() {
            std::fs::write(folder.join(format!("seed{number}")), seed)?;
        }
    }
    Ok(())
}
