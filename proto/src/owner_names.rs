//! The names of memory processes that a declaration lists as owners.

use serde::{Deserialize, Serialize};

use crate::Malformed;
use crate::names::check_name;
use crate::wire_owners::{MAX_OWNER_BYTES, MAX_OWNERS, WireOwners};

/// What a name costs in memory beside its bytes.
const PER_NAME: usize = size_of::<String>();

/// Names of memory processes that own the objects of a variable: 1 to [`MAX_OWNERS`], of [`MAX_OWNER_BYTES`] together, each
/// a valid name ([`check_name`]).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub struct OwnerNames(Vec<String>);

impl OwnerNames {
    /// The names, in the order of the objects.
    pub fn as_slice(&self) -> &[String] {
        &self.0
    }

    /// What the list takes in memory, in bytes.
    pub(crate) fn footprint(&self) -> usize {
        self.0.iter().map(|name| name.len() + PER_NAME).sum()
    }
}

impl TryFrom<Vec<String>> for OwnerNames {
    type Error = Malformed;
    fn try_from(names: Vec<String>) -> Result<Self, Malformed> {
        check_owners(names.len())?;
        check_bytes(names.iter().map(String::len).sum())?;
        names
            .iter()
            .try_for_each(|name| check_name("name of an owner", name))?;
        Ok(Self(names))
    }
}

/// Checks the number of owners in a list.
pub(crate) fn check_owners(count: usize) -> Result<(), Malformed> {
    match count {
        1..=MAX_OWNERS => Ok(()),
        0 => Err(bad(
            "the list of owners is empty; name one memory process or more".to_owned(),
        )),
        _ => Err(bad(format!(
            "there are more than {MAX_OWNERS} owners; a shorter list repeats"
        ))),
    }
}

fn check_bytes(bytes: usize) -> Result<(), Malformed> {
    match bytes {
        0..=MAX_OWNER_BYTES => Ok(()),
        _ => Err(bad(format!(
            "the names of the owners have more than {MAX_OWNER_BYTES} bytes together; a shorter list repeats"
        ))),
    }
}

fn bad(why: String) -> Malformed {
    Malformed::new("list of owners", why)
}

impl From<OwnerNames> for WireOwners {
    fn from(names: OwnerNames) -> Self {
        names.0.iter().collect()
    }
}

impl TryFrom<WireOwners> for OwnerNames {
    type Error = Malformed;
    fn try_from(list: WireOwners) -> Result<Self, Malformed> {
        check_owners(list.count())?;
        check_bytes(list.bytes())?;
        list.names()
            .map(str::to_owned)
            .collect::<Vec<_>>()
            .try_into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_beyond_the_bounds_are_refused_with_the_bound() {
        let refused = |list: WireOwners| OwnerNames::try_from(list).unwrap_err().to_string();
        let e = refused((0..70_000).map(|_| "a").collect());
        assert!(e.contains("more than 65536 owners; a shorter list"), "{e}");
        let e = refused((0..6_000).map(|_| "x".repeat(200)).collect());
        assert!(e.contains("more than 1048576 bytes together"), "{e}");
    }
}
