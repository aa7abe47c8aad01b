//! The elements of an object as they are to become, and what of them changed.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use dosmos_proto::{Runs, wire};

use crate::Call;
use crate::cache::Elements;
use crate::element::Element;
use crate::object::{Here, Requests};
use crate::values::write_of;

/// Most ranges of elements in one write: a message with the lengths of more could be too long.
const MOST_RUNS: usize = 1 << 20;

/// The elements of an object as they were, and as they are to become once they may have been changed.
#[derive(Clone, Debug)]
pub(crate) struct Draft<T> {
    before: Arc<Vec<T>>,
    /// A copy made for the first change.
    now: Option<Arc<Vec<T>>>,
    /// From the first to the last element that may have been changed.
    touched: Range<usize>,
}

impl<T: Element> Draft<T> {
    pub(crate) fn of(values: Arc<Vec<T>>) -> Self {
        Self {
            before: values,
            now: None,
            touched: 0..0,
        }
    }

    pub(crate) fn values(&self) -> &[T] {
        self.now.as_ref().unwrap_or(&self.before)
    }

    /// Elements `range`, to be changed.
    pub(crate) fn range_mut(&mut self, range: Range<usize>) -> Option<&mut [T]> {
        self.before.get(range.clone())?;
        self.touched = match self.touched.is_empty() {
            true => range.clone(),
            false => self.touched.start.min(range.start)..self.touched.end.max(range.end),
        };
        let now = self
            .now
            .get_or_insert_with(|| Arc::new(self.before.to_vec()));
        Arc::make_mut(now).get_mut(range)
    }

    /// All elements, to be changed.
    pub(crate) fn values_mut(&mut self) -> &mut [T] {
        self.range_mut(0..self.before.len()).unwrap_or_default()
    }

    /// The smallest range that holds all elements that were given out to be changed.
    pub(crate) fn touched(&self) -> Elements {
        // An object has less than 2^32 elements.
        (self.touched.start as u32, self.touched.end as u32)
    }

    /// The elements that are not, bit for bit, what they were.
    fn changed(&self) -> Option<Runs> {
        let width = size_of::<T>();
        let before = T::bytes_of(&self.before);
        let now = T::bytes_of(self.now.as_ref()?);
        let of = |at: usize| at * width..(at + 1) * width;
        // An object has less than 2^32 elements.
        let touched = self.touched.start as u32..self.touched.end as u32;
        Runs::where_differs(touched, |at| now[of(at)] != before[of(at)])
    }

    /// What changed, to be done to the object itself; none if nothing did.
    pub(crate) fn change(&self) -> Option<impl FnOnce(&mut Arc<Vec<T>>)> {
        let runs = self.changed()?;
        let now = self.now.as_ref()?;
        Some(
            move |all: &mut Arc<Vec<T>>| match Arc::ptr_eq(all, &self.before) {
                // Nobody else has changed it.
                true => all.clone_from(now),
                false => self.copy(&runs, Arc::make_mut(all).as_mut_slice()),
            },
        )
    }

    fn copy(&self, runs: &Runs, to: &mut [T]) {
        for (first, end) in runs.iter() {
            let range = first as usize..end as usize;
            to[range.clone()].copy_from_slice(&self.values()[range]);
        }
    }

    /// Writes that make the object what the draft is, none if nothing changed. Usually one.
    pub(crate) fn writes(&self, here: &Here<T>, requests: &Requests<T>) -> Vec<Call<()>> {
        let Some(runs) = self.changed() else {
            return Vec::new();
        };
        let write = |part: Runs| {
            let range = part.hull().0 as usize..part.hull().1 as usize;
            let count = part.elements() as usize;
            let done = here.change(&range, count, |all| self.copy(&part, all));
            Call::done_or(done, || requests.write_runs(&part, self.values()))
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
        Some(write_of(&runs, self.values()))
    }

    /// A write of the first element as it is.
    pub(crate) fn first(&self) -> wire::Write {
        wire::Write {
            data: Bytes::copy_from_slice(T::bytes_of(&self.values()[..1])),
            ..wire::Write::default()
        }
    }

    /// What is there now has been written.
    pub(crate) fn written(&mut self) {
        if let Some(now) = self.now.take() {
            self.before = now;
            self.touched = 0..0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft(values: &[u64]) -> (Draft<u64>, Arc<Vec<u64>>) {
        let object = Arc::new(values.to_vec());
        (Draft::of(Arc::clone(&object)), object)
    }

    fn done(draft: &Draft<u64>, mut to: Arc<Vec<u64>>) -> Vec<u64> {
        if let Some(change) = draft.change() {
            change(&mut to);
        }
        to.to_vec()
    }

    #[test]
    fn what_is_only_read_is_not_copied() {
        let (draft, object) = draft(&[1, 2, 3]);
        assert!(std::ptr::eq(draft.values(), object.as_slice()));
        assert!(draft.change().is_none() && draft.write().is_none());
    }

    #[test]
    fn only_what_changed_is_done_to_an_object_that_others_have_changed() {
        let (mut draft, object) = draft(&[1, 2, 3, 4, 5]);
        draft.range_mut(3..4).unwrap()[0] = 40;
        draft.range_mut(1..3).unwrap().copy_from_slice(&[20, 3]);
        assert_eq!(draft.values(), [1, 20, 3, 40, 5]);
        assert_eq!(
            draft.changed().unwrap().iter().collect::<Vec<_>>(),
            [(1, 2), (3, 4)]
        );
        // As it was, and the views of it stay that.
        assert_eq!(done(&draft, Arc::clone(&object)), [1, 20, 3, 40, 5]);
        assert_eq!(*object, [1, 2, 3, 4, 5]);
        let by_others = Arc::new(vec![1, 2, 30, 4, 50]);
        assert_eq!(done(&draft, by_others), [1, 20, 30, 40, 50]);
    }

    #[test]
    fn a_change_back_is_none_and_what_is_not_there_is_not_changed() {
        let (mut draft, object) = draft(&[1, 2]);
        draft.range_mut(0..1).unwrap()[0] = 7;
        draft.range_mut(0..1).unwrap()[0] = 1;
        assert!(draft.change().is_none());
        assert!(draft.range_mut(1..3).is_none());
        assert_eq!(done(&draft, object), [1, 2]);
        draft.values_mut()[1] = 9;
        draft.written();
        assert!(draft.change().is_none(), "it has been written");
        assert_eq!(draft.values(), [1, 9]);
    }
}
