//! What is done to elements, as an owner does it, and their form in messages.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use dosmos_proto::large::LARGE;
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

/// Elements to be read.
#[derive(Clone)]
pub(crate) enum Values<T> {
    Own(Arc<Vec<T>>),
    /// Where they arrived: bytes that [`slice_of`](crate::element::sealed::Sealed::slice_of) takes.
    Received(Bytes),
}

impl<T: Element> Values<T> {
    /// The values in a reply, if they are as many as were asked for.
    pub(crate) fn received(data: Bytes, length: usize) -> Result<Self, Malformed> {
        // A few bytes would keep the whole message alive.
        let there = (data.len() >= LARGE).then(|| T::slice_of(&data)).flatten();
        match there.is_some_and(|values| values.len() == length) {
            true => Ok(Self::Received(data)),
            false => Ok(Self::Own(Arc::new(values_of(&data, length)?))),
        }
    }

    #[inline]
    pub(crate) fn as_slice(&self) -> &[T] {
        match self {
            Self::Own(values) => values,
            Self::Received(bytes) => T::slice_of(bytes).unwrap_or_default(),
        }
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
