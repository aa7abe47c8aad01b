//! What a read returns.

use std::ops::Deref;

/// The elements of an object, or of a part of it, as they were at one version: never a mixture of
/// two releases. A native slice to compute on.
#[derive(Debug, Clone, PartialEq)]
pub struct View<T> {
    values: Vec<T>,
    columns: usize,
    version: u64,
}

impl<T> View<T> {
    pub(crate) fn new(values: Vec<T>, columns: usize, version: u64) -> Self {
        Self {
            values,
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
        &self.values[i * self.columns..(i + 1) * self.columns]
    }

    /// The rows from first to last.
    pub fn rows(&self) -> std::slice::ChunksExact<'_, T> {
        self.values.chunks_exact(self.columns)
    }

    /// The elements, row by row.
    pub fn as_slice(&self) -> &[T] {
        &self.values
    }

    /// The elements, row by row, to keep and change.
    pub fn into_vec(self) -> Vec<T> {
        self.values
    }
}

impl<T> Deref for View<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        &self.values
    }
}

impl<T> AsRef<[T]> for View<T> {
    fn as_ref(&self) -> &[T] {
        &self.values
    }
}
