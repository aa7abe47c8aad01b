//! Columns of numbers as they travel: each number a varint, one after the other, which are the bytes of a packed repeated field.

use dosmos_proto::Malformed;

/// A byte with this bit is not the last of its number.
const MORE: u8 = 0x80;

/// A difference as a number that is small if the difference is (`sint64`).
pub(super) fn zigzag(difference: i64) -> u64 {
    (difference << 1 ^ difference >> 63).cast_unsigned()
}

/// Undoes [`zigzag`].
pub(super) fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// Adds a number to a column.
#[inline]
pub(super) fn put(column: &mut Vec<u8>, mut number: u64) {
    while number >= u64::from(MORE) {
        column.push(number as u8 | MORE);
        number >>= 7;
    }
    column.push(number as u8);
}

/// How many numbers a column holds.
///
/// # Errors
/// If it ends within one.
pub(super) fn numbers(what: &'static str, column: &[u8]) -> Result<usize, Malformed> {
    if column.last().is_some_and(|b| *b >= MORE) {
        return Err(Malformed::new(what, "ends within a number"));
    }
    Ok(column.iter().filter(|b| **b < MORE).count())
}

/// A column that is read from its beginning.
pub(super) struct Column<'a> {
    what: &'static str,
    rest: &'a [u8],
    /// A number did not fit into its type.
    too_large: bool,
}

impl<'a> Column<'a> {
    /// One that holds `length` numbers.
    ///
    /// # Errors
    /// If it does not.
    pub(super) fn new(
        what: &'static str,
        rest: &'a [u8],
        length: usize,
    ) -> Result<Self, Malformed> {
        match numbers(what, rest)? {
            n if n == length => Ok(Self {
                what,
                rest,
                too_large: false,
            }),
            n => {
                let why = format!("{n} entries, the kind column has {length}");
                Err(Malformed::new(what, why))
            }
        }
    }

    /// The next number; 0 if there is none, or if it does not fit.
    #[inline]
    pub(super) fn wide(&mut self) -> u64 {
        match self.rest {
            [a, rest @ ..] if *a < MORE => {
                self.rest = rest;
                u64::from(*a)
            }
            [a, b, rest @ ..] if *b < MORE => {
                self.rest = rest;
                u64::from(*a & !MORE) | u64::from(*b) << 7
            }
            _ => self.long(),
        }
    }

    fn long(&mut self) -> u64 {
        let mut number = 0;
        let (mut shift, mut taken) = (0, 0);
        for byte in self.rest {
            let bits = u64::from(byte & !MORE);
            self.too_large |= shift > 63 || bits << shift >> shift != bits;
            if shift <= 63 {
                number |= bits << shift;
            }
            (shift, taken) = (shift + 7, taken + 1);
            if *byte < MORE {
                break;
            }
        }
        self.rest = &self.rest[taken..];
        number
    }

    /// The next number, of 32 bits.
    #[inline]
    pub(super) fn narrow(&mut self) -> u32 {
        let number = self.wide();
        self.too_large |= number > u64::from(u32::MAX);
        number as u32
    }

    /// Whether all numbers that were read fitted into their types.
    ///
    /// # Errors
    /// If not.
    pub(super) fn check(&self) -> Result<(), Malformed> {
        match self.too_large {
            true => Err(Malformed::new(self.what, "a number is too large")),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use prost::encoding::{WireType, uint64};

    proptest! {
        #![proptest_config(dosmos_testseeds::config(256))]

        /// Other readers and writers of the protocol take a column for a packed field.
        #[test]
        fn columns_are_packed_fields(list in prop::collection::vec(any::<u64>().prop_flat_map(|n| 0..=n), 1..50)) {
            let mut column = Vec::new();
            list.iter().for_each(|n| put(&mut column, *n));
            let mut message = Vec::new();
            uint64::encode_packed(1, &list, &mut message);
            prop_assert!(message.ends_with(&column));
            let mut read = Column::new("it", &column, list.len()).unwrap();
            let mut field = Vec::new();
            let (mut head, mut rest) = (Vec::new(), &message[..]);
            prost::encoding::encode_key(1, WireType::LengthDelimited, &mut head);
            rest = &rest[head.len()..];
            uint64::merge_repeated(WireType::LengthDelimited, &mut field, &mut rest, Default::default()).unwrap();
            let numbers: Vec<u64> = list.iter().map(|_| read.wide()).collect();
            prop_assert_eq!(&numbers, &list);
            prop_assert_eq!(&field, &list);
            prop_assert!(read.check().is_ok() && read.rest.is_empty());
        }

        #[test]
        fn differences_of_any_sign_read_back(difference in any::<i64>()) {
            prop_assert_eq!(unzigzag(zigzag(difference)), difference);
            prop_assert_eq!(unzigzag(zigzag(difference >> 48)), difference >> 48);
        }
    }

    #[test]
    fn what_is_no_number_of_its_type_is_refused_by_name() {
        let e = Column::new("it", &[1, 0x80], 1).err().unwrap();
        assert!(e.to_string().contains("it: ends within a number"), "{e}");
        let e = Column::new("it", &[1, 2], 1).err().unwrap();
        assert!(e.to_string().contains("2 entries"), "{e}");
        let largest = [[0xff; 9].as_slice(), &[1]].concat();
        let mut column = Column::new("it", &largest, 1).unwrap();
        assert_eq!(column.wide(), u64::MAX);
        assert!(column.check().is_ok());
        for too_large in [
            [[0xff; 9].as_slice(), &[2]].concat(),
            [[0x80; 10].as_slice(), &[0]].concat(),
        ] {
            let mut column = Column::new("it", &too_large, 1).unwrap();
            column.wide();
            let e = column.check().unwrap_err();
            assert!(e.to_string().contains("it: a number is too large"), "{e}");
            assert!(column.rest.is_empty());
        }
        let mut column = Column::new("it", &[0x80, 0x80, 0x80, 0x80, 0x10, 5], 2).unwrap();
        column.narrow();
        assert!(column.check().is_err());
        assert_eq!(column.narrow(), 5);
    }
}
