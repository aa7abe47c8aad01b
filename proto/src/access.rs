//! What a process shows to another that it dials, and whom it expects there.

pub use dosmos_secure::files::{ENV_FILES, ENV_TLS, Incomplete};
pub use dosmos_secure::{Credentials, CredentialsError, Files};

use crate::token::Token;

/// What a process shows to another that it dials, and whom it expects there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    pub(crate) token: Option<Token>,
    pub(crate) credentials: Option<Credentials>,
    pub(crate) expected: Option<String>,
}

impl Access {
    /// The token of a run, and certificates for connections over TCP.
    pub fn new(token: Option<Token>, credentials: Option<Credentials>) -> Self {
        Self {
            token,
            credentials,
            expected: None,
        }
    }

    /// The same; whoever is dialled over TLS has to be process `name`.
    #[must_use]
    pub fn expecting(self, name: &str) -> Self {
        Self {
            expected: Some(name.to_owned()),
            ..self
        }
    }

    /// The same, with certificates for connections over TCP.
    #[must_use]
    pub fn with_credentials(self, credentials: Option<Credentials>) -> Self {
        Self {
            credentials,
            ..self
        }
    }
}

impl From<Option<&Token>> for Access {
    fn from(token: Option<&Token>) -> Self {
        Self::new(token.cloned(), None)
    }
}

impl From<Option<Token>> for Access {
    fn from(token: Option<Token>) -> Self {
        Self::new(token, None)
    }
}

impl From<&Self> for Access {
    fn from(access: &Self) -> Self {
        access.clone()
    }
}
