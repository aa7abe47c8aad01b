//! The requests that operations on an object are, and what their replies mean.

use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use dosmos_proto::large::copy_of;
use dosmos_proto::wire::{self, ap_reply::Body as Reply, ap_request::Body as Request};
use dosmos_proto::{Malformed, ObjectId, Runs};
use wire::object_access::Kind;

use crate::cache::Slot;
use crate::client::Client;
use crate::element::{Element, Number};
use crate::operation::{Op, Target};
use crate::shared::Shared;
use crate::values::{Exchange, GRANTED_VALUE, Values, values_of, write_of};
use crate::{Call, Error, Result, View};

/// The epoch of the section that an access belongs to; none outside a section.
pub(crate) type InSection = Option<u64>;

/// Outside a section.
pub(crate) const OUTSIDE: InSection = None;

/// What this process would keep of an object that it reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Nothing,
    Copy,
    /// The object itself.
    Exclusive,
}

/// Sends requests about one object to the memory process. An access that is wrong is not sent.
#[derive(Clone)]
pub(crate) struct Requests<T> {
    client: Arc<Client>,
    deadline: Duration,
    target: Target,
    id: ObjectId,
    /// Number of elements.
    len: usize,
    element: PhantomData<fn() -> T>,
}

impl<T: Element> Requests<T> {
    pub(super) fn new(
        client: &Arc<Client>,
        deadline: Duration,
        target: Target,
        id: ObjectId,
        len: usize,
    ) -> Self {
        Self {
            client: client.clone(),
            deadline,
            target,
            id,
            len,
            element: PhantomData,
        }
    }

    pub(super) fn with_deadline(&self, deadline: Duration) -> Self {
        Self {
            deadline,
            ..self.clone()
        }
    }

    /// The session.
    pub(crate) fn shared(&self) -> &Shared {
        self.client.shared()
    }
    pub(crate) fn deadline(&self) -> Duration {
        self.deadline
    }
    pub(crate) fn id(&self) -> ObjectId {
        self.id
    }

    /// Reads elements `range`, as rows of `columns`. A copy of the object may be kept in `slot`.
    pub(crate) fn read(
        &self,
        epoch: InSection,
        range: Range<usize>,
        columns: usize,
        slot: Option<&Arc<Slot<T>>>,
    ) -> Call<View<T>> {
        self.read_call(epoch, range, slot, move |values, range, version| {
            Ok(View::of(values, range, columns, version))
        })
    }

    /// Reads element `at`. A copy of the object may be kept in `slot`.
    pub(crate) fn get(&self, epoch: InSection, at: usize, slot: Option<&Arc<Slot<T>>>) -> Call<T> {
        let range = at..at.saturating_add(1);
        self.read_call(epoch, range, slot, |values, range, _| {
            let value = values.as_slice().get(range.start).copied();
            value.ok_or(Malformed::missing("value"))
        })
    }

    fn read_call<R: 'static>(
        &self,
        epoch: InSection,
        range: Range<usize>,
        slot: Option<&Arc<Slot<T>>>,
        decode: impl FnOnce(Values<T>, Range<usize>, u64) -> Result<R, Malformed> + Send + 'static,
    ) -> Call<R> {
        if let Err(error) = self.check(range.clone()) {
            return Call::failed(error);
        }
        let bytes = (range.len() * size_of::<T>()) as u64;
        let slot = slot.cloned();
        let keep = slot.as_ref().is_some_and(|slot| slot.wants(bytes));
        let (asked, all) = (range.clone(), self.len);
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

    /// Fetches the object ahead of accesses to it, for a copy of it to be kept when it arrives.
    pub(super) fn ask_for_copy(&self) -> Call<()> {
        self.ask(Keep::Copy)
    }

    /// Asks to have the object to itself, ahead of accesses to it.
    pub(super) fn ask_to_have(&self) -> Call<()> {
        self.ask(Keep::Exclusive)
    }

    fn ask(&self, keep: Keep) -> Call<()> {
        let request = self.read_request(OUTSIDE, Some(0..0), keep);
        self.call(Op::Read, request, |reply| match reply {
            Reply::Read(_) => Ok(()),
            _ => Err(Malformed::new("reply", "not the end of a read")),
        })
    }

    /// Reads the whole object into `slot`, to have it to itself if that is possible. Nothing if it has, or if it had the
    /// content, which is void since.
    pub(super) fn read_to_have(&self, slot: &Arc<Slot<T>>) -> Call<Option<View<T>>> {
        let (slot, all) = (slot.clone(), self.len);
        let request = self.read_request(OUTSIDE, None, Keep::Exclusive);
        self.call(Op::Read, request, move |reply| {
            let Reply::Read(done) = reply else {
                return Err(Malformed::new("reply", "not the end of a read"));
            };
            if slot.is_exclusive() {
                // Whoever takes it from there is the only one that has it: with a view of it, it would be copied for that.
                return Ok(None);
            }
            let (values, version) = match slot.peek() {
                Some((held, version)) => (Values::Own(held), version),
                None if done.unchanged => return Ok(None),
                None => (Values::received(done.data, all)?, done.version),
            };
            Ok(Some(View::of(values, 0..all, all, version)))
        })
    }

    /// A request to read a part, or all.
    fn read_request(&self, epoch: InSection, part: Option<Range<usize>>, keep: Keep) -> Request {
        // Positions fit: an object has less than 2^32 elements.
        self.access(Kind::Read(wire::Read {
            first: part.as_ref().map_or(0, |p| p.start as u32),
            end: part.map(|p| p.end as u32),
            epoch,
            keep: keep != Keep::Nothing,
            exclusive: keep == Keep::Exclusive,
        }))
    }

    /// Writes `values` over the elements from `first` on.
    pub(crate) fn write(&self, epoch: InSection, first: usize, values: &[T]) -> Call<()> {
        let write = wire::Write {
            epoch,
            ..wire::Write::default()
        };
        self.write_part(first, values, write)
    }

    fn write_part(&self, first: usize, values: &[T], write: wire::Write) -> Call<()> {
        match self.check(first..first.saturating_add(values.len())) {
            Err(error) => Call::failed(error),
            Ok(()) => self.send_write(wire::Write {
                first: first as u32,
                data: copy_of(T::bytes_of(values)),
                ..write
            }),
        }
    }

    /// Writes the elements of `runs`, which has them in their places in `values`, in one step, outside a section.
    pub(crate) fn write_runs(&self, runs: &Runs, values: &[T]) -> Call<()> {
        let (first, end) = runs.hull();
        match runs.is_one() {
            true => self.write(
                OUTSIDE,
                first as usize,
                &values[first as usize..end as usize],
            ),
            false => self.send_write(write_of(runs, values)),
        }
    }

    fn send_write(&self, write: wire::Write) -> Call<()> {
        let body = self.access(Kind::Write(write));
        self.call(Op::Write, body, |reply| match reply {
            Reply::Write(_) => Ok(()),
            _ => Err(Malformed::new("reply", "not the end of a write")),
        })
    }

    /// Stores `new` in element `at` if it is `expected`.
    pub(crate) fn exchange(
        &self,
        epoch: InSection,
        at: usize,
        expected: T,
        new: T,
    ) -> Call<Exchange<T>> {
        let op = wire::atomic::Op::CompareExchange(wire::CompareExchange {
            expected: expected.to_bits(),
            desired: new.to_bits(),
        });
        self.atomic(epoch, at, op, |done| Exchange {
            previous: T::from_bits(done.previous),
            stored: done.stored,
        })
    }

    fn atomic<R: 'static>(
        &self,
        epoch: InSection,
        at: usize,
        op: wire::atomic::Op,
        decode: impl FnOnce(wire::AtomicDone) -> R + Send + 'static,
    ) -> Call<R> {
        if let Err(error) = self.check(at..at.saturating_add(1)) {
            return Call::failed(error);
        }
        let body = self.access(Kind::Atomic(wire::Atomic {
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

    /// Waits in the owner's queue. The grant has an epoch and a version, and the content unless that is large.
    pub(crate) fn acquire<R: 'static>(
        &self,
        granted: impl FnOnce(u64, u64, Option<Vec<T>>) -> R + Send + 'static,
    ) -> Call<R> {
        let len = self.len;
        let want_value = len * size_of::<T>() <= GRANTED_VALUE;
        let body = self.access(Kind::Acquire(wire::Acquire { want_value }));
        self.call(Op::Acquire, body, move |reply| match reply {
            Reply::Granted(grant) => {
                let values = grant.value.map(|v| values_of::<T>(&v, len)).transpose()?;
                Ok(granted(grant.epoch, grant.version, values))
            }
            _ => Err(Malformed::new("reply", "not a grant")),
        })
    }

    /// Releases a section, with what it wrote and was not sent before.
    pub(crate) fn release(&self, epoch: u64, write: Option<wire::Write>) -> Call<u64> {
        let body = self.access(Kind::Release(wire::Release {
            epoch: Some(epoch),
            write,
        }));
        self.call(Op::Release, body, |reply| match reply {
            Reply::Released(done) => Ok(done.version),
            _ => Err(Malformed::new("reply", "not the end of a release")),
        })
    }

    fn access(&self, kind: Kind) -> Request {
        Request::Access(wire::ObjectAccess {
            object: self.id.to_wire(),
            kind: Some(kind),
        })
    }

    fn call<R: 'static>(
        &self,
        op: Op,
        body: Request,
        decode: impl FnOnce(Reply) -> Result<R, Malformed> + Send + 'static,
    ) -> Call<R> {
        let operation = op.on(&self.target);
        self.client
            .call(operation, body, self.deadline, |_, reply| decode(reply))
    }
}

impl<T: Number> Requests<T> {
    /// Adds `values` to the elements from `first` on, outside a section.
    pub(super) fn add(&self, first: usize, values: &[T]) -> Call<()> {
        let write = wire::Write {
            add: true,
            ..wire::Write::default()
        };
        self.write_part(first, values, write)
    }

    /// Adds `delta` to element `at`; the value before.
    pub(crate) fn fetch_add(&self, epoch: InSection, at: usize, delta: T) -> Call<T> {
        let op = wire::atomic::Op::FetchAdd(delta.to_bits());
        self.atomic(epoch, at, op, |done| T::from_bits(done.previous))
    }
}

impl<T> Requests<T> {
    /// The object, by name.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    pub(crate) fn check(&self, range: Range<usize>) -> Result<()> {
        if range.start < range.end && range.end <= self.len {
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
                format!("the object has {} elements", self.len)
            },
        })
    }

    /// Checks the number of elements of an access to the whole object.
    pub(crate) fn check_length(&self, given: usize) -> Result<()> {
        if given == self.len {
            return Ok(());
        }
        Err(Error::WrongLength {
            object: self.target.to_string(),
            expected: self.len,
            given,
        })
    }
}
