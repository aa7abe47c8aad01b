//! The element types of shared variables, and how their values become bytes and come back.
//!
//! Elements travel little-endian and are the native representation here, so a slice of them is
//! copied, not converted. The set of types is closed: it is the protocol's.

use dosmos_proto::ElementType;
use dosmos_proto::large::{are_zeros, room_for, zeroed};

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

/// An element type that one can add to: all but `bool`.
pub trait Number: Element + sealed::Sum {}

pub(crate) mod sealed {
    /// Values to bytes and back.
    pub trait Sealed: Sized {
        fn bytes_of(values: &[Self]) -> &[u8];
        /// The values in `bytes`, a whole number of them; none if one of them is not a value of the type.
        fn from_bytes(bytes: &[u8]) -> Option<Vec<Self>>;
        /// The values in `bytes` where they are; none if that is impossible here.
        fn slice_of(bytes: &[u8]) -> Option<&[Self]>;
        /// The bits of the value, zero-extended.
        fn to_bits(self) -> u64;
        /// The value with these bits; those beyond the type's width are ignored.
        fn from_bits(bits: u64) -> Self;
    }

    /// Addition as an owner does it.
    pub trait Sum {
        /// The sum; integers wrap around.
        fn plus(self, other: Self) -> Self;
    }
}

macro_rules! numbers {
    ($($rust:ty => $wire:ident, $to:expr, $from:expr, $sum:expr;)*) => {$(
        impl Element for $rust {
            const TYPE: ElementType = ElementType::$wire;
        }
        impl Number for $rust {}
        impl sealed::Sum for $rust {
            fn plus(self, other: Self) -> Self {
                let sum: fn(Self, Self) -> Self = $sum;
                sum(self, other)
            }
        }
        impl sealed::Sealed for $rust {
            fn bytes_of(values: &[Self]) -> &[u8] {
                bytemuck::cast_slice(values)
            }
            fn from_bytes(bytes: &[u8]) -> Option<Vec<Self>> {
                if !bytes.len().is_multiple_of(size_of::<Self>()) {
                    return None;
                }
                if are_zeros(bytes) {
                    return Some(zeroed(bytes.len() / size_of::<Self>()));
                }
                let mut values = room_for(bytes.len() / size_of::<Self>());
                match bytemuck::try_cast_slice(bytes) {
                    Ok(aligned) => values.extend_from_slice(aligned),
                    Err(_) => {
                        values.resize(bytes.len() / size_of::<Self>(), Self::default());
                        bytemuck::cast_slice_mut::<Self, u8>(&mut values).copy_from_slice(bytes);
                    }
                }
                Some(values)
            }
            fn slice_of(bytes: &[u8]) -> Option<&[Self]> {
                bytemuck::try_cast_slice(bytes).ok()
            }
            fn to_bits(self) -> u64 {
                let to: fn(Self) -> u64 = $to;
                to(self)
            }
            fn from_bits(bits: u64) -> Self {
                let from: fn(u64) -> Self = $from;
                from(bits)
            }
        }
    )*};
}
numbers! {
    u8 => U8, u64::from, |b| b as u8, u8::wrapping_add;
    i32 => I32, |v| u64::from(v as u32), |b| b as i32, i32::wrapping_add;
    i64 => I64, |v| v as u64, |b| b as i64, i64::wrapping_add;
    u32 => U32, u64::from, |b| b as u32, u32::wrapping_add;
    u64 => U64, |v| v, |b| b, u64::wrapping_add;
    f32 => F32, |v| u64::from(v.to_bits()), |b| f32::from_bits(b as u32), |a, b| a + b;
    f64 => F64, f64::to_bits, f64::from_bits, |a, b| a + b;
}

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
    fn slice_of(_: &[u8]) -> Option<&[Self]> {
        // They would have to be looked at each time.
        None
    }
    fn to_bits(self) -> u64 {
        self.into()
    }
    fn from_bits(bits: u64) -> Self {
        bits & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::sealed::Sealed;
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
    fn large_contents_of_zeros_are_zeros() {
        let content = dosmos_proto::large::zeros(16 << 10);
        assert_eq!(f64::from_bytes(&content).unwrap(), vec![0.0; 2 << 10]);
        assert_eq!(u8::from_bytes(&content).unwrap(), vec![0; 16 << 10]);
        assert_eq!(f64::from_bytes(&content[1..]), None);
    }

    #[test]
    fn negative_numbers_are_zero_extended() {
        assert_eq!(Sealed::to_bits(-1i32), 0xffff_ffff);
        assert_eq!(<i32 as Sealed>::from_bits(0xffff_ffff), -1);
        assert_eq!(<i64 as Sealed>::from_bits(Sealed::to_bits(-5i64)), -5);
        assert_eq!(<f32 as Sealed>::from_bits(Sealed::to_bits(-0.5f32)), -0.5);
    }
}
