//! A list of owners as it stands in a message, read with bounds: neither many names nor long ones make it large.

use bytes::{Buf, BufMut};
use prost::encoding::{DecodeContext, WireType, skip_field, string};
use prost::{DecodeError, Message};

/// Longest list of owners in a declaration; a shorter list than there are objects repeats.
pub const MAX_OWNERS: usize = 65_536;

/// Most bytes of the names of such a list together.
pub const MAX_OWNER_BYTES: usize = 1 << 20;

/// The list in a message (`Placement.Explicit` of common.proto). What goes beyond [`MAX_OWNERS`] and [`MAX_OWNER_BYTES`] is not kept
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

    /// Number of names.
    pub(crate) fn count(&self) -> usize {
        self.ends.len()
    }

    /// Bytes of all names.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
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

    #[test]
    fn a_list_survives_the_wire() {
        let names = ["a", "mp1", "a", "ö"];
        let list: WireOwners = names.into_iter().collect();
        let bytes = list.encode_to_vec();
        assert_eq!(bytes, message(names.into_iter().map(str::to_owned)));
        assert_eq!(bytes.len(), list.encoded_len());
        let back = WireOwners::decode(&*bytes).unwrap();
        assert!(back.names().eq(names));
    }

    #[test]
    fn what_is_beyond_the_bounds_is_not_kept_while_it_is_read() {
        let many = message((0..500_000).map(|_| String::new()));
        let list = WireOwners::decode(&*many).unwrap();
        assert_eq!(list.count(), MAX_OWNERS + 1);
        assert!(list.ends.capacity() <= 4 * MAX_OWNERS);
        let long = message((0..MAX_OWNERS).map(|_| "x".repeat(200)));
        let list = WireOwners::decode(&*long).unwrap();
        assert!(list.bytes() > MAX_OWNER_BYTES);
        assert!(list.text.capacity() <= 4 * MAX_OWNER_BYTES);
    }
}
