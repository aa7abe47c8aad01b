//! Header fields of HTTP/2 (HPACK, RFC 7541). Written as plain literals, which every reader takes and none keeps; there are few, once a
//! connection. Read in every form but references to earlier ones, which this end says it does not keep.

use loona_hpack::Decoder;
use tonic::codegen::http::{HeaderMap, HeaderName, HeaderValue};

/// Fields of a request or response: those that HTTP/2 itself has (`:path`, `:status`), and the others.
#[derive(Debug, Default)]
pub(super) struct Fields {
    own: Vec<(String, String)>,
    pub(super) headers: HeaderMap,
}

impl Fields {
    /// Those in the payload of a frame; none if it is not well formed.
    pub(super) fn read(payload: &[u8]) -> Option<Self> {
        let mut decoder = Decoder::new();
        decoder.set_max_allowed_table_size(0);
        decoder.set_max_table_size(0);
        let mut fields = Self::default();
        for (name, value) in decoder.decode(payload).ok()? {
            match name.strip_prefix(b":") {
                Some(own) => {
                    let own = String::from_utf8(own.to_vec()).ok()?;
                    fields.own.push((own, String::from_utf8(value).ok()?));
                }
                None => {
                    let name = HeaderName::from_bytes(&name).ok()?;
                    fields
                        .headers
                        .append(name, HeaderValue::from_bytes(&value).ok()?);
                }
            }
        }
        Some(fields)
    }

    /// A field of HTTP/2 itself, without its colon.
    pub(super) fn own(&self, name: &str) -> Option<&str> {
        let found = self.own.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Writes one field; nobody on the way may keep it.
pub(super) fn write(name: &str, value: &[u8], out: &mut Vec<u8>) {
    out.push(0x10);
    text(name.as_bytes(), out);
    text(value, out);
}

fn text(bytes: &[u8], out: &mut Vec<u8>) {
    // A length of seven bits, and what is beyond in groups of seven.
    match bytes.len() {
        short @ 0..127 => out.push(short as u8),
        long => {
            out.push(127);
            let mut rest = long - 127;
            while rest >= 128 {
                out.push((rest % 128) as u8 | 128);
                rest /= 128;
            }
            out.push(rest as u8);
        }
    }
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_read_back_whatever_their_length() {
        for length in [0, 1, 126, 127, 128, 254, 255, 300, 16_000] {
            let value = "x".repeat(length);
            let mut out = Vec::new();
            write(":path", value.as_bytes(), &mut out);
            write("grpc-message", value.as_bytes(), &mut out);
            let fields = Fields::read(&out).unwrap();
            assert_eq!(fields.own("path"), Some(value.as_str()));
            assert_eq!(fields.headers.get("grpc-message").unwrap(), value.as_str());
        }
    }

    #[test]
    fn other_writers_are_read_too() {
        // RFC 7541, C.4.1: indexed fields, and one in Huffman's code; but for the last, which is to be kept (0x41 there).
        let theirs = [
            0x82, 0x86, 0x84, 0x01, 0x8c, 0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab,
            0x90, 0xf4, 0xff,
        ];
        let fields = Fields::read(&theirs).unwrap();
        assert_eq!(fields.own("method"), Some("GET"));
        assert_eq!(fields.own("authority"), Some("www.example.com"));
    }

    #[test]
    fn what_is_not_well_formed_is_none() {
        for bad in [&[0x10, 5, b'a'][..], &[0xff], &[0x10, 1, b' ', 1, b'x']] {
            assert!(Fields::read(bad).is_none(), "{bad:?}");
        }
    }
}
