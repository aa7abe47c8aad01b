//! Whoever dials and does not look whom is refused by the other end alone.

#![allow(clippy::unwrap_used)] // a test may

use std::sync::Arc;
use std::time::Duration;

use dosmos_authority::testing::Certificates;
use dosmos_secure::{Credentials, Role, SecureSocket};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

const DEADLINE: Duration = Duration::from_secs(20);

/// Accepts whoever answers.
#[derive(Debug)]
struct Careless;

impl ServerCertVerifier for Careless {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }
    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Shows this certificate, or none.
fn config(shown: Option<&Credentials>) -> ClientConfig {
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Careless));
    let Some(shown) = shown else {
        return builder.with_no_client_auth();
    };
    let chain = CertificateDer::pem_file_iter(&shown.files().certificate).unwrap();
    let chain = chain.map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(&shown.files().key).unwrap();
    builder.with_client_auth_cert(chain, key).unwrap()
}

/// What the first reading of a connection gives.
async fn answer(to: std::net::SocketAddr, shown: Option<&Credentials>) -> Result<Vec<u8>, String> {
    let connector = TlsConnector::from(Arc::new(config(shown)));
    let name = ServerName::try_from("mp0.invalid").unwrap();
    let socket = TcpStream::connect(to).await.unwrap();
    let mut socket = connector.connect(name, socket).await.unwrap();
    let mut read = vec![0; 5];
    match timeout(DEADLINE, socket.read_exact(&mut read))
        .await
        .unwrap()
    {
        Ok(_) => Ok(read),
        Err(e) => Err(e.to_string()),
    }
}

#[tokio::test]
async fn nobody_gets_a_byte_without_a_good_certificate_of_this_cluster() {
    let certificates = Certificates::new("demo");
    let mp0 = certificates.of(Role::Memory, "mp0");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let (mut socket, _) = SecureSocket::accept(socket, &mp0);
            tokio::spawn(async move {
                socket.write_all(b"hello").await?;
                socket.flush().await?;
                // Until the other end has read it.
                socket.read(&mut [0]).await
            });
        }
    });
    let good = certificates.of(Role::Application, "ap0");
    assert_eq!(answer(address, Some(&good)).await.unwrap(), b"hello");
    for (credentials, alert) in [
        (None, "CertificateRequired"),
        (
            Some(certificates.expired(Role::Application, "ap0")),
            "CertificateExpired",
        ),
        (
            Some(certificates.foreign(Role::Application, "ap0")),
            "DecryptError",
        ),
        (
            Some(certificates.of_other_cluster(Role::Application, "ap0")),
            "CertificateUnknown",
        ),
    ] {
        let refused = answer(address, credentials.as_ref()).await.unwrap_err();
        assert!(refused.contains(alert), "{alert}: {refused}");
    }
}
