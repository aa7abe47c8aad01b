//! The requests that operations on an object are, and what their replies mean; and what is done here instead, to an
//! object that this process has to itself.

use std::ops::Range;
use std::time::Duration;

use dosmos_proto::large::copy_of;
use dosmos_proto::wire::{self, ap_reply::Body as Reply, ap_request::Body as Request};
use dosmos_proto::{Malformed, Runs};

use super::{InSection, OUTSIDE, Object};
use crate::cache::{Entered, Hits};
use crate::element::{Element, Number};
use crate::operation::Op;
use crate::values::{Exchange, GRANTED_VALUE, Values, add, exchange, values_of, write_of};
use crate::{Call, Error, Result, Section, View};

/// What this process would keep of an object that it reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Nothing,
    Copy,
    /// The object itself.
    Exclusive,
}

impl<T: Element> Object<T> {
    /// A section of an object that this process has to itself, which it asks for if it was changed often.
    pub(super) fn enter_or_ask(&self) -> Result<Option<Section<T>>> {
        let here = self.enter();
        let asked = here.is_none() && self.may_enter() && self.ask_to_change(self.len())?;
        Ok(if asked { self.enter() } else { here })
    }

    /// Whether a section could be held in this process: its content comes with the grant, too.
    fn may_enter(&self) -> bool {
        self.len() * size_of::<T>() <= GRANTED_VALUE && self.lock.is_none()
    }

    /// A section of an object that this process has to itself, without a message.
    fn enter(&self) -> Option<Section<T>> {
        let slot = self.slot.as_ref().filter(|_| self.may_enter())?;
        let (values, entered) = slot.begin_section()?;
        Some(Section::entered(self.clone(), entered, values))
    }

    /// Ends a section that this process began without a message, if it still has the object to itself.
    pub(crate) fn leave(
        &self,
        entered: Entered,
        used: (Hits, Hits),
        change: Option<impl FnOnce(&mut [T])>,
    ) -> Option<u64> {
        let slot = self.slot.as_ref()?;
        // Whatever publishes later than this section is published before it.
        let here = self.dsm.ends_here(self.id);
        here.then(|| slot.end_section(entered, used, change))
            .flatten()
    }

    pub(crate) fn acquire_as<S: 'static>(
        &self,
        wrap: impl FnOnce(Section<T>) -> S + Send + 'static,
    ) -> Call<S> {
        if let Some(lock) = &self.lock {
            return Call::failed(Error::OnlyBlocking {
                what: Op::Acquire.on(&self.target).to_string(),
                kind: lock.kind(),
            });
        }
        if let Some(section) = self.enter() {
            return Call::done(Ok(wrap(section)));
        }
        let object = self.clone();
        let want_value = self.len() * size_of::<T>() <= GRANTED_VALUE;
        let acquire = wire::Acquire { want_value };
        let body = self.access(wire::object_access::Kind::Acquire(acquire));
        self.call(Op::Acquire, body, move |reply| match reply {
            Reply::Granted(grant) => {
                let values = grant.value.map(|v| values_of::<T>(&v, object.len()));
                let (epoch, version) = (grant.epoch, grant.version);
                let section = Section::granted(object, epoch, version, values.transpose()?);
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
        match self.check_length(values.len()) {
            Ok(()) => self.write_part(epoch, 0, values),
            Err(error) => Call::failed(error),
        }
    }

    pub(super) fn check_length(&self, given: usize) -> Result<()> {
        if given == self.len() {
            return Ok(());
        }
        Err(Error::WrongLength {
            object: self.target.to_string(),
            expected: self.len(),
            given,
        })
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
            data: copy_of(T::bytes_of(values)),
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
        self.dsm.count_section(&self.target, reads, writes);
    }

    /// Writes elements of an object that this process has to itself, outside a section. What is not there is
    /// refused by others.
    pub(super) fn write_here(&self, epoch: InSection, first: usize, values: &[T]) -> Option<()> {
        let end = first.checked_add(values.len())?;
        let inside = !values.is_empty() && end <= self.len();
        let write = |all: &mut [T]| all[first..end].copy_from_slice(values);
        inside
            .then(|| self.change_here(epoch, values.len(), write))
            .flatten()
    }

    /// Changes elements of an object that this process has to itself, outside a section.
    pub(super) fn change_here<R>(
        &self,
        epoch: InSection,
        elements: usize,
        change: impl FnOnce(&mut [T]) -> R,
    ) -> Option<R> {
        let slot = self.slot.as_ref().filter(|_| epoch.is_none())?;
        slot.change((elements * size_of::<T>()) as u64, change)
    }

    pub(super) fn send_write(&self, write: wire::Write) -> Call<()> {
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
    pub(super) fn read_to_have(&self) -> Call<Option<View<T>>> {
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
                Some((held, version)) => (Values::Own(held), version),
                None if done.unchanged => return Ok(None),
                None => (Values::received(done.data, all)?, done.version),
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
                let value = values.as_slice().get(range.start).copied();
                value.ok_or(Malformed::missing("value"))
            }),
        }
    }

    pub(super) fn read_call<R: 'static>(
        &self,
        epoch: InSection,
        range: Range<usize>,
        decode: impl FnOnce(Values<T>, Range<usize>, u64) -> Result<R, Malformed> + Send + 'static,
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
                    Some((held, version)) => (Values::Own(held), version),
                    None => (Values::received(done.data, all)?, done.version),
                };
                decode(values, asked, version)
            }
            Reply::Read(done) => {
                let values = Values::received(done.data, asked.len())?;
                decode(values, 0..asked.len(), done.version)
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
        self.dsm.call(op.on(&self.target), body, decode)
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
    pub(super) fn atomic_here<R>(
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
                1 => format!("element {} of {}", range.start, self.target),
                _ => format!("elements {}..{} of {}", range.start, range.end, self.target),
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
    pub(super) fn add_part(&self, first: usize, values: &[T]) -> Call<()> {
        if let Err(e) = self.check(first..first.saturating_add(values.len())) {
            return Call::failed(e);
        }
        if let Some(()) = self.add_here(first, values) {
            return Call::done(Ok(()));
        }
        self.send_write(wire::Write {
            first: first as u32,
            data: copy_of(T::bytes_of(values)),
            add: true,
            ..wire::Write::default()
        })
    }

    /// Adds to elements of an object that this process has to itself. What is not there is refused by others.
    pub(super) fn add_here(&self, first: usize, values: &[T]) -> Option<()> {
        let end = first.checked_add(values.len())?;
        let inside = !values.is_empty() && end <= self.len();
        let sum = |all: &mut [T]| {
            all[first..end].iter_mut().zip(values).for_each(|(a, b)| {
                add(a, *b);
            });
        };
        inside
            .then(|| self.change_here(OUTSIDE, values.len(), sum))
            .flatten()
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
