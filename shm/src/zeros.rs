//! Contents of zeros, as objects are that nobody has written to: they share the same memory, of which the system keeps nothing.

use std::sync::OnceLock;

use bytes::{Bytes, BytesMut};

use crate::LARGE;

/// More zeros than this are in memory of their own.
const MOST: usize = 64 << 20;

static ZEROS: OnceLock<Bytes> = OnceLock::new();

/// A content of so many zeros. Where it is [large](LARGE), [`are_zeros`] tells of it without reading it.
pub fn zeros(length: usize) -> Bytes {
    if !(LARGE..=MOST).contains(&length) {
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
        let large = zeros(LARGE);
        assert!(large.iter().all(|byte| *byte == 0));
        assert!(are_zeros(&large) && are_zeros(&large.slice(7..9)) && are_zeros(&zeros(MOST)));
        assert_eq!(large.len(), LARGE);
        for own in [
            zeros(LARGE - 1),
            zeros(0),
            zeros(MOST + 1),
            Bytes::from(vec![0; LARGE]),
        ] {
            assert!(own.iter().all(|byte| *byte == 0) && !are_zeros(&own));
        }
        assert!(!are_zeros(&large.slice(..0)));
        assert_eq!(zeros(MOST + 1).len(), MOST + 1);
        // Who wants to change them has to take memory of its own.
        assert!(large.try_into_mut().is_err());
    }
}
