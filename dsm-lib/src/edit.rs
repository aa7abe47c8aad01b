//! Changing an object in place: a native slice to write to, and what of it changed.

use std::ops::{Deref, DerefMut};

use dosmos_proto::Runs;

use crate::element::Element;
use crate::{Call, Object, Result, drive};

/// Most ranges of elements in one write: a message with the lengths of more could be too long.
const MOST_RUNS: usize = 1 << 20;

/// The elements of an object, to be changed, and as they were.
#[derive(Clone, Debug)]
pub(crate) struct Draft<T> {
    values: Vec<T>,
    before: Vec<T>,
}

impl<T: Element> Draft<T> {
    pub(crate) fn of(values: Vec<T>) -> Self {
        let before = values.clone();
        Self { values, before }
    }

    pub(crate) fn values(&self) -> &[T] {
        &self.values
    }

    pub(crate) fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// The elements that are not, bit for bit, what they were.
    pub(crate) fn changed(&self) -> Option<Runs> {
        let width = size_of::<T>();
        let (now, before) = (T::bytes_of(&self.values), T::bytes_of(&self.before));
        let of = |at: usize| at * width..(at + 1) * width;
        // An object has less than 2^32 elements.
        Runs::where_differs(self.values.len() as u32, |at| now[of(at)] != before[of(at)])
    }

    /// Writes that make the object what the draft is, none if nothing changed. Usually one.
    pub(crate) fn writes(&self, object: &Object<T>, epoch: Option<u64>) -> Vec<Call<()>> {
        let Some(runs) = self.changed() else {
            return Vec::new();
        };
        let parts = runs.parts(MOST_RUNS);
        parts
            .map(|part| object.write_runs(epoch, &part, &self.values))
            .collect()
    }

    /// What is there now has been written.
    pub(crate) fn written(&mut self) {
        self.before.copy_from_slice(&self.values);
    }
}

/// An object that is changed in place, outside a section: a `&mut [T]` that is written back by
/// [`finish`](Self::finish), or when it is dropped. What was changed, and only that, is written, as one
/// write outside a section: others see it at this process's next release or barrier at the latest, and
/// what others write to other elements meanwhile stays.
///
/// ```no_run
/// # fn f(band: &dsm_lib::Object<f64>) -> dsm_lib::Result<()> {
/// let mut edit = band.edit()?;
/// for value in edit.iter_mut() {
///     *value *= 2.0;
/// }
/// edit.finish()
/// # }
/// ```
///
/// To change an object that others change too, edit it in a section: [`Section::values_mut`](crate::Section::values_mut).
#[must_use = "an edit that is dropped is written at once"]
#[derive(Debug)]
pub struct Edit<T: Element> {
    object: Object<T>,
    draft: Draft<T>,
    finished: bool,
}

impl<T: Element> Edit<T> {
    pub(crate) fn new(object: Object<T>, values: Vec<T>) -> Self {
        Self {
            object,
            draft: Draft::of(values),
            finished: false,
        }
    }

    /// Number of elements in each row.
    pub fn columns(&self) -> usize {
        self.object.region().columns as usize
    }

    /// Row `i` of the object.
    ///
    /// # Panics
    /// As indexing a slice does, if there is no such row.
    pub fn row_mut(&mut self, i: usize) -> &mut [T] {
        let columns = self.columns();
        &mut self.draft.values_mut()[i * columns..(i + 1) * columns]
    }

    /// Writes what was changed.
    ///
    /// # Errors
    /// As [`Object::write`].
    pub fn finish(mut self) -> Result<()> {
        self.finished = true;
        self.write()
    }

    fn write(&self) -> Result<()> {
        let calls = drive::about_to_block(|| self.draft.writes(&self.object, None));
        calls.into_iter().try_for_each(Call::wait)
    }
}

impl<T: Element> Deref for Edit<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        self.draft.values()
    }
}

impl<T: Element> DerefMut for Edit<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.draft.values_mut()
    }
}

impl<T: Element> Drop for Edit<T> {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        if drive::is_driving() {
            // A thread that carries a session cannot wait for one; the write is on its way.
            drop(self.draft.writes(&self.object, None));
        } else if let Err(error) = self.write() {
            tracing::warn!(%error, "an edit that was dropped could not be written");
        }
    }
}
