//! What a read returns.

use std::ops::{Deref, Range};
use std::sync::Arc;

use bytes::Bytes;

use crate::element::Element;
use crate::values::Values;

/// The elements of an object, or of a part of it, as they were at one version: never a mixture of
/// two releases. A native slice to compute on, shared, not copied: cloning it is cheap, and it stays as it
/// is whatever happens to the object.
#[derive(Clone)]
pub struct View<T> {
    values: Values<T>,
    range: Range<usize>,
    columns: usize,
    version: u64,
}

impl<T: Element> View<T> {
    pub(crate) fn new(values: Vec<T>, columns: usize, version: u64) -> Self {
        let range = 0..values.len();
        Self::of(Values::Own(Arc::new(values)), range, columns, version)
    }

    /// No elements; takes no memory.
    pub(crate) fn empty() -> Self {
        Self::of(Values::Received(Bytes::new()), 0..0, 1, 0)
    }

    /// Elements `range` of `values`.
    pub(crate) fn of(values: Values<T>, range: Range<usize>, columns: usize, version: u64) -> Self {
        Self {
            values,
            range,
            columns: columns.max(1),
            version,
        }
    }

    /// How often the object had been released when it was read.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Row `i` of the object (of its part of the matrix); a range read is one row.
    ///
    /// # Panics
    /// As indexing a slice does, if there is no such row.
    pub fn row(&self, i: usize) -> &[T] {
        &self.as_slice()[i * self.columns..(i + 1) * self.columns]
    }

    /// The rows from first to last.
    pub fn rows(&self) -> std::slice::ChunksExact<'_, T> {
        self.as_slice().chunks_exact(self.columns)
    }

    /// The elements, row by row.
    pub fn as_slice(&self) -> &[T] {
        &self.values.as_slice()[self.range.clone()]
    }

    /// The elements, row by row, to keep and change. Copies them if others share them.
    pub fn into_vec(self) -> Vec<T> {
        match self.values {
            Values::Own(all) if self.range == (0..all.len()) => Arc::unwrap_or_clone(all),
            values => values.as_slice()[self.range].to_vec(),
        }
    }
}

impl<T: Element> PartialEq for View<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.as_slice(), self.columns, self.version)
            == (other.as_slice(), other.columns, other.version)
    }
}

impl<T: Element> std::fmt::Debug for View<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View")
            .field("values", &self.as_slice())
            .field("columns", &self.columns)
            .field("version", &self.version)
            .finish()
    }
}

impl<T: Element> Deref for View<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T: Element> AsRef<[T]> for View<T> {
    fn as_ref(&self) -> &[T] {
        self.as_slice()
    }
}
