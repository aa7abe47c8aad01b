//! Exclusive access to an object, from an acquire to its release.

mod working_copy;

use std::ops::Range;
use std::sync::Arc;

use crate::cache::Entered;
use crate::call::{blocking, done_or_blocking};
use crate::driver;
use crate::element::{Element, Number};
use crate::fence::FencingToken;
use crate::lock_words::LockWords;
use crate::object::{Here, InSection};
use crate::operation::Op;
use crate::values::{add, exchange};
use crate::{Call, Error, ErrorCode, Exchange, Object, Result, View};
use working_copy::WorkingCopy;

/// A section: this process alone has the object until the section is released. What is written in it
/// is seen here at once, and by all others (other threads of this process too) when [`release`](Self::release) has
/// returned.
///
/// The content of an object of up to 64 KiB comes with the grant, and what is written leaves with the release: such a
/// section takes two messages, however much is done in it. A larger object is fetched when the section's accesses, by messages, have
/// taken as long as that.
///
/// Dropping a section releases it and waits for that, too; but only `release` tells what went wrong
/// (a drop logs it). If this process loses the object, for example because its connection broke, operations in the
/// section that need a message fail, the release at the latest, and what was written in it is undone.
#[must_use = "a section that is dropped is released at once"]
#[derive(Debug)]
pub struct Section<T: Element> {
    object: Object<T>,
    hold: Hold,
    state: State,
    copy: WorkingCopy<T>,
}

/// How far a section is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// A release failed; the object may still be held.
    Unreleased,
    /// Released, on the way to it, or lost.
    Over,
}

/// A release that failed, with the section, which is still open if the object is still held: release
/// it again to try again. Dropping the section of a queue lock sends the release once more, without
/// waiting for it. As an [`Error`] (by `?`) it is the reason alone.
#[derive(thiserror::Error)]
#[error("{error}")]
pub struct ReleaseFailed<S> {
    /// What went wrong.
    #[source]
    pub error: Error,
    /// The section.
    pub section: Box<S>,
}

impl<S> std::fmt::Debug for ReleaseFailed<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl<S> From<ReleaseFailed<S>> for Error {
    fn from(failed: ReleaseFailed<S>) -> Self {
        failed.error
    }
}

/// The state after a release that failed.
fn after(error: &Error) -> State {
    match error {
        Error::Lost { .. } | Error::Closed { .. } => State::Over,
        _ => match error.code() {
            Some(ErrorCode::NotHeld | ErrorCode::StaleEpoch) => State::Over,
            _ => State::Unreleased,
        },
    }
}

/// By what it is held.
#[derive(Clone, Debug)]
pub(crate) enum Hold {
    /// A grant of the owner's.
    Grant { epoch: u64, version: u64 },
    /// The object is delegated to this process, or was when the section began: then it is held as by a grant.
    Entered(Entered),
    /// Lock words. Writes are ordinary ones, published at the end.
    Words(Arc<dyn LockWords>),
}

impl Hold {
    /// What accesses in the section carry.
    fn epoch(&self) -> InSection {
        match self {
            Self::Grant { epoch, .. } | Self::Entered(Entered { epoch, .. }) => Some(*epoch),
            Self::Words(_) => None,
        }
    }

    /// How often the object had been released.
    fn version(&self) -> u64 {
        match self {
            Self::Grant { version, .. } | Self::Entered(Entered { version, .. }) => *version,
            Self::Words(_) => 0,
        }
    }
}

impl<T: Element> Object<T> {
    /// Waits for exclusive access, in the order of arrival (unless the variable's
    /// [`LockKind`](crate::LockKind) is another), and opens a section.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ErrorCode::AlreadyHeld`](crate::ErrorCode::AlreadyHeld) if this
    /// process holds the object already, in whatever thread; else as [`read`](Self::read).
    pub fn acquire(&self) -> Result<Section<T>> {
        if let Some(lock) = &self.lock {
            lock.acquire(self.requests.id().index as usize, self.requests.deadline())?;
            return Ok(Section::new(self.clone(), Hold::Words(lock.clone()), None));
        }
        match self.here.enter_or_ask(&self.requests)? {
            Some((values, entered)) => {
                let hold = Hold::Entered(entered);
                Ok(Section::new(self.clone(), hold, Some(values)))
            }
            None => blocking(|| self.acquire_async()),
        }
    }
    /// See [`acquire`](Self::acquire). Fails with [`Error::OnlyBlocking`] if the lock is not a queue lock.
    pub fn acquire_async(&self) -> Call<Section<T>> {
        self.acquire_as(|section| section)
    }

    pub(crate) fn acquire_as<S: 'static>(
        &self,
        wrap: impl FnOnce(Section<T>) -> S + Send + 'static,
    ) -> Call<S> {
        if let Some(lock) = &self.lock {
            return Call::failed(Error::OnlyBlocking {
                what: Op::Acquire.on(self.requests.target()).to_string(),
                kind: lock.kind(),
            });
        }
        let object = self.clone();
        if let Some((values, entered)) = self.here.enter() {
            let section = Section::new(object, Hold::Entered(entered), Some(values));
            return Call::done(Ok(wrap(section)));
        }
        self.requests.acquire(move |epoch, version, values| {
            wrap(Section::new(
                object,
                Hold::Grant { epoch, version },
                values.map(Arc::new),
            ))
        })
    }
}

impl<T: Element> Section<T> {
    /// With the values that came with the grant, if they did.
    pub(crate) fn new(object: Object<T>, hold: Hold, values: Option<Arc<Vec<T>>>) -> Self {
        Self {
            copy: WorkingCopy::new(hold.version(), values),
            object,
            hold,
            state: State::Open,
        }
    }

    /// The object held.
    pub fn object(&self) -> &Object<T> {
        &self.object
    }
    /// Number of this grant: one higher than that of the grant before. 0 if the lock is not a queue lock.
    pub fn epoch(&self) -> u64 {
        self.hold.epoch().unwrap_or(0)
    }
    /// Says that this section is later than every earlier one of the object, to a resource outside of the memory that checks it
    /// with a [`Fence`](crate::Fence). None if the lock is not a queue lock.
    pub fn fencing_token(&self) -> Option<FencingToken> {
        self.hold.epoch().map(FencingToken::from_number)
    }
    /// How often the object had been released when it was granted. 0 if the lock is not a queue lock.
    pub fn version(&self) -> u64 {
        self.hold.version()
    }

    /// Releases the object; returns its new version. When this has returned, all others see what was
    /// written in the section.
    ///
    /// # Errors
    /// [`Error::Refused`] with [`ErrorCode::NotHeld`] or [`ErrorCode::StaleEpoch`] if the section is
    /// over already, because the lock was lost; else as every operation. The error has the section with
    /// it, so that the release can be repeated.
    pub fn release(mut self) -> Result<u64, ReleaseFailed<Self>> {
        match self.write_by_words().and_then(|()| blocking(|| self.end())) {
            Ok(version) => {
                self.state = State::Over;
                Ok(version)
            }
            Err(error) => {
                self.state = after(&error);
                let section = Box::new(self);
                Err(ReleaseFailed { error, section })
            }
        }
    }
    /// See [`release`](Self::release). Blocks if the lock is not a queue lock. A release that fails is sent once
    /// more.
    pub fn release_async(mut self) -> Call<u64> {
        if let Err(error) = self.write_by_words() {
            self.state = after(&error);
            return Call::failed(error);
        }
        let call = self.end();
        // On its way: a call that is dropped does not send another.
        self.state = State::Over;
        call.then(move |outcome| {
            let mut section = self;
            if let Err(error) = &outcome {
                section.state = after(error);
            }
            outcome
        })
    }

    fn end(&self) -> Call<u64> {
        let Object { here, requests, .. } = &self.object;
        let release = |epoch| {
            if let Some(reads) = self.copy.take_reads() {
                let shared = requests.shared();
                shared.count_section(requests.target(), reads);
            }
            requests.release(epoch, self.copy.write_at_end())
        };
        match &self.hold {
            Hold::Grant { epoch, .. } => release(*epoch),
            Hold::Entered(entered) => {
                let change = self.copy.changes();
                let used = self.copy.used(change.is_some());
                // Whatever publishes later than this section is published before it.
                let ends_here = requests.shared().ends_here(requests.id());
                let left = ends_here.then(|| here.leave(*entered, used, change));
                Call::done_or(left.flatten(), || release(entered.epoch))
            }
            Hold::Words(lock) => {
                let index = self.object.index() as usize;
                let released = lock.release(index, requests.deadline());
                Call::done(released.map(|()| 0))
            }
        }
    }

    /// The elements, as a slice. The object is read at the first use in the section, which is one access;
    /// reading the slice sends nothing.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn values(&self) -> Result<&[T]> {
        if let Some(values) = self.copy.values() {
            return Ok(values);
        }
        let view = blocking(|| self.fetch())?;
        Ok(self.copy.fill(view.into_vec()))
    }

    /// The elements, as a slice to change in place. What was changed, and only that, is written no later
    /// than the release, as one write; reads in this section see it at once.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn values_mut(&mut self) -> Result<&mut [T]> {
        self.values()?;
        Ok(self.copy.values_mut())
    }

    /// Changes the elements in place; returns what `change` gives: [`values_mut`](Self::values_mut) as one call.
    ///
    /// ```no_run
    /// # fn f(bins: &dsm_lib::Object<u64>) -> dsm_lib::Result<()> {
    /// let mut section = bins.acquire()?;
    /// section.update(|bins| bins[3] += 1)?;
    /// section.release()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`read`](Self::read); then nothing is changed.
    pub fn update<R>(&mut self, change: impl FnOnce(&mut [T]) -> R) -> Result<R> {
        self.values_mut().map(change)
    }

    /// In a section of lock words accesses are ordinary ones, which may be done in this process.
    fn here(&self) -> Option<&Here<T>> {
        match self.hold {
            Hold::Words(_) => Some(&self.object.here),
            Hold::Grant { .. } | Hold::Entered(_) => None,
        }
    }

    fn fetch(&self) -> Call<View<T>> {
        let columns = self.object.region().columns as usize;
        let (all, slot) = (0..self.object.len(), self.here().and_then(Here::slot));
        let requests = &self.object.requests;
        requests.read(self.hold.epoch(), all, columns, slot)
    }

    /// Fetches the elements when the accesses of this section, by messages, have taken as long as that.
    fn fetch_if_worth_it(&self) -> Result<()> {
        if self.here().is_none() && self.copy.is_worth_fetching(self.object.len()) {
            self.values()?;
        }
        Ok(())
    }

    /// Writes what was changed in the slice, if the lock is made of words, whose release says nothing of it.
    fn write_by_words(&mut self) -> Result<()> {
        let Object { here, requests, .. } = &self.object;
        match self.hold {
            Hold::Words(_) => self
                .copy
                .write_back(|draft| driver::about_to_block(|| draft.writes(here, requests))),
            Hold::Grant { .. } | Hold::Entered(_) => Ok(()),
        }
    }

    /// Changes elements where the section has them, to be sent with its release; none if it does not have them.
    fn change<R>(
        &mut self,
        range: Range<usize>,
        change: impl FnOnce(&mut [T]) -> R,
    ) -> Result<Option<R>> {
        if self.here().is_none() && self.copy.is_there() {
            self.object.requests.check(range.clone())?;
            return Ok(self.copy.change(range, change));
        }
        // Something else than the slice is written: the slice is read anew when it is asked for again.
        self.write_by_words()?;
        self.copy.discard();
        Ok(None)
    }

    fn write_by_message(&self, first: usize, values: &[T]) -> Call<()> {
        let done = self.here().and_then(|here| here.write(first, values));
        let requests = &self.object.requests;
        Call::done_or(done, || requests.write(self.hold.epoch(), first, values))
    }

    /// Reads the whole object.
    ///
    /// # Errors
    /// As [`Object::read`]; refused if the section is over (`StaleEpoch`).
    pub fn read(&self) -> Result<View<T>> {
        blocking(|| self.read_async())
    }
    /// See [`read`](Self::read).
    pub fn read_async(&self) -> Call<View<T>> {
        let columns = self.object.region().columns as usize;
        let values = self.copy.read(0..self.object.len(), columns);
        Call::done_or(values, || self.fetch())
    }
    /// Reads a part of the object.
    ///
    /// # Errors
    /// As [`Object::read_range`].
    pub fn read_range(&self, range: Range<usize>) -> Result<View<T>> {
        self.fetch_if_worth_it()?;
        let columns = range.len();
        let done = self.copy.read(range.clone(), columns);
        let (requests, slot) = (&self.object.requests, self.here().and_then(Here::slot));
        done_or_blocking(done, || {
            requests.read(self.hold.epoch(), range, columns, slot)
        })
    }
    /// Reads an element.
    ///
    /// # Errors
    /// As [`Object::get`].
    pub fn get(&self, at: usize) -> Result<T> {
        self.fetch_if_worth_it()?;
        blocking(|| self.get_async(at))
    }
    /// See [`get`](Self::get).
    pub fn get_async(&self, at: usize) -> Call<T> {
        let (requests, slot) = (&self.object.requests, self.here().and_then(Here::slot));
        Call::done_or(self.copy.get(at), || {
            requests.get(self.hold.epoch(), at, slot)
        })
    }

    /// Writes the whole object.
    ///
    /// # Errors
    /// As [`Object::write`]; refused if the section is over (`StaleEpoch`).
    pub fn write(&mut self, values: &[T]) -> Result<()> {
        self.write_async(values).wait()
    }
    /// See [`write`](Self::write).
    pub fn write_async(&mut self, values: &[T]) -> Call<()> {
        match self.object.requests.check_length(values.len()) {
            Ok(()) => self.write_at_async(0, values),
            Err(error) => Call::failed(error),
        }
    }
    /// Writes `values` over the elements from `first` on.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_at(&mut self, first: usize, values: &[T]) -> Result<()> {
        self.fetch_if_worth_it()?;
        let range = first..first.saturating_add(values.len());
        let done = self.change(range, |part| part.copy_from_slice(values))?;
        done_or_blocking(done, || self.write_by_message(first, values))
    }
    /// See [`write_at`](Self::write_at).
    pub fn write_at_async(&mut self, first: usize, values: &[T]) -> Call<()> {
        let range = first..first.saturating_add(values.len());
        match self.change(range, |part| part.copy_from_slice(values)) {
            Ok(done) => Call::done_or(done, || self.write_by_message(first, values)),
            Err(error) => Call::failed(error),
        }
    }
    /// Writes an element.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn set(&mut self, at: usize, value: T) -> Result<()> {
        self.write_at(at, &[value])
    }
    /// See [`set`](Self::set).
    pub fn set_async(&mut self, at: usize, value: T) -> Call<()> {
        self.write_at_async(at, &[value])
    }
    /// As [`Object::compare_exchange`], in the section.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn compare_exchange(&mut self, at: usize, expected: T, new: T) -> Result<Exchange<T>> {
        self.fetch_if_worth_it()?;
        let range = at..at.saturating_add(1);
        if let Some(done) = self.change(range, |part| exchange(&mut part[0], expected, new))? {
            return Ok(done);
        }
        let (requests, epoch) = (&self.object.requests, self.hold.epoch());
        let done = self
            .here()
            .and_then(|here| here.exchange(at, expected, new));
        let send = || requests.exchange(epoch, at, expected, new);
        done_or_blocking(done, send)
    }
}

impl<T: Number> Section<T> {
    /// As [`Object::fetch_add`], in the section.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn fetch_add(&mut self, at: usize, delta: T) -> Result<T> {
        self.fetch_if_worth_it()?;
        if let Some(done) =
            self.change(at..at.saturating_add(1), |part| add(&mut part[0], delta))?
        {
            return Ok(done);
        }
        let (requests, epoch) = (&self.object.requests, self.hold.epoch());
        let done = self.here().and_then(|here| here.fetch_add(at, delta));
        done_or_blocking(done, || requests.fetch_add(epoch, at, delta))
    }
}

impl<T: Element> Drop for Section<T> {
    fn drop(&mut self) {
        match (self.state, &self.hold) {
            (State::Open, _) => {}
            (State::Over, _) => return,
            (State::Unreleased, Hold::Grant { .. } | Hold::Entered(_)) => return drop(self.end()),
            (State::Unreleased, Hold::Words(_)) => {
                return tracing::warn!("a section whose release failed keeps its lock");
            }
        }
        let driving = driver::is_driving();
        if driving && matches!(self.hold, Hold::Words(_)) {
            tracing::warn!("a section dropped in a waker keeps its lock; release it elsewhere");
            return;
        }
        if driving {
            // A thread that carries a session cannot wait for one; the request is on its way.
            drop(self.end());
        } else if let Err(error) = self.write_by_words().and_then(|()| blocking(|| self.end())) {
            tracing::warn!(%error, "a section that was dropped could not be released");
        }
    }
}

/// A section on a scalar.
#[must_use = "a section that is dropped is released at once"]
#[derive(Debug)]
pub struct ScalarSection<T: Element>(pub(crate) Section<T>);

impl<T: Element> ScalarSection<T> {
    /// The value.
    ///
    /// # Errors
    /// As [`Object::read`].
    pub fn read(&self) -> Result<T> {
        self.0.get(0)
    }
    /// See [`read`](Self::read).
    pub fn read_async(&self) -> Call<T> {
        self.0.get_async(0)
    }
    /// Writes the value.
    ///
    /// # Errors
    /// As [`Section::write`].
    pub fn write(&mut self, value: T) -> Result<()> {
        self.0.set(0, value)
    }
    /// See [`write`](Self::write).
    pub fn write_async(&mut self, value: T) -> Call<()> {
        self.0.set_async(0, value)
    }
    /// Replaces the value by what `change` makes of it; returns the new value.
    ///
    /// ```no_run
    /// # fn f(total: &dsm_lib::Scalar<f64>) -> dsm_lib::Result<()> {
    /// let mut section = total.acquire()?;
    /// section.update(|total| total + 1.0)?;
    /// section.release()?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`read`](Self::read) and [`write`](Self::write); then nothing is changed.
    pub fn update(&mut self, change: impl FnOnce(T) -> T) -> Result<T> {
        let value = change(self.read()?);
        self.write(value)?;
        Ok(value)
    }
    /// As [`Section::epoch`].
    pub fn epoch(&self) -> u64 {
        self.0.epoch()
    }
    /// As [`Section::fencing_token`].
    pub fn fencing_token(&self) -> Option<FencingToken> {
        self.0.fencing_token()
    }
    /// As [`Section::version`].
    pub fn version(&self) -> u64 {
        self.0.version()
    }
    /// As [`Section::release`].
    ///
    /// # Errors
    /// As [`Section::release`].
    pub fn release(self) -> Result<u64, ReleaseFailed<Self>> {
        let failed = |f: ReleaseFailed<Section<T>>| ReleaseFailed {
            error: f.error,
            section: Box::new(Self(*f.section)),
        };
        self.0.release().map_err(failed)
    }
    /// See [`release`](Self::release).
    pub fn release_async(self) -> Call<u64> {
        self.0.release_async()
    }
}
