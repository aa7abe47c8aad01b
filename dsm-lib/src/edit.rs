//! Changing an object in place: a native slice to write to, and what of it changed.

use std::ops::{Deref, DerefMut};

use bytes::Bytes;
use dosmos_proto::{Runs, wire};

use crate::cache::Taken;
use crate::element::Element;
use crate::values::write_of;
use crate::{Call, Object, Result, driver};

/// Most ranges of elements in one write: a message with the lengths of more could be too long.
const MOST_RUNS: usize = 1 << 20;

/// The elements of an object, to be changed, and as they were before that, once they may have been changed.
#[derive(Clone, Debug)]
pub(crate) struct Draft<T> {
    values: Vec<T>,
    before: Option<Vec<T>>,
}

impl<T: Element> Draft<T> {
    pub(crate) fn of(values: Vec<T>) -> Self {
        Self {
            values,
            before: None,
        }
    }

    pub(crate) fn values(&self) -> &[T] {
        &self.values
    }

    pub(crate) fn values_mut(&mut self) -> &mut [T] {
        self.before.get_or_insert_with(|| self.values.clone());
        &mut self.values
    }

    /// The elements that are not, bit for bit, what they were.
    fn changed(&self) -> Option<Runs> {
        let width = size_of::<T>();
        let before = T::bytes_of(self.before.as_ref()?);
        let now = T::bytes_of(&self.values);
        let of = |at: usize| at * width..(at + 1) * width;
        // An object has less than 2^32 elements.
        Runs::where_differs(self.values.len() as u32, |at| now[of(at)] != before[of(at)])
    }

    /// What changed, to be done to the object itself; none if nothing did.
    pub(crate) fn change(&self) -> Option<impl FnOnce(&mut [T])> {
        let runs = self.changed()?;
        let values = &self.values;
        Some(move |all: &mut [T]| {
            for (first, end) in runs.iter() {
                let range = first as usize..end as usize;
                all[range.clone()].copy_from_slice(&values[range]);
            }
        })
    }

    /// Writes that make the object what the draft is, none if nothing changed. Usually one.
    pub(crate) fn writes(&self, object: &Object<T>) -> Vec<Call<()>> {
        let Some(runs) = self.changed() else {
            return Vec::new();
        };
        let parts = runs.parts(MOST_RUNS);
        parts
            .map(|part| object.write_runs(None, &part, &self.values))
            .collect()
    }

    /// The write that makes the object what the draft is, if nobody else writes to it; none if nothing changed.
    pub(crate) fn write(&self) -> Option<wire::Write> {
        let runs = self.changed()?;
        let (first, end) = runs.hull();
        let hull = || Runs::one(first, end);
        let runs = if runs.count() > MOST_RUNS {
            hull()?
        } else {
            runs
        };
        Some(write_of(&runs, &self.values))
    }

    /// A write of the first element as it is.
    pub(crate) fn first(&self) -> wire::Write {
        wire::Write {
            data: Bytes::copy_from_slice(T::bytes_of(&self.values[..1])),
            ..wire::Write::default()
        }
    }

    /// What is there now has been written.
    pub(crate) fn written(&mut self) {
        self.before = None;
    }
}

/// Edits that this thread has open.
mod open {
    use std::cell::Cell;
    use std::marker::PhantomData;

    thread_local! {
        static OPEN: Cell<u32> = const { Cell::new(0) };
    }

    /// An open edit. It stays on its thread.
    #[derive(Debug)]
    pub(super) struct Open(PhantomData<*const ()>);

    impl Open {
        pub(super) fn new() -> Self {
            OPEN.set(OPEN.get() + 1);
            Self(PhantomData)
        }
    }

    impl Drop for Open {
        fn drop(&mut self) {
            OPEN.set(OPEN.get().saturating_sub(1));
        }
    }

    /// Whether this thread edits an object.
    pub(crate) fn is_open() -> bool {
        OPEN.get() > 0
    }
}
pub(crate) use open::is_open;

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
    open: Option<open::Open>,
}

#[derive(Debug)]
enum Values<T> {
    /// Of an object that this process has to itself.
    Own(Taken<T>),
    /// Of another: what is changed is written at the end.
    Draft(Draft<T>),
    Finished,
}

impl<T: Element> Edit<T> {
    pub(crate) fn new(object: Object<T>, values: Vec<T>) -> Self {
        Self::of(object, Values::Draft(Draft::of(values)))
    }

    /// Of an object that this process has to itself.
    pub(crate) fn in_place(object: Object<T>, taken: Taken<T>) -> Self {
        Self::of(object, Values::Own(taken))
    }

    fn of(object: Object<T>, values: Values<T>) -> Self {
        Self {
            object,
            values,
            open: Some(open::Open::new()),
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
        match std::mem::replace(&mut self.values, Values::Finished) {
            Values::Own(taken) => self.object.put(taken),
            Values::Draft(draft) if driver::is_driving() => {
                // A thread that carries a session cannot wait for one; the write is on its way.
                drop(draft.writes(&self.object));
                Ok(())
            }
            Values::Draft(draft) => {
                let calls = driver::about_to_block(|| draft.writes(&self.object));
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
