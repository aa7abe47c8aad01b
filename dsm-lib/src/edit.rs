//! Changing an object in place: a native slice to write to.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::cache::Taken;
use crate::draft::Draft;
use crate::element::Element;
use crate::open_edits::Open;
use crate::{Call, Object, Result, driver};

/// An object that is changed in place, outside a section: a `&mut [T]`. Others see what was changed at this
/// process's next release or barrier at the latest, and what others write to other elements meanwhile stays.
/// The edit ends with [`finish`](Self::finish), or when it is dropped.
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
/// While it is open, others that need the object may have to wait, so its thread may not: blocking operations
/// that need a message fail with [`Error::EditOpen`](crate::Error::EditOpen). Read what the edit needs before it.
///
/// To change an object that others change too, edit it in a section: [`Section::values_mut`](crate::Section::values_mut).
#[must_use = "an edit that is dropped is over at once"]
#[derive(Debug)]
pub struct Edit<T: Element> {
    object: Object<T>,
    values: Values<T>,
    open: Option<Open>,
}

#[derive(Debug)]
enum Values<T> {
    /// Of an object that this process has to itself.
    Own(Taken<T>),
    /// Of another: what is changed is written at the end.
    Draft(Draft<T>),
    Finished,
}

impl<T: Element> Object<T> {
    /// The elements as a slice to change in place, outside a section. If this process has the object to itself
    /// (a variable with [`Cache::Ap`](crate::Cache::Ap) whose object its own memory process owns), this takes no message and no
    /// copy; else it reads the object, and what is changed is written when the [`Edit`] is finished or dropped.
    /// One read, and one write if anything may have changed.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn edit(&self) -> Result<Edit<T>> {
        match self.here.take_or_ask(&self.requests)? {
            (Some(taken), _) => Ok(Edit::in_place(self.clone(), taken)),
            (None, Some(view)) => Ok(Edit::new(self.clone(), view.into_vec())),
            (None, None) => Ok(Edit::new(self.clone(), self.read()?.into_vec())),
        }
    }
}

impl<T: Element> Edit<T> {
    pub(crate) fn new(object: Object<T>, values: Vec<T>) -> Self {
        Self::of(object, Values::Draft(Draft::of(Arc::new(values))))
    }

    /// Of an object that this process has to itself.
    pub(crate) fn in_place(object: Object<T>, taken: Taken<T>) -> Self {
        Self::of(object, Values::Own(taken))
    }

    fn of(object: Object<T>, values: Values<T>) -> Self {
        Self {
            object,
            values,
            open: Some(Open::new()),
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
        &mut self[i * columns..(i + 1) * columns]
    }

    /// Ends the edit: what was changed is written.
    ///
    /// # Errors
    /// As [`Object::write`]; [`Error::TakenBack`](crate::Error::TakenBack) if this process was not heard for too long.
    pub fn finish(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        self.open = None;
        let Object { here, requests, .. } = &self.object;
        match std::mem::replace(&mut self.values, Values::Finished) {
            Values::Own(taken) => here.put(taken, requests),
            Values::Draft(draft) if driver::is_driving() => {
                // A thread that carries a session cannot wait for one; the write is on its way.
                drop(draft.writes(here, requests));
                Ok(())
            }
            Values::Draft(draft) => {
                let calls = driver::about_to_block(|| draft.writes(here, requests));
                calls.into_iter().try_for_each(Call::wait)
            }
            Values::Finished => Ok(()),
        }
    }
}

impl<T: Element> Deref for Edit<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match &self.values {
            Values::Own(taken) => &taken.values,
            Values::Draft(draft) => draft.values(),
            Values::Finished => &[],
        }
    }
}

impl<T: Element> DerefMut for Edit<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &mut self.values {
            Values::Own(taken) => &mut taken.values,
            Values::Draft(draft) => draft.values_mut(),
            Values::Finished => &mut [],
        }
    }
}

impl<T: Element> Drop for Edit<T> {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            tracing::warn!(%error, "an edit that was dropped could not be finished");
        }
    }
}
