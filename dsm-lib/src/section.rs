//! Exclusive access to an object, from an acquire to its release.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use dosmos_proto::wire;

use crate::cache::{Entered, Hits};
use crate::call::blocking;
use crate::driver;
use crate::edit::Draft;
use crate::element::{Element, Number};
use crate::lock::Lock;
use crate::values::{GRANTED_VALUE, add, exchange};
use crate::{Call, Error, ErrorCode, Exchange, Object, Result, View};

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
    /// The elements as this section sees them, if they came with the grant or were asked for as a slice.
    draft: OnceLock<Draft<T>>,
    used: Used,
}

/// A message takes about as long as this many bytes more of an object.
const BYTES_PER_MESSAGE: u64 = 16 << 10;

/// Accesses of a section: those that it served itself, and messages.
#[derive(Debug, Default)]
struct Used {
    /// Accesses that were messages, or would have been.
    sent: AtomicU64,
    reads: AtomicU64,
    read_bytes: AtomicU64,
    /// The content came with the grant, and was not read yet.
    unread: AtomicBool,
    writes: u32,
    /// The elements were given out to be changed.
    slice: bool,
    /// How many of the writes are counted.
    counted: AtomicU64,
}

impl Used {
    fn read(&self, bytes: usize) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.read_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.unread.store(false, Ordering::Relaxed);
    }

    fn write(&mut self) {
        self.writes = self.writes.saturating_add(1);
    }
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
enum Hold {
    /// A grant of the owner's.
    Grant { epoch: u64, version: u64 },
    /// The object is delegated to this process, or was when the section began: then it is held as by a grant.
    Entered(Entered),
    /// Lock words. Writes are ordinary ones, published at the end.
    Words(Arc<Lock>),
}

impl<T: Element> Section<T> {
    /// Of a grant, with the values that came with it, if they did.
    pub(crate) fn granted(
        object: Object<T>,
        epoch: u64,
        version: u64,
        values: Option<Vec<T>>,
    ) -> Self {
        Self::new(object, Hold::Grant { epoch, version }, values)
    }

    /// Of an object that this process has to itself.
    pub(crate) fn entered(object: Object<T>, entered: Entered, values: Vec<T>) -> Self {
        Self::new(object, Hold::Entered(entered), Some(values))
    }

    fn new(object: Object<T>, hold: Hold, values: Option<Vec<T>>) -> Self {
        let unread = AtomicBool::new(values.is_some());
        let draft = values.map(|values| OnceLock::from(Draft::of(values)));
        Self {
            object,
            hold,
            state: State::Open,
            draft: draft.unwrap_or_default(),
            used: Used {
                unread,
                ..Used::default()
            },
        }
    }

    pub(crate) fn of_words(object: Object<T>, lock: Arc<Lock>) -> Self {
        Self::new(object, Hold::Words(lock), None)
    }

    /// The object held.
    pub fn object(&self) -> &Object<T> {
        &self.object
    }
    /// Number of this grant: one higher than that of the grant before. 0 if the lock is not a queue lock.
    pub fn epoch(&self) -> u64 {
        match self.hold {
            Hold::Grant { epoch, .. } | Hold::Entered(Entered { epoch, .. }) => epoch,
            Hold::Words(_) => 0,
        }
    }

    /// What accesses in this section carry.
    fn grant(&self) -> Option<u64> {
        match self.hold {
            Hold::Grant { epoch, .. } | Hold::Entered(Entered { epoch, .. }) => Some(epoch),
            Hold::Words(_) => None,
        }
    }
    /// How often the object had been released when it was granted. 0 if the lock is not a queue lock.
    pub fn version(&self) -> u64 {
        match self.hold {
            Hold::Grant { version, .. } | Hold::Entered(Entered { version, .. }) => version,
            Hold::Words(_) => 0,
        }
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
        match &self.hold {
            Hold::Grant { epoch, .. } => self.object.release_call(*epoch, self.last_write()),
            Hold::Entered(entered) => {
                let change = self.draft.get().and_then(Draft::change);
                let used = self.used(change.is_some());
                match self.object.leave(*entered, used, change) {
                    Some(version) => Call::done(Ok(version)),
                    None => self.object.release_call(entered.epoch, self.last_write()),
                }
            }
            Hold::Words(lock) => {
                let index = self.object.index() as usize;
                let released = lock.release(index, self.object.deadline());
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
        if let Some(draft) = self.draft.get() {
            if self.used.unread.load(Ordering::Relaxed) {
                self.used.read(size_of_val(draft.values()));
            }
            return Ok(draft.values());
        }
        let values = self.fetch()?;
        Ok(self.draft.get_or_init(|| Draft::of(values)).values())
    }

    /// The elements, as a slice to change in place. What was changed, and only that, is written no later
    /// than the release, as one write; reads in this section see it at once.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn values_mut(&mut self) -> Result<&mut [T]> {
        self.values()?;
        self.used.slice = true;
        match self.draft.get_mut() {
            Some(draft) => Ok(draft.values_mut()),
            None => Ok(&mut []),
        }
    }

    /// Fetches the elements when the accesses of this section, by messages, have taken as long as that.
    fn fetch_if_worth_it(&self) -> Result<()> {
        let bytes = size_of::<T>() * self.object.len();
        let by_message = self.draft.get().is_none() && bytes > GRANTED_VALUE;
        if !by_message || matches!(self.hold, Hold::Words(_)) {
            return Ok(());
        }
        let sent = self.used.sent.fetch_add(1, Ordering::Relaxed);
        match bytes as u64 <= sent * BYTES_PER_MESSAGE {
            true => self.values().map(|_| ()),
            false => Ok(()),
        }
    }

    fn fetch(&self) -> Result<Vec<T>> {
        let view = blocking(|| self.object.read_whole(self.grant()))?;
        Ok(view.into_vec())
    }

    /// What was read and written in this section, of which nothing was sent; `changed`: its slice was.
    fn used(&self, changed: bool) -> (Hits, Hits) {
        let used = &self.used;
        let writes = u64::from(used.writes) + u64::from(used.slice && changed);
        let reads = Hits {
            count: used.reads.load(Ordering::Relaxed),
            bytes: used.read_bytes.load(Ordering::Relaxed),
            version: self.version(),
        };
        let writes = Hits {
            count: writes,
            bytes: writes * size_of::<T>() as u64,
            version: self.version(),
        };
        (reads, writes)
    }

    /// What was written in this section and not sent, for its release to send; counts what was done.
    fn last_write(&self) -> Option<wire::Write> {
        let used = &self.used;
        let draft = self.draft.get();
        let changed = draft.and_then(Draft::write);
        let slice = u32::from(used.slice && changed.is_some());
        // A write that changes nothing is one all the same.
        let write = match changed {
            None if used.writes > 0 => draft.map(Draft::first),
            changed => changed,
        };
        let accesses = used.writes + slice;
        let version = self.version();
        let reads = Hits {
            count: used.reads.swap(0, Ordering::Relaxed),
            bytes: used.read_bytes.swap(0, Ordering::Relaxed),
            version,
        };
        // Once, however often the release is repeated.
        let counted = used.counted.swap(accesses.into(), Ordering::Relaxed);
        let writes = u64::from(accesses).saturating_sub(counted);
        if reads.count + writes > 0 {
            self.object.count_section(reads, writes);
        }
        write.map(|write| wire::Write {
            accesses: Some(accesses.max(1)),
            ..write
        })
    }

    /// Writes what was changed in the slice, if the lock is made of words, whose release says nothing of it.
    fn write_by_words(&mut self) -> Result<()> {
        let (Hold::Words(_), Some(draft)) = (&self.hold, self.draft.get()) else {
            return Ok(());
        };
        let calls = driver::about_to_block(|| draft.writes(&self.object));
        calls.into_iter().try_for_each(Call::wait)?;
        if let Some(draft) = self.draft.get_mut() {
            draft.written();
        }
        Ok(())
    }

    /// Writes elements where the section has them, to be sent with its release; false if it does not have them.
    fn write_here(&mut self, first: usize, values: &[T]) -> Result<bool> {
        let range = first..first.saturating_add(values.len());
        let (Hold::Grant { .. } | Hold::Entered(_), Some(draft)) =
            (&self.hold, self.draft.get_mut())
        else {
            self.leave_slice()?;
            return Ok(false);
        };
        self.object.check(range.clone())?;
        draft.values_mut()[range].copy_from_slice(values);
        self.used.write();
        Ok(true)
    }

    /// Something else than the slice is written: the slice is read anew when it is asked for again.
    fn leave_slice(&mut self) -> Result<()> {
        self.write_by_words()?;
        self.draft.take();
        Ok(())
    }

    /// Changes one element where the section has it.
    fn change_here<R>(&mut self, at: usize, change: impl FnOnce(&mut T) -> R) -> Result<Option<R>> {
        let (Hold::Grant { .. } | Hold::Entered(_), Some(draft)) =
            (&self.hold, self.draft.get_mut())
        else {
            self.leave_slice()?;
            return Ok(None);
        };
        self.object.check(at..at.saturating_add(1))?;
        let result = change(&mut draft.values_mut()[at]);
        self.used.write();
        Ok(Some(result))
    }

    /// Elements `range` as the section has them, if it does; counts as a read.
    fn read_here(&self, range: Range<usize>, columns: usize) -> Option<View<T>> {
        let values = self.draft.get()?.values().get(range)?;
        if !values.is_empty() {
            self.used.read(size_of_val(values));
        }
        Some(View::new(values.to_vec(), columns, self.version()))
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
        match self.read_here(0..self.object.len(), columns) {
            Some(view) => Call::done(Ok(view)),
            None => self.object.read_whole(self.grant()),
        }
    }
    /// Reads a part of the object.
    ///
    /// # Errors
    /// As [`Object::read_range`].
    pub fn read_range(&self, range: Range<usize>) -> Result<View<T>> {
        self.fetch_if_worth_it()?;
        let drafted = self.read_here(range.clone(), range.len());
        if let Some(view) = drafted.filter(|view| !view.is_empty()) {
            return Ok(view);
        }
        blocking(|| self.object.read_elements(self.grant(), range))
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
        match self.draft.get().and_then(|draft| draft.values().get(at)) {
            Some(value) => {
                self.used.read(size_of::<T>());
                Call::done(Ok(*value))
            }
            None => self.object.read_element(self.grant(), at),
        }
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
        let here = match values.len() == self.object.len() {
            true => self.write_here(0, values),
            false => Ok(false),
        };
        match here {
            Ok(true) => Call::done(Ok(())),
            Ok(false) => self.object.write_whole(self.grant(), values),
            Err(error) => Call::failed(error),
        }
    }
    /// Writes `values` over the elements from `first` on.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_at(&mut self, first: usize, values: &[T]) -> Result<()> {
        self.fetch_if_worth_it()?;
        match self.write_here(first, values)? {
            true => Ok(()),
            false => blocking(|| self.object.write_part(self.grant(), first, values)),
        }
    }
    /// See [`write_at`](Self::write_at).
    pub fn write_at_async(&mut self, first: usize, values: &[T]) -> Call<()> {
        match self.write_here(first, values) {
            Ok(true) => Call::done(Ok(())),
            Ok(false) => self.object.write_part(self.grant(), first, values),
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
        let here = self.change_here(at, |value| exchange(value, expected, new))?;
        let epoch = self.grant();
        match here {
            Some(exchange) => Ok(exchange),
            None => blocking(|| self.object.exchange(epoch, at, expected, new)),
        }
    }
}

impl<T: Number> Section<T> {
    /// As [`Object::fetch_add`], in the section.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn fetch_add(&mut self, at: usize, delta: T) -> Result<T> {
        self.fetch_if_worth_it()?;
        let here = self.change_here(at, |value| add(value, delta))?;
        let epoch = self.grant();
        match here {
            Some(previous) => Ok(previous),
            None => blocking(|| self.object.add(epoch, at, delta)),
        }
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
    /// As [`Section::epoch`].
    pub fn epoch(&self) -> u64 {
        self.0.epoch()
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
