//! What a struct is as bytes.

/// A value that is kept as bytes of a shared variable: numbers, `bool`, arrays, and structs of such fields with
/// `#[derive(Shared)]`.
///
/// The layout is the same on every machine and for every compiler: fields in the order of their declaration, little-endian, with nothing between
/// them. It does not depend on alignment, and reordering fields changes it; [`FIELDS`](Self::FIELDS) states it. Bytes that are all zero are a value,
/// that of a variable that nobody has written.
///
/// ```
/// use dsm_lib::Shared;
///
/// #[derive(Shared)]
/// struct Body {
///     alive: bool,
///     mass: f64,
///     position: [f64; 3],
/// }
/// assert_eq!(Body::BYTES, 1 + 8 + 3 * 8);
/// assert_eq!(Body::FIELDS[2].offset, 9);
/// ```
///
/// What points into the memory of one process cannot be shared:
///
/// ```compile_fail
/// #[derive(dsm_lib::Shared)]
/// struct Named {
///     name: String,
/// }
/// ```
///
/// nor a struct that is none of these types:
///
/// ```compile_fail,E0277
/// struct Plain(f64);
/// #[derive(dsm_lib::Shared)]
/// struct Holder {
///     plain: Plain, // add #[derive(Shared)] to it
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be shared",
    label = "not a shared type",
    note = "shared types are bool, integers of 8 to 64 bits, f32, f64, arrays of them, and structs with `#[derive(Shared)]`"
)]
pub trait Shared: Sized {
    /// Number of bytes of a value.
    const BYTES: usize;
    /// The fields of a struct, in their order; none of other types.
    const FIELDS: &'static [SharedField] = &[];
    /// Puts the value into `bytes`, which are [`BYTES`](Self::BYTES) long.
    fn store(&self, bytes: &mut [u8]);
    /// The value in `bytes`, which are [`BYTES`](Self::BYTES) long; none if they are not one.
    fn load(bytes: &[u8]) -> Option<Self>;
}

/// Where a field of a shared struct is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedField {
    /// Its name, or its number in a tuple struct.
    pub name: &'static str,
    /// Its first byte.
    pub offset: usize,
    /// Its number of bytes.
    pub bytes: usize,
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Shared for $number {
            const BYTES: usize = size_of::<Self>();
            fn store(&self, bytes: &mut [u8]) {
                bytes.copy_from_slice(&self.to_le_bytes());
            }
            fn load(bytes: &[u8]) -> Option<Self> {
                bytes.try_into().ok().map(Self::from_le_bytes)
            }
        }
    )*};
}
numbers!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);

impl Shared for bool {
    const BYTES: usize = 1;
    fn store(&self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&[u8::from(*self)]);
    }
    fn load(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }
}

impl<T: Shared, const N: usize> Shared for [T; N] {
    const BYTES: usize = N * T::BYTES;
    fn store(&self, bytes: &mut [u8]) {
        for (i, value) in self.iter().enumerate() {
            value.store(&mut bytes[i * T::BYTES..][..T::BYTES]);
        }
    }
    fn load(bytes: &[u8]) -> Option<Self> {
        let value = |i| T::load(&bytes[i * T::BYTES..][..T::BYTES]);
        let values: Vec<T> = (0..N).map(value).collect::<Option<_>>()?;
        values.try_into().ok()
    }
}
