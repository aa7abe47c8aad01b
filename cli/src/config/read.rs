//! Reading a cluster file.

use std::fmt;
use std::path::{Path, PathBuf};

use super::build::build;
use super::cluster::Cluster;
use super::file;
use super::tls::Protection;

/// Everything wrong with a cluster file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigErrors {
    /// The file.
    pub file: PathBuf,
    /// What is wrong, one entry an error.
    pub errors: Vec<String>,
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.errors.iter().enumerate() {
            let newline = if i == 0 { "" } else { "\n" };
            write!(f, "{newline}{}: {}", self.file.display(), error.trim_end())?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}

impl Cluster {
    /// Reads and checks a cluster file.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read(path: &Path) -> Result<Self, ConfigErrors> {
        Self::read_with(path, Protection::beside_the_file(false))
    }

    /// Reads and checks a cluster file; `protection` is what is said beside it. Relative paths of PEM files are below its
    /// folder.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn read_with(path: &Path, protection: Protection) -> Result<Self, ConfigErrors> {
        let text = std::fs::read_to_string(path).map_err(|e| ConfigErrors {
            file: path.to_owned(),
            errors: vec![format!("cannot be read: {e}")],
        })?;
        let parsed = Self::parse_with(&text, protection);
        let mut cluster = parsed.map_err(|errors| ConfigErrors {
            file: path.to_owned(),
            errors,
        })?;
        // As the processes see it that are started with the file's own path.
        let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let folder = whole.parent().unwrap_or(Path::new(""));
        cluster.tls = cluster.tls.map(|files| files.below(folder));
        Ok(cluster)
    }

    /// Checks the text of a cluster file.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(text: &str) -> Result<Self, Vec<String>> {
        Self::parse_with(text, Protection::None)
    }

    fn parse_with(text: &str, protection: Protection) -> Result<Self, Vec<String>> {
        let file: file::File = toml::from_str(text).map_err(|e| vec![e.to_string()])?;
        build(file, protection)
    }
}
