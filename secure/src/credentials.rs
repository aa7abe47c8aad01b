//! What a process shows, and whom it trusts: read from its files, and read again when they change.
//!
//! Whoever opens or accepts a connection looks whether a file changed. Connections that stand keep what they were made with,
//! so certificates are renewed without ending a session. While files are being replaced and do not fit, the former ones count.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::crypto::CryptoProvider;
use rustls::crypto::ring::{cipher_suite, default_provider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tracing::{info, warn};

use crate::error::CredentialsError;
use crate::files::Files;
use crate::identity::Identities;
use crate::verify::{Dialled, Dialling};

/// What a process shows, and whom it trusts.
#[derive(Clone, Debug)]
pub struct Credentials(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    files: Files,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The files as they were when they were last looked at.
    seen: [Option<Stamp>; 3],
    loaded: Arc<Loaded>,
}

/// What changes when a file is replaced or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    length: u64,
    seconds: i64,
    nanoseconds: i64,
}

/// The files as they were at one time.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) own: Identities,
    pub(crate) server: Arc<ServerConfig>,
    /// The same, for who dials for [`ONE_CALL`].
    pub(crate) server_of_call: Arc<ServerConfig>,
    pub(crate) client: Arc<ClientConfig>,
}

/// What a connection is for that has one call, as a protocol of the application layer (RFC 7301).
pub(crate) const ONE_CALL: &[u8] = b"dosmos-call";

impl PartialEq for Credentials {
    fn eq(&self, other: &Self) -> bool {
        self.0.files == other.0.files
    }
}
impl Eq for Credentials {}

impl Credentials {
    /// Reads the files of a process.
    ///
    /// # Errors
    /// If one cannot be read, or they do not fit.
    pub fn read(files: Files) -> Result<Self, CredentialsError> {
        let seen = stamps(&files);
        let loaded = Arc::new(load(&files)?);
        let state = Mutex::new(State { seen, loaded });
        Ok(Self(Arc::new(Inner { files, state })))
    }

    /// Where they are.
    pub fn files(&self) -> &Files {
        &self.0.files
    }

    /// Who this process is.
    pub fn own(&self) -> Identities {
        self.current().own.clone()
    }

    /// What counts for a connection that is made now.
    pub(crate) fn current(&self) -> Arc<Loaded> {
        let files = &self.0.files;
        let mut state = self.0.state.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = stamps(files);
        if seen != state.seen {
            match load(files) {
                Ok(loaded) => {
                    info!("{} is read again", files.certificate.display());
                    state.loaded = Arc::new(loaded);
                }
                Err(e) => warn!("the former certificate is kept: {e}"),
            }
            state.seen = seen;
        }
        state.loaded.clone()
    }
}

fn stamps(files: &Files) -> [Option<Stamp>; 3] {
    [&files.ca, &files.certificate, &files.key].map(|path| {
        let found = std::fs::metadata(path).ok()?;
        Some(Stamp {
            inode: found.ino(),
            length: found.len(),
            seconds: found.mtime(),
            nanoseconds: found.mtime_nsec(),
        })
    })
}

/// TLS 1.3 with the three cipher suites it has, the one that takes the least time first.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![
            cipher_suite::TLS13_AES_128_GCM_SHA256,
            cipher_suite::TLS13_AES_256_GCM_SHA384,
            cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        ],
        ..default_provider()
    })
}

fn load(files: &Files) -> Result<Loaded, CredentialsError> {
    let mut roots = RootCertStore::empty();
    for authority in certificates(&files.ca)? {
        roots
            .add(authority)
            .map_err(|source| CredentialsError::Tls {
                file: files.ca.clone(),
                source,
            })?;
    }
    let roots = Arc::new(roots);
    let chain = certificates(&files.certificate)?;
    let failed = |source| CredentialsError::Tls {
        file: files.certificate.clone(),
        source,
    };
    let first = chain
        .first()
        .ok_or_else(|| empty(&files.certificate, "certificate"))?;
    let own = Identities::of(first).map_err(|source| CredentialsError::Identity {
        file: files.certificate.clone(),
        source,
    })?;
    let provider = provider();
    let key = private_key(&files.key)?;
    CertifiedKey::from_der(chain.clone(), key.clone_key(), &provider).map_err(failed)?;

    let dialling = Dialling::new(own.cluster(), &roots, &provider)
        .map_err(|e| failed(rustls::Error::General(e.to_string())))?;
    let mut server = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])
        .map_err(failed)?
        .with_client_cert_verifier(Arc::new(dialling))
        .with_single_cert(chain.clone(), key.clone_key())
        .map_err(failed)?;
    // Each connection shows its certificate: a resumed one would be let in with a former one.
    server.send_tls13_tickets = 0;
    let mut server_of_call = server.clone();
    server_of_call.alpn_protocols = vec![ONE_CALL.to_vec()];
    let dialled = Dialled::new(own.cluster(), &roots, &provider);
    let mut client = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(failed)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(dialled))
        .with_client_auth_cert(chain, key)
        .map_err(failed)?;
    client.resumption = rustls::client::Resumption::disabled();
    // Who is dialled is known by its identity: its name is not to be read on the wire.
    client.enable_sni = false;
    Ok(Loaded {
        own,
        server: Arc::new(server),
        server_of_call: Arc::new(server_of_call),
        client: Arc::new(client),
    })
}

fn empty(file: &Path, expected: &'static str) -> CredentialsError {
    CredentialsError::Empty {
        file: file.to_owned(),
        expected,
    }
}

fn read(file: &Path) -> Result<(Vec<u8>, u32), CredentialsError> {
    let unreadable = |source: io::Error| CredentialsError::Unreadable {
        file: file.to_owned(),
        source,
    };
    let mut open = File::open(file).map_err(unreadable)?;
    let mode = open.metadata().map_err(unreadable)?.mode();
    let mut content = Vec::new();
    open.read_to_end(&mut content).map_err(unreadable)?;
    Ok((content, mode))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, CredentialsError> {
    let (content, _) = read(file)?;
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&content).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        _ => Err(empty(file, "certificate")),
    }
}

fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>, CredentialsError> {
    let (content, mode) = read(file)?;
    if mode & 0o007 != 0 {
        return Err(CredentialsError::ReadableByOthers {
            file: file.to_owned(),
        });
    }
    PrivateKeyDer::from_pem_slice(&content).map_err(|_| empty(file, "private key"))
}
