//! Whether the certificate of the other end is one of this cluster: signed by an authority that is trusted, valid now, and
//! with an identity in the same cluster. Which process it is, is looked at afterwards.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ParsedCertificate, VerifierBuilderError, WebPkiClientVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError, PeerMisbehaved,
    RootCertStore, SignatureScheme,
};

use crate::identity::{Identities, IdentityError};

/// A certificate that is valid, but not in this place.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Foreign {
    #[error(transparent)]
    Identity(#[from] IdentityError),
    #[error("it is for cluster {theirs}, this is {ours}")]
    Cluster { theirs: String, ours: String },
    #[error("it is of {0}, which accepts no connections")]
    Role(String),
}

impl From<Foreign> for Error {
    fn from(foreign: Foreign) -> Self {
        CertificateError::Other(OtherError(Arc::new(foreign))).into()
    }
}

fn of_cluster(cluster: &str, certificate: &CertificateDer<'_>) -> Result<Identities, Foreign> {
    let identities = Identities::of(certificate)?;
    if identities.cluster() != cluster {
        return Err(Foreign::Cluster {
            theirs: identities.cluster().to_owned(),
            ours: cluster.to_owned(),
        });
    }
    Ok(identities)
}

fn algorithms(provider: &CryptoProvider) -> WebPkiSupportedAlgorithms {
    provider.signature_verification_algorithms
}

/// TLS before 1.3 is not spoken here.
fn no_tls12() -> Error {
    PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into()
}

/// Verifies who dials.
#[derive(Debug)]
pub(crate) struct Dialling {
    cluster: String,
    of_authority: Arc<dyn ClientCertVerifier>,
}

impl Dialling {
    pub(crate) fn new(
        cluster: &str,
        roots: &Arc<RootCertStore>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, VerifierBuilderError> {
        let builder = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone());
        Ok(Self {
            cluster: cluster.to_owned(),
            of_authority: builder.build()?,
        })
    }
}

impl ClientCertVerifier for Dialling {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.of_authority.root_hint_subjects()
    }
    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let of_authority = &self.of_authority;
        let verified = of_authority.verify_client_cert(end_entity, intermediates, now)?;
        of_cluster(&self.cluster, end_entity)?;
        Ok(verified)
    }
    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(no_tls12())
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let of_authority = &self.of_authority;
        of_authority.verify_tls13_signature(message, certificate, signed)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.of_authority.supported_verify_schemes()
    }
}

/// Verifies who was dialled.
#[derive(Debug)]
pub(crate) struct Dialled {
    cluster: String,
    roots: Arc<RootCertStore>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Dialled {
    pub(crate) fn new(
        cluster: &str,
        roots: &Arc<RootCertStore>,
        provider: &CryptoProvider,
    ) -> Self {
        Self {
            cluster: cluster.to_owned(),
            roots: roots.clone(),
            algorithms: algorithms(provider),
        }
    }
}

impl ServerCertVerifier for Dialled {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        verify_server_cert_signed_by_trust_anchor(
            &ParsedCertificate::try_from(end_entity)?,
            &self.roots,
            intermediates,
            now,
            self.algorithms.all,
        )?;
        let identities = of_cluster(&self.cluster, end_entity)?;
        if !identities.serves(None) {
            return Err(Foreign::Role(identities.to_string()).into());
        }
        Ok(ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(no_tls12())
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
