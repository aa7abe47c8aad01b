//! What this process holds of one object, typed, and the same whatever its elements are.

use std::any::Any;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dosmos_proto::delegation::{CHANGES, MOST_DECLINED};
use dosmos_proto::large::copy_of;
use dosmos_proto::{ObjectId, wire};

use super::held::{Answer, Back, Elements, Entered, Held, Hits, Made, Served, Wanted};
use super::reads::{Known, Reads};
use crate::element::Element;
use crate::operation::Target;

/// An object of up to this many bytes is kept at its first read, a larger one when as many bytes of it were
/// asked for as it has, while it did not change: so a single element does not fetch a large object, nor does a part that
/// somebody changes every time.
const SMALL: u64 = 16 << 10;

/// A copy of a large object that was voided before it was read again was not worth it: before the next one, this many times as
/// many bytes have to be asked for, and so on.
const MORE: u64 = 4;

/// Copies in vain that count.
const MOST_IN_VAIN: u32 = 3;

/// Reads of the same elements in a row after which the reader may be waiting for somebody to change them.
const SAME: u32 = 256;

/// No code of the program runs under these locks.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Objects that something is to be done about.
#[derive(Default)]
pub(super) struct Marks {
    /// With accesses that are not reported.
    touched: Mutex<Vec<ObjectId>>,
    /// With changes that others are to see.
    unpublished: Mutex<Vec<ObjectId>>,
    /// Sections are among what is not reported.
    sections: AtomicBool,
}

impl Marks {
    pub(super) fn take_touched(&self) -> Vec<ObjectId> {
        std::mem::take(&mut *lock(&self.touched))
    }
    /// Whether sections are among what was not reported when this was asked last.
    pub(super) fn take_sections(&self) -> bool {
        self.sections.swap(false, Ordering::Relaxed)
    }
    pub(super) fn take_unpublished(&self) -> Vec<ObjectId> {
        std::mem::take(&mut *lock(&self.unpublished))
    }
}

/// What this process holds of one object; all its handles share it.
pub(crate) struct Slot<T> {
    target: Target,
    object: ObjectId,
    elements: u32,
    bytes: u64,
    /// Another one whenever what is held changes, or what was read is taken, if there are readers.
    stamp: AtomicU64,
    state: Mutex<State<T>>,
    marks: Arc<Marks>,
}

struct State<T> {
    held: Held<Arc<Vec<T>>>,
    /// Bytes asked for since something was kept or voided, or the content was found to have changed.
    asked: u64,
    /// The version of that content.
    asked_of: u64,
    /// The copy has not been read since it came.
    unread: bool,
    /// How many copies, one after the other, were voided so.
    in_vain: u32,
    /// Changes that were sent since something was voided, and their bytes.
    changes: u32,
    changed: u64,
    /// How often the object was asked for in vain, one after the other.
    declined: u32,
    /// What was read last, and how often one after the other.
    same: (Elements, u32),
    /// Those who keep what is held, and count what they read of it themselves.
    readers: Vec<Known>,
}

impl<T> State<T> {
    /// Takes what readers counted of what is held; whether that are the first accesses since they were reported.
    fn hear_readers(&mut self) -> bool {
        let Self { held, readers, .. } = self;
        let mut first = false;
        for reader in readers {
            if let Some(hits) = reader.take(held.version()) {
                first |= held.add_reads(hits);
            }
        }
        first
    }

    /// Elements are read; whether the reader may be waiting for somebody to change them.
    #[inline]
    fn reads(&mut self, elements: Elements) -> bool {
        self.unread = false;
        let (last, times) = self.same;
        self.same = match last == elements && times < SAME {
            true => (last, times + 1),
            false => (elements, 1),
        };
        self.same.1 == SAME
    }
}

/// The content of an object that is delegated to this process, taken out to be edited.
#[derive(Debug)]
pub(crate) struct Taken<T> {
    pub(crate) values: Vec<T>,
    delegation: u64,
}

impl<T: Element> Slot<T> {
    pub(super) fn new(
        target: Target,
        object: ObjectId,
        elements: usize,
        marks: Arc<Marks>,
    ) -> Self {
        Self {
            target,
            object,
            // An object has less than 2^32 elements.
            elements: elements as u32,
            bytes: (elements * size_of::<T>()) as u64,
            state: Mutex::new(State {
                held: Held::default(),
                asked: 0,
                asked_of: 0,
                unread: false,
                in_vain: 0,
                changes: 0,
                changed: 0,
                declined: 0,
                same: ((0, 0), 0),
                readers: Vec::new(),
            }),
            stamp: AtomicU64::new(0),
            marks,
        }
    }

    /// Content that arrived; none if it is not that of this object.
    fn content(&self, data: &[u8]) -> Option<Arc<Vec<T>>> {
        let fits = data.len() as u64 == self.bytes;
        fits.then(|| T::from_bytes(data).map(Arc::new)).flatten()
    }

    /// The state, which is going to change: readers look at it again.
    fn changing(&self) -> MutexGuard<'_, State<T>> {
        let mut state = lock(&self.state);
        if !state.readers.is_empty() {
            self.touched(self.recall_readers(&mut state));
        }
        state
    }

    /// Readers look again at what is held. Takes what they counted of it; whether that are the first accesses since they were reported.
    #[cold]
    fn recall_readers(&self, state: &mut State<T>) -> bool {
        // They see it at the latest when they learn of the change from whoever made it.
        self.stamp.fetch_add(1, Ordering::Release);
        state.hear_readers()
    }

    /// See [`Reader`](crate::Reader).
    #[inline]
    pub(crate) fn stamp(&self) -> u64 {
        self.stamp.load(Ordering::Acquire)
    }

    /// The content and its version, for a reader that keeps it while the slot has this stamp, and counts what it reads itself. None
    /// if there is none, or if it is this process's own to change.
    pub(crate) fn keep_for(&self, reads: &Arc<Reads>) -> Option<(Arc<Vec<T>>, u64, u64)> {
        let mut state = lock(&self.state);
        self.hear_and_forget(&mut state, reads);
        if state.held.is_exclusive() {
            return None;
        }
        let (values, version) = state.held.get()?;
        let values = Arc::clone(values);
        reads.begin();
        state.readers.push(Known::new(reads));
        self.touched(state.held.served_nothing());
        Some((values, version, self.stamp.load(Ordering::Relaxed)))
    }

    /// A reader is gone.
    pub(crate) fn forget(&self, reads: &Arc<Reads>) {
        self.hear_and_forget(&mut lock(&self.state), reads);
    }

    /// A reader keeps nothing any more.
    fn hear_and_forget(&self, state: &mut State<T>, reads: &Arc<Reads>) {
        self.touched(state.hear_readers());
        state.readers.retain(|known| !known.is(reads));
    }

    fn touched(&self, first: bool) {
        if first {
            lock(&self.marks.touched).push(self.object);
        }
    }

    /// All elements and their version, if they are held; counts as a read of elements `range`. And whether the reader may be
    /// waiting for somebody to change them.
    #[inline]
    pub(crate) fn read(&self, range: &Range<usize>) -> Option<(Arc<Vec<T>>, u64, bool)> {
        let mut state = lock(&self.state);
        let (elements, bytes) = (range_of(range), (range.len() * size_of::<T>()) as u64);
        let (values, version, first) = state.held.read(elements, bytes)?;
        let values = Arc::clone(values);
        self.touched(first);
        Some((values, version, state.reads(elements)))
    }

    /// Element `at`, if it is held; counts as a read of it. And whether the reader may be waiting for somebody to change it.
    #[inline]
    pub(crate) fn get(&self, at: usize) -> Option<(T, bool)> {
        let mut state = lock(&self.state);
        // What is not there is refused by others.
        state.held.get()?.0.get(at)?;
        let element = (at as u32, at as u32 + 1);
        let (values, _, first) = state.held.read(element, size_of::<T>() as u64)?;
        let value = *values.get(at)?;
        self.touched(first);
        Some((value, state.reads(element)))
    }

    /// Changes `count` elements in place, all of them in `range`, if the object is delegated to this process; counts as a write.
    #[inline]
    pub(crate) fn change<R>(
        &self,
        range: &Range<usize>,
        count: usize,
        change: impl FnOnce(&mut [T]) -> R,
    ) -> Option<R> {
        let mut state = self.changing();
        let on = |values: &mut Arc<Vec<T>>| change(Arc::make_mut(values).as_mut_slice());
        let (elements, bytes) = (range_of(range), (count * size_of::<T>()) as u64);
        let (result, first, publish) = state.held.change(elements, bytes, on)?;
        self.touched(first);
        if publish {
            lock(&self.marks.unpublished).push(self.object);
        }
        Some(result)
    }

    /// All elements, to be changed in place, if the object is delegated to this process; counts as a write, and
    /// as a read unless they have just been `read`.
    pub(crate) fn take(&self, read: bool) -> Option<Taken<T>> {
        let (values, delegation, first) = {
            let held = &mut self.changing().held;
            held.take(self.elements, self.bytes, read)?
        };
        self.touched(first);
        // Views of it stay as they are.
        let values = Arc::unwrap_or_clone(values);
        Some(Taken { values, delegation })
    }

    /// Puts the elements back. Whether they had not been taken from this process meanwhile, and whether
    /// others wait for them.
    pub(crate) fn put(&self, taken: Taken<T>) -> (bool, bool) {
        let mut state = self.changing();
        let kept = state.held.put(taken.delegation, Arc::new(taken.values));
        if state.held.is_unpublished() {
            lock(&self.marks.unpublished).push(self.object);
        }
        (kept, state.held.is_asked())
    }

    /// All elements and their version, if they are held; not a read.
    pub(crate) fn peek(&self) -> Option<(Arc<Vec<T>>, u64)> {
        let state = lock(&self.state);
        state.held.get().map(|(values, v)| (Arc::clone(values), v))
    }

    /// Whether its content is here, or is being edited here.
    pub(crate) fn is_held(&self) -> bool {
        let state = lock(&self.state);
        state.held.get().is_some() || state.held.is_exclusive()
    }

    /// Whether this process has the object to itself.
    pub(crate) fn is_exclusive(&self) -> bool {
        lock(&self.state).held.is_exclusive()
    }

    /// Whether to ask for all of the object when `bytes` of it are read.
    pub(crate) fn wants(&self, bytes: u64) -> bool {
        let mut state = lock(&self.state);
        state.asked = state.asked.saturating_add(bytes);
        self.bytes <= SMALL || state.asked >= self.bytes.saturating_mul(MORE.pow(state.in_vain))
    }

    /// Whether all of the object is worth asking for at once.
    pub(crate) fn is_small(&self) -> bool {
        self.bytes <= SMALL
    }

    /// Whether to ask for the object itself before `bytes` of it are changed.
    pub(crate) fn wants_to_change(&self, bytes: u64) -> bool {
        let mut state = lock(&self.state);
        state.changes += 1;
        state.changed = state.changed.saturating_add(bytes);
        let many = CHANGES << state.declined.min(MOST_DECLINED);
        let often = state.changes > many && (self.bytes <= SMALL || state.changed > self.bytes);
        if often {
            (state.changes, state.changed) = (0, 0);
        }
        often && !state.held.is_exclusive()
    }

    /// It was asked for and is not here.
    pub(crate) fn was_declined(&self) -> bool {
        let mut state = lock(&self.state);
        let declined = !state.held.is_exclusive();
        state.declined = match declined {
            true => (state.declined + 1).min(MOST_DECLINED),
            false => 0,
        };
        declined
    }

    /// Begins a section, if the object is delegated to this process and not in use: with its elements.
    pub(crate) fn begin_section(&self) -> Option<(Arc<Vec<T>>, Entered)> {
        let mut state = self.changing();
        let (values, entered) = state.held.begin_section()?;
        Some((Arc::clone(values), entered))
    }

    /// Ends a section, with its reads and writes, if it is still one of this process's own: `change`
    /// is what it wrote. The version that this makes.
    pub(crate) fn end_section(
        &self,
        section: Entered,
        used: (Hits, Hits),
        change: Option<impl FnOnce(&mut Arc<Vec<T>>)>,
    ) -> Option<u64> {
        let mut state = self.changing();
        let (version, first, publish) = state.held.end_section(section, used, change)?;
        self.marks.sections.store(true, Ordering::Relaxed);
        self.touched(first);
        if publish {
            lock(&self.marks.unpublished).push(self.object);
        }
        Some(version)
    }

    fn to_wire(&self, back: Back<Arc<Vec<T>>>) -> wire::Return {
        let part = |content: &[T], (first, end): (u32, u32)| {
            let end = content.len().min(end as usize);
            let values = content.get(first as usize..end)?;
            let data = copy_of(T::bytes_of(values));
            Some(wire::Part { first, data })
        };
        let (kept, parts) = match back.made {
            Made::Nothing => (false, Vec::new()),
            Made::All(content) => {
                let all = (0, content.len() as u32);
                (false, part(&content, all).into_iter().collect())
            }
            Made::Parts(content, ranges) => {
                let ranges = ranges.into_iter();
                (
                    true,
                    ranges.filter_map(|range| part(&content, range)).collect(),
                )
            }
        };
        wire::Return {
            object: self.object.to_wire(),
            delegation: back.delegation,
            version: back.version,
            kept,
            parts,
            served: back.served,
            epoch: back.epoch,
            in_section: back.in_section,
        }
    }

    /// What is given back, which may be the end of sections to report.
    fn given_back(&self, back: Back<Arc<Vec<T>>>) -> wire::Return {
        self.touched(back.in_section);
        self.to_wire(back)
    }
}

/// As it is reported: an object has less than 2^32 elements.
#[inline]
fn range_of(range: &Range<usize>) -> Elements {
    (range.start as u32, range.end as u32)
}

/// A return of an object that this process does not have.
pub(super) fn nothing(object: ObjectId, delegation: u64) -> wire::Return {
    wire::Return {
        object: object.to_wire(),
        delegation,
        ..wire::Return::default()
    }
}

/// A slot, whatever its elements are.
pub(super) trait AnySlot: Any + Send + Sync {
    fn keep(&self, request: u64, version: u64, data: &[u8]);
    fn entrust(&self, request: u64, done: &wire::ReadDone, delegation: u64) -> bool;
    fn wrote(&self, request: u64);
    fn invalidate(&self);
    fn update(&self, version: u64, data: &[u8]);
    fn confirm(&self, version: u64);
    fn has_read(&self, version: u64, bytes: u64);
    fn recall(&self, delegation: u64, wanted: Wanted) -> Option<wire::Return>;
    fn answers(&self) -> Vec<wire::Return>;
    fn publish(&self) -> Option<wire::Return>;
    fn give_back(&self) -> Option<wire::Return>;
    fn lose(&self) -> bool;
    fn delegation(&self) -> Option<u64>;
    fn take_served(&self) -> Served;
    fn target(&self) -> &Target;
}

impl<T: Element> AnySlot for Slot<T> {
    fn keep(&self, request: u64, version: u64, data: &[u8]) {
        if let Some(values) = self.content(data) {
            let mut state = self.changing();
            state.asked = 0;
            state.unread = true;
            state.held.keep(request, values, version);
        }
    }
    fn entrust(&self, request: u64, done: &wire::ReadDone, delegation: u64) -> bool {
        let values = match done.unchanged {
            true => None,
            false => match self.content(&done.data) {
                None => return false,
                values => values,
            },
        };
        let mut state = self.changing();
        state.asked = 0;
        let delegation = (delegation, done.epoch);
        state
            .held
            .entrust(request, values, done.version, delegation)
    }
    fn wrote(&self, request: u64) {
        self.changing().held.wrote(request);
    }
    fn invalidate(&self) {
        let mut state = self.changing();
        state.asked = 0;
        if state.held.get().is_some() {
            state.in_vain = match state.unread {
                true => (state.in_vain + 1).min(MOST_IN_VAIN),
                false => 0,
            };
        }
        (state.changes, state.changed) = (0, 0);
        state.held.invalidate();
    }
    fn update(&self, version: u64, data: &[u8]) {
        // A copy that a write of this process dropped is not made for nothing.
        if self.peek().is_none() {
            return;
        }
        match self.content(data) {
            Some(values) => self.changing().held.update(values, version),
            None => self.invalidate(),
        }
    }
    fn has_read(&self, version: u64, bytes: u64) {
        let mut state = self.changing();
        if std::mem::replace(&mut state.asked_of, version) != version {
            state.asked = bytes;
        }
        state.held.confirm(version);
    }
    fn confirm(&self, version: u64) {
        self.changing().held.confirm(version);
    }
    fn recall(&self, delegation: u64, wanted: Wanted) -> Option<wire::Return> {
        let answer = self.changing().held.recall(delegation, wanted);
        match answer {
            Answer::Now(back) => Some(self.given_back(back)),
            Answer::Later => None,
        }
    }
    fn answers(&self) -> Vec<wire::Return> {
        let answers = self.changing().held.answers();
        answers.into_iter().map(|back| self.to_wire(back)).collect()
    }
    fn publish(&self) -> Option<wire::Return> {
        let back = self.changing().held.publish()?;
        Some(self.to_wire(back))
    }
    fn give_back(&self) -> Option<wire::Return> {
        let back = self.changing().held.give_back()?;
        Some(self.given_back(back))
    }
    fn lose(&self) -> bool {
        self.changing().held.lose()
    }
    fn delegation(&self) -> Option<u64> {
        lock(&self.state).held.delegation()
    }
    fn take_served(&self) -> Served {
        let mut state = lock(&self.state);
        if !state.readers.is_empty() {
            // They are reported now.
            let _first = self.recall_readers(&mut state);
        }
        state.held.take_served()
    }
    fn target(&self) -> &Target {
        &self.target
    }
}
