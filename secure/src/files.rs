//! The PEM files of a process: who it trusts, who it is, and its key.

use serde::{Deserialize, Serialize};
use std::env;
use std::path::{Path, PathBuf};

/// Environment variable with the folder of the files `ca.pem`, `certificate.pem` and `key.pem`.
pub const ENV_TLS: &str = "DOSMOS_TLS";
/// Environment variables with the paths of the files; all three or none.
pub const ENV_FILES: [&str; 3] = ["DOSMOS_TLS_CA", "DOSMOS_TLS_CERTIFICATE", "DOSMOS_TLS_KEY"];

/// The certificates of authorities, in a folder.
pub const CA: &str = "ca.pem";
/// The certificate, in a folder.
pub const CERTIFICATE: &str = "certificate.pem";
/// Its private key, in a folder.
pub const KEY: &str = "key.pem";
/// What stands for the name of the process in a path of a cluster file.
pub const NAME: &str = "{name}";

/// Paths of the PEM files of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    /// Certificates of the authorities that it trusts.
    pub ca: PathBuf,
    /// Its certificate, and those between it and an authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

/// The environment names some of the files only.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{missing} is not set, but another of {} is: set all three, or {ENV_TLS} to a folder with {}", ENV_FILES.join(", "), [CA, CERTIFICATE, KEY].join(", "))]
pub struct Incomplete {
    missing: &'static str,
}

impl Files {
    /// Those in a folder that `dosmos cert issue` made.
    pub fn in_folder(folder: &Path) -> Self {
        let [ca, certificate, key] = [CA, CERTIFICATE, KEY].map(|name| folder.join(name));
        Self {
            ca,
            certificate,
            key,
        }
    }

    /// Those that the environment names, if it does.
    ///
    /// # Errors
    /// If it names some of them only.
    pub fn from_env() -> Result<Option<Self>, Incomplete> {
        Self::from_lookup(|name| env::var_os(name).map(PathBuf::from))
    }

    /// As [`from_env`](Self::from_env), from another environment.
    ///
    /// # Errors
    /// If it names some of them only.
    pub fn from_lookup(
        lookup: impl Fn(&str) -> Option<PathBuf>,
    ) -> Result<Option<Self>, Incomplete> {
        let given = ENV_FILES.map(|name| lookup(name).filter(|path| !path.as_os_str().is_empty()));
        if given.iter().all(Option::is_none) {
            let folder = lookup(ENV_TLS).filter(|path| !path.as_os_str().is_empty());
            return Ok(folder.map(|folder| Self::in_folder(&folder)));
        }
        if let Some(missing) = (0..3).find(|i| given[*i].is_none()) {
            let missing = ENV_FILES[missing];
            return Err(Incomplete { missing });
        }
        let [ca, certificate, key] = given.map(Option::unwrap_or_default);
        Ok(Some(Self {
            ca,
            certificate,
            key,
        }))
    }

    /// The same for process `name`, whose name replaces `{name}` in the paths.
    #[must_use]
    pub fn of_process(&self, name: &str) -> Self {
        let named = |path: &Path| PathBuf::from(path.to_string_lossy().replace(NAME, name));
        Self {
            ca: named(&self.ca),
            certificate: named(&self.certificate),
            key: named(&self.key),
        }
    }

    /// The same, below `folder` where they are not absolute.
    #[must_use]
    pub fn below(&self, folder: &Path) -> Self {
        Self {
            ca: folder.join(&self.ca),
            certificate: folder.join(&self.certificate),
            key: folder.join(&self.key),
        }
    }

    /// What the environment of a process has to be, for it to find these files.
    pub fn as_env(&self) -> [(&'static str, &Path); 3] {
        let [ca, certificate, key] = ENV_FILES;
        [
            (ca, &self.ca),
            (certificate, &self.certificate),
            (key, &self.key),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(pairs: &[(&str, &str)]) -> Result<Option<Files>, Incomplete> {
        Files::from_lookup(|name| {
            let found = pairs.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| value.into())
        })
    }

    #[test]
    fn the_environment_names_a_folder_or_all_three_files() {
        let [ca, certificate, key] = ENV_FILES;
        assert_eq!(from(&[]), Ok(None));
        assert_eq!(from(&[(ENV_TLS, "")]), Ok(None));
        let folder = from(&[(ENV_TLS, "/tls/alice")]).unwrap().unwrap();
        assert_eq!(folder.key, Path::new("/tls/alice/key.pem"));
        let all = from(&[
            (ENV_TLS, "/x"),
            (ca, "/a"),
            (certificate, "/b"),
            (key, "/c"),
        ]);
        assert_eq!(all.unwrap().unwrap().certificate, Path::new("/b"));
        let some = from(&[(ENV_TLS, "/x"), (ca, "/a"), (certificate, "/b")]);
        let said = some.unwrap_err().to_string();
        assert!(said.starts_with("DOSMOS_TLS_KEY is not set"), "{said}");
    }

    #[test]
    fn paths_of_a_cluster_file_are_below_it_and_may_have_the_name() {
        let files = Files {
            ca: "tls/ca.pem".into(),
            certificate: "tls/{name}/certificate.pem".into(),
            key: "/etc/{name}.pem".into(),
        };
        let files = files.below(Path::new("/clusters")).of_process("mp0");
        assert_eq!(files.ca, Path::new("/clusters/tls/ca.pem"));
        assert_eq!(
            files.certificate,
            Path::new("/clusters/tls/mp0/certificate.pem")
        );
        assert_eq!(files.key, Path::new("/etc/mp0.pem"));
    }
}
