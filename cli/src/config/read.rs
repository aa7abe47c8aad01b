//! Reading a cluster file.

use std::fmt;
use std::path::{Path, PathBuf};

use super::bind::Bind;
use super::build::build;
use super::cluster::Cluster;
use super::file;
use super::launch::{Launch, Post, Seat};
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
        let (file, launch) = written(text)?;
        let Some(launch) = launch else {
            return build(file, None, protection);
        };
        let seats = launch.on_one_host();
        Ok(with_processes(file, launch, &seats, protection)?.0)
    }

    /// Checks the text of a cluster file with a `[launch]` rule, and gives each of these ranks its process.
    ///
    /// # Errors
    /// Everything that is wrong with the file, or keeps these ranks from being its cluster.
    pub fn of_ranks(
        text: &str,
        seats: &[Seat],
        protection: Protection,
    ) -> Result<(Self, Vec<Post>), Vec<String>> {
        let (file, launch) = written(text)?;
        let launch = launch.ok_or_else(|| vec![NO_RULE.to_owned()])?;
        with_processes(file, launch, seats, protection)
    }
}

const NO_RULE: &str =
    "there is no [launch] section, which says which rank of a launcher is which process";
const TWO_WAYS: &str = "[launch] makes the processes, so there must be no [[group]], [[emp]], [[lp]], [[mp]] or [[ap]]";

/// The file, and its rule if it has one that makes sense.
fn written(text: &str) -> Result<(file::File, Option<Launch>), Vec<String>> {
    let file: file::File = toml::from_str(text).map_err(|e| vec![e.to_string()])?;
    let Some(launch) = &file.launch else {
        return Ok((file, None));
    };
    let mut errors = Vec::new();
    let named = [
        file.group.len(),
        file.emp.len(),
        file.lp.len(),
        file.mp.len(),
        file.ap.len(),
    ];
    if named.iter().any(|n| *n > 0) {
        errors.push(TWO_WAYS.to_owned());
    }
    if file.defaults.listen.is_some() {
        errors.push(
            "[launch] chooses the addresses; replace listen in [defaults] by network in [launch]"
                .to_owned(),
        );
    }
    if file.defaults.bind.is_some_and(|bind| bind != Bind::None) {
        errors.push(
            "a launcher binds processes itself; remove bind from [defaults], and say it to the launcher (srun --cpu-bind, mpirun --bind-to)"
                .to_owned(),
        );
    }
    match Launch::new(launch, file.defaults.in_application) {
        Ok(launch) if errors.is_empty() => Ok((file, Some(launch))),
        Ok(_) => Err(errors),
        Err(more) => Err([errors, more].concat()),
    }
}

/// The cluster that these ranks are.
fn with_processes(
    mut file: file::File,
    launch: Launch,
    seats: &[Seat],
    protection: Protection,
) -> Result<(Cluster, Vec<Post>), Vec<String>> {
    let expanded = launch.expand(seats)?;
    file.group = expanded.group;
    file.emp = expanded.emp;
    file.lp = expanded.lp;
    file.mp = expanded.mp;
    file.ap = expanded.ap;
    Ok((build(file, Some(launch), protection)?, expanded.posts))
}
