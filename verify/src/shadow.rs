//! Accesses of one object that a later access could still conflict with: two processes touch the same elements, at least one
//! of them writes, and no acquire, release or barrier orders them.
//!
//! Remembered is, of each process, the last access of its kind and range, unless everybody who could conflict with it
//! conflicts with a later one as well.

use dosmos_proto::ApId;
use dosmos_trace::{Op, Record};

use crate::clocks::{Clock, Start};
use crate::records::by_own_clock;

/// Most accesses remembered of one object.
const MOST: usize = 96;

/// How an access touches elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Touch {
    Read,
    Write,
    /// A write of one element outside sections: one step at the owner, as an atomic operation is.
    Store,
    /// An atomic operation.
    Atomic,
    /// A write in the application process, which may have been an atomic operation.
    Inside,
}

impl Touch {
    fn of(record: &Record, in_section: bool) -> Self {
        match record.op {
            Op::Read => Self::Read,
            _ if record.flags.atomic => Self::Atomic,
            _ if record.flags.in_process && !in_section => Self::Inside,
            _ if !in_section && record.range.1 == record.range.0 + 1 => Self::Store,
            _ => Self::Write,
        }
    }

    /// Whether two accesses are a conflict if nothing orders them: not two reads, and nothing with an atomic operation but a
    /// write of more than one element or in a section.
    fn conflicts(self, other: Self) -> bool {
        use Touch::{Atomic, Inside, Read, Store, Write};
        match (self, other) {
            (Read | Atomic, Read) | (Read, Atomic) => false,
            (Atomic, Store) | (Store, Atomic) => false,
            (Atomic | Inside, Atomic | Inside) => false,
            (Write | Store | Inside, _) | (_, Write | Store | Inside) => true,
        }
    }
}

/// Which races are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Nothing,
    All,
    /// Not those of a read outside sections with a write in one: such a read sees what was released last, as a whole.
    NotOfReleased,
}

impl Wanted {
    /// Whether the race of two accesses that conflict is looked for.
    fn counts(self, one: &Access, other: &Access) -> bool {
        self == Self::All || !one.reads_released(other) && !other.reads_released(one)
    }

    /// Whether two accesses of one kind race with the same accesses of others.
    fn are_alike(self, one: &Access, other: &Access) -> bool {
        self == Self::All || one.in_section == other.in_section
    }
}

/// An access as it matters here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    touch: Touch,
    /// Elements `[first, end)`.
    pub(crate) range: (u32, u32),
    /// All of them were touched; else some.
    exact: bool,
    /// In a section of its object.
    pub(crate) in_section: bool,
    phase: (Start, u32),
    pub(crate) record: Record,
}

impl Access {
    /// What `record` touches in phase `phase` of a start of its process; its object has `elements` elements of `width` bytes.
    pub(crate) fn of(
        record: &Record,
        in_section: bool,
        (elements, width): (Option<u32>, u64),
        phase: (Start, u32),
    ) -> Self {
        let said = record.range.0 < record.range.1;
        let all = (0, elements.unwrap_or(u32::MAX));
        let range = if said { record.range } else { all };
        let whole = u64::from(range.1 - range.0) * width;
        let known = said || elements == Some(1);
        let exact = known
            && !by_own_clock(record)
            && (record.flags.atomic
                || whole == 0
                || record.bytes == whole
                || record.bytes == whole.saturating_mul(record.accesses()));
        Self {
            touch: Touch::of(record, in_section),
            range,
            exact,
            in_section,
            phase,
            record: *record,
        }
    }

    fn ap(&self) -> ApId {
        self.record.ap
    }

    fn is_known_by(&self, clock: &Clock) -> bool {
        let (start, phase) = self.phase;
        clock.knows(start, phase)
    }

    /// Whether this is a read outside sections and `other` a write in one.
    pub(crate) fn reads_released(&self, other: &Self) -> bool {
        let reads = self.touch == Touch::Read && !self.in_section;
        reads && other.in_section && other.touch != Touch::Read
    }

    fn meets(&self, other: &Self) -> bool {
        self.range.0 < other.range.1 && other.range.0 < self.range.1
    }

    fn covers(&self, other: &Self) -> bool {
        self.exact && self.range.0 <= other.range.0 && other.range.1 <= self.range.1
    }

    /// Whether whoever conflicts with `other`, which comes before this, and does not come after this conflicts with this too.
    fn hides(&self, other: &Self) -> bool {
        self.covers(other)
            && match self.touch {
                Touch::Write => true,
                touch => touch == other.touch,
            }
    }
}

/// What an access does with one before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Race {
    pub(crate) earlier: Access,
    /// Both are known to touch an element together.
    pub(crate) exact: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Shadow {
    accesses: Vec<Access>,
    /// Some were forgotten.
    pub(crate) crowded: bool,
}

impl Shadow {
    /// The races of an access with those before it that are `wanted`, at most one; an exact one if there is one. `clock` comes
    /// before it, `loose` too if atomic operations count.
    pub(crate) fn take(
        &mut self,
        access: Access,
        (clock, loose): (&Clock, &Clock),
        wanted: Wanted,
    ) -> Option<Race> {
        let mut found: Option<Race> = None;
        let mut same = None;
        let mut i = 0;
        while i < self.accesses.len() {
            let other = &self.accesses[i];
            let alike = wanted.are_alike(&access, other);
            if other.ap() == access.ap() {
                if alike && other.range == access.range && other.touch == access.touch {
                    same = Some(i);
                } else if alike && access.hides(other) {
                    self.accesses.swap_remove(i);
                    continue;
                }
            } else if other.is_known_by(clock) {
                if alike && access.hides(other) {
                    self.accesses.swap_remove(i);
                    continue;
                }
            } else if access.touch.conflicts(other.touch)
                && access.meets(other)
                && !other.is_known_by(loose)
                && wanted.counts(&access, other)
            {
                let exact = access.exact && other.exact;
                if found.is_none_or(|f| exact && !f.exact) {
                    let earlier = *other;
                    found = Some(Race { earlier, exact });
                }
            }
            i += 1;
        }
        match same {
            Some(at) => self.accesses[at] = access,
            None => {
                if self.accesses.len() >= MOST {
                    self.accesses.remove(0);
                    self.crowded = true;
                }
                self.accesses.push(access);
            }
        }
        found
    }
}
