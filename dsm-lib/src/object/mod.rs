//! One object of a variable: what is read, written, locked and owned as a whole.

mod here;
mod requests;

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use dosmos_proto::{Cache, CopyPolicy, ObjectId, Region, Variable as Declared};

use crate::call::done_or_blocking;
use crate::element::{Element, Number};
use crate::lock_words::LockWords;
use crate::member::Member;
use crate::operation::Target;
use crate::values::Exchange;
use crate::{Call, Result, View};
pub(crate) use here::Here;
pub(crate) use requests::{InSection, OUTSIDE, Requests};

/// A handle of one object. Cheap to clone.
#[derive(Clone)]
pub struct Object<T> {
    /// What is done in this process.
    pub(crate) here: Here<T>,
    /// What is done by messages.
    pub(crate) requests: Requests<T>,
    owner: Arc<str>,
    is_local: bool,
    region: Region,
    /// None: the owner's queue.
    pub(crate) lock: Option<Arc<dyn LockWords>>,
}

impl<T: Element> Object<T> {
    pub(crate) fn new(
        member: &Member,
        name: Arc<str>,
        variable: &Declared,
        index: u32,
        lock: Option<Arc<dyn LockWords>>,
    ) -> Option<Self> {
        let spec = variable.spec();
        let region = spec.layout().region(index)?;
        let id = ObjectId::new(variable.id(), index);
        let target = Target {
            name,
            object: Some(id),
            only: spec.layout().objects() == 1,
        };
        let owner = member.place().name_of(variable.owner(index));
        let is_local = *owner == *member.place().memory_process;
        // Who is to be told of each change has copies: its owner gives it to nobody alone.
        let may_have = is_local && spec.policy() == CopyPolicy::Invalidate;
        let caches = spec.cache() == Cache::Ap && spec.replicas() == 0;
        let len = region.elements() as usize;
        let slot = caches
            .then(|| member.client().shared().slot(&target, len))
            .flatten();
        Some(Self {
            here: Here::new(slot, len, may_have, lock.is_none()),
            requests: Requests::new(member.client(), member.deadline(), target, id, len),
            owner,
            is_local,
            region,
            lock,
        })
    }

    /// Its position in the variable, row-major over the parts.
    pub fn index(&self) -> u32 {
        self.requests.id().index
    }
    /// Its number in the cluster.
    pub fn id(&self) -> ObjectId {
        self.requests.id()
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
        self.is_local
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
            requests: self.requests.with_deadline(deadline),
            ..self.clone()
        }
    }

    /// What was `done` here, and whether its reader may be waiting for a change: then what has arrived is seen to.
    #[inline]
    fn look_if<R>(&self, done: Option<(R, bool)>) -> Option<R> {
        let (done, waits) = done?;
        if waits {
            self.requests.shared().await_news();
        }
        Some(done)
    }

    /// Reads the whole object. One access, one trace record.
    ///
    /// # Errors
    /// As every operation: [`Error::Refused`](crate::Error::Refused), [`Error::Deadline`](crate::Error::Deadline), [`Error::Lost`](crate::Error::Lost).
    pub fn read(&self) -> Result<View<T>> {
        let columns = self.region.columns as usize;
        let send = || {
            self.requests
                .read(OUTSIDE, 0..self.len(), columns, self.here.slot())
        };
        let done = self.here.read(&(0..self.len()), columns);
        done_or_blocking(self.look_if(done), send)
    }
    /// See [`read`](Self::read).
    pub fn read_async(&self) -> Call<View<T>> {
        let columns = self.region.columns as usize;
        let send = || {
            self.requests
                .read(OUTSIDE, 0..self.len(), columns, self.here.slot())
        };
        let done = self.here.read(&(0..self.len()), columns);
        Call::done_or(self.look_if(done), send)
    }

    /// Reads whole objects, with all requests under way at once: a message each, and together about the time of the
    /// slowest.
    ///
    /// # Errors
    /// As [`read`](Self::read), of the first object that cannot be read.
    pub fn read_all<'a>(objects: impl IntoIterator<Item = &'a Self>) -> Result<Vec<View<T>>> {
        let under_way: Vec<_> = objects.into_iter().map(Self::read_async).collect();
        under_way.into_iter().map(Call::wait).collect()
    }

    /// Begins to fetch the object and does not wait for it: a read after it has arrived finds it near. With
    /// [`Cache::Ap`] it comes into this process, unless it is there, and a later read sends nothing; otherwise a copy
    /// comes to this process's memory process, unless that owns it. It is a message, and a read before the object has arrived is another. What
    /// goes wrong is said by the read.
    pub fn prefetch(&self) {
        match self.here.slot() {
            Some(slot) if slot.is_held() => {}
            Some(_) => drop(self.requests.ask_for_copy()),
            None if self.is_local => {}
            // A read of one element brings all of it to the memory process.
            None => drop(self.requests.get(OUTSIDE, 0, None)),
        }
    }

    /// Reads elements `range` of the object.
    ///
    /// # Errors
    /// [`Error::OutOfRange`](crate::Error::OutOfRange), also for an empty range; else as [`read`](Self::read).
    pub fn read_range(&self, range: Range<usize>) -> Result<View<T>> {
        let (done, columns) = (self.here.read(&range, range.len()), range.len());
        done_or_blocking(self.look_if(done), || {
            self.requests
                .read(OUTSIDE, range, columns, self.here.slot())
        })
    }
    /// See [`read_range`](Self::read_range).
    pub fn read_range_async(&self, range: Range<usize>) -> Call<View<T>> {
        let (done, columns) = (self.here.read(&range, range.len()), range.len());
        Call::done_or(self.look_if(done), || {
            self.requests
                .read(OUTSIDE, range, columns, self.here.slot())
        })
    }

    /// Reads element `at` of the object.
    ///
    /// # Errors
    /// As [`read_range`](Self::read_range).
    pub fn get(&self, at: usize) -> Result<T> {
        let send = || self.requests.get(OUTSIDE, at, self.here.slot());
        done_or_blocking(self.look_if(self.here.get(at)), send)
    }
    /// See [`get`](Self::get).
    pub fn get_async(&self, at: usize) -> Call<T> {
        let send = || self.requests.get(OUTSIDE, at, self.here.slot());
        Call::done_or(self.look_if(self.here.get(at)), send)
    }

    /// Writes the whole object. Outside a section: applied at the owner in order of arrival, seen by
    /// others at this process's next release or barrier at the latest.
    ///
    /// # Errors
    /// [`Error::WrongLength`](crate::Error::WrongLength) if the slice is not exactly as long as the object; else as
    /// [`read`](Self::read).
    pub fn write(&self, values: &[T]) -> Result<()> {
        self.requests.check_length(values.len())?;
        self.write_at(0, values)
    }
    /// See [`write`](Self::write).
    pub fn write_async(&self, values: &[T]) -> Call<()> {
        match self.requests.check_length(values.len()) {
            Ok(()) => Call::done_or(self.here.write(0, values), || {
                self.requests.write(OUTSIDE, 0, values)
            }),
            Err(error) => Call::failed(error),
        }
    }

    /// Writes `values` over the elements from `first` on.
    ///
    /// # Errors
    /// [`Error::OutOfRange`](crate::Error::OutOfRange), also for an empty slice; else as [`write`](Self::write).
    pub fn write_at(&self, first: usize, values: &[T]) -> Result<()> {
        let here = || self.here.write(first, values);
        let send = || self.requests.write(OUTSIDE, first, values);
        self.here
            .change_or_send(&self.requests, values.len(), here, send)
    }
    /// See [`write_at`](Self::write_at).
    pub fn write_at_async(&self, first: usize, values: &[T]) -> Call<()> {
        let send = || self.requests.write(OUTSIDE, first, values);
        self.here.change_or_send_async(
            &self.requests,
            values.len(),
            self.here.write(first, values),
            send,
        )
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

    /// Stores `new` in element `at` if it is `expected`, bit for bit, in one step at the owner.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    pub fn compare_exchange(&self, at: usize, expected: T, new: T) -> Result<Exchange<T>> {
        let here = || self.here.exchange(at, expected, new);
        let send = || self.requests.exchange(OUTSIDE, at, expected, new);
        self.here.change_or_send(&self.requests, 1, here, send)
    }
    /// See [`compare_exchange`](Self::compare_exchange).
    pub fn compare_exchange_async(&self, at: usize, expected: T, new: T) -> Call<Exchange<T>> {
        let send = || self.requests.exchange(OUTSIDE, at, expected, new);
        self.here.change_or_send_async(
            &self.requests,
            1,
            self.here.exchange(at, expected, new),
            send,
        )
    }
}

impl<T: Number> Object<T> {
    /// Adds `values` to all elements (integers wrap), in one step at the owner: an atomic operation, in one message
    /// and without a section.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn accumulate(&self, values: &[T]) -> Result<()> {
        self.requests.check_length(values.len())?;
        self.accumulate_at(0, values)
    }
    /// See [`accumulate`](Self::accumulate).
    pub fn accumulate_async(&self, values: &[T]) -> Call<()> {
        match self.requests.check_length(values.len()) {
            Ok(()) => self.accumulate_at_async(0, values),
            Err(error) => Call::failed(error),
        }
    }

    /// Adds `values` to the elements from `first` on, as [`accumulate`](Self::accumulate).
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    pub fn accumulate_at(&self, first: usize, values: &[T]) -> Result<()> {
        let here = || self.here.add(first, values);
        let send = || self.requests.add(first, values);
        self.here
            .change_or_send(&self.requests, values.len(), here, send)
    }
    /// See [`accumulate_at`](Self::accumulate_at).
    pub fn accumulate_at_async(&self, first: usize, values: &[T]) -> Call<()> {
        let send = || self.requests.add(first, values);
        self.here.change_or_send_async(
            &self.requests,
            values.len(),
            self.here.add(first, values),
            send,
        )
    }

    /// Adds `delta` to element `at` (integers wrap), in one step at the owner; returns the value before.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    pub fn fetch_add(&self, at: usize, delta: T) -> Result<T> {
        let here = || self.here.fetch_add(at, delta);
        let send = || self.requests.fetch_add(OUTSIDE, at, delta);
        self.here.change_or_send(&self.requests, 1, here, send)
    }
    /// See [`fetch_add`](Self::fetch_add).
    pub fn fetch_add_async(&self, at: usize, delta: T) -> Call<T> {
        let send = || self.requests.fetch_add(OUTSIDE, at, delta);
        self.here
            .change_or_send_async(&self.requests, 1, self.here.fetch_add(at, delta), send)
    }
}

impl<T> std::fmt::Debug for Object<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Object({} at {})", self.requests.target(), self.owner)
    }
}
