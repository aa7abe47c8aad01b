//! Exclusive access to an object, from an acquire to its release.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::call::blocking;
use crate::drive;
use crate::edit::Draft;
use crate::element::{Element, Number};
use crate::lock::Lock;
use crate::{Call, Error, ErrorCode, Exchange, Object, Result, View};

/// A section: this process alone has the object until the section is released. What is written in it
/// is seen here at once and by all others when [`release`](Self::release) has returned.
///
/// Dropping a section releases it and waits for that, too; but only `release` tells what went wrong
/// (a drop logs it). If this process loses the object, for example because its connection broke, all
/// operations in the section fail, reads too, and what was written in it is undone.
#[must_use = "a section that is dropped is released at once"]
#[derive(Debug)]
pub struct Section<T: Element> {
    object: Object<T>,
    hold: Hold,
    state: State,
    /// The elements as this section sees them, once they were asked for as a slice.
    draft: OnceLock<Draft<T>>,
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
    /// Lock words. Writes are ordinary ones, published at the end.
    Words(Arc<Lock>),
}

impl<T: Element> Section<T> {
    pub(crate) fn new(object: Object<T>, epoch: u64, version: u64) -> Self {
        Self {
            object,
            hold: Hold::Grant { epoch, version },
            state: State::Open,
            draft: OnceLock::new(),
        }
    }

    pub(crate) fn of_words(object: Object<T>, lock: Arc<Lock>) -> Self {
        Self {
            object,
            hold: Hold::Words(lock),
            state: State::Open,
            draft: OnceLock::new(),
        }
    }

    /// The object held.
    pub fn object(&self) -> &Object<T> {
        &self.object
    }
    /// Number of this grant: one higher than that of the grant before. 0 if the lock is not a queue lock.
    pub fn epoch(&self) -> u64 {
        match self.hold {
            Hold::Grant { epoch, .. } => epoch,
            Hold::Words(_) => 0,
        }
    }

    /// What accesses in this section carry.
    fn grant(&self) -> Option<u64> {
        match self.hold {
            Hold::Grant { epoch, .. } => Some(epoch),
            Hold::Words(_) => None,
        }
    }
    /// How often the object had been released when it was granted. 0 if the lock is not a queue lock.
    pub fn version(&self) -> u64 {
        match self.hold {
            Hold::Grant { version, .. } => version,
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
        match self.write_draft().and_then(|()| blocking(|| self.end())) {
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
    /// See [`release`](Self::release). Blocks if the lock is not a queue lock, or to write what was changed
    /// in [`values_mut`](Self::values_mut). A release that fails is sent once more.
    pub fn release_async(mut self) -> Call<u64> {
        if let Err(error) = self.write_draft() {
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
            Hold::Grant { epoch, .. } => self.object.release_call(*epoch),
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
        match self.draft.get_mut() {
            Some(draft) => Ok(draft.values_mut()),
            None => Ok(&mut []),
        }
    }

    fn fetch(&self) -> Result<Vec<T>> {
        let view = blocking(|| self.object.read_whole(self.grant()))?;
        Ok(view.into_vec())
    }

    /// Writes what was changed in the slice.
    fn write_draft(&mut self) -> Result<()> {
        let Some(draft) = self.draft.get() else {
            return Ok(());
        };
        let grant = self.grant();
        let calls = drive::about_to_block(|| draft.writes(&self.object, grant));
        calls.into_iter().try_for_each(Call::wait)?;
        if let Some(draft) = self.draft.get_mut() {
            draft.written();
        }
        Ok(())
    }

    /// Something else than the slice is written: the slice is read anew when it is asked for again.
    fn leave_draft(&mut self) -> Result<()> {
        self.write_draft()?;
        self.draft.take();
        Ok(())
    }

    /// Elements `range` as the slice has them, if there is one.
    fn drafted(&self, range: Range<usize>, columns: usize) -> Option<View<T>> {
        let values = self.draft.get()?.values().get(range)?;
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
        match self.drafted(0..self.object.len(), columns) {
            Some(view) => Call::done(Ok(view)),
            None => self.object.read_whole(self.grant()),
        }
    }
    /// Reads a part of the object.
    ///
    /// # Errors
    /// As [`Object::read_range`].
    pub fn read_range(&self, range: Range<usize>) -> Result<View<T>> {
        let drafted = self.drafted(range.clone(), range.len());
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
        blocking(|| self.get_async(at))
    }
    /// See [`get`](Self::get).
    pub fn get_async(&self, at: usize) -> Call<T> {
        match self.draft.get().and_then(|draft| draft.values().get(at)) {
            Some(value) => Call::done(Ok(*value)),
            None => self.object.read_element(self.grant(), at),
        }
    }

    /// Writes the whole object.
    ///
    /// # Errors
    /// As [`Object::write`]; refused if the section is over (`StaleEpoch`).
    pub fn write(&mut self, values: &[T]) -> Result<()> {
        self.leave_draft()?;
        blocking(|| self.object.write_whole(self.grant(), values))
    }
    /// See [`write`](Self::write).
    pub fn write_async(&mut self, values: &[T]) -> Call<()> {
        match self.leave_draft() {
            Ok(()) => self.object.write_whole(self.grant(), values),
            Err(error) => Call::failed(error),
        }
    }
    /// Writes `values` over the elements from `first` on.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn write_at(&mut self, first: usize, values: &[T]) -> Result<()> {
        self.leave_draft()?;
        blocking(|| self.object.write_part(self.grant(), first, values))
    }
    /// See [`write_at`](Self::write_at).
    pub fn write_at_async(&mut self, first: usize, values: &[T]) -> Call<()> {
        match self.leave_draft() {
            Ok(()) => self.object.write_part(self.grant(), first, values),
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
        self.leave_draft()?;
        let epoch = self.grant();
        blocking(|| self.object.exchange(epoch, at, expected, new))
    }
}

impl<T: Number> Section<T> {
    /// As [`Object::fetch_add`], in the section.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn fetch_add(&mut self, at: usize, delta: T) -> Result<T> {
        self.leave_draft()?;
        let epoch = self.grant();
        blocking(|| self.object.add(epoch, at, delta))
    }
}

impl<T: Element> Drop for Section<T> {
    fn drop(&mut self) {
        match (self.state, &self.hold) {
            (State::Open, _) => {}
            (State::Over, _) => return,
            (State::Unreleased, Hold::Grant { .. }) => return drop(self.end()),
            (State::Unreleased, Hold::Words(_)) => {
                return tracing::warn!("a section whose release failed keeps its lock");
            }
        }
        let driving = drive::is_driving();
        if driving && matches!(self.hold, Hold::Words(_)) {
            tracing::warn!("a section dropped in a waker keeps its lock; release it elsewhere");
            return;
        }
        if driving {
            // A thread that carries a session cannot wait for one; the requests are on their way.
            let draft = self.draft.get();
            drop(draft.map(|draft| draft.writes(&self.object, self.grant())));
            drop(self.end());
        } else if let Err(error) = self.write_draft().and_then(|()| blocking(|| self.end())) {
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
