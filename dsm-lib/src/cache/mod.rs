//! Copies of objects in this process (docs/design/consistency.md#copies-in-application-processes): a read
//! of a valid one sends nothing and takes no time stamp.
//!
//! Guarantees: a copy is kept, dropped and confirmed in the order of the session's stream, before the reply
//! that follows is completed; a write of this process drops it when it is sent; reads are counted and
//! reported, so that the monitor's counts are exact.

mod held;

use std::any::Any;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dosmos_proto::{Nanos, ObjectId, wire};

use crate::element::Element;
use crate::subject::Thing;
use held::Held;
pub(crate) use held::Hits;

/// An object of up to this many bytes is kept at its first read, a larger one when as many bytes of it were
/// asked for as it has: so a single element does not fetch a large object.
const SMALL: u64 = 16 << 10;

/// Reads are reported at least so often.
pub(crate) const REPORT_EVERY: Nanos = Nanos::from_millis(50);

/// Objects with reads that are not reported.
type Touched = Arc<Mutex<Vec<ObjectId>>>;

/// No user code runs under these locks.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What this process holds of one object; all its handles share it.
pub(crate) struct Slot<T> {
    thing: Thing,
    object: ObjectId,
    bytes: u64,
    state: Mutex<State<T>>,
    touched: Touched,
}

struct State<T> {
    held: Held<Arc<Vec<T>>>,
    /// Bytes asked for since something was kept.
    asked: u64,
}

impl<T: Element> Slot<T> {
    /// All elements and their version, if they are held; counts as a read of elements `range`.
    #[inline]
    pub(crate) fn read(&self, range: &Range<usize>) -> Option<(Arc<Vec<T>>, u64)> {
        let mut state = lock(&self.state);
        let (values, version, first) = state.held.read((range.len() * size_of::<T>()) as u64)?;
        let found = (Arc::clone(values), version);
        if first {
            lock(&self.touched).push(self.object);
        }
        Some(found)
    }

    /// Element `at`, if it is held; counts as a read of it.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<T> {
        let mut state = lock(&self.state);
        // What is not there is refused by others.
        state.held.get()?.0.get(at)?;
        let (values, _, first) = state.held.read(size_of::<T>() as u64)?;
        let value = values.get(at).copied();
        if first {
            lock(&self.touched).push(self.object);
        }
        value
    }

    /// All elements and their version, if they are held; not a read.
    pub(crate) fn peek(&self) -> Option<(Arc<Vec<T>>, u64)> {
        let state = lock(&self.state);
        state.held.get().map(|(values, v)| (Arc::clone(values), v))
    }

    /// Whether to ask for all of the object when `bytes` of it are read.
    pub(crate) fn wants(&self, bytes: u64) -> bool {
        let mut state = lock(&self.state);
        state.asked = state.asked.saturating_add(bytes);
        self.bytes <= SMALL || state.asked >= self.bytes
    }
}

/// A slot, whatever its elements are.
trait AnySlot: Any + Send + Sync {
    fn keep(&self, request: u64, version: u64, data: &[u8]);
    fn wrote(&self, request: u64);
    fn invalidate(&self);
    fn confirm(&self, version: u64);
    fn take_hits(&self) -> Option<Hits>;
    fn thing(&self) -> &Thing;
}

impl<T: Element> AnySlot for Slot<T> {
    fn keep(&self, request: u64, version: u64, data: &[u8]) {
        if let Some(values) = T::from_bytes(data).filter(|_| data.len() as u64 == self.bytes) {
            let mut state = lock(&self.state);
            state.asked = 0;
            state.held.keep(request, Arc::new(values), version);
        }
    }
    fn wrote(&self, request: u64) {
        lock(&self.state).held.wrote(request);
    }
    fn invalidate(&self) {
        lock(&self.state).held.invalidate();
    }
    fn confirm(&self, version: u64) {
        lock(&self.state).held.confirm(version);
    }
    fn take_hits(&self) -> Option<Hits> {
        lock(&self.state).held.take_hits()
    }
    fn thing(&self) -> &Thing {
        &self.thing
    }
}

/// The slots of a session.
pub(crate) struct Cache {
    slots: HashMap<ObjectId, Arc<dyn AnySlot>>,
    touched: Touched,
    /// Collected and not yet sent.
    unsent: Vec<wire::CachedReads>,
    /// Everything before is collected.
    collected: Nanos,
}

impl Cache {
    /// Nothing held, as of `now`.
    pub(crate) fn new(now: Nanos) -> Self {
        Self {
            slots: HashMap::new(),
            touched: Touched::default(),
            unsent: Vec::new(),
            collected: now,
        }
    }

    /// The slot of an object, made at its first use; none for an object that has one of another type.
    pub(crate) fn slot<T: Element>(
        &mut self,
        thing: &Thing,
        object: ObjectId,
        elements: usize,
    ) -> Option<Arc<Slot<T>>> {
        let new = || -> Arc<dyn AnySlot> {
            Arc::new(Slot::<T> {
                thing: thing.clone(),
                object,
                bytes: (elements * size_of::<T>()) as u64,
                state: Mutex::new(State {
                    held: Held::default(),
                    asked: 0,
                }),
                touched: Arc::clone(&self.touched),
            })
        };
        let slot = self.slots.entry(object).or_insert_with(new);
        let any: Arc<dyn Any + Send + Sync> = Arc::clone(slot) as _;
        any.downcast().ok()
    }

    /// Whether there is anything to look after.
    pub(crate) fn is_used(&self) -> bool {
        !self.slots.is_empty()
    }

    /// A write leaves, as the request `request`.
    pub(crate) fn wrote(&self, object: ObjectId, request: u64) {
        if let Some(slot) = self.slots.get(&object) {
            slot.wrote(request);
        }
    }

    /// The reply to a request about an object, or a notice, before anything else is done with it.
    pub(crate) fn hear(&self, object: ObjectId, request: u64, body: &wire::ap_reply::Body) {
        use wire::ap_reply::Body;
        let Some(slot) = self.slots.get(&object) else {
            return;
        };
        match body {
            Body::Read(done) if done.keep => slot.keep(request, done.version, &done.data),
            Body::Granted(granted) => slot.confirm(granted.version),
            Body::Released(released) => slot.confirm(released.version),
            Body::Invalidate(_) => slot.invalidate(),
            _ => {}
        }
    }

    /// The session is over.
    pub(crate) fn end(&self) {
        self.slots.values().for_each(|slot| slot.invalidate());
    }

    /// Collects reads to be reported; `each` is told of what and how many.
    pub(crate) fn collect(&mut self, now: Nanos, mut each: impl FnMut(&Thing, u64)) {
        let touched = std::mem::take(&mut *lock(&self.touched));
        for object in touched {
            let Some(slot) = self.slots.get(&object) else {
                continue;
            };
            let Some(hits) = slot.take_hits() else {
                continue;
            };
            each(slot.thing(), hits.count);
            self.unsent.push(wire::CachedReads {
                object: object.to_wire(),
                count: hits.count,
                first_ns: self.collected.0,
                last_ns: now.0,
                bytes: hits.bytes,
                version: hits.version,
            });
        }
        self.collected = now;
    }

    /// Whether it is time to report.
    pub(crate) fn is_due(&self, now: Nanos) -> bool {
        now >= self.collected + REPORT_EVERY
    }

    /// What was collected, to be sent.
    pub(crate) fn take_reads(&mut self) -> Vec<wire::CachedReads> {
        std::mem::take(&mut self.unsent)
    }
}
