//! An authority and what it issued, as files.
//!
//! ```text
//! FOLDER/ca.pem, ca-key.pem                       the authority; of a former one too while its certificates are in use
//! FOLDER/NAME/ca.pem, certificate.pem, key.pem    what process or person NAME needs, to be copied to its host
//! FOLDER/NAME/issued                              what it was issued for, so that it can be renewed
//! ```

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use dosmos_secure::files::{CA, CERTIFICATE, KEY};
use dosmos_secure::{Credentials, Files, Identity};

use crate::error::Error;
use crate::sign::{Authority, Issued, Request, Validity};

const CA_KEY: &str = "ca-key.pem";
const ISSUED: &str = "issued";
const HOST: &str = "host ";
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// An authority and what it issued, as files.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    cluster: String,
}

/// A certificate that was renewed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewed {
    /// Whose it is: the name of its folder.
    pub name: String,
}

impl Folder {
    /// A new authority of `cluster` in `path`.
    ///
    /// # Errors
    /// If there is one already, or files cannot be written.
    pub fn create(path: &Path, cluster: &str, validity: Validity) -> Result<Self, Error> {
        if [CA, CA_KEY].iter().any(|file| path.join(file).exists()) {
            return Err(Error::Exists {
                path: path.to_owned(),
            });
        }
        create_private(path)?;
        let (_, made) = Authority::new(cluster, validity)?;
        write(&path.join(CA_KEY), &made.key, 0o600)?;
        write(&path.join(CA), &made.certificate, 0o644)?;
        Self::open(path, cluster)
    }

    /// The one that is there.
    ///
    /// # Errors
    /// If there is none.
    pub fn open(path: &Path, cluster: &str) -> Result<Self, Error> {
        if [CA, CA_KEY].iter().any(|file| !path.join(file).exists()) {
            return Err(Error::NoAuthority {
                path: path.to_owned(),
            });
        }
        Ok(Self {
            path: path.to_owned(),
            cluster: cluster.to_owned(),
        })
    }

    /// Issues a certificate as `name`, in a folder of this name. Where that is.
    ///
    /// # Errors
    /// If there is one of this name.
    pub fn issue(&self, name: &str, request: &Request) -> Result<PathBuf, Error> {
        let folder = self.path.join(name);
        if folder.join(CERTIFICATE).exists() {
            return Err(Error::Issued { path: folder });
        }
        self.put(&folder, request)?;
        Ok(folder)
    }

    /// Names of what was issued.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let entries = fs::read_dir(&self.path).map_err(at(&self.path))?;
        let issued = entries.flatten().filter(|e| e.path().join(ISSUED).exists());
        let mut names: Vec<String> = issued
            .map(|e| e.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        Ok(names)
    }

    /// Renews the certificates of `names`, or all: new keys, the same identities.
    ///
    /// # Errors
    /// If one of them was not issued here, or files cannot be written.
    pub fn renew(&self, names: &[String], validity: Validity) -> Result<Vec<Renewed>, Error> {
        let issued = self.names()?;
        if let Some(unknown) = names.iter().find(|name| !issued.contains(name)) {
            return Err(Error::Unknown {
                path: self.path.clone(),
                name: unknown.clone(),
                issued: issued.join(", "),
            });
        }
        let names = if names.is_empty() { &issued } else { names };
        let mut renewed = Vec::new();
        for name in names {
            let folder = self.path.join(name);
            let request = issued_for(&folder.join(ISSUED), validity)?;
            self.put(&folder, &request)?;
            renewed.push(Renewed { name: name.clone() });
        }
        Ok(renewed)
    }

    /// A new authority beside the former, which everybody trusts until [`forget_former`](Self::forget_former). What was issued
    /// stays as it is: renew it when all have the new `ca.pem`.
    ///
    /// # Errors
    /// If files cannot be written.
    pub fn renew_authority(&self, validity: Validity) -> Result<(), Error> {
        let (_, made) = Authority::new(&self.cluster, validity)?;
        let former = self.read(CA)?;
        // Trusted by all before anything is signed by it.
        self.trust(&format!("{}{former}", made.certificate))?;
        write(&self.path.join(CA_KEY), &made.key, 0o600)
    }

    /// Trusts only the present authority.
    ///
    /// # Errors
    /// If files cannot be written.
    pub fn forget_former(&self) -> Result<(), Error> {
        let all = self.read(CA)?;
        let first = all.find(END).map_or(all.len(), |at| at + END.len());
        self.trust(&format!("{}\n", &all[..first]))
    }

    /// How many authorities are trusted.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn authorities(&self) -> Result<usize, Error> {
        Ok(self.read(CA)?.matches(BEGIN).count())
    }

    fn trust(&self, authorities: &str) -> Result<(), Error> {
        write(&self.path.join(CA), authorities, 0o644)?;
        for name in self.names()? {
            write(&self.path.join(name).join(CA), authorities, 0o644)?;
        }
        Ok(())
    }

    fn read(&self, file: &str) -> Result<String, Error> {
        let path = self.path.join(file);
        fs::read_to_string(&path).map_err(at(&path))
    }

    fn put(&self, folder: &Path, request: &Request) -> Result<(), Error> {
        let authority = Authority::from_key(&self.cluster, &self.read(CA_KEY)?)?;
        let Issued { certificate, key } = authority.issue(request)?;
        create_private(folder)?;
        let mut note = String::new();
        for identity in &request.identities {
            note += &format!("{identity}\n");
        }
        for host in &request.hosts {
            note += &format!("{HOST}{host}\n");
        }
        write(&folder.join(CA), &self.read(CA)?, 0o644)?;
        write(&folder.join(KEY), &key, 0o600)?;
        write(&folder.join(CERTIFICATE), &certificate, 0o644)?;
        write(&folder.join(ISSUED), &note, 0o644)?;
        Credentials::read(Files::in_folder(folder))?;
        Ok(())
    }
}

fn issued_for(path: &Path, validity: Validity) -> Result<Request, Error> {
    let text = fs::read_to_string(path).map_err(at(path))?;
    let mut request = Request {
        identities: Vec::new(),
        hosts: Vec::new(),
        validity,
    };
    for line in text.lines() {
        match line.strip_prefix(HOST) {
            Some(host) => request.hosts.push(host.to_owned()),
            None => {
                let identity: Result<Identity, _> = line.parse();
                let identity = identity.map_err(|e| Error::Damaged {
                    path: path.to_owned(),
                    why: e.to_string(),
                })?;
                request.identities.push(identity);
            }
        }
    }
    Ok(request)
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    |source| Error::File { path, source }
}

fn create_private(folder: &Path) -> Result<(), Error> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(at(folder))
}

/// Replaces a file whole or not at all.
fn write(path: &Path, content: &str, mode: u32) -> Result<(), Error> {
    let number = getrandom::u64().map_err(|e| at(path)(io::Error::other(e)))?;
    let temporary = path.with_extension(format!("{number:016x}"));
    let written = File::options()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(&temporary)
        .and_then(|mut file| {
            file.write_all(content.as_bytes())?;
            file.sync_all()
        })
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // It may not exist.
        let _ = fs::remove_file(&temporary);
    }
    written.map_err(at(path))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use dosmos_secure::Role;

    use super::*;

    fn request(role: Role, name: &str) -> Request {
        Request {
            identities: vec![Identity::new("demo", role, name).unwrap()],
            hosts: vec!["node7.cluster".to_owned(), "10.0.0.7".to_owned()],
            validity: Validity::days(30),
        }
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn keys_are_private_and_what_is_issued_can_be_used() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("tls");
        let folder = Folder::create(&path, "demo", Validity::days(365)).unwrap();
        let mp0 = folder.issue("mp0", &request(Role::Memory, "mp0")).unwrap();
        for key in [path.join(CA_KEY), mp0.join(KEY)] {
            assert_eq!(mode(&key), 0o600, "{}", key.display());
        }
        assert_eq!((mode(&path), mode(&mp0)), (0o700, 0o700));
        let own = Credentials::read(Files::in_folder(&mp0)).unwrap().own();
        assert!(own.is(Role::Memory, "mp0") && !own.is(Role::Memory, "mp1"));
        let again = folder.issue("mp0", &request(Role::Memory, "mp0"));
        assert!(matches!(again, Err(Error::Issued { .. })));
        let again = Folder::create(&path, "demo", Validity::days(365));
        assert!(matches!(again, Err(Error::Exists { .. })));
        let mut bad = request(Role::Memory, "mp1");
        bad.hosts.push("a b".to_owned());
        assert!(matches!(folder.issue("mp1", &bad), Err(Error::Host(_))));
    }

    #[test]
    fn what_is_renewed_has_the_same_identities_and_another_key() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::create(dir.path(), "demo", Validity::days(365)).unwrap();
        for name in ["mp0", "mp1"] {
            folder.issue(name, &request(Role::Memory, name)).unwrap();
        }
        let key = |name: &str| fs::read_to_string(dir.path().join(name).join(KEY)).unwrap();
        let (before0, before1) = (key("mp0"), key("mp1"));
        let one = ["mp1".to_owned()];
        let renewed = folder.renew(&one, Validity::days(30)).unwrap();
        assert_eq!(renewed.len(), 1);
        assert!(key("mp0") == before0 && key("mp1") != before1);
        let own = Credentials::read(Files::in_folder(&dir.path().join("mp1"))).unwrap();
        assert!(own.own().is(Role::Memory, "mp1"));
        assert_eq!(folder.renew(&[], Validity::days(30)).unwrap().len(), 2);
        let unknown = folder.renew(&["mp9".to_owned()], Validity::days(30));
        let said = unknown.unwrap_err().to_string();
        assert!(said.contains("mp9") && said.contains("mp0, mp1"), "{said}");
    }

    #[test]
    fn a_new_authority_is_trusted_beside_the_former_until_that_is_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Folder::create(dir.path(), "demo", Validity::days(365)).unwrap();
        folder.issue("mp0", &request(Role::Memory, "mp0")).unwrap();
        folder.renew_authority(Validity::days(365)).unwrap();
        assert_eq!(folder.authorities().unwrap(), 2);
        folder.renew(&[], Validity::days(30)).unwrap();
        let trusted = || fs::read_to_string(dir.path().join("mp0").join(CA)).unwrap();
        assert_eq!(trusted().matches(BEGIN).count(), 2);
        folder.forget_former().unwrap();
        assert_eq!(trusted().matches(BEGIN).count(), 1);
        folder.issue("mp1", &request(Role::Memory, "mp1")).unwrap();
    }
}
