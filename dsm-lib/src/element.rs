//! The element types of shared variables, and how their values become bytes and come back.
//!
//! Elements travel little-endian and are the native representation here, so a slice of them is
//! copied, not converted. The set of types is closed: it is the protocol's.

use dosmos_proto::ElementType;

// Elements are little-endian on the wire and are copied as they lie in memory.
const _: () = assert!(
    cfg!(target_endian = "little"),
    "dsm-lib needs a little-endian machine"
);

/// A type that elements of shared variables can have: `bool`, `u8` (bytes), `i32`, `i64`, `u32`,
/// `u64`, `f32`, `f64`.
pub trait Element:
    sealed::Sealed + Copy + Default + PartialEq + std::fmt::Debug + Send + Sync + 'static
{
    /// Its name in the protocol.
    const TYPE: ElementType;
}

/// An element type that `fetch_add` and `compare_exchange` work on.
pub trait Integer: Element + sealed::Bits {}

pub(crate) mod sealed {
    /// Values to bytes and back.
    pub trait Sealed: Sized {
        fn bytes_of(values: &[Self]) -> &[u8];
        /// The values in `bytes`, a whole number of them; none if one of them is no value of the type.
        fn from_bytes(bytes: &[u8]) -> Option<Vec<Self>>;
    }
    /// The bits of a value, zero-extended.
    pub trait Bits: Sized {
        fn to_bits(self) -> u64;
        fn from_bits(bits: u64) -> Self;
    }
}

macro_rules! elements {
    ($($rust:ty => $wire:ident),* $(,)?) => {$(
        impl Element for $rust {
            const TYPE: ElementType = ElementType::$wire;
        }
        impl sealed::Sealed for $rust {
            fn bytes_of(values: &[Self]) -> &[u8] {
                bytemuck::cast_slice(values)
            }
            fn from_bytes(bytes: &[u8]) -> Option<Vec<Self>> {
                if !bytes.len().is_multiple_of(size_of::<Self>()) {
                    return None;
                }
                let mut values = vec![Self::default(); bytes.len() / size_of::<Self>()];
                bytemuck::cast_slice_mut::<Self, u8>(&mut values).copy_from_slice(bytes);
                Some(values)
            }
        }
    )*};
}
elements!(u8 => U8, i32 => I32, i64 => I64, u32 => U32, u64 => U64, f32 => F32, f64 => F64);

impl Element for bool {
    const TYPE: ElementType = ElementType::Bool;
}
impl sealed::Sealed for bool {
    fn bytes_of(values: &[Self]) -> &[u8] {
        bytemuck::cast_slice(values)
    }
    fn from_bytes(bytes: &[u8]) -> Option<Vec<Self>> {
        // The only type with bit patterns that mean nothing.
        bytes
            .iter()
            .map(|b| match b {
                0 => Some(false),
                1 => Some(true),
                _ => None,
            })
            .collect()
    }
}

macro_rules! integers {
    ($($rust:ty as $unsigned:ty),* $(,)?) => {$(
        impl Integer for $rust {}
        impl sealed::Bits for $rust {
            fn to_bits(self) -> u64 {
                u64::from(self as $unsigned)
            }
            fn from_bits(bits: u64) -> Self {
                // The upper bits are zero: the value is as wide as its type.
                bits as $unsigned as Self
            }
        }
    )*};
}
integers!(i32 as u32, i64 as u64, u32 as u32, u64 as u64);

#[cfg(test)]
mod tests {
    use super::sealed::{Bits, Sealed};
    use super::*;

    fn there_and_back<T: Element>(values: &[T]) {
        let bytes = T::bytes_of(values).to_vec();
        assert_eq!(bytes.len(), values.len() * T::TYPE.bytes() as usize);
        assert_eq!(T::from_bytes(&bytes).unwrap(), values);
    }

    #[test]
    fn values_survive_the_wire() {
        there_and_back(&[true, false, true]);
        there_and_back(&[0u8, 255]);
        there_and_back(&[i32::MIN, -1, 7]);
        there_and_back(&[i64::MIN, -1, 7]);
        there_and_back(&[u32::MAX]);
        there_and_back(&[u64::MAX, 1]);
        there_and_back(&[-0.0f32, f32::INFINITY]);
        there_and_back(&[1.5f64, f64::MIN_POSITIVE]);
        there_and_back::<f64>(&[]);
    }

    #[test]
    fn bytes_that_are_no_value_are_refused() {
        assert_eq!(bool::from_bytes(&[0, 2]), None);
        assert_eq!(f64::from_bytes(&[0; 9]), None);
    }

    #[test]
    fn unaligned_bytes_are_fine() {
        let bytes = [0u8; 17];
        assert_eq!(f64::from_bytes(&bytes[1..]).unwrap(), [0.0, 0.0]);
    }

    #[test]
    fn negative_numbers_are_zero_extended() {
        assert_eq!((-1i32).to_bits(), 0xffff_ffff);
        assert_eq!(i32::from_bits(0xffff_ffff), -1);
        assert_eq!(i64::from_bits((-5i64).to_bits()), -5);
    }
}
