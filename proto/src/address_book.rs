//! Who listens where: names of processes to addresses.
//!
//! A process with a fixed address in the cluster file is found there. One that lets the system choose
//! its port publishes the address it got as a file in the run directory, `addr/<name>`, written whole
//! or not at all; the others read it when they dial, so a restarted process is found again. On many
//! hosts the run directory is a shared file system, or all addresses are fixed.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use dosmos_secure::Credentials;

use crate::access::Access;
use crate::token::{ENV_TOKEN, Token};
use crate::transport::Address;

/// Names of processes to addresses.
#[derive(Clone, Debug, Default)]
pub struct AddressBook {
    fixed: HashMap<String, Address>,
    directory: Option<PathBuf>,
    credentials: Option<Credentials>,
}

impl AddressBook {
    /// A book of `fixed` addresses and of those published below `run_dir`.
    pub fn new(fixed: HashMap<String, Address>, run_dir: Option<&Path>) -> Self {
        Self {
            fixed,
            directory: run_dir.map(|d| d.join("addr")),
            credentials: None,
        }
    }

    /// The same, for a process that has certificates.
    #[must_use]
    pub fn secured(self, credentials: Option<Credentials>) -> Self {
        Self {
            credentials,
            ..self
        }
    }

    /// The certificates of this process, if it has some.
    pub fn credentials(&self) -> Option<&Credentials> {
        self.credentials.as_ref()
    }

    /// What this process shows to others, as far as it is known now.
    pub fn access(&self) -> Access {
        Access::new(self.token(), self.credentials.clone())
    }

    /// The addresses that were known beforehand, by name.
    pub fn known(&self) -> impl Iterator<Item = (&str, &Address)> {
        self.fixed
            .iter()
            .map(|(name, address)| (name.as_str(), address))
    }

    /// Where `name` listens, as far as is known now.
    pub fn resolve(&self, name: &str) -> Option<Address> {
        if let Some(address) = self.fixed.get(name) {
            return Some(address.clone());
        }
        let text = std::fs::read_to_string(self.directory.as_ref()?.join(name)).ok()?;
        text.trim().parse().ok()
    }

    /// Tells the others that `name` listens at `address`, or at which fixed address they reach it; does nothing without a run
    /// directory.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn publish(&self, name: &str, address: &Address) -> io::Result<()> {
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        let address = self.fixed.get(name).unwrap_or(address);
        std::fs::create_dir_all(directory)?;
        let temporary = directory.join(format!(".{name}.{}", std::process::id()));
        std::fs::write(&temporary, format!("{address}\n"))?;
        std::fs::rename(&temporary, directory.join(name))?;
        self.is_back(name)
    }

    /// Tells the others that `name`, which may have been given up, is started again; does nothing without a run directory.
    ///
    /// # Errors
    /// If the file that says so cannot be removed.
    pub fn is_back(&self, name: &str) -> io::Result<()> {
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        match std::fs::remove_file(gone(directory, name)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => Ok(()),
        }
    }

    /// Tells the others that `name` ended and is not started again, so that nobody waits for it; does nothing without
    /// a run directory.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn give_up(&self, name: &str) -> io::Result<()> {
        let Some(directory) = &self.directory else {
            return Ok(());
        };
        std::fs::create_dir_all(directory)?;
        std::fs::write(gone(directory, name), "")
    }

    /// Whether `name` was given up, and has not published an address or come back since.
    pub fn is_given_up(&self, name: &str) -> bool {
        let directory = self.directory.as_deref();
        directory.is_some_and(|directory| gone(directory, name).exists())
    }

    /// Takes back that `name` listens at `address`. What another process has published under the same
    /// name since stays.
    pub fn withdraw(&self, name: &str, address: &Address) {
        let Some(directory) = &self.directory else {
            return;
        };
        let address = self.fixed.get(name).unwrap_or(address);
        let path = directory.join(name);
        let published = std::fs::read_to_string(&path);
        if published.is_ok_and(|text| text.trim() == address.to_string()) {
            // Whoever still reads it finds nobody listening, which is as true.
            let _ = std::fs::remove_file(path);
        }
    }

    /// The token that a process of the run requires; made if the run has none.
    ///
    /// # Errors
    /// If it cannot be read or made, or there is no run directory and none in the environment.
    pub fn require_token(&self) -> io::Result<Token> {
        match self.run_dir() {
            Some(dir) => Token::of_run(dir),
            None => Token::from_env()?.ok_or_else(|| {
                io::Error::other(format!("there is no run directory: set {ENV_TOKEN}"))
            }),
        }
    }

    /// The token of the run, as far as it is known now: of the run directory, otherwise of the environment.
    pub fn token(&self) -> Option<Token> {
        let kept = self
            .run_dir()
            .and_then(|dir| Token::read(dir).ok().flatten());
        kept.or_else(|| Token::from_env().ok().flatten())
    }

    /// The run directory, if there is one: where processes publish their addresses and keep what has to
    /// outlive them.
    pub fn run_dir(&self) -> Option<&Path> {
        self.directory.as_deref().and_then(Path::parent)
    }
}

/// The file that says that a process was given up.
fn gone(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!(".{name}.gone"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_given_up_until_it_publishes_an_address() {
        let run = tempfile::tempdir().unwrap();
        let book = AddressBook::new(HashMap::new(), Some(run.path()));
        let address: Address = "127.0.0.1:1".parse().unwrap();
        book.publish("emp0", &address).unwrap();
        assert!(!book.is_given_up("emp0"));
        book.give_up("emp0").unwrap();
        assert!(book.is_given_up("emp0") && !book.is_given_up("emp1"));
        book.publish("emp0", &address).unwrap();
        assert!(!book.is_given_up("emp0"));
        // One that has no address is back when it is said to be.
        book.give_up("ap0").unwrap();
        book.is_back("ap0").unwrap();
        assert!(!book.is_given_up("ap0"));
        book.is_back("ap0").unwrap();
    }
}
