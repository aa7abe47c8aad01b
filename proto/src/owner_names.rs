//! The names of memory processes that a declaration lists as owners, and how such a list is read from a message: neither
//! many names nor long ones make a declaration large.

use bytes::{Buf, BufMut};
use prost::encoding::{DecodeContext, WireType, skip_field, string};
use prost::{DecodeError, Message};
use serde::{Deserialize, Serialize};

use crate::Malformed;
use crate::variable::check_name;

/// Longest list of owners in a declaration; a shorter list than there are objects repeats.
pub const MAX_OWNERS: usize = 65_536;

/// Most bytes of the names of such a list together.
pub const MAX_OWNER_BYTES: usize = 1 << 20;

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

/// Refuses a list of so many owners.
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

/// The list in a message (`Placement.Explicit` of common.proto). What goes beyond the bounds of [`OwnerNames`] is not kept
/// while it is read, but for the name that shows it; and no name has memory of its own. So a hostile list takes no more
/// than these bounds, and what follows in its message can still be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct WireOwners {
    /// The names, one after the other.
    text: String,
    /// Where each ends.
    ends: Vec<u32>,
}

impl WireOwners {
    fn push(&mut self, name: &str) {
        self.text.push_str(name);
        self.ends.push(self.text.len() as u32);
    }

    fn is_beyond(&self) -> bool {
        self.ends.len() > MAX_OWNERS || self.text.len() > MAX_OWNER_BYTES
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let spans = starts.zip(&self.ends);
        spans.filter_map(|(start, end)| self.text.get(start as usize..*end as usize))
    }
}

/// Valid or not: whoever receives it checks.
impl<N: AsRef<str>> FromIterator<N> for WireOwners {
    fn from_iter<I: IntoIterator<Item = N>>(names: I) -> Self {
        let mut list = Self::default();
        names.into_iter().for_each(|name| list.push(name.as_ref()));
        list
    }
}

impl Message for WireOwners {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        // As `repeated string` is.
        for name in self.names() {
            prost::encoding::encode_key(1, WireType::LengthDelimited, buf);
            prost::encoding::encode_varint(name.len() as u64, buf);
            buf.put_slice(name.as_bytes());
        }
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        ctx: DecodeContext,
    ) -> Result<(), DecodeError> {
        if tag != 1 || self.is_beyond() {
            return skip_field(wire_type, tag, buf, ctx);
        }
        let mut name = String::new();
        string::merge(wire_type, &mut name, buf, ctx)?;
        self.push(&name);
        Ok(())
    }

    fn encoded_len(&self) -> usize {
        let size = |name: &str| 1 + prost::length_delimiter_len(name.len()) + name.len();
        self.names().map(size).sum()
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

impl From<OwnerNames> for WireOwners {
    fn from(names: OwnerNames) -> Self {
        names.0.iter().collect()
    }
}

impl TryFrom<WireOwners> for OwnerNames {
    type Error = Malformed;
    fn try_from(list: WireOwners) -> Result<Self, Malformed> {
        check_owners(list.ends.len())?;
        check_bytes(list.text.len())?;
        list.names()
            .map(str::to_owned)
            .collect::<Vec<_>>()
            .try_into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A list as `prost` writes it.
    fn message(names: impl Iterator<Item = String>) -> Vec<u8> {
        let mut bytes = Vec::new();
        for name in names {
            string::encode(1, &name, &mut bytes);
        }
        bytes
    }

    fn read(bytes: &[u8]) -> (WireOwners, Result<OwnerNames, Malformed>) {
        let list = WireOwners::decode(bytes).unwrap();
        (list.clone(), list.try_into())
    }

    #[test]
    fn a_list_survives_the_wire() {
        let names = ["a", "mp1", "a", "ö"].map(str::to_owned);
        let owners = OwnerNames::try_from(names.to_vec()).unwrap();
        let bytes = WireOwners::from(owners.clone()).encode_to_vec();
        assert_eq!(bytes, message(names.into_iter()));
        assert_eq!(bytes.len(), WireOwners::from(owners.clone()).encoded_len());
        assert_eq!(read(&bytes).1.unwrap(), owners);
    }

    #[test]
    fn what_is_beyond_the_bounds_is_not_kept_while_it_is_read() {
        let many = message((0..5_000_000).map(|_| String::new()));
        let (list, refused) = read(&many);
        assert!(
            list.ends.capacity() <= 4 * MAX_OWNERS,
            "{}",
            list.ends.capacity()
        );
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("more than 65536 owners; a shorter list"),
            "{refused}"
        );

        let long = message((0..MAX_OWNERS).map(|_| "x".repeat(200)));
        let (list, refused) = read(&long);
        assert!(list.text.capacity() <= 4 * MAX_OWNER_BYTES);
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("more than 1048576 bytes together"),
            "{refused}"
        );
    }
}
