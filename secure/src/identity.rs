//! What a certificate says of its holder: `dosmos://CLUSTER/ROLE/NAME`, a URI among its subject alternative names.
//!
//! A certificate may have several, for a host that runs several processes. The name `*` stands for every name of its role:
//! where a launcher decides which process runs on which host, nobody knows names before.

use std::fmt;
use std::str::FromStr;

use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

const SCHEME: &str = "dosmos://";
/// Every name of a role.
const ANY: &str = "*";

/// What the holder of a certificate may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// An application process: opens sessions under its own name.
    Application,
    /// A memory or link process: serves sessions, speaks to others of its kind, reports records.
    Memory,
    /// An event manager: takes records, exchanges with others of its kind, answers queries.
    EventManager,
    /// A person or a tool that looks.
    Observer,
    /// A person or a tool that looks, and changes what is recorded.
    Operator,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Application,
        Self::Memory,
        Self::EventManager,
        Self::Observer,
        Self::Operator,
    ];

    /// As it stands in a certificate.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Application => "application",
            Self::Memory => "memory",
            Self::EventManager => "event-manager",
            Self::Observer => "observer",
            Self::Operator => "operator",
        }
    }

    /// Whether it accepts connections.
    pub fn serves(self) -> bool {
        matches!(self, Self::Memory | Self::EventManager)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that is not a role.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a role; write application, memory, event-manager, observer or operator")]
pub struct InvalidRole(String);

impl fmt::Debug for InvalidRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Role {
    type Err = InvalidRole;
    fn from_str(text: &str) -> Result<Self, InvalidRole> {
        let found = Self::ALL.into_iter().find(|role| role.as_str() == text);
        found.ok_or_else(|| InvalidRole(text.to_owned()))
    }
}

/// Who the holder of a certificate may be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Identity {
    cluster: String,
    role: Role,
    name: String,
}

/// A text that is not an identity.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not dosmos://CLUSTER/ROLE/NAME")]
pub struct InvalidIdentity(String);

impl fmt::Debug for InvalidIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// As the names in cluster files.
fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    (1..=64).contains(&name.len()) && name.chars().all(fits) && !name.starts_with('.')
}

impl Identity {
    /// `name` of the processes with this role in this cluster; `*` for each of them.
    ///
    /// # Errors
    /// If cluster or name is none that a cluster file could have.
    pub fn new(cluster: &str, role: Role, name: &str) -> Result<Self, InvalidIdentity> {
        if !is_name(cluster) || !(is_name(name) || name == ANY) {
            return Err(InvalidIdentity(format!("{SCHEME}{cluster}/{role}/{name}")));
        }
        Ok(Self {
            cluster: cluster.to_owned(),
            role,
            name: name.to_owned(),
        })
    }

    /// Its cluster.
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// Its role.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Its name; `*` if it may have each.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn is(&self, name: &str) -> bool {
        self.name == name || self.name == ANY
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}/{}", self.cluster, self.role, self.name)
    }
}

impl FromStr for Identity {
    type Err = InvalidIdentity;
    fn from_str(text: &str) -> Result<Self, InvalidIdentity> {
        let invalid = || InvalidIdentity(text.to_owned());
        let parts = text.strip_prefix(SCHEME).ok_or_else(invalid)?;
        let parts: Vec<&str> = parts.split('/').collect();
        let [cluster, role, name] = parts[..] else {
            return Err(invalid());
        };
        let role = role.parse().map_err(|_| invalid())?;
        Self::new(cluster, role, name).map_err(|_| invalid())
    }
}

/// All that a certificate says; at least one, all of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identities(Vec<Identity>);

/// A certificate that does not say who its holder is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// It is none, or damaged.
    #[error("it is not a certificate: {0}")]
    NotACertificate(String),
    /// It has no identity.
    #[error(
        "it names no process or person of a dosmos cluster; issue one with `dosmos cert issue`"
    )]
    None,
    /// It is for several clusters.
    #[error("it is for the clusters {0} and {1}; issue one for each")]
    Clusters(String, String),
}

impl Identities {
    /// What `certificate` says.
    ///
    /// # Errors
    /// If it says nothing, or too much.
    pub fn of(certificate: &CertificateDer<'_>) -> Result<Self, IdentityError> {
        let parsed = EndEntityCert::try_from(certificate)
            .map_err(|e| IdentityError::NotACertificate(e.to_string()))?;
        let found: Vec<Identity> = parsed
            .valid_uri_names()
            .filter_map(|uri| uri.parse().ok())
            .collect();
        let first = found.first().ok_or(IdentityError::None)?;
        match found.iter().find(|i| i.cluster != first.cluster) {
            Some(other) => Err(IdentityError::Clusters(
                first.cluster.clone(),
                other.cluster.clone(),
            )),
            None => Ok(Self(found)),
        }
    }

    /// The cluster.
    pub fn cluster(&self) -> &str {
        self.0.first().map_or("", Identity::cluster)
    }

    /// Whether one has this role.
    pub fn has_role(&self, role: Role) -> bool {
        self.0.iter().any(|i| i.role == role)
    }

    /// Whether one has this role and name.
    pub fn is(&self, role: Role, name: &str) -> bool {
        self.0.iter().any(|i| i.role == role && i.is(name))
    }

    /// Whether one may accept connections, under `name` if that matters.
    pub fn serves(&self, name: Option<&str>) -> bool {
        let fits = |i: &Identity| name.is_none_or(|name| i.is(name));
        self.0.iter().any(|i| i.role.serves() && fits(i))
    }
}

impl fmt::Display for Identities {
    /// `observer alice`, or `memory mp0, memory mp1`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, identity) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{} {}", identity.role, identity.name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identities_read_back() {
        for text in [
            "dosmos://demo/memory/lp.north",
            "dosmos://a-b_c/event-manager/emp0",
            "dosmos://demo/application/*",
        ] {
            let identity: Identity = text.parse().unwrap();
            assert_eq!(identity.to_string(), text);
        }
        for bad in [
            "",
            "http://demo/memory/mp0",
            "dosmos://demo/memory",
            "dosmos://demo/memory/mp0/x",
            "dosmos://demo/king/mp0",
            "dosmos:///memory/mp0",
            "dosmos://demo/memory/",
            "dosmos://*/memory/mp0",
            "dosmos://demo/memory/a b",
            "dosmos://demo/memory/..",
            "dosmos://demo/memory/mp\u{202e}0",
        ] {
            assert!(bad.parse::<Identity>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_name_counts_with_its_role_alone() {
        let of = |uris: &[&str]| Identities(uris.iter().map(|u| u.parse().unwrap()).collect());
        let host = of(&["dosmos://c/memory/mp0", "dosmos://c/application/*"]);
        assert!(host.is(Role::Memory, "mp0") && host.is(Role::Application, "ap7"));
        assert!(!host.is(Role::Memory, "mp1") && !host.is(Role::EventManager, "mp0"));
        assert!(host.serves(Some("mp0")) && host.serves(None) && !host.serves(Some("ap7")));
        assert!(!of(&["dosmos://c/observer/*"]).serves(None));
        assert_eq!(host.to_string(), "memory mp0, application *");
    }
}
