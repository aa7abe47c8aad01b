//! What is done in this process, without a message: reads of copies, and everything to an object that this process has to
//! itself. It asks for an object that is changed often.

use std::ops::Range;
use std::sync::Arc;

use super::requests::Requests;
use crate::cache::{Entered, Hits, Reads, Slot, Taken};
use crate::call::{blocking, done_or_blocking};
use crate::element::{Element, Number};
use crate::values::{Exchange, GRANTED_VALUE, Values, add, exchange};
use crate::{Call, Error, Result, View};

/// What is taken out to be edited, or what was read for that.
type TakenOrRead<T> = (Option<Taken<T>>, Option<View<T>>);

/// One object as this process has it. Nothing is done here if an element is not in the object: its request is refused.
#[derive(Clone)]
pub(crate) struct Here<T> {
    /// What this process holds of it; none if copies are kept at memory processes only.
    slot: Option<Arc<Slot<T>>>,
    /// Number of elements.
    len: usize,
    /// It may be delegated to this process.
    may_have: bool,
    /// Sections of it may be held in this process: its lock is the owner's queue.
    may_enter: bool,
}

impl<T: Element> Here<T> {
    pub(super) fn new(
        slot: Option<Arc<Slot<T>>>,
        len: usize,
        may_have: bool,
        queued: bool,
    ) -> Self {
        Self {
            may_have: may_have && slot.is_some(),
            slot,
            len,
            // As by a grant, with which the content comes, too.
            may_enter: queued && len * size_of::<T>() <= GRANTED_VALUE,
        }
    }

    /// Where copies are kept.
    pub(crate) fn slot(&self) -> Option<&Arc<Slot<T>>> {
        self.slot.as_ref()
    }

    /// Elements `range`, as rows of `columns`, if there is a valid copy; and whether the reader may be waiting for a change.
    #[inline]
    pub(super) fn read(&self, range: &Range<usize>, columns: usize) -> Option<(View<T>, bool)> {
        let slot = self.slot.as_ref()?;
        let inside = range.start < range.end && range.end <= self.len;
        let (values, version, waits) = inside.then(|| slot.read(range)).flatten()?;
        let values = Values::Own(values);
        let view = View::of(values, range.clone(), columns, version);
        Some((view, waits))
    }

    /// As long as this is the same, all elements are those that [`keep`](Self::keep) gave with it.
    #[inline]
    pub(crate) fn stamp(&self) -> Option<u64> {
        self.slot.as_ref().map(|slot| slot.stamp())
    }

    /// All elements, as rows of `columns`, for a reader who counts what it reads of them; with the stamp. None if there is no
    /// valid copy.
    pub(crate) fn keep(&self, columns: usize, reads: &Arc<Reads>) -> Option<(View<T>, u64)> {
        let (values, version, stamp) = self.slot.as_ref()?.keep_for(reads)?;
        let view = View::of(Values::Own(values), 0..self.len, columns, version);
        Some((view, stamp))
    }

    /// Element `at`, if there is a valid copy; and whether the reader may be waiting for a change.
    #[inline]
    pub(super) fn get(&self, at: usize) -> Option<(T, bool)> {
        self.slot.as_ref()?.get(at)
    }

    /// Changes `count` of the elements, all of them in `range`, if this process has the object to itself.
    #[inline]
    pub(crate) fn change<R>(
        &self,
        range: &Range<usize>,
        count: usize,
        change: impl FnOnce(&mut [T]) -> R,
    ) -> Option<R> {
        self.slot.as_ref()?.change(range, count, change)
    }

    /// As [`change`](Self::change), of the elements from `first` on.
    #[inline]
    fn change_part<R>(
        &self,
        first: usize,
        elements: usize,
        change: impl FnOnce(&mut [T]) -> R,
    ) -> Option<R> {
        let end = first.checked_add(elements)?;
        let inside = first < end && end <= self.len;
        let part = |all: &mut [T]| change(&mut all[first..end]);
        inside
            .then(|| self.change(&(first..end), elements, part))
            .flatten()
    }

    /// As [`Requests::write`].
    #[inline]
    pub(crate) fn write(&self, first: usize, values: &[T]) -> Option<()> {
        self.change_part(first, values.len(), |part| part.copy_from_slice(values))
    }

    /// As [`Requests::exchange`].
    #[inline]
    pub(crate) fn exchange(&self, at: usize, expected: T, new: T) -> Option<Exchange<T>> {
        self.change_part(at, 1, |part| exchange(&mut part[0], expected, new))
    }

    /// All elements to be changed in place, if this process has the object to itself, for which it is asked if that is
    /// possible; or what was read by that.
    pub(crate) fn take_or_ask(&self, requests: &Requests<T>) -> Result<TakenOrRead<T>> {
        let Some(slot) = &self.slot else {
            return Ok((None, None));
        };
        let taken = slot.take(false);
        if taken.is_some() || !self.may_have {
            return Ok((taken, None));
        }
        let view = blocking(|| requests.read_to_have(slot))?;
        // If it was given to this process with that read.
        Ok((slot.take(true), view))
    }

    /// Puts back what was taken to be edited.
    pub(crate) fn put(&self, taken: Taken<T>, requests: &Requests<T>) -> Result<()> {
        let (kept, asked) = match &self.slot {
            Some(slot) => slot.put(taken),
            None => (false, false),
        };
        if asked {
            requests.shared().edited(requests.id());
        }
        match kept {
            true => Ok(()),
            false => Err(Error::TakenBack {
                what: format!("the edit of {}", requests.target()),
                object: requests.target().to_string(),
            }),
        }
    }

    /// Begins a section of an object that this process has to itself: with its elements.
    pub(crate) fn enter(&self) -> Option<(Arc<Vec<T>>, Entered)> {
        let slot = self.slot.as_ref().filter(|_| self.may_enter)?;
        slot.begin_section()
    }

    /// As [`enter`](Self::enter); asks for the object if it was changed often.
    pub(crate) fn enter_or_ask(
        &self,
        requests: &Requests<T>,
    ) -> Result<Option<(Arc<Vec<T>>, Entered)>> {
        let here = self.enter();
        let asked = here.is_none() && self.may_enter && self.ask(requests, self.len)?;
        Ok(if asked { self.enter() } else { here })
    }

    /// Ends a section that began here, if this process still has the object to itself; the version that this makes.
    pub(crate) fn leave(
        &self,
        entered: Entered,
        used: (Hits, Hits),
        change: Option<impl FnOnce(&mut Arc<Vec<T>>)>,
    ) -> Option<u64> {
        self.slot.as_ref()?.end_section(entered, used, change)
    }

    /// Changes `elements` of the elements `here`, or by a message; asks for the object before that, if it was changed often.
    #[inline]
    pub(super) fn change_or_send<R>(
        &self,
        requests: &Requests<T>,
        elements: usize,
        here: impl Fn() -> Option<R>,
        send: impl FnOnce() -> Call<R>,
    ) -> Result<R> {
        if let Some(done) = here() {
            return Ok(done);
        }
        self.ask(requests, elements)?;
        done_or_blocking(here(), send)
    }

    /// Asks for the object, of which `elements` elements are to be changed by a message, if it was changed often so; whether that
    /// was done and it is here.
    fn ask(&self, requests: &Requests<T>, elements: usize) -> Result<bool> {
        let Some(slot) = self.wanted(elements) else {
            return Ok(false);
        };
        blocking(|| requests.ask_to_have())?;
        Ok(!slot.was_declined())
    }

    /// What was `done` here, or a message; asks for the object behind that, if it is small and was changed often.
    pub(super) fn change_or_send_async<R>(
        &self,
        requests: &Requests<T>,
        elements: usize,
        done: Option<R>,
        send: impl FnOnce() -> Call<R>,
    ) -> Call<R> {
        let call = Call::done_or(done, send);
        let small = self.slot.as_ref().is_some_and(|slot| slot.is_small());
        let wanted = || self.wanted(elements);
        if (small && call.is_sent()).then(wanted).flatten().is_some() {
            // Its reply gives the object to this process.
            drop(requests.ask_to_have());
        }
        call
    }

    /// Where to put the object, if it is to be asked for when `elements` elements are changed by a message.
    fn wanted(&self, elements: usize) -> Option<&Arc<Slot<T>>> {
        let bytes = (elements * size_of::<T>()) as u64;
        let slot = self.slot.as_ref().filter(|_| self.may_have)?;
        slot.wants_to_change(bytes).then_some(slot)
    }
}

impl<T: Number> Here<T> {
    /// As [`Requests::add`].
    #[inline]
    pub(super) fn add(&self, first: usize, values: &[T]) -> Option<()> {
        self.change_part(first, values.len(), |part| {
            part.iter_mut().zip(values).for_each(|(a, b)| {
                add(a, *b);
            });
        })
    }

    /// As [`Requests::fetch_add`].
    #[inline]
    pub(crate) fn fetch_add(&self, at: usize, delta: T) -> Option<T> {
        self.change_part(at, 1, |part| add(&mut part[0], delta))
    }
}
