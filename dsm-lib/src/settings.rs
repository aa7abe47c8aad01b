//! How a program finds its memory process: from the environment that `dosmos up` prepares, or told.

use std::path::PathBuf;
use std::time::Duration;

use dosmos_proto::Token;
use dosmos_proto::access::{Access, Credentials, ENV_TLS, Files};
use dosmos_proto::token::ENV_TOKEN;
use dosmos_proto::transport::Address;

use crate::{Error, Result};

/// Environment variable with the address of the memory process.
pub const ENV_MEMORY_PROCESS: &str = "DOSMOS_MP";
/// Environment variable with the name of the application process.
pub const ENV_NAME: &str = "DOSMOS_AP";
/// Environment variable with the file of the memory process that this process is to be itself; optional.
pub const ENV_WITHIN: &str = "DOSMOS_WITHIN";
/// Environment variable with the deadline of operations in milliseconds; optional.
pub const ENV_DEADLINE: &str = "DOSMOS_DEADLINE_MS";

/// How to join a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// Where the memory process listens.
    pub address: Address,
    /// Name of this application process in the cluster file.
    pub ap: String,
    /// Token of the run, which the memory process asks for.
    pub token: Option<Token>,
    /// Certificates, for a memory process that takes TLS.
    pub credentials: Option<Credentials>,
    /// The file of the memory process that this process is to be itself, as `dosmos up` writes it. Nothing is dialled then.
    pub within: Option<PathBuf>,
    /// Deadline of every operation that is not given another. Default: 60 s.
    pub deadline: Duration,
    /// How much longer than the deadline to wait for a memory process that says nothing at all, not
    /// even that the deadline has passed. Default: 2 s.
    pub grace: Duration,
    /// How long to try to reach the memory process. Default: 10 s.
    pub connect_timeout: Duration,
}

impl Settings {
    /// Application process `ap`, served by the memory process at `address`.
    pub fn new(address: Address, ap: impl Into<String>) -> Self {
        Self {
            address,
            ap: ap.into(),
            token: None,
            credentials: None,
            within: None,
            deadline: Duration::from_secs(60),
            grace: Duration::from_secs(2),
            connect_timeout: Duration::from_secs(10),
        }
    }

    /// What `dosmos up` left in the environment.
    ///
    /// # Errors
    /// [`Error::Environment`] if something is missing or malformed.
    pub fn from_env() -> Result<Self> {
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let needed = |variable| {
            lookup(variable)
                .filter(|text| !text.is_empty())
                .ok_or_else(|| Error::Environment {
                    variable,
                    problem: "is not set".into(),
                    expected: expected(variable),
                })
        };
        let malformed = |variable, problem| Error::Environment {
            variable,
            problem,
            expected: expected(variable),
        };
        let address = needed(ENV_MEMORY_PROCESS)?
            .parse()
            .map_err(|e| malformed(ENV_MEMORY_PROCESS, format!("is wrong: {e}")))?;
        let mut settings = Self::new(address, needed(ENV_NAME)?);
        // What is wrong says which variable.
        settings.token = Token::from_lookup(&lookup)
            .map_err(|e| malformed(ENV_TOKEN, format!("cannot be used: {e}")))?;
        let unusable = |why: String| malformed(ENV_TLS, format!("cannot be used: {why}"));
        let files = Files::from_lookup(|name| lookup(name).map(Into::into));
        if let Some(files) = files.map_err(|e| unusable(e.to_string()))? {
            let credentials = Credentials::read(files).map_err(|e| unusable(e.to_string()))?;
            settings.credentials = Some(credentials);
        }
        settings.within = lookup(ENV_WITHIN)
            .filter(|f| !f.is_empty())
            .map(PathBuf::from);
        if let Some(text) = lookup(ENV_DEADLINE) {
            let ms = text.parse().ok().filter(|ms: &u32| *ms > 0);
            let ms = ms.ok_or_else(|| {
                malformed(
                    ENV_DEADLINE,
                    format!("is {text:?}, not a positive number of milliseconds"),
                )
            })?;
            settings.deadline = Duration::from_millis(ms.into());
        }
        Ok(settings)
    }

    /// What its memory process is shown.
    pub(crate) fn access(&self) -> Access {
        Access::new(self.token.clone(), self.credentials.clone())
    }
}

/// What a variable of the environment should be, for error messages.
fn expected(variable: &str) -> &'static str {
    match variable {
        ENV_MEMORY_PROCESS => "the address of its memory process, host:port or unix:PATH",
        ENV_NAME => "its name in the cluster file",
        ENV_TOKEN => "the content of the file \"token\" in the run directory",
        ENV_TLS => "a folder with ca.pem, certificate.pem and key.pem",
        _ => "a positive number of milliseconds",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(pairs: &[(&str, &str)]) -> Result<Settings> {
        Settings::from_lookup(|name| {
            let found = pairs.iter().find(|(key, _)| *key == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_of_dosmos_up_is_understood() {
        let s = from(&[
            (ENV_MEMORY_PROCESS, "unix:/run/mp0"),
            (ENV_NAME, "ap3"),
            (ENV_DEADLINE, "1500"),
            (ENV_TOKEN, "0123456789abcdef0123456789abcdef"),
        ]);
        let s = s.unwrap();
        assert_eq!(s.address.to_string(), "unix:/run/mp0");
        assert_eq!(s.ap, "ap3");
        assert!(s.token.is_some());
        assert_eq!(s.deadline, Duration::from_millis(1500));
    }

    #[test]
    fn an_error_reads_the_same_however_it_is_printed() {
        let error = from(&[]).unwrap_err();
        assert_eq!(
            format!("{error:?}"),
            "DOSMOS_MP is not set: start the program with `dosmos up -- PROGRAM`, or set DOSMOS_MP to \
             the address of its memory process, host:port or unix:PATH"
        );
        assert_eq!(format!("{error:?}"), error.to_string());
    }

    #[test]
    fn what_is_missing_or_wrong_is_named_with_the_cure() {
        let good = (ENV_MEMORY_PROCESS, "127.0.0.1:1");
        for (pairs, variable) in [
            (&[][..], ENV_MEMORY_PROCESS),
            (&[(ENV_MEMORY_PROCESS, "")], ENV_MEMORY_PROCESS),
            (&[(ENV_MEMORY_PROCESS, "nowhere")], ENV_MEMORY_PROCESS),
            (&[good], ENV_NAME),
            (
                &[good, (ENV_NAME, "a"), (ENV_DEADLINE, "soon")],
                ENV_DEADLINE,
            ),
            (&[good, (ENV_NAME, "a"), (ENV_DEADLINE, "0")], ENV_DEADLINE),
            (&[good, (ENV_NAME, "a"), (ENV_TOKEN, "0")], ENV_TOKEN),
        ] {
            let error = from(pairs).unwrap_err();
            assert!(
                matches!(&error, Error::Environment { variable: v, .. } if *v == variable),
                "{error}"
            );
            assert!(error.to_string().contains("dosmos up"), "{error}");
        }
    }
}
