//! One object of a variable: what is read, written, locked and owned as a whole.

mod calls;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use dosmos_proto::{Cache, CopyPolicy, ObjectId, Region, Variable as Declared};

use crate::cache::{Slot, Taken};
use crate::call::blocking;
use crate::element::{Element, Number};
use crate::lock::Lock;
use crate::operation::Target;
use crate::values::{Exchange, Values, add, exchange};
use crate::{Call, Dsm, Edit, Error, Result, Section, View};

/// The epoch of the section that an access belongs to; none outside a section.
type InSection = Option<u64>;

/// Outside a section.
const OUTSIDE: InSection = None;

/// A handle of one object. Cheap to clone.
#[derive(Clone)]
pub struct Object<T> {
    dsm: Dsm,
    owner: Arc<str>,
    target: Target,
    id: ObjectId,
    region: Region,
    /// None: the owner's queue.
    lock: Option<Arc<Lock>>,
    /// What this process holds of it; none if copies are kept at memory processes only.
    slot: Option<Arc<Slot<T>>>,
    /// It may be delegated to this process.
    may_have: bool,
}

impl<T: Element> Object<T> {
    pub(crate) fn new(
        dsm: Dsm,
        name: Arc<str>,
        variable: &Declared,
        index: u32,
        lock: Option<Arc<Lock>>,
    ) -> Option<Self> {
        let region = variable.spec().layout().region(index)?;
        let id = ObjectId::new(variable.id(), index);
        let target = Target {
            name,
            object: Some(id),
            only: variable.spec().layout().objects() == 1,
        };
        let caches = variable.spec().cache() == Cache::Ap;
        // Who is to be told of each change has copies: its owner gives it to nobody alone.
        let alone = variable.spec().policy() == CopyPolicy::Invalidate;
        let owner = dsm.memory_process_name(variable.owner(index));
        Some(Self {
            may_have: caches && alone && *owner == *dsm.memory_process(),
            owner,
            slot: caches
                .then(|| dsm.slot(&target, region.elements() as usize))
                .flatten(),
            dsm,
            target,
            id,
            region,
            lock,
        })
    }

    /// Its position in the variable, row-major over the parts.
    pub fn index(&self) -> u32 {
        self.id.index
    }
    /// Its number in the cluster.
    pub fn id(&self) -> ObjectId {
        self.id
    }
    /// The rectangle of the variable that it holds.
    pub fn region(&self) -> Region {
        self.region
    }
    /// Name of the memory process that owns it.
    pub fn owner(&self) -> &str {
        &self.owner
    }
    /// Whether this process's own memory process owns it.
    pub fn is_local(&self) -> bool {
        *self.owner == *self.dsm.memory_process()
    }
    /// Number of elements.
    #[allow(clippy::len_without_is_empty)] // an object has at least one element
    pub fn len(&self) -> usize {
        self.region.elements() as usize
    }
    /// The same object, with another deadline for operations on it.
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        Self {
            dsm: self.dsm.with_deadline(deadline),
            ..self.clone()
        }
    }

    /// Reads the whole object. One access, one trace record.
    ///
    /// # Errors
    /// As every operation: [`Error::Refused`], [`Error::Deadline`], [`Error::Lost`].
    pub fn read(&self) -> Result<View<T>> {
        match self.held(&(0..self.len()), self.region.columns as usize) {
            Some(view) => Ok(view),
            None => blocking(|| self.read_whole(OUTSIDE)),
        }
    }
    /// See [`read`](Self::read).
    pub fn read_async(&self) -> Call<View<T>> {
        match self.held(&(0..self.len()), self.region.columns as usize) {
            Some(view) => Call::done(Ok(view)),
            None => self.read_whole(OUTSIDE),
        }
    }

    /// Elements `range` of a copy in this process, if it has a valid one; a read that sends nothing.
    #[inline]
    fn held(&self, range: &Range<usize>, columns: usize) -> Option<View<T>> {
        let slot = self.slot.as_ref()?;
        let inside = range.start < range.end && range.end <= self.len();
        let (values, version) = inside.then(|| slot.read(range)).flatten()?;
        let values = Values::Own(values);
        Some(View::of(values, range.clone(), columns, version))
    }

    /// Reads elements `range` of the object.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], also for an empty range; else as [`read`](Self::read).
    pub fn read_range(&self, range: Range<usize>) -> Result<View<T>> {
        match self.held(&range, range.len()) {
            Some(view) => Ok(view),
            None => blocking(|| self.read_elements(OUTSIDE, range)),
        }
    }
    /// See [`read_range`](Self::read_range).
    pub fn read_range_async(&self, range: Range<usize>) -> Call<View<T>> {
        match self.held(&range, range.len()) {
            Some(view) => Call::done(Ok(view)),
            None => self.read_elements(OUTSIDE, range),
        }
    }

    /// Reads element `at` of the object.
    ///
    /// # Errors
    /// As [`read_range`](Self::read_range).
    pub fn get(&self, at: usize) -> Result<T> {
        match self.slot.as_ref().and_then(|slot| slot.get(at)) {
            Some(value) => Ok(value),
            None => blocking(|| self.read_element(OUTSIDE, at)),
        }
    }
    /// See [`get`](Self::get).
    pub fn get_async(&self, at: usize) -> Call<T> {
        match self.slot.as_ref().and_then(|slot| slot.get(at)) {
            Some(value) => Call::done(Ok(value)),
            None => self.read_element(OUTSIDE, at),
        }
    }

    /// Writes the whole object. Outside a section: applied at the owner in order of arrival, seen by
    /// others at this process's next release or barrier at the latest.
    ///
    /// # Errors
    /// [`Error::WrongLength`] if the slice is not exactly as long as the object; else as
    /// [`read`](Self::read).
    pub fn write(&self, values: &[T]) -> Result<()> {
        match values.len() == self.len() {
            true => self.write_at(0, values),
            false => self.write_async(values).wait(),
        }
    }
    /// See [`write`](Self::write).
    pub fn write_async(&self, values: &[T]) -> Call<()> {
        self.write_whole(OUTSIDE, values)
    }

    /// Writes `values` over the elements from `first` on.
    ///
    /// # Errors
    /// [`Error::OutOfRange`], also for an empty slice; else as [`write`](Self::write).
    pub fn write_at(&self, first: usize, values: &[T]) -> Result<()> {
        let here = || self.write_here(OUTSIDE, first, values);
        self.change(values.len(), here, || {
            self.write_part(OUTSIDE, first, values)
        })
    }
    /// See [`write_at`](Self::write_at).
    pub fn write_at_async(&self, first: usize, values: &[T]) -> Call<()> {
        self.change_later(values.len(), self.write_part(OUTSIDE, first, values))
    }

    /// The elements as a slice to change in place, outside a section. If this process has the object to itself
    /// (a variable with [`Cache::Ap`] whose object its own memory process owns), this takes no message and no
    /// copy; else it reads the object, and what is changed is written when the [`Edit`] is finished or dropped.
    /// One read, and one write if anything may have changed.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn edit(&self) -> Result<Edit<T>> {
        if let Some(taken) = self.slot.as_ref().and_then(|slot| slot.take(false)) {
            return Ok(Edit::in_place(self.clone(), taken));
        }
        if !self.may_have {
            return Ok(Edit::new(self.clone(), self.read()?.into_vec()));
        }
        let view = blocking(|| self.read_to_have())?;
        match (self.slot.as_ref().and_then(|slot| slot.take(true)), view) {
            // Given to this process with that read.
            (Some(taken), _) => Ok(Edit::in_place(self.clone(), taken)),
            (None, Some(view)) => Ok(Edit::new(self.clone(), view.into_vec())),
            (None, None) => Ok(Edit::new(self.clone(), self.read()?.into_vec())),
        }
    }

    /// Changes `elements` elements `here`, if this process has the object to itself, and by a message otherwise;
    /// asks for the object before that, if it was changed often.
    #[inline]
    fn change<R>(
        &self,
        elements: usize,
        here: impl Fn() -> Option<R>,
        there: impl FnOnce() -> Call<R>,
    ) -> Result<R> {
        if let Some(done) = here() {
            return Ok(done);
        }
        self.ask_to_change(elements)?;
        blocking(there)
    }

    /// Asks for the object, if it was changed often by messages; whether that was done and it is here.
    fn ask_to_change(&self, elements: usize) -> Result<bool> {
        if !self.asks_to_change(elements) {
            return Ok(false);
        }
        blocking(|| self.read_to_have())?;
        Ok(self.slot.as_ref().is_some_and(|slot| !slot.was_declined()))
    }

    /// As [`change`](Self::change), with a call that nobody waits for yet: asks for the object behind it, if it is small.
    fn change_later<R>(&self, elements: usize, call: Call<R>) -> Call<R> {
        let small = self.slot.as_ref().is_some_and(|slot| slot.is_small());
        if small && call.is_sent() && self.asks_to_change(elements) {
            // Its reply gives the object to this process.
            drop(self.read_to_have());
        }
        call
    }

    /// Whether to ask for the object, of which `elements` elements are changed by a message.
    fn asks_to_change(&self, elements: usize) -> bool {
        let bytes = (elements * size_of::<T>()) as u64;
        let slot = self.slot.as_ref().filter(|_| self.may_have);
        slot.is_some_and(|slot| slot.wants_to_change(bytes))
    }

    /// Puts back what was taken to be edited.
    pub(crate) fn put(&self, taken: Taken<T>) -> Result<()> {
        let (kept, asked) = match &self.slot {
            Some(slot) => slot.put(taken),
            None => (false, false),
        };
        if asked {
            self.dsm.edited(self.id);
        }
        match kept {
            true => Ok(()),
            false => Err(Error::TakenBack {
                what: format!("the edit of {}", self.target),
                object: self.target.to_string(),
            }),
        }
    }

    /// Writes element `at`.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    pub fn set(&self, at: usize, value: T) -> Result<()> {
        self.write_at(at, &[value])
    }
    /// See [`set`](Self::set).
    pub fn set_async(&self, at: usize, value: T) -> Call<()> {
        self.write_at_async(at, &[value])
    }

    /// Waits for exclusive access, in the order of arrival (unless the variable's
    /// [`LockKind`](crate::LockKind) is another), and opens a section.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ErrorCode::AlreadyHeld`](crate::ErrorCode::AlreadyHeld) if this
    /// process holds the object already, in whatever thread; else as [`read`](Self::read).
    pub fn acquire(&self) -> Result<Section<T>> {
        let Some(lock) = &self.lock else {
            return match self.enter_or_ask()? {
                Some(section) => Ok(section),
                None => blocking(|| self.acquire_async()),
            };
        };
        lock.acquire(self.id.index as usize, self.dsm.deadline())?;
        Ok(Section::of_words(self.clone(), lock.clone()))
    }
    /// See [`acquire`](Self::acquire). Fails with [`Error::OnlyBlocking`] if the lock is not a queue lock.
    pub fn acquire_async(&self) -> Call<Section<T>> {
        self.acquire_as(|section| section)
    }

    /// Stores `new` in element `at` if it is `expected`, bit for bit, in one step at the owner.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    pub fn compare_exchange(&self, at: usize, expected: T, new: T) -> Result<Exchange<T>> {
        let here = || self.atomic_here(OUTSIDE, at, |value| exchange(value, expected, new));
        self.change(1, here, || self.exchange(OUTSIDE, at, expected, new))
    }
    /// See [`compare_exchange`](Self::compare_exchange).
    pub fn compare_exchange_async(&self, at: usize, expected: T, new: T) -> Call<Exchange<T>> {
        self.change_later(1, self.exchange(OUTSIDE, at, expected, new))
    }
}

impl<T: Number> Object<T> {
    /// Adds `values` to all elements (integers wrap), in one step at the owner: an atomic operation, in one message
    /// and without a section.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn accumulate(&self, values: &[T]) -> Result<()> {
        self.check_length(values.len())?;
        self.accumulate_at(0, values)
    }
    /// See [`accumulate`](Self::accumulate).
    pub fn accumulate_async(&self, values: &[T]) -> Call<()> {
        match self.check_length(values.len()) {
            Ok(()) => self.accumulate_at_async(0, values),
            Err(error) => Call::failed(error),
        }
    }

    /// Adds `values` to the elements from `first` on, as [`accumulate`](Self::accumulate).
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    pub fn accumulate_at(&self, first: usize, values: &[T]) -> Result<()> {
        let here = || self.add_here(first, values);
        self.change(values.len(), here, || self.add_part(first, values))
    }
    /// See [`accumulate_at`](Self::accumulate_at).
    pub fn accumulate_at_async(&self, first: usize, values: &[T]) -> Call<()> {
        self.change_later(values.len(), self.add_part(first, values))
    }

    /// Adds `delta` to element `at` (integers wrap), in one step at the owner; returns the value before.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    pub fn fetch_add(&self, at: usize, delta: T) -> Result<T> {
        let here = || self.atomic_here(OUTSIDE, at, |value| add(value, delta));
        self.change(1, here, || self.add(OUTSIDE, at, delta))
    }
    /// See [`fetch_add`](Self::fetch_add).
    pub fn fetch_add_async(&self, at: usize, delta: T) -> Call<T> {
        self.change_later(1, self.add(OUTSIDE, at, delta))
    }
}

impl<T> std::fmt::Debug for Object<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Object({} at {})", self.target, self.owner)
    }
}
