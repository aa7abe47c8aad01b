//! What the other end of an accepted connection has shown, and what it may do.

use std::sync::{Arc, OnceLock};

use crate::identity::{Identities, Role};

/// The other end of an accepted connection.
#[derive(Clone, Debug)]
pub enum Peer {
    /// A Unix socket, which only the user of the run can open; or TCP without TLS, on this host or where a cluster file
    /// says `insecure`. Who has the token of the run may do everything.
    Uncertified,
    /// Over TLS. What its certificate says is there as soon as the connection is.
    Certified(Certified),
}

/// What the certificate of the other end says, once it has shown it.
#[derive(Clone, Debug, Default)]
pub struct Certified(Arc<OnceLock<Identities>>);

impl Certified {
    pub(crate) fn shown(&self, identities: Identities) {
        // A connection has one handshake.
        let _ = self.0.set(identities);
    }
}

/// What the other end may not do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{who} may not {what}: that takes a certificate of {needed}; issue one with `dosmos cert issue`"
)]
pub struct Denied {
    who: String,
    what: String,
    needed: String,
}

impl Peer {
    fn identities(&self) -> Result<Option<&Identities>, String> {
        match self {
            Self::Uncertified => Ok(None),
            Self::Certified(shown) => match shown.0.get() {
                Some(identities) => Ok(Some(identities)),
                None => Err("who has not shown a certificate".to_owned()),
            },
        }
    }

    fn require(
        &self,
        what: &str,
        needed: impl Fn() -> String,
        is: impl Fn(&Identities) -> bool,
    ) -> Result<(), Denied> {
        let who = match self.identities() {
            Ok(None) => return Ok(()),
            Ok(Some(identities)) if is(identities) => return Ok(()),
            Ok(Some(identities)) => identities.to_string(),
            Err(who) => who,
        };
        Err(Denied {
            who,
            what: what.to_owned(),
            needed: needed(),
        })
    }

    /// Whether it may do `what`, which takes one of `roles`.
    ///
    /// # Errors
    /// If it may not.
    pub fn has_one_of(&self, roles: &[Role], what: &str) -> Result<(), Denied> {
        let needed = || {
            let names: Vec<&str> = roles.iter().map(|r| r.as_str()).collect();
            format!("role {}", names.join(" or "))
        };
        self.require(what, needed, |i| roles.iter().any(|r| i.has_role(*r)))
    }

    /// Whether it may speak as `name` with `role`.
    ///
    /// # Errors
    /// If it may not.
    pub fn is(&self, role: Role, name: &str) -> Result<(), Denied> {
        let what = format!("speak as {}", name.escape_debug());
        let needed = || format!("{role} {}", name.escape_debug());
        self.require(&what, needed, |i| i.is(role, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_served_before_the_certificate_is_there() {
        let peer = Peer::Certified(Certified::default());
        assert!(peer.has_one_of(&Role::ALL, "look").is_err());
        assert!(
            Peer::Uncertified
                .has_one_of(&[Role::Operator], "look")
                .is_ok()
        );
    }
}
