//! The identity of a run: one start of a cluster. It is random, and every store of the run has it in its manifest, so
//! that stores of different runs are never taken for one.

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Name of the file in the directory of a run.
const FILE: &str = "run-id";

/// Which run: 128 random bits, written as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId([u8; 16]);

/// Text or bytes that are not the identity of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the identity of a run is 32 hexadecimal digits (16 bytes)")]
pub struct NotARunId;

impl RunId {
    /// A new one, from the system's random numbers.
    ///
    /// # Errors
    /// If the system has none.
    pub fn random() -> std::io::Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// The identity of the run that belongs to directory `dir`: whoever asks first makes it, for all who share the
    /// directory, also when they are started again.
    ///
    /// # Errors
    /// If the directory cannot be read or written, or the file in it is not the identity of a run.
    pub fn of_directory(dir: &Path) -> std::io::Result<Self> {
        let path = dir.join(FILE);
        let read = || {
            let text = std::fs::read_to_string(&path)?;
            let parsed = text.trim().parse();
            parsed.map_err(|e: NotARunId| std::io::Error::new(ErrorKind::InvalidData, e))
        };
        match read() {
            Err(e) if e.kind() == ErrorKind::NotFound => {}
            found => return found,
        }
        let id = Self::random()?;
        let temporary = dir.join(format!(".{FILE}.{id}"));
        std::fs::write(&temporary, format!("{id}\n"))?;
        // Fails where another process was faster: then that one's counts.
        let linked = std::fs::hard_link(&temporary, &path);
        std::fs::remove_file(&temporary)?;
        match linked {
            Err(e) if e.kind() != ErrorKind::AlreadyExists => Err(e),
            _ => read(),
        }
    }

    /// The one with these bits: for tests and for records that no cluster made.
    pub fn from_bits(bits: u128) -> Self {
        Self(bits.to_be_bytes())
    }

    /// Its bytes, as they travel.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl FromStr for RunId {
    type Err = NotARunId;
    fn from_str(text: &str) -> Result<Self, NotARunId> {
        let hexadecimal = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let bits = hexadecimal.then(|| u128::from_str_radix(text, 16).ok());
        bits.flatten().map(Self::from_bits).ok_or(NotARunId)
    }
}

impl TryFrom<&[u8]> for RunId {
    type Error = NotARunId;
    fn try_from(bytes: &[u8]) -> Result<Self, NotARunId> {
        bytes.try_into().map(Self).map_err(|_| NotARunId)
    }
}

impl Serialize for RunId {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RunId {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_read_back_and_nothing_else_is_one() {
        let id = RunId::random().unwrap();
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(RunId::try_from(&id.as_bytes()[..]), Ok(id));
        assert_ne!(id, RunId::random().unwrap());
        let dir = tempfile::tempdir().unwrap();
        let shared = RunId::of_directory(dir.path()).unwrap();
        assert_eq!(RunId::of_directory(dir.path()).unwrap(), shared);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        for text in ["", "1", "+0000000000000000000000000000001", &"g".repeat(32)] {
            assert_eq!(text.parse::<RunId>(), Err(NotARunId), "{text}");
        }
    }
}
