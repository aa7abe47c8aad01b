//! One owned object: its released content, what its holder made of it, and who has copies.
//!
//! * `released` is what everyone sees; `working` is the holder's section, made from `released` at its
//!   first write, and becomes `released` in one step: no reader sees a mixture of two releases.
//! * `version` counts the publications of the content (releases and flushes), never backwards.
//! * Content is shared (`Bytes`) with replies on their way; a write copies it only while it is.

use bytes::{Bytes, BytesMut};
use dosmos_proto::large::{LARGE, are_zeros, zeros};
use dosmos_proto::{ElementType, MpId, Runs};

use super::lock::Lock;
use crate::core::messages::AtomicOp;
use crate::core::replica::seat::State;

/// Content at least this large is taken over as it came instead of being copied out of the message it came in: it came
/// in memory of its own, or is most of that message.
const ADOPT_BYTES: usize = LARGE;

/// More sections than end without a release after the last that was released.
const SECTIONS_UNHEARD: u64 = 1 << 32;

/// One owned object.
#[derive(Debug)]
pub(super) struct Object {
    released: Bytes,
    working: Option<Bytes>,
    pub(super) version: u64,
    pub(super) lock: Lock,
    /// Memory processes that hold a copy, in order of their numbers.
    copies: Vec<MpId>,
}

impl Object {
    /// A fresh object: all zero, version 0.
    pub(super) fn zeroed(bytes: usize) -> Self {
        Self {
            released: zeros(bytes),
            working: None,
            version: 0,
            lock: Lock::default(),
            copies: Vec::new(),
        }
    }

    /// It is as another process released it; the sections there were are over.
    pub(super) fn restore(&mut self, state: State) {
        self.version = state.version;
        self.lock.skip_to(state.epoch + SECTIONS_UNHEARD);
        if let Some(data) = state.data {
            self.released = data;
        }
    }

    /// What everyone sees.
    pub(super) fn released(&self) -> &Bytes {
        &self.released
    }

    /// What a reader sees: the holder its own section, everyone else the last release.
    pub(super) fn visible(&self, in_section: bool) -> &Bytes {
        match &self.working {
            Some(working) if in_section => working,
            _ => &self.released,
        }
    }

    /// Whether the open section wrote anything.
    pub(super) fn is_written(&self) -> bool {
        self.working.is_some()
    }

    /// Stores `data` at byte `at`: in the open section, or for everyone.
    pub(super) fn write(&mut self, at: usize, data: &Bytes, in_section: bool) {
        self.change(in_section, |content| overwrite(content, at, data));
    }

    /// As [`write`](Self::write), of elements with gaps between them, in one step.
    pub(super) fn write_runs(&mut self, runs: &Runs, width: u32, data: &[u8], in_section: bool) {
        self.change(in_section, |content| {
            overwrite_runs(content, runs, width, data);
        });
    }

    /// Adds `data` to the elements of type `element_type` from byte `at` on, as a write does.
    pub(super) fn add(
        &mut self,
        at: usize,
        element_type: ElementType,
        data: &[u8],
        in_section: bool,
    ) {
        self.change(in_section, |content| add(content, at, element_type, data));
    }

    /// Changes the content of the open section, or what everyone sees. The latter also reaches an open section, so that
    /// its release does not undo it.
    fn change(&mut self, in_section: bool, change: impl Fn(&mut Bytes)) {
        if in_section {
            change(self.working.get_or_insert_with(|| self.released.clone()));
        } else {
            change(&mut self.released);
            self.working.iter_mut().for_each(change);
        }
    }

    /// Does `op` on the element of type `element_type` at byte `at`, as a write does; gives what was there
    /// and whether something was stored.
    pub(super) fn atomic(
        &mut self,
        at: usize,
        element_type: ElementType,
        op: AtomicOp,
        in_section: bool,
    ) -> (u64, bool) {
        let width = element_type.bytes() as usize;
        let previous = load(&self.visible(in_section)[at..at + width]);
        match op {
            AtomicOp::FetchAdd(n) => {
                self.add(at, element_type, &n.to_le_bytes()[..width], in_section);
            }
            AtomicOp::CompareExchange { expected, desired } if expected == previous => {
                let data = Bytes::copy_from_slice(&desired.to_le_bytes()[..width]);
                self.write(at, &data, in_section);
            }
            AtomicOp::CompareExchange { .. } => return (previous, false),
        }
        (previous, true)
    }

    /// Ends the section and makes what it wrote the released content; whether it wrote anything.
    pub(super) fn publish(&mut self) -> bool {
        match self.working.take() {
            Some(working) => {
                self.released = working;
                true
            }
            None => false,
        }
    }

    /// Forgets what the section wrote: its holder is gone.
    pub(super) fn discard(&mut self) {
        self.working = None;
    }

    /// The holders of copies that are to be told of a change; with `keep` they keep their copies.
    pub(super) fn copies_to_tell(&mut self, keep: bool) -> Vec<MpId> {
        if keep {
            self.copies.clone()
        } else {
            std::mem::take(&mut self.copies)
        }
    }

    /// Notes that `mp` holds a copy.
    pub(super) fn add_copy(&mut self, mp: MpId) {
        if let Err(at) = self.copies.binary_search(&mp) {
            self.copies.insert(at, mp);
        }
    }

    /// Whether nobody has a copy of it, holds it or waits for it.
    pub(super) fn is_alone(&self) -> bool {
        self.copies.is_empty() && self.lock.is_idle()
    }

    /// Notes that `mp` holds no copy; whether it held one.
    pub(super) fn remove_copy(&mut self, mp: MpId) -> bool {
        let found = self.copies.binary_search(&mp);
        if let Ok(at) = found {
            self.copies.remove(at);
        }
        found.is_ok()
    }
}

fn overwrite(content: &mut Bytes, at: usize, data: &Bytes) {
    if data.len() == content.len() {
        *content = if data.len() >= ADOPT_BYTES {
            data.clone()
        } else {
            // A small slice would keep the whole message buffer alive.
            Bytes::copy_from_slice(data)
        };
        return;
    }
    let mut own = owned(content);
    own[at..at + data.len()].copy_from_slice(data);
    *content = own.freeze();
}

fn overwrite_runs(content: &mut Bytes, runs: &Runs, width: u32, data: &[u8]) {
    let mut own = owned(content);
    let mut rest = data;
    for (first, end) in runs.iter() {
        let (first, end) = (
            first as usize * width as usize,
            end as usize * width as usize,
        );
        let (now, later) = rest.split_at(end - first);
        own[first..end].copy_from_slice(now);
        rest = later;
    }
    *content = own.freeze();
}

/// The content, to change; what replies on their way share of it stays as it is.
fn owned(content: &mut Bytes) -> BytesMut {
    match std::mem::take(content).try_into_mut() {
        Ok(own) => own,
        Err(none) if are_zeros(&none) => BytesMut::zeroed(none.len()),
        Err(shared) => BytesMut::from(&shared[..]),
    }
}

fn load(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

/// Adds `data` to elements, as their type has it: integers wrap around.
fn add(content: &mut Bytes, at: usize, element_type: ElementType, data: &[u8]) {
    fn each<const W: usize>(
        sums: &mut [u8],
        data: &[u8],
        add: impl Fn([u8; W], [u8; W]) -> [u8; W],
    ) {
        let sums = sums.as_chunks_mut().0.iter_mut();
        for (sum, n) in sums.zip(data.as_chunks().0) {
            *sum = add(*sum, *n);
        }
    }
    let mut own = owned(content);
    let sums = &mut own[at..at + data.len()];
    match element_type {
        ElementType::Bool | ElementType::U8 => each(sums, data, |[a], [b]| [a.wrapping_add(b)]),
        ElementType::I32 | ElementType::U32 => each(sums, data, |a, b| {
            let sum = u32::from_le_bytes(a).wrapping_add(u32::from_le_bytes(b));
            sum.to_le_bytes()
        }),
        ElementType::I64 | ElementType::U64 => each(sums, data, |a, b| {
            let sum = u64::from_le_bytes(a).wrapping_add(u64::from_le_bytes(b));
            sum.to_le_bytes()
        }),
        ElementType::F32 => each(sums, data, |a, b| {
            (f32::from_le_bytes(a) + f32::from_le_bytes(b)).to_le_bytes()
        }),
        ElementType::F64 => each(sums, data, |a, b| {
            (f64::from_le_bytes(a) + f64::from_le_bytes(b)).to_le_bytes()
        }),
    }
    *content = own.freeze();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(object: &Object, in_section: bool) -> Vec<u8> {
        object.visible(in_section).to_vec()
    }

    #[test]
    fn a_section_is_seen_by_its_holder_only_until_it_is_published() {
        let mut o = Object::zeroed(4);
        o.write(1, &Bytes::from_static(&[7]), true);
        assert_eq!(at(&o, true), [0, 7, 0, 0]);
        assert_eq!(at(&o, false), [0; 4]);
        assert!(o.publish());
        assert_eq!(at(&o, false), [0, 7, 0, 0]);
        assert!(!o.publish());
    }

    #[test]
    fn a_write_outside_survives_the_open_section() {
        let mut o = Object::zeroed(2);
        o.write(0, &Bytes::from_static(&[1]), true);
        o.write(1, &Bytes::from_static(&[2]), false);
        assert_eq!(at(&o, false), [0, 2]);
        o.publish();
        assert_eq!(at(&o, false), [1, 2]);
    }

    #[test]
    fn elements_with_gaps_are_written_in_one_step() {
        let mut o = Object::zeroed(6);
        let runs = Runs::from_wire(0, &[1, 1, 1]).unwrap();
        let given = o.visible(false).clone();
        o.write_runs(&runs, 2, &[1, 2, 3, 4], false);
        assert_eq!(at(&o, false), [1, 2, 0, 0, 3, 4]);
        assert_eq!(given[..], [0; 6]);
    }

    #[test]
    fn sums_follow_their_type_and_reach_an_open_section() {
        let mut o = Object::zeroed(4);
        o.write(0, &Bytes::from_static(&[255, 1, 2, 3]), false);
        o.write(3, &Bytes::from_static(&[9]), true);
        o.add(0, ElementType::U8, &[2, 0], false);
        assert_eq!(at(&o, false), [1, 1, 2, 3]);
        assert_eq!(at(&o, true), [1, 1, 2, 9]);
        o.add(3, ElementType::U8, &[1], true);
        assert_eq!(at(&o, false), [1, 1, 2, 3]);
        assert_eq!(at(&o, true), [1, 1, 2, 10]);
        use ElementType::{F32, F64, I32, I64, U8, U32, U64};
        for element_type in [F32, F64, I32, I64, U8, U32, U64] {
            let (one, two) = match element_type {
                F32 => (u64::from(1f32.to_bits()), u64::from(2f32.to_bits())),
                F64 => (1f64.to_bits(), 2f64.to_bits()),
                _ => (1, 2),
            };
            let width = element_type.bytes() as usize;
            let [one, two] = &[one, two].map(u64::to_le_bytes);
            let (one, two, mut o) = (&one[..width], &two[..width], Object::zeroed(3 * width));
            let ones = [one, one].concat();
            (0..2).for_each(|_| o.add(width, element_type, &ones, false));
            let is = o.visible(false);
            assert_eq!(is[width..], [two, two].concat());
            assert!(is[..width].iter().all(|b| *b == 0));
        }
    }

    #[test]
    fn readers_keep_what_they_were_given() {
        let mut o = Object::zeroed(3);
        let given = o.visible(false).clone();
        o.write(0, &Bytes::from_static(&[9]), false);
        assert_eq!(given[..], [0; 3]);
        assert_eq!(at(&o, false), [9, 0, 0]);
    }

    #[test]
    fn atomics_follow_their_type() {
        let mut o = Object::zeroed(8);
        let f = AtomicOp::FetchAdd;
        assert_eq!(
            o.atomic(0, ElementType::F64, f(1.5f64.to_bits()), false),
            (0, true)
        );
        assert_eq!(
            o.atomic(0, ElementType::F64, f(1.0f64.to_bits()), false),
            (1.5f64.to_bits(), true)
        );
        let mut o = Object::zeroed(2);
        o.atomic(1, ElementType::U8, f(255), false);
        assert_eq!(o.atomic(1, ElementType::U8, f(2), false), (255, true));
        assert_eq!(at(&o, false), [0, 1]);
        let swap = |expected, desired| AtomicOp::CompareExchange { expected, desired };
        assert_eq!(o.atomic(1, ElementType::U8, swap(3, 4), false), (1, false));
        assert_eq!(o.atomic(1, ElementType::U8, swap(1, 4), false), (1, true));
        assert_eq!(at(&o, false), [0, 4]);
    }

    #[test]
    fn large_contents_are_taken_over_and_small_ones_copied() {
        let written = |bytes: usize| {
            let mut o = Object::zeroed(bytes);
            assert!(!o.is_written());
            let data = Bytes::from(vec![7; bytes]);
            o.write(0, &data, true);
            assert!(o.is_written());
            o.visible(true).as_ptr() == data.as_ptr()
        };
        assert!(written(ADOPT_BYTES) && !written(ADOPT_BYTES - 1));
    }
}
