//! What a section has of its object: the elements as it sees them, and how often it accessed them.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use dosmos_proto::wire;

use crate::cache::{Elements, Hits, hull};
use crate::draft::Draft;
use crate::element::Element;
use crate::values::GRANTED_VALUE;
use crate::{Call, View};

/// A message takes about as long as this many bytes more of an object.
const BYTES_PER_MESSAGE: u64 = 16 << 10;

/// The elements, and the accesses that they served.
#[derive(Debug)]
pub(super) struct WorkingCopy<T> {
    /// If they came with the grant or were asked for as a slice.
    draft: OnceLock<Draft<T>>,
    /// Of the object when the section began.
    version: u64,
    /// Accesses that were messages, or would have been.
    sent: AtomicU64,
    reads: AtomicU64,
    read_bytes: AtomicU64,
    /// The smallest range that holds all elements that were read.
    read_elements: ReadElements,
    /// The content came with the grant, and was not read yet.
    unread: AtomicBool,
    writes: u32,
    /// The elements were given out to be changed.
    slice: bool,
}

/// Elements that several threads may add to: the first in the upper half of the number, the end in the lower; 0 if there are none.
#[derive(Debug, Default)]
struct ReadElements(AtomicU64);

impl ReadElements {
    fn add(&self, range: Range<usize>) {
        // An object has less than 2^32 elements.
        let new = (range.start as u32, range.end as u32);
        let widened = |known| {
            let wider = hull(unpacked(known), new);
            let packed = u64::from(wider.0) << 32 | u64::from(wider.1);
            (packed != known).then_some(packed)
        };
        let relaxed = Ordering::Relaxed;
        // It fails if they are known.
        let _ = self.0.fetch_update(relaxed, relaxed, widened);
    }

    fn get(&self) -> Elements {
        unpacked(self.0.load(Ordering::Relaxed))
    }
}

fn unpacked(elements: u64) -> Elements {
    ((elements >> 32) as u32, elements as u32)
}

impl<T: Element> WorkingCopy<T> {
    /// Of an object of this version, whose content came with the grant or did not.
    pub(super) fn new(version: u64, values: Option<Arc<Vec<T>>>) -> Self {
        let unread = AtomicBool::new(values.is_some());
        let draft = values.map(|values| OnceLock::from(Draft::of(values)));
        Self {
            draft: draft.unwrap_or_default(),
            version,
            sent: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            read_bytes: AtomicU64::new(0),
            read_elements: ReadElements::default(),
            unread,
            writes: 0,
            slice: false,
        }
    }

    /// Counts an access to an object of `len` elements; whether such accesses, by messages, have taken as long as fetching all
    /// of it.
    pub(super) fn is_worth_fetching(&self, len: usize) -> bool {
        let bytes = size_of::<T>() * len;
        if self.draft.get().is_some() || bytes <= GRANTED_VALUE {
            return false;
        }
        let sent = self.sent.fetch_add(1, Ordering::Relaxed);
        bytes as u64 <= sent * BYTES_PER_MESSAGE
    }

    /// Has these elements from now on, which were read by a message.
    pub(super) fn fill(&self, values: Vec<T>) -> &[T] {
        let draft = self.draft.get_or_init(|| Draft::of(Arc::new(values)));
        draft.values()
    }

    fn count_read(&self, range: Range<usize>) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let bytes = range.len() * size_of::<T>();
        self.read_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        self.read_elements.add(range);
        self.unread.store(false, Ordering::Relaxed);
    }

    /// All elements. Counts as a read if they came with the grant and were not read.
    pub(super) fn values(&self) -> Option<&[T]> {
        let values = self.draft.get()?.values();
        if self.unread.load(Ordering::Relaxed) {
            self.count_read(0..values.len());
        }
        Some(values)
    }

    /// Elements `range`, as rows of `columns`; counts as a read.
    pub(super) fn read(&self, range: Range<usize>, columns: usize) -> Option<View<T>> {
        let values = self.draft.get()?.values().get(range.clone())?;
        // An empty range is refused by others.
        let values = Some(values).filter(|values| !values.is_empty())?;
        self.count_read(range);
        Some(View::new(values.to_vec(), columns, self.version))
    }

    /// Element `at`; counts as a read.
    pub(super) fn get(&self, at: usize) -> Option<T> {
        let value = *self.draft.get()?.values().get(at)?;
        self.count_read(at..at + 1);
        Some(value)
    }

    /// All elements, to be changed in place: what was changed counts as one write.
    pub(super) fn values_mut(&mut self) -> &mut [T] {
        self.slice = true;
        let draft = self.draft.get_mut();
        draft.map_or(&mut [], Draft::values_mut)
    }

    pub(super) fn is_there(&self) -> bool {
        self.draft.get().is_some()
    }

    /// Changes elements `range`; counts as a write.
    pub(super) fn change<R>(
        &mut self,
        range: Range<usize>,
        change: impl FnOnce(&mut [T]) -> R,
    ) -> Option<R> {
        let part = self.draft.get_mut()?.range_mut(range)?;
        self.writes = self.writes.saturating_add(1);
        Some(change(part))
    }

    /// Makes ordinary writes of what was changed in place, and counts it as written when they are over.
    pub(super) fn write_back(
        &mut self,
        writes: impl FnOnce(&Draft<T>) -> Vec<Call<()>>,
    ) -> crate::Result<()> {
        let Some(draft) = self.draft.get_mut() else {
            return Ok(());
        };
        writes(draft).into_iter().try_for_each(Call::wait)?;
        draft.written();
        Ok(())
    }

    /// The elements are read anew when they are asked for again.
    pub(super) fn discard(&mut self) {
        self.draft.take();
    }

    /// What was changed, to be done to the object in this process.
    pub(super) fn changes(&self) -> Option<impl FnOnce(&mut Arc<Vec<T>>)> {
        self.draft.get().and_then(Draft::change)
    }

    /// What was read and written, of which nothing was sent; `changed`: there are [`changes`](Self::changes).
    pub(super) fn used(&self, changed: bool) -> (Hits, Hits) {
        let writes = u64::from(self.writes) + u64::from(self.slice && changed);
        let version = self.version;
        let reads = Hits {
            count: self.reads.load(Ordering::Relaxed),
            bytes: self.read_bytes.load(Ordering::Relaxed),
            version,
            elements: self.read_elements.get(),
        };
        let writes = Hits {
            count: writes,
            bytes: writes * size_of::<T>() as u64,
            version,
            elements: self.draft.get().map_or((0, 0), Draft::touched),
        };
        (reads, writes)
    }

    /// What was read and not counted, once, however often the release is repeated.
    pub(super) fn take_reads(&self) -> Option<Hits> {
        let reads = Hits {
            count: self.reads.swap(0, Ordering::Relaxed),
            bytes: self.read_bytes.swap(0, Ordering::Relaxed),
            version: self.version,
            elements: self.read_elements.get(),
        };
        (reads.count > 0).then_some(reads)
    }

    /// What was changed and not sent, for the release to send.
    pub(super) fn write_at_end(&self) -> Option<wire::Write> {
        let draft = self.draft.get();
        let changed = draft.and_then(Draft::write);
        let slice = u32::from(self.slice && changed.is_some());
        // A write that changes nothing is one all the same.
        let write = match changed {
            None if self.writes > 0 => draft.map(Draft::first),
            changed => changed,
        };
        let accesses = self.writes + slice;
        write.map(|write| wire::Write {
            accesses: Some(accesses.max(1)),
            ..write
        })
    }
}
