//! What is done to elements, as an owner does it, and their form in messages.

use bytes::BytesMut;
use dosmos_proto::{Malformed, Runs, wire};

use crate::element::{Element, Number};
/// What a compare-exchange found, and whether it stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange<T> {
    /// The value before.
    pub previous: T,
    /// Whether it was the expected one, so that the new one was stored.
    pub stored: bool,
}

/// Stores `new` in the place of `expected`, as an owner does.
pub(crate) fn exchange<T: Element>(value: &mut T, expected: T, new: T) -> Exchange<T> {
    let previous = *value;
    let stored = previous.to_bits() == expected.to_bits();
    if stored {
        *value = new;
    }
    Exchange { previous, stored }
}

/// Adds as an owner does; the value before.
pub(crate) fn add<T: Number>(value: &mut T, delta: T) -> T {
    let previous = *value;
    *value = previous.plus(delta);
    previous
}

/// A write of the elements of `runs`, which has them in their places in `values`.
pub(crate) fn write_of<T: Element>(runs: &Runs, values: &[T]) -> wire::Write {
    let mut data = BytesMut::with_capacity(runs.elements() as usize * size_of::<T>());
    for (first, end) in runs.iter() {
        data.extend_from_slice(T::bytes_of(&values[first as usize..end as usize]));
    }
    wire::Write {
        first: runs.hull().0,
        data: data.freeze(),
        lengths: if runs.is_one() {
            Vec::new()
        } else {
            runs.to_wire()
        },
        ..wire::Write::default()
    }
}

/// The values in a reply, if they are as many as were asked for.
pub(crate) fn values_of<T: Element>(data: &[u8], length: usize) -> Result<Vec<T>, Malformed> {
    let values = T::from_bytes(data).filter(|v| v.len() == length);
    values.ok_or_else(|| {
        let bytes = data.len();
        Malformed::new(
            "value",
            format!("{bytes} bytes are not {length} elements of {}", T::TYPE),
        )
    })
}
