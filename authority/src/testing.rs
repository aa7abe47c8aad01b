//! Certificates for tests: good ones of a cluster, and those that are to be refused.

#![allow(clippy::unwrap_used)] // test support: a failure here is a failed test

use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use dosmos_secure::{Credentials, Files, Identity, Role};
use tempfile::TempDir;

use crate::sign::{Authority, Issued, Request, Validity};

/// Two authorities, and what they issued.
#[derive(Debug)]
pub struct Certificates {
    dir: TempDir,
    cluster: String,
    ours: Signer,
    foreign: Signer,
}

#[derive(Debug)]
struct Signer {
    authority: Authority,
    certificate: String,
}

impl Signer {
    fn new(cluster: &str) -> Self {
        let (authority, issued) = Authority::new(cluster, Validity::days(10)).unwrap();
        Self {
            authority,
            certificate: issued.certificate,
        }
    }
}

impl Certificates {
    /// For the cluster of this name.
    pub fn new(cluster: &str) -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            cluster: cluster.to_owned(),
            ours: Signer::new(cluster),
            foreign: Signer::new(cluster),
        }
    }

    /// A good one.
    pub fn of(&self, role: Role, name: &str) -> Credentials {
        self.issue(&self.ours, &self.cluster, role, name, Validity::days(1))
    }

    /// One whose time is over.
    pub fn expired(&self, role: Role, name: &str) -> Credentials {
        self.issue(&self.ours, &self.cluster, role, name, Validity::over())
    }

    /// One of another authority, whose holder trusts ours all the same.
    pub fn foreign(&self, role: Role, name: &str) -> Credentials {
        let valid = Validity::days(1);
        self.issue(&self.foreign, &self.cluster, role, name, valid)
    }

    /// One of our authority for another cluster.
    pub fn of_other_cluster(&self, role: Role, name: &str) -> Credentials {
        self.issue(&self.ours, "other", role, name, Validity::days(1))
    }

    /// All that have to be refused whatever they are to do, with what is said of each.
    pub fn refused(&self, role: Role, name: &str) -> [(Credentials, &'static str); 3] {
        [
            (self.expired(role, name), "it has expired"),
            (self.foreign(role, name), "it is of another authority"),
            (self.of_other_cluster(role, name), "it is for cluster"),
        ]
    }

    /// Replaces the files of `credentials` by new ones, as `dosmos cert rotate` does.
    pub fn renew(&self, credentials: &Credentials, role: Role, name: &str) {
        let request = request(&self.cluster, role, name, Validity::days(1));
        put(credentials.files(), &self.ours, &self.ours, &request);
    }

    fn issue(
        &self,
        signer: &Signer,
        cluster: &str,
        role: Role,
        name: &str,
        validity: Validity,
    ) -> Credentials {
        let number = getrandom::u64().unwrap();
        let folder = self.dir.path().join(format!("{number:016x}"));
        fs::create_dir(&folder).unwrap();
        let files = Files::in_folder(&folder);
        put(
            &files,
            signer,
            &self.ours,
            &request(cluster, role, name, validity),
        );
        Credentials::read(files).unwrap()
    }
}

fn request(cluster: &str, role: Role, name: &str, validity: Validity) -> Request {
    Request {
        identities: vec![Identity::new(cluster, role, name).unwrap()],
        hosts: Vec::new(),
        validity,
    }
}

fn put(files: &Files, signer: &Signer, trusted: &Signer, request: &Request) {
    let Issued { certificate, key } = signer.authority.issue(request).unwrap();
    replace(&files.ca, &trusted.certificate);
    replace(&files.key, &key);
    replace(&files.certificate, &certificate);
}

fn replace(path: &Path, content: &str) {
    let temporary = path.with_extension("new");
    // Left over by nobody: only one test has this folder.
    let mut options = fs::File::options();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)
        .unwrap();
    std::io::Write::write_all(&mut file, content.as_bytes()).unwrap();
    fs::rename(&temporary, path).unwrap();
}
