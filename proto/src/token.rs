//! The token of a run: whoever shows it is served.
//!
//! The first process of a run writes it to `RUN_DIR/token`, readable by the user who started the run alone. Every
//! process of the run reads it there; programs read it in the file that [`ENV_TOKEN_FILE`] names, which `dosmos up` sets.
//! It keeps other users of the machine away, and processes of other runs; on a network that others can read, certificates
//! protect it (`docs/design/overview.md#security`).

use std::fmt;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::{Request, Status};

/// Environment variable with the token of the run.
pub const ENV_TOKEN: &str = "DOSMOS_TOKEN";
/// Environment variable with the path of a file that has it: what a process has in its environment, others may see.
pub const ENV_TOKEN_FILE: &str = "DOSMOS_TOKEN_FILE";

/// The file of the token in a run directory.
const FILE: &str = "token";
/// Hexadecimal digits.
const DIGITS: usize = 32;
/// The metadata field that carries it.
pub(crate) const FIELD: &str = "authorization";
const SCHEME: &str = "Bearer ";

/// What whoever takes part in a run has to show.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Arc<str>);

/// A text that is not a token.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a token is {DIGITS} hexadecimal digits")]
pub struct InvalidToken;

impl fmt::Debug for InvalidToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Token {
    type Err = InvalidToken;
    fn from_str(text: &str) -> Result<Self, InvalidToken> {
        let good = text.len() == DIGITS && text.bytes().all(|b| b.is_ascii_hexdigit());
        if good {
            Ok(Self(text.into()))
        } else {
            Err(InvalidToken)
        }
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// The token of the run in `run_dir`, made if there is none. The environment may prescribe it: processes on hosts
    /// that do not share a run directory need the same one.
    ///
    /// # Errors
    /// If the file cannot be read or written, or it or the environment has something else.
    pub fn of_run(run_dir: &Path) -> io::Result<Self> {
        let prescribed = Self::from_env()?;
        let path = run_dir.join(FILE);
        if let Some(found) = Self::read(run_dir)? {
            return match prescribed {
                Some(other) if other != found => Err(io::Error::other(format!(
                    "{ENV_TOKEN} is not the token in {}: unset it, or use another run directory",
                    path.display()
                ))),
                _ => Ok(found),
            };
        }
        let token = match prescribed {
            Some(token) => token,
            None => Self::generate()?,
        };
        std::fs::create_dir_all(run_dir)?;
        // Written whole before it has its name; of two processes that start at the same time, one gives its token to both.
        let number = getrandom::u64().map_err(io::Error::other)?;
        let temporary = run_dir.join(format!(".{FILE}.{number:016x}"));
        let mut file = std::fs::File::options()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(format!("{}\n", token.0).as_bytes())?;
        let named = std::fs::hard_link(&temporary, &path);
        std::fs::remove_file(&temporary)?;
        match named {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Self::of_run(run_dir),
            named => named.map(|()| token),
        }
    }

    /// The token of the run in `run_dir`, if it has one.
    ///
    /// # Errors
    /// If the file cannot be read or has something else.
    pub fn read(run_dir: &Path) -> io::Result<Option<Self>> {
        Self::read_file(&Self::path(run_dir))
    }

    /// Where the token of the run in `run_dir` is kept.
    pub fn path(run_dir: &Path) -> PathBuf {
        run_dir.join(FILE)
    }

    /// The token in a file, if there is one.
    ///
    /// # Errors
    /// If the file cannot be read or has something else.
    pub fn read_file(path: &Path) -> io::Result<Option<Self>> {
        let named = |why: String| io::Error::other(format!("{}: {why}", path.display()));
        match std::fs::read_to_string(path) {
            Ok(text) => text
                .trim()
                .parse()
                .map(Some)
                .map_err(|e: InvalidToken| named(e.to_string())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(e) => Err(named(e.to_string())),
        }
    }

    /// The token in the environment, or in the file that it names, if there is one.
    ///
    /// # Errors
    /// If there is something else.
    pub fn from_env() -> io::Result<Option<Self>> {
        Self::from_lookup(|name| std::env::var(name).ok())
    }

    /// As [`from_env`](Self::from_env), from another environment.
    ///
    /// # Errors
    /// If there is something else.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> io::Result<Option<Self>> {
        let wrong =
            |variable: &str, why: String| io::Error::other(format!("{variable} is wrong: {why}"));
        if let Some(text) = lookup(ENV_TOKEN) {
            let token = text.trim().parse();
            return token
                .map(Some)
                .map_err(|e: InvalidToken| wrong(ENV_TOKEN, e.to_string()));
        }
        let Some(path) = lookup(ENV_TOKEN_FILE) else {
            return Ok(None);
        };
        let found = Self::read_file(Path::new(&path));
        match found.map_err(|e| wrong(ENV_TOKEN_FILE, e.to_string()))? {
            Some(token) => Ok(Some(token)),
            None => Err(wrong(ENV_TOKEN_FILE, format!("{path} does not exist"))),
        }
    }

    /// A new one.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    pub fn generate() -> io::Result<Self> {
        let random = || getrandom::u64().map_err(io::Error::other);
        let (high, low) = (random()?, random()?);
        Ok(Self(format!("{high:016x}{low:016x}").into()))
    }

    /// As text, to be handed to a process of the run.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// As the metadata field of a call.
    pub(crate) fn shown(&self) -> String {
        format!("{SCHEME}{}", self.0)
    }

    /// Whether `shown` is this token, in a time that does not depend on where they differ.
    fn matches(&self, shown: &[u8]) -> bool {
        let own = self.0.as_bytes();
        own.len() == shown.len() && own.iter().zip(shown).fold(0, |d, (a, b)| d | (a ^ b)) == 0
    }
}

/// Shows a token with every call.
#[derive(Clone, Debug, Default)]
pub struct ShowToken(Option<MetadataValue<Ascii>>);

impl ShowToken {
    pub(crate) fn new(token: Option<&Token>) -> Self {
        let field = token.and_then(|t| t.shown().parse().ok());
        let hidden = field.map(|mut value: MetadataValue<Ascii>| {
            value.set_sensitive(true);
            value
        });
        Self(hidden)
    }
}

impl Interceptor for ShowToken {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(value) = &self.0 {
            request.metadata_mut().insert(FIELD, value.clone());
        }
        Ok(request)
    }
}

/// Refuses calls that do not show the token of the run.
#[derive(Clone, Debug)]
pub struct RequireToken(Token);

impl RequireToken {
    pub(crate) fn new(token: Token) -> Self {
        Self(token)
    }
}

impl Interceptor for RequireToken {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let shown = request.metadata().get(FIELD);
        let shown = shown.and_then(|v| v.as_bytes().strip_prefix(SCHEME.as_bytes()));
        match shown {
            Some(shown) if self.0.matches(shown) => Ok(request),
            Some(_) => Err(refused("this is not the token of this run")),
            None => Err(refused("the token of this run is missing")),
        }
    }
}

fn refused(what: &str) -> Status {
    Status::unauthenticated(format!(
        "{what}: name the run directory, or set {ENV_TOKEN_FILE} to the path of its file {FILE}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn all_processes_of_a_run_have_one_token_that_only_their_user_reads() {
        // Also if they start at the same time, and as threads of one process.
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(Token::read(dir.path()).unwrap(), None);
        let starts: Vec<_> = (0..16)
            .map(|_| {
                let dir = dir.path().to_owned();
                std::thread::spawn(move || Token::of_run(&dir).unwrap())
            })
            .collect();
        let tokens: Vec<Token> = starts.into_iter().map(|s| s.join().unwrap()).collect();
        let kept = Token::read(dir.path()).unwrap().unwrap();
        assert!(tokens.iter().all(|t| *t == kept));
        let mode = dir.path().join(FILE).metadata().unwrap().permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        let other = tempfile::tempdir().unwrap();
        assert_ne!(Token::of_run(other.path()).unwrap(), kept);
        std::fs::write(dir.path().join(FILE), "short\n").unwrap();
        let error = Token::read(dir.path()).unwrap_err().to_string();
        assert!(error.contains("32 hexadecimal digits"), "{error}");
    }

    #[test]
    fn the_environment_has_the_token_or_names_its_file() {
        let dir = tempfile::tempdir().unwrap();
        let token = Token::of_run(dir.path()).unwrap();
        let from = |variable: &str, value: &str| {
            Token::from_lookup(|name| (name == variable).then(|| value.to_owned()))
        };
        let file = Token::path(dir.path()).display().to_string();
        assert_eq!(from(ENV_TOKEN_FILE, &file).unwrap(), Some(token.clone()));
        assert_eq!(from(ENV_TOKEN, token.reveal()).unwrap(), Some(token));
        assert_eq!(from("OTHER", "x").unwrap(), None);
        for (variable, value) in [(ENV_TOKEN, "x"), (ENV_TOKEN_FILE, "/does/not/exist")] {
            let said = from(variable, value).unwrap_err().to_string();
            assert!(said.starts_with(variable), "{said}");
        }
    }

    #[test]
    fn only_the_token_itself_is_let_in() {
        let token: Token = "0123456789abcdef0123456789abcdef".parse().unwrap();
        let other: Token = "0123456789abcdef0123456789abcdee".parse().unwrap();
        let asked = |shown: Option<&Token>| {
            let request = ShowToken::new(shown).call(Request::new(())).unwrap();
            RequireToken::new(token.clone()).call(request)
        };
        assert!(asked(Some(&token)).is_ok());
        for shown in [None, Some(&other)] {
            let status = asked(shown).unwrap_err();
            assert_eq!(status.code(), tonic::Code::Unauthenticated);
            assert!(status.message().contains(ENV_TOKEN_FILE), "{status}");
        }
        assert!(!format!("{token:?}").contains("0123"));
    }
}
