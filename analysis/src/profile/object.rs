//! What is known of one object: who used it how, who held it when, which elements were written.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{ApId, MpId, Nanos};
use dosmos_trace::meta::OpCounts;
use dosmos_trace::record::{Op, Record};

use super::holders::{HandOvers, Section};
use crate::ranges::RangeSet;

/// One application process's use of one object, or of everything.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ApUse {
    /// Accesses, by operation.
    pub counts: OpCounts,
    /// Of the reads, those served from a copy at the memory process.
    pub optimized: u64,
    /// Of the accesses, those served in the process itself.
    pub in_process: OpCounts,
    /// Time spent in them, in all.
    pub time: Nanos,
    /// Of that, waiting for locks.
    pub wait: Nanos,
    /// Of that, releasing.
    pub releasing: Nanos,
    /// Elements written, where the records say.
    pub written: RangeSet,
    /// Reads of elements that another process had written.
    pub foreign_reads: u64,
}

impl ApUse {
    fn append(&mut self, later: &Self) {
        self.counts.add(&later.counts);
        self.in_process.add(&later.in_process);
        self.optimized += later.optimized;
        self.time += later.time;
        self.wait += later.wait;
        self.releasing += later.releasing;
        self.written.join(&later.written);
        self.foreign_reads += later.foreign_reads;
    }

    /// The accesses that a memory process served.
    pub fn served(&self) -> OpCounts {
        let (all, own) = (&self.counts, &self.in_process);
        OpCounts {
            reads: all.reads.saturating_sub(own.reads),
            writes: all.writes.saturating_sub(own.writes),
            acquires: all.acquires.saturating_sub(own.acquires),
            releases: all.releases.saturating_sub(own.releases),
        }
    }
}

/// One memory process's use of one object on behalf of its application processes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MpUse {
    /// Accesses that went to the owner, by operation.
    pub fetched: OpCounts,
    /// Reads served from the copy here.
    pub optimized: u64,
    /// Accesses that application processes served themselves: wherever the owner is, they cost nothing.
    pub in_process: OpCounts,
    /// Versions of the object, made elsewhere, that were read here: each costs a fetch under *invalidate*.
    pub versions_read: u64,
    /// The first of them: from then on *update* would have told of every new one.
    pub first_version_read: Option<u64>,
    /// Reads after writing: these fetch, whatever the policy.
    pub refetched: u64,
    /// Versions made here: of these nobody tells this process.
    pub own_versions: u64,
    last_version_read: Option<u64>,
    last_version_written: Option<u64>,
    /// Written here since it was last read here: the copy is gone, whatever the policy.
    stale: bool,
    wrote_in_section: bool,
}

impl MpUse {
    fn read(&mut self, version: u64, in_section: bool) {
        if self.stale {
            // Fetched whatever the policy; inside the section that wrote it no copy is made.
            self.stale = in_section;
            self.refetched += 1;
            self.last_version_read = Some(version);
        } else if self.last_version_read != Some(version) {
            self.last_version_read = Some(version);
            self.first_version_read.get_or_insert(version);
            self.versions_read += 1;
        }
    }

    fn wrote(&mut self, version: u64, in_section: bool) {
        // Outside sections the next release or barrier makes a version of all writes together.
        if !in_section && self.last_version_written.replace(version) != Some(version) {
            self.own_versions += 1;
        }
        self.wrote_in_section |= in_section;
        self.stale = true;
    }

    fn released(&mut self) {
        self.own_versions += u64::from(std::mem::take(&mut self.wrote_in_section));
    }
}

/// The fraction of the waiting for an object that those account for who are said to wait for it.
const NEARLY_ALL: f64 = 0.95;

/// An acquire that has not been granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Who waits.
    pub ap: ApId,
    /// Since when.
    pub since: Nanos,
}

/// What is known of one object.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ObjectProfile {
    /// The memory process that owns it.
    pub owner: MpId,
    /// Use by application process.
    pub by_ap: BTreeMap<ApId, ApUse>,
    /// Use by memory process.
    pub by_mp: BTreeMap<MpId, MpUse>,
    /// Sequence of holders.
    pub hand_overs: HandOvers,
    /// Changes from one writer to another.
    pub writer_changes: u64,
    /// Time it was held, in all.
    pub hold: Nanos,
    /// Of that, work of who held it: see [`Section`].
    pub hold_working: Nanos,
    /// Sections behind that.
    pub sections: u64,
    /// Time for which anybody waited for it.
    pub contended: Nanos,
    /// Lowest and highest version seen.
    pub versions: Option<(u64, u64)>,
    /// Who holds it at the end of the window, and since when. One, unless releases were not recorded.
    pub held: BTreeMap<ApId, Nanos>,
    /// Who waits for it at the end of the window.
    pub waiting: Vec<Waiting>,
    /// Bytes read and written.
    pub bytes: u64,
    /// First and last instant of use.
    pub used: Option<(Nanos, Nanos)>,
    /// Until when what is in `contended` reaches.
    contended_until: Nanos,
    last_writer: Option<ApId>,
    open: BTreeMap<ApId, Section>,
    /// Last instant at which each process is known not to wait.
    answered: BTreeMap<ApId, Nanos>,
}

impl ObjectProfile {
    /// Time all application processes spent in accesses to it.
    pub fn time(&self) -> Nanos {
        Nanos(self.by_ap.values().map(|u| u.time.0).sum())
    }

    /// Time all application processes waited for it, those still waiting at `end` included.
    pub fn wait(&self, end: Nanos) -> Nanos {
        let granted: u64 = self.by_ap.values().map(|u| u.wait.0).sum();
        let pending: u64 = self.waiting.iter().map(|w| (end - w.since).0).sum();
        Nanos(granted + pending)
    }

    /// Application processes that waited for it, those that wait at `end` included: as many, the longest first, as did
    /// nearly all of the waiting.
    pub fn waiters(&self, end: Nanos) -> BTreeSet<ApId> {
        let mut waits: BTreeMap<ApId, u64> = BTreeMap::new();
        for (&ap, used) in &self.by_ap {
            *waits.entry(ap).or_default() += used.wait.0;
        }
        for waiting in &self.waiting {
            *waits.entry(waiting.ap).or_default() += (end - waiting.since).0;
        }
        let mut waits: Vec<(ApId, u64)> = waits.into_iter().filter(|w| w.1 > 0).collect();
        waits.sort_by_key(|w| std::cmp::Reverse(w.1));
        let mut left = NEARLY_ALL * waits.iter().map(|w| w.1).sum::<u64>() as f64;
        let most = waits.into_iter().take_while(|(_, wait)| {
            let more = left > 0.0;
            left -= *wait as f64;
            more
        });
        most.map(|(ap, _)| ap).collect()
    }

    /// Accesses by all application processes.
    pub fn counts(&self) -> OpCounts {
        let mut sum = OpCounts::default();
        for used in self.by_ap.values() {
            sum.add(&used.counts);
        }
        sum
    }

    /// Mean time between grant and release, and of that the mean work done while others may wait, nanoseconds.
    pub fn mean_section(&self) -> (f64, f64) {
        let each = 1.0 / self.sections.max(1) as f64;
        (self.hold.0 as f64 * each, self.hold_working.0 as f64 * each)
    }

    /// Number of times its content changed for others since `version`.
    pub fn versions_from(&self, version: u64) -> u64 {
        self.versions
            .map_or(0, |(_, high)| high.saturating_sub(version))
    }

    /// Takes an access into account.
    pub(super) fn access(&mut self, record: &Record) {
        self.count_for_mp(record);
        self.access_in_window(record);
    }

    /// The same without use by memory process.
    pub(super) fn access_in_window(&mut self, record: &Record) {
        let end = record.end();
        self.used = Some(match self.used {
            Some((from, to)) => (from.min(record.start), to.max(end)),
            None => (record.start, end),
        });
        self.versions = Some(match self.versions {
            Some((low, high)) => (low.min(record.version), high.max(record.version)),
            None => (record.version, record.version),
        });
        self.bytes += record.bytes;
        self.owner = record.peer;
        self.count_for_ap(record);
        // What the holder does in itself is work.
        let calls = !record.flags.in_process || record.op == Op::Release;
        if let Some(section) = self.open.get_mut(&record.ap).filter(|_| calls) {
            section.call(record);
        }
        match record.op {
            Op::Write => {
                if self.last_writer.is_some_and(|w| w != record.ap) {
                    self.writer_changes += 1;
                }
                self.last_writer = Some(record.ap);
            }
            Op::Acquire => {
                self.answered(record.ap, end);
                self.waited(record);
                self.hand_overs.granted(record);
                if !record.is_of_past_sections() {
                    self.held.insert(record.ap, end);
                    self.open.insert(record.ap, Section::granted(end));
                }
            }
            Op::Release => {
                // Whatever its acquire said, it has it: clocks may differ.
                self.answered(record.ap, record.start);
                if let Some(since) = self.held.remove(&record.ap) {
                    self.hold += record.start - since;
                    self.sections += 1;
                    let section = self.open.remove(&record.ap);
                    self.hold_working += section.map_or(Nanos::ZERO, |s| s.work());
                }
            }
            Op::Read => self.count_foreign(record),
            Op::Barrier => {}
        }
    }

    /// Who waits first is granted first: what was waited for before is known.
    fn waited(&mut self, record: &Record) {
        let end = record.end();
        let from = (end - record.wait).max(self.contended_until);
        self.contended += end - from;
        self.contended_until = self.contended_until.max(end);
    }

    /// A process has been answered: what it waited for before it has. Records come in order of their start, so
    /// a grant comes before the notice that it was waited for.
    fn answered(&mut self, ap: ApId, at: Nanos) {
        let last = self.answered.entry(ap).or_default();
        *last = at.max(*last);
        self.waiting.retain(|w| w.ap != ap || w.since > at);
    }

    fn count_foreign(&mut self, record: &Record) {
        let mut others = self.by_ap.iter().filter(|(ap, _)| **ap != record.ap);
        if others.any(|(_, used)| used.written.touches(record.range))
            && let Some(used) = self.by_ap.get_mut(&record.ap)
        {
            used.foreign_reads += record.accesses();
        }
    }

    /// Takes the notice of a waiting acquire into account.
    pub(super) fn wait_begins(&mut self, record: &Record) {
        let answered = self.answered.get(&record.ap);
        if answered.is_some_and(|&at| at >= record.start) {
            return;
        }
        self.waiting.retain(|w| w.ap != record.ap);
        self.waiting.push(Waiting {
            ap: record.ap,
            since: record.start,
        });
    }

    /// An acquire failed: nobody waits any more.
    pub(super) fn wait_fails(&mut self, record: &Record) {
        self.answered(record.ap, record.end());
    }

    fn count_for_ap(&mut self, record: &Record) {
        let used = self.by_ap.entry(record.ap).or_default();
        let n = record.accesses();
        used.counts.count(record.op, n);
        if record.flags.in_process {
            used.in_process.count(record.op, n);
        } else if record.flags.optimized {
            used.optimized += n;
        }
        used.time += record.spent();
        match record.op {
            Op::Acquire => {
                used.wait += record.wait;
            }
            Op::Release => used.releasing += record.spent(),
            Op::Write => used.written.insert(record.range),
            Op::Read | Op::Barrier => {}
        }
    }

    fn count_for_mp(&mut self, record: &Record) {
        let in_section = self.held.contains_key(&record.ap);
        let used = self.by_mp.entry(record.mp).or_default();
        let n = record.accesses();
        if record.flags.in_process {
            used.in_process.count(record.op, n);
        } else if record.flags.optimized {
            used.optimized += n;
        } else {
            used.fetched.count(record.op, n);
        }
        match record.op {
            // Of a copy that was fetched before.
            Op::Read if record.flags.in_process => {}
            Op::Read => used.read(record.version, in_section),
            Op::Write => used.wrote(record.version, in_section),
            Op::Release => used.released(),
            Op::Acquire | Op::Barrier => {}
        }
    }

    pub(super) fn finish(&mut self) {
        self.hand_overs.finish();
    }

    /// Whether processes had to do with each other here: one waited for, took over or wrote what another had.
    pub(super) fn is_contended(&self) -> bool {
        self.writer_changes > 0 || self.hand_overs.count > 0 || self.contended > Nanos::ZERO
    }

    /// Adds what came later, of an object that was looked at anew there. Both are finished.
    pub(super) fn append(&mut self, later: Self) {
        self.owner = later.owner;
        for (ap, used) in later.by_ap {
            self.by_ap.entry(ap).or_default().append(&used);
        }
        self.hand_overs.append(later.hand_overs);
        self.writer_changes += later.writer_changes;
        self.hold += later.hold;
        self.hold_working += later.hold_working;
        self.sections += later.sections;
        self.contended += later.contended;
        self.bytes += later.bytes;
        self.versions = outer(self.versions, later.versions);
        self.used = outer(self.used, later.used);
    }
}

/// The smallest range that holds both.
fn outer<T: Ord + Copy>(a: Option<(T, T)>, b: Option<(T, T)>) -> Option<(T, T)> {
    match (a, b) {
        (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
        (a, b) => a.or(b),
    }
}
