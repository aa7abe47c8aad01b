//! One object of a variable: what is read, written, locked and owned as a whole.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use dosmos_proto::wire::{self, ap_reply::Body as Reply, ap_request::Body as Request};
use dosmos_proto::{Cache, Malformed, ObjectId, Region, Runs, Variable as Declared};

use crate::cache::{Hits, Slot, Taken};
use crate::call::blocking;
use crate::element::{Element, Number};
use crate::lock::Lock;
use crate::subject::{Op, Thing};
use crate::{Call, Dsm, Edit, Error, Result, Section, View};

/// The epoch of the section that an access belongs to; none outside a section.
type InSection = Option<u64>;

/// The content of an object of up to this many bytes comes with the grant of a section.
const GRANTED_VALUE: usize = 64 << 10;

/// What this process would keep of an object that it reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Nothing,
    Copy,
    /// The object itself.
    Exclusive,
}

/// Outside a section.
const OUTSIDE: InSection = None;

/// A handle of one object. Cheap to clone.
#[derive(Clone)]
pub struct Object<T> {
    dsm: Dsm,
    owner: Arc<str>,
    thing: Thing,
    id: ObjectId,
    region: Region,
    /// None: the owner's queue.
    lock: Option<Arc<Lock>>,
    /// What this process holds of it; none if copies are kept at memory processes only.
    slot: Option<Arc<Slot<T>>>,
    /// It may be delegated to this process.
    may_have: bool,
}

/// What a compare-exchange found, and whether it stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange<T> {
    /// The value before.
    pub previous: T,
    /// Whether it was the expected one, so that the new one was stored.
    pub stored: bool,
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
        let thing = Thing {
            name,
            object: Some(id),
            only: variable.spec().layout().objects() == 1,
        };
        let caches = variable.spec().cache() == Cache::Ap;
        let owner = dsm.memory_process_name(variable.owner(index));
        Some(Self {
            may_have: caches && *owner == *dsm.memory_process(),
            owner,
            slot: caches
                .then(|| dsm.slot(&thing, region.elements() as usize))
                .flatten(),
            dsm,
            thing,
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
        self.change(values.len(), here, || self.write_at_async(first, values))
    }
    /// See [`write_at`](Self::write_at).
    pub fn write_at_async(&self, first: usize, values: &[T]) -> Call<()> {
        self.write_part(OUTSIDE, first, values)
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
        let bytes = (elements * size_of::<T>()) as u64;
        let slot = self.slot.as_ref().filter(|_| self.may_have);
        if slot.is_some_and(|slot| slot.wants_to_change(bytes)) {
            blocking(|| self.read_to_have())?;
        }
        blocking(there)
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
                what: format!("the edit of {}", self.thing),
                object: self.thing.to_string(),
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
            return blocking(|| self.acquire_async());
        };
        lock.acquire(self.id.index as usize, self.dsm.deadline())?;
        Ok(Section::of_words(self.clone(), lock.clone()))
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
                what: Op::Acquire.on(&self.thing).to_string(),
                kind: lock.kind(),
            });
        }
        let object = self.clone();
        let want_value = self.len() * size_of::<T>() <= GRANTED_VALUE;
        let acquire = wire::Acquire { want_value };
        let body = self.access(wire::object_access::Kind::Acquire(acquire));
        self.call(Op::Acquire, body, move |reply| match reply {
            Reply::Granted(grant) => {
                let values = grant.value.map(|v| values_of::<T>(&v, object.len()));
                let (epoch, version) = (grant.epoch, grant.version);
                let section = Section::new(object, epoch, version, values.transpose()?);
                Ok(wrap(section))
            }
            _ => Err(Malformed::new("reply", "not a grant")),
        })
    }

    pub(crate) fn deadline(&self) -> Duration {
        self.dsm.deadline()
    }

    /// Releases a section, with what it wrote and was not sent before.
    pub(crate) fn release_call(&self, epoch: u64, write: Option<wire::Write>) -> Call<u64> {
        let body = self.access(wire::object_access::Kind::Release(wire::Release {
            epoch: Some(epoch),
            write,
        }));
        self.call(Op::Release, body, |reply| match reply {
            Reply::Released(done) => Ok(done.version),
            _ => Err(Malformed::new("reply", "not the end of a release")),
        })
    }

    pub(crate) fn write_whole(&self, epoch: InSection, values: &[T]) -> Call<()> {
        if values.len() != self.len() {
            return Call::failed(Error::WrongLength {
                object: self.thing.to_string(),
                expected: self.len(),
                given: values.len(),
            });
        }
        self.write_part(epoch, 0, values)
    }

    pub(crate) fn write_part(&self, epoch: InSection, first: usize, values: &[T]) -> Call<()> {
        if let Err(e) = self.check(first..first.saturating_add(values.len())) {
            return Call::failed(e);
        }
        if let Some(()) = self.write_here(epoch, first, values) {
            return Call::done(Ok(()));
        }
        self.send_write(wire::Write {
            first: first as u32,
            data: Bytes::copy_from_slice(T::bytes_of(values)),
            epoch,
            ..wire::Write::default()
        })
    }

    /// Writes the elements of `runs`, which has them in their places in `values`, in one step.
    pub(crate) fn write_runs(&self, epoch: InSection, runs: &Runs, values: &[T]) -> Call<()> {
        let (first, end) = runs.hull();
        if runs.is_one() {
            return self.write_part(epoch, first as usize, &values[first as usize..end as usize]);
        }
        let change = |all: &mut [T]| {
            for (first, end) in runs.iter() {
                let range = first as usize..end as usize;
                all[range.clone()].copy_from_slice(&values[range]);
            }
        };
        if let Some(()) = self.change_here(epoch, runs.elements() as usize, change) {
            return Call::done(Ok(()));
        }
        self.send_write(wire::Write {
            epoch,
            ..write_of(runs, values)
        })
    }

    /// Accesses that a section served itself: reads, to be reported, and writes, which its release says.
    pub(crate) fn count_section(&self, reads: Hits, writes: u64) {
        self.dsm.count_section(&self.thing, reads, writes);
    }

    /// Writes elements of an object that this process has to itself, outside a section. What is not there is
    /// refused by others.
    fn write_here(&self, epoch: InSection, first: usize, values: &[T]) -> Option<()> {
        let end = first.checked_add(values.len())?;
        let inside = !values.is_empty() && end <= self.len();
        let write = |all: &mut [T]| all[first..end].copy_from_slice(values);
        inside
            .then(|| self.change_here(epoch, values.len(), write))
            .flatten()
    }

    /// Changes elements of an object that this process has to itself, outside a section.
    fn change_here<R>(
        &self,
        epoch: InSection,
        elements: usize,
        change: impl FnOnce(&mut [T]) -> R,
    ) -> Option<R> {
        let slot = self.slot.as_ref().filter(|_| epoch.is_none())?;
        slot.change((elements * size_of::<T>()) as u64, change)
    }

    fn send_write(&self, write: wire::Write) -> Call<()> {
        let body = self.access(wire::object_access::Kind::Write(write));
        self.call(Op::Write, body, |reply| match reply {
            Reply::Write(_) => Ok(()),
            _ => Err(Malformed::new("reply", "not the end of a write")),
        })
    }

    pub(crate) fn read_whole(&self, epoch: InSection) -> Call<View<T>> {
        let columns = self.region.columns as usize;
        self.read_call(epoch, 0..self.len(), move |values, range, version| {
            Ok(View::of(values, range, columns, version))
        })
    }

    /// Reads the whole object, to have it to itself if that is possible. Nothing if this process had its content,
    /// which is void since.
    fn read_to_have(&self) -> Call<Option<View<T>>> {
        let columns = self.region.columns as usize;
        let slot = self.slot.clone();
        let (request, all) = (
            self.read_request(OUTSIDE, None, Keep::Exclusive),
            self.len(),
        );
        self.call(Op::Read, request, move |reply| {
            let Reply::Read(done) = reply else {
                return Err(Malformed::new("reply", "not the end of a read"));
            };
            let (values, version) = match slot.and_then(|slot| slot.peek()) {
                Some(held) => held,
                None if done.unchanged => return Ok(None),
                None => (Arc::new(elements(&done, all)?), done.version),
            };
            Ok(Some(View::of(values, 0..all, columns, version)))
        })
    }

    pub(crate) fn read_elements(&self, epoch: InSection, range: Range<usize>) -> Call<View<T>> {
        let length = range.len();
        match self.check(range.clone()) {
            Err(e) => Call::failed(e),
            Ok(()) => self.read_call(epoch, range, move |values, range, version| {
                Ok(View::of(values, range, length, version))
            }),
        }
    }

    pub(crate) fn read_element(&self, epoch: InSection, at: usize) -> Call<T> {
        let range = at..at.saturating_add(1);
        match self.check(range.clone()) {
            Err(e) => Call::failed(e),
            Ok(()) => self.read_call(epoch, range, |values, range, _| {
                let value = values.get(range.start).copied();
                value.ok_or(Malformed::missing("value"))
            }),
        }
    }

    fn read_call<R: 'static>(
        &self,
        epoch: InSection,
        range: Range<usize>,
        decode: impl FnOnce(Arc<Vec<T>>, Range<usize>, u64) -> Result<R, Malformed> + Send + 'static,
    ) -> Call<R> {
        let bytes = (range.len() * size_of::<T>()) as u64;
        let slot = self.slot.clone().filter(|_| epoch.is_none());
        let keep = slot.as_ref().is_some_and(|slot| slot.wants(bytes));
        let (asked, all) = (range.clone(), self.len());
        let keep = if keep { Keep::Copy } else { Keep::Nothing };
        // All of it is said in one way only.
        let part = (range != (0..all)).then_some(range);
        let body = self.read_request(epoch, part, keep);
        self.call(Op::Read, body, move |reply| match reply {
            Reply::Read(done) if done.keep => {
                // Kept when it arrived; as it is now, if it has not been dropped since.
                let (values, version) = match slot.and_then(|slot| slot.peek()) {
                    Some(held) => held,
                    None => (Arc::new(elements(&done, all)?), done.version),
                };
                decode(values, asked, version)
            }
            Reply::Read(done) => {
                let values = elements(&done, asked.len())?;
                decode(Arc::new(values), 0..asked.len(), done.version)
            }
            _ => Err(Malformed::new("reply", "not the end of a read")),
        })
    }

    /// A request to read a part, or all.
    fn read_request(&self, epoch: InSection, part: Option<Range<usize>>, keep: Keep) -> Request {
        // Positions fit: an object has less than 2^32 elements.
        self.access(wire::object_access::Kind::Read(wire::Read {
            first: part.as_ref().map_or(0, |p| p.start as u32),
            end: part.map(|p| p.end as u32),
            epoch,
            keep: keep != Keep::Nothing,
            exclusive: keep == Keep::Exclusive,
        }))
    }

    fn call<R: 'static>(
        &self,
        op: Op,
        body: Request,
        decode: impl FnOnce(Reply) -> Result<R, Malformed> + Send + 'static,
    ) -> Call<R> {
        self.dsm.call(op.on(&self.thing), body, decode)
    }

    /// Stores `new` in element `at` if it is `expected`, bit for bit, in one step at the owner.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    pub fn compare_exchange(&self, at: usize, expected: T, new: T) -> Result<Exchange<T>> {
        let here = || self.atomic_here(OUTSIDE, at, |value| exchange(value, expected, new));
        self.change(1, here, || self.compare_exchange_async(at, expected, new))
    }
    /// See [`compare_exchange`](Self::compare_exchange).
    pub fn compare_exchange_async(&self, at: usize, expected: T, new: T) -> Call<Exchange<T>> {
        self.exchange(OUTSIDE, at, expected, new)
    }

    pub(crate) fn exchange(
        &self,
        epoch: InSection,
        at: usize,
        expected: T,
        new: T,
    ) -> Call<Exchange<T>> {
        let here = self.atomic_here(epoch, at, |value| exchange(value, expected, new));
        if let Some(exchange) = here {
            return Call::done(Ok(exchange));
        }
        let op = wire::atomic::Op::CompareExchange(wire::CompareExchange {
            expected: expected.to_bits(),
            desired: new.to_bits(),
        });
        self.atomic(epoch, at, op, |done| Exchange {
            previous: T::from_bits(done.previous),
            stored: done.stored,
        })
    }

    /// Changes an element of an object that this process has to itself.
    fn atomic_here<R>(
        &self,
        epoch: InSection,
        at: usize,
        change: impl FnOnce(&mut T) -> R,
    ) -> Option<R> {
        // What is not there is refused by others.
        let inside = at < self.len();
        let change = |all: &mut [T]| change(&mut all[at]);
        inside.then(|| self.change_here(epoch, 1, change)).flatten()
    }

    fn atomic<R: 'static>(
        &self,
        epoch: InSection,
        at: usize,
        op: wire::atomic::Op,
        decode: impl FnOnce(wire::AtomicDone) -> R + Send + 'static,
    ) -> Call<R> {
        if let Err(e) = self.check(at..at.saturating_add(1)) {
            return Call::failed(e);
        }
        let body = self.access(wire::object_access::Kind::Atomic(wire::Atomic {
            element: at as u32,
            r#type: wire::ElementType::from(T::TYPE).into(),
            epoch,
            op: Some(op),
        }));
        self.call(Op::Atomic, body, |reply| match reply {
            Reply::Atomic(done) => Ok(decode(done)),
            _ => Err(Malformed::new(
                "reply",
                "not the end of an atomic operation",
            )),
        })
    }

    fn access(&self, kind: wire::object_access::Kind) -> Request {
        Request::Access(wire::ObjectAccess {
            object: self.id.to_wire(),
            kind: Some(kind),
        })
    }

    pub(crate) fn check(&self, range: Range<usize>) -> Result<()> {
        if range.start < range.end && range.end <= self.len() {
            return Ok(());
        }
        Err(Error::OutOfRange {
            what: match range.len() {
                1 => format!("element {} of {}", range.start, self.thing),
                _ => format!("elements {}..{} of {}", range.start, range.end, self.thing),
            },
            bounds: if range.is_empty() {
                "it is empty; nothing to do".into()
            } else {
                format!("the object has {} elements", self.len())
            },
        })
    }
}

impl<T: Number> Object<T> {
    /// Adds `delta` to element `at` (integers wrap), in one step at the owner; returns the value before.
    ///
    /// # Errors
    /// As [`write_at`](Self::write_at).
    pub fn fetch_add(&self, at: usize, delta: T) -> Result<T> {
        let here = || self.atomic_here(OUTSIDE, at, |value| add(value, delta));
        self.change(1, here, || self.fetch_add_async(at, delta))
    }
    /// See [`fetch_add`](Self::fetch_add).
    pub fn fetch_add_async(&self, at: usize, delta: T) -> Call<T> {
        self.add(OUTSIDE, at, delta)
    }

    pub(crate) fn add(&self, epoch: InSection, at: usize, delta: T) -> Call<T> {
        let here = self.atomic_here(epoch, at, |value| add(value, delta));
        if let Some(previous) = here {
            return Call::done(Ok(previous));
        }
        let op = wire::atomic::Op::FetchAdd(delta.to_bits());
        self.atomic(epoch, at, op, |done| T::from_bits(done.previous))
    }
}

/// Stores `new` in the place of `expected`, as an owner does.
pub(crate) fn exchange<T: Element>(value: &mut T, expected: T, new: T) -> Exchange<T> {
    let previous = *value;
    let stored = previous.to_bits() == expected.to_bits();
    if stored {
        *value = new;
    }
    Exchange { previous, stored }
}

/// Adds as an owner does; the value before.
pub(crate) fn add<T: Number>(value: &mut T, delta: T) -> T {
    let previous = *value;
    *value = previous.plus(delta);
    previous
}

/// A write of the elements of `runs`, which has them in their places in `values`.
pub(crate) fn write_of<T: Element>(runs: &Runs, values: &[T]) -> wire::Write {
    let mut data = BytesMut::with_capacity(runs.elements() as usize * size_of::<T>());
    for (first, end) in runs.iter() {
        data.extend_from_slice(T::bytes_of(&values[first as usize..end as usize]));
    }
    wire::Write {
        first: runs.hull().0,
        data: data.freeze(),
        lengths: if runs.is_one() {
            Vec::new()
        } else {
            runs.to_wire()
        },
        ..wire::Write::default()
    }
}

/// The values in a reply, if they are as many as were asked for.
fn elements<T: Element>(done: &wire::ReadDone, length: usize) -> Result<Vec<T>, Malformed> {
    values_of(&done.data, length)
}

fn values_of<T: Element>(data: &[u8], length: usize) -> Result<Vec<T>, Malformed> {
    let values = T::from_bytes(data).filter(|v| v.len() == length);
    values.ok_or_else(|| {
        let bytes = data.len();
        Malformed::new(
            "value",
            format!("{bytes} bytes are not {length} elements of {}", T::TYPE),
        )
    })
}

impl<T> std::fmt::Debug for Object<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Object({} at {})", self.thing, self.owner)
    }
}
