//! An authority that signs.

use std::fmt;
use std::net::IpAddr;
use std::time::SystemTime;

use dosmos_secure::Identity;
use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use time::{Duration, OffsetDateTime};

use crate::error::Error;

/// How long before it was made a certificate is valid: clocks differ.
const BEFORE: Duration = Duration::minutes(10);

/// When a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    from: OffsetDateTime,
    until: OffsetDateTime,
}

impl Validity {
    /// From now on, for this number of days.
    pub fn days(days: u32) -> Self {
        let now = OffsetDateTime::from(SystemTime::now());
        Self {
            from: now - BEFORE,
            until: now + Duration::days(days.into()),
        }
    }

    /// It ended a day ago: for tests of what is refused.
    pub fn over() -> Self {
        let now = OffsetDateTime::from(SystemTime::now());
        Self {
            from: now - Duration::days(2),
            until: now - Duration::days(1),
        }
    }
}

/// What to issue.
#[derive(Clone, Debug)]
pub struct Request {
    /// Who its holder may be; at least one, all of one cluster.
    pub identities: Vec<Identity>,
    /// Names and addresses of hosts, for other tools: dosmos looks at identities.
    pub hosts: Vec<String>,
    /// When it is valid.
    pub validity: Validity,
}

/// A certificate with its key, in PEM format.
pub struct Issued {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Issued(…)")
    }
}

/// An authority that signs.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Authority(…)")
    }
}

fn subject(cluster: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    let name = format!("dosmos authority of {cluster}");
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

impl Authority {
    /// A new one for `cluster`, and its certificate with its key.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    pub fn new(cluster: &str, validity: Validity) -> Result<(Self, Issued), Error> {
        let key = KeyPair::generate()?;
        let mut params = subject(cluster);
        params.not_before = validity.from;
        params.not_after = validity.until;
        let issued = Issued {
            certificate: params.self_signed(&key)?.pem(),
            key: key.serialize_pem(),
        };
        let issuer = Issuer::new(params, key);
        Ok((Self { issuer }, issued))
    }

    /// The one of `cluster` that has this key, in PEM format.
    ///
    /// # Errors
    /// If it is none.
    pub fn from_key(cluster: &str, key: &str) -> Result<Self, Error> {
        let issuer = Issuer::new(subject(cluster), KeyPair::from_pem(key)?);
        Ok(Self { issuer })
    }

    /// Issues a certificate with a new key.
    ///
    /// # Errors
    /// If a host is none.
    pub fn issue(&self, request: &Request) -> Result<Issued, Error> {
        let key = KeyPair::generate()?;
        let mut params = CertificateParams::default();
        params.not_before = request.validity.from;
        params.not_after = request.validity.until;
        params.distinguished_name = rcgen::DistinguishedName::new();
        if let Some(first) = request.identities.first() {
            params
                .distinguished_name
                .push(DnType::CommonName, first.name());
            params
                .distinguished_name
                .push(DnType::OrganizationalUnitName, first.role().as_str());
            params
                .distinguished_name
                .push(DnType::OrganizationName, first.cluster());
        }
        for identity in &request.identities {
            let uri = Ia5String::try_from(identity.to_string())?;
            params.subject_alt_names.push(SanType::URI(uri));
        }
        for host in &request.hosts {
            params.subject_alt_names.push(name_of(host)?);
        }
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        params.use_authority_key_identifier_extension = true;
        Ok(Issued {
            certificate: params.signed_by(&key, &self.issuer)?.pem(),
            key: key.serialize_pem(),
        })
    }
}

fn name_of(host: &str) -> Result<SanType, Error> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(SanType::IpAddress(address));
    }
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let invalid = || Error::Host(host.to_owned());
    if host.is_empty() || !host.chars().all(fits) {
        return Err(invalid());
    }
    let name = Ia5String::try_from(host.to_owned()).map_err(|_| invalid())?;
    Ok(SanType::DnsName(name))
}
