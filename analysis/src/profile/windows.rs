//! Equal stretches of a run, each looked at alone: what happens in a part of the run is not diluted by the rest.
//!
//! A stretch is what an analysis of that part of the run would see: it begins without knowing what was before. There are
//! at most [`MOST`]; when the run outgrows them, neighbours are joined in pairs, so that in the end there are between half
//! as many and as many. When a stretch is over, objects about which processes had nothing to do with each other are
//! dropped from it. Where there are too many objects for that to help ([`CELLS`]), stretches become fewer, and in the
//! end are given up: memory depends on neither the number of records nor the length of the run.

use std::collections::BTreeMap;

use dosmos_proto::{GroupId, Nanos, ObjectId, PhaseTimes};
use dosmos_trace::query::TimeRange;
use dosmos_trace::record::Record;

use super::phases::Phase;
use super::{ApUse, Beginnings, ObjectProfile, OnProcessor, Phases, Profile, Sequences};

/// Stretches at most.
const MOST: usize = 32;

/// Stretches at least: fewer say little that the whole does not say.
const LEAST: usize = 4;

/// Length of the first stretches, nanoseconds; it doubles whenever they are joined.
const FIRST: u64 = 1 << 16;

/// Objects in all stretches together at most.
const CELLS: usize = 100_000;

/// What happened in one stretch.
#[derive(Clone, Debug, Default)]
struct Window {
    objects: BTreeMap<ObjectId, ObjectProfile>,
    barriers: BTreeMap<Option<GroupId>, Phases>,
    over: bool,
}

/// The stretches of a run.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    from: Option<Nanos>,
    length: u64,
    all: Vec<Window>,
    /// As many as there may be; none: they were given up.
    most: usize,
    cells: usize,
}

impl Default for Windows {
    fn default() -> Self {
        Self {
            from: None,
            length: FIRST,
            all: Vec::new(),
            most: MOST,
            cells: 0,
        }
    }
}

impl Windows {
    /// Takes an access into account.
    pub(super) fn access(&mut self, record: &Record) {
        let Some((window, end)) = self.at(record.start) else {
            return;
        };
        let before = window.objects.len();
        let object = window.objects.entry(record.object).or_default();
        object.access_in_window(&until(record, end));
        let more = window.objects.len() - before;
        self.cells += more;
        if self.cells > CELLS {
            self.shrink();
        }
    }

    /// Takes a phase into account, where it ended.
    pub(super) fn phase(&mut self, group: Option<GroupId>, phase: &Phase) {
        if let Some((window, _)) = self.at(phase.opened) {
            window.barriers.entry(group).or_default().add(phase);
        }
    }

    /// The stretch of an instant, and when it ends.
    fn at(&mut self, at: Nanos) -> Option<(&mut Window, Nanos)> {
        if self.most == 0 {
            return None;
        }
        let from = *self.from.get_or_insert(at);
        let place = |length: u64| ((at - from).0 / length) as usize;
        while place(self.length) >= self.most {
            self.join();
        }
        let i = place(self.length);
        if i >= self.all.len() {
            self.all.resize_with(i + 1, Window::default);
            // Records come nearly in order: the one before may still get some.
            for window in self.all.iter_mut().rev().skip(2).take_while(|w| !w.over) {
                let before = window.objects.len();
                window.close();
                self.cells -= before - window.objects.len();
            }
        }
        let end = from + Nanos(self.length.saturating_mul(i as u64 + 1));
        Some((&mut self.all[i], end))
    }

    /// Makes one stretch of two.
    fn join(&mut self) {
        self.length *= 2;
        self.all = pairs(std::mem::take(&mut self.all), Window::append);
        self.cells = self.all.iter().map(|w| w.objects.len()).sum();
    }

    /// There are too many objects: fewer stretches, or none.
    fn shrink(&mut self) {
        self.all.iter_mut().for_each(Window::close);
        self.join();
        if self.cells > CELLS / 2 {
            self.most /= 2;
        }
        if self.most < LEAST {
            (self.most, self.all) = (0, Vec::new());
            self.cells = 0;
        }
    }

    /// The stretches of a run of which `whole` is known. None if there is but one.
    pub(super) fn finish(self, whole: &Profile, times: &[PhaseTimes]) -> Vec<Profile> {
        let (Some(from), true) = (self.from, self.all.len() > 1) else {
            return Vec::new();
        };
        let ends = (1..).map(|i| from + Nanos(self.length.saturating_mul(i)));
        let mut begin = whole.window.from;
        let all = self.all.into_iter().zip(ends);
        all.map(|(window, end)| {
            let range = TimeRange {
                from: begin,
                to: end.min(whole.window.to),
            };
            begin = range.to;
            window.finish(whole, times, range)
        })
        .collect()
    }
}

/// What of a record lies before `end`: of an operation that takes longer, the beginning.
fn until(record: &Record, end: Nanos) -> Record {
    let most = end - record.start;
    if record.duration <= most {
        return *record;
    }
    Record {
        duration: record.duration.min(most),
        wait: record.wait.min(most),
        service: record.service.min(most),
        ..*record
    }
}

/// Each second one appended to the one before it.
fn pairs<T>(all: Vec<T>, append: fn(&mut T, T)) -> Vec<T> {
    let mut all = all.into_iter();
    let mut joined = Vec::new();
    while let Some(mut first) = all.next() {
        if let Some(second) = all.next() {
            append(&mut first, second);
        }
        joined.push(first);
    }
    joined
}

/// The next larger stretches: each two made one.
pub(crate) fn joined(windows: Vec<Profile>) -> Vec<Profile> {
    pairs(windows, |first, second| {
        first.window.to = second.window.to;
        let sums = |profile: &mut Profile| Window {
            objects: std::mem::take(&mut profile.objects),
            barriers: std::mem::take(&mut profile.barriers),
            over: true,
        };
        let (mut own, mut later) = (sums(first), second);
        own.append(sums(&mut later));
        (first.objects, first.barriers) = (own.objects, own.barriers);
    })
}

impl Window {
    /// Nothing more comes.
    fn close(&mut self) {
        self.over = true;
        self.objects.retain(|_, object| {
            object.finish();
            object.is_contended()
        });
    }

    fn append(&mut self, mut later: Self) {
        self.objects.values_mut().for_each(ObjectProfile::finish);
        later.objects.values_mut().for_each(ObjectProfile::finish);
        for (id, object) in later.objects {
            match self.objects.entry(id) {
                std::collections::btree_map::Entry::Vacant(place) => {
                    place.insert(object);
                }
                std::collections::btree_map::Entry::Occupied(mut own) => {
                    own.get_mut().append(object);
                }
            }
        }
        for (group, phases) in later.barriers {
            self.barriers.entry(group).or_default().append(phases);
        }
        self.over &= later.over;
    }

    fn finish(mut self, whole: &Profile, times: &[PhaseTimes], range: TimeRange) -> Profile {
        self.close();
        for (group, phases) in &mut self.barriers {
            let in_all = whole.barriers.get(group);
            phases.skipped = in_all.map_or_else(BTreeMap::new, |all| all.skipped.clone());
            let aps = phases.by_ap.keys().copied().collect();
            phases.processor = OnProcessor::of(times, &aps, range);
        }
        // All are there, whether they access anything or not.
        let aps = whole.aps.keys().map(|ap| (*ap, ApUse::default()));
        Profile {
            efficiency: None,
            window: range,
            catalog: whole.catalog.clone(),
            objects: self.objects,
            barriers: self.barriers,
            aps: aps.collect(),
            sequences: Sequences::default(),
            read_only: BTreeMap::new(),
            hops: BTreeMap::new(),
            costs: whole.costs,
            broken: Vec::new(),
            places: whole.places.clone(),
            windows: Vec::new(),
            beginnings: Beginnings::default(),
            path: None,
            delays: Vec::new(),
        }
    }
}
