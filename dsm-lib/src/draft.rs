//! The elements of an object as they are to become, and what of them changed.

use bytes::Bytes;
use dosmos_proto::{Runs, wire};

use crate::Call;
use crate::element::Element;
use crate::object::{Here, Requests};
use crate::values::write_of;

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
        Some(move |all: &mut [T]| self.copy(&runs, all))
    }

    fn copy(&self, runs: &Runs, to: &mut [T]) {
        for (first, end) in runs.iter() {
            let range = first as usize..end as usize;
            to[range.clone()].copy_from_slice(&self.values[range]);
        }
    }

    /// Writes that make the object what the draft is, none if nothing changed. Usually one.
    pub(crate) fn writes(&self, here: &Here<T>, requests: &Requests<T>) -> Vec<Call<()>> {
        let Some(runs) = self.changed() else {
            return Vec::new();
        };
        let write = |part: Runs| {
            let done = here.change(part.elements() as usize, |all| self.copy(&part, all));
            Call::done_or(done, || requests.write_runs(&part, &self.values))
        };
        runs.parts(MOST_RUNS).map(write).collect()
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
