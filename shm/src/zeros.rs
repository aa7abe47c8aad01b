//! Contents of zeros, as objects are that nobody has written to: they share the same memory, of which the system keeps nothing.

use std::sync::OnceLock;

use bytes::{Bytes, BytesMut};

/// Fewer zeros than the first, or more than the second, are in memory of their own.
const LEAST: usize = 16 << 10;
const MOST: usize = 64 << 20;

static ZEROS: OnceLock<Bytes> = OnceLock::new();

/// A content of `length` zeros. Where it has at least 16 KiB, [`are_zeros`] tells of it without reading it.
pub fn zeros(length: usize) -> Bytes {
    if !(LEAST..=MOST).contains(&length) {
        return BytesMut::zeroed(length).freeze();
    }
    ZEROS
        .get_or_init(|| Bytes::from(vec![0; MOST]))
        .slice(..length)
}

/// Whether `content` is (a part of) what [`zeros`] made. If not, it may still be all zeros.
pub fn are_zeros(content: &[u8]) -> bool {
    let all = ZEROS.get().map(|zeros| zeros.as_ptr_range());
    let its = content.as_ptr_range();
    all.is_some_and(|all| all.start <= its.start && its.end <= all.end) && !content.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_contents_of_zeros_are_known_by_their_place() {
        let large = zeros(LEAST);
        assert!(large.iter().all(|byte| *byte == 0));
        assert!(are_zeros(&large) && are_zeros(&large.slice(7..9)) && are_zeros(&zeros(MOST)));
        assert_eq!(large.len(), LEAST);
        for own in [
            zeros(LEAST - 1),
            zeros(0),
            zeros(MOST + 1),
            Bytes::from(vec![0; LEAST]),
        ] {
            assert!(own.iter().all(|byte| *byte == 0) && !are_zeros(&own));
        }
        assert!(!are_zeros(&large.slice(..0)));
        assert_eq!(zeros(MOST + 1).len(), MOST + 1);
        // Who wants to change them has to take memory of its own.
        assert!(large.try_into_mut().is_err());
    }
}
