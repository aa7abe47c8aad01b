//! Builds a profile from records, one pass, in order of their start.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dosmos_proto::{ApId, Component, GroupId, Nanos, ObjectId, PhaseTimes, VarId};
use dosmos_trace::query::{Breakdown, Catalog, TimeRange};
use dosmos_trace::record::{Op, Record, Side};

use super::phases::Spent;
use super::read_only::Sections;
use super::sequences::Following;
use super::waits::Waits;
use super::windows::Windows;
use super::{Beginnings, Costs, ObjectProfile, OnProcessor, Profile, Sequences};
use crate::efficiency::Efficiency;
use crate::path::PathBuilder;

/// Gathers what the detectors need. Feed it every record of the window (owners' records, failed
/// operations and waiting notices too), in order of start.
#[derive(Clone, Debug)]
pub struct ProfileBuilder {
    profile: Profile,
    seen: Option<(Nanos, Nanos)>,
    spent: BTreeMap<ApId, Spent>,
    waits: Waits,
    windows: Windows,
    following: Following,
    sections: Sections,
    times: Breakdown,
    path: PathBuilder,
    /// Group of each barrier, and how many pass.
    barriers: BTreeMap<VarId, (Option<GroupId>, usize)>,
}

impl ProfileBuilder {
    /// An empty profile of a run with these names and processes.
    pub fn new(catalog: Catalog) -> Self {
        let members = |group| catalog.topology.aps_in(group).count();
        let barriers = catalog.barriers.iter();
        let barriers = barriers
            .map(|b| (b.id, (b.group, members(b.group))))
            .collect();
        let variables = catalog.variables.iter().enumerate();
        let path = PathBuilder::new(&catalog);
        Self {
            profile: Profile {
                window: TimeRange::ALL,
                places: Arc::new(variables.map(|(i, v)| (v.id(), i)).collect()),
                catalog: Arc::new(catalog),
                objects: BTreeMap::new(),
                barriers: BTreeMap::new(),
                aps: BTreeMap::new(),
                sequences: Sequences::default(),
                read_only: BTreeMap::new(),
                hops: BTreeMap::new(),
                costs: Costs::default(),
                broken: Vec::new(),
                efficiency: None,
                windows: Vec::new(),
                beginnings: Beginnings::default(),
                path: None,
                delays: Vec::new(),
            },
            seen: None,
            spent: BTreeMap::new(),
            waits: Waits::default(),
            windows: Windows::default(),
            following: Following::default(),
            sections: Sections::default(),
            times: Breakdown::default(),
            path,
            barriers,
        }
    }

    /// Where the processes say their time went: without it, work is the time between accesses, whoever had the processor.
    pub fn times(&mut self, breakdown: Breakdown) {
        self.times = breakdown;
    }

    /// Takes one record into account.
    pub fn add(&mut self, record: &Record) {
        self.path.add(record);
        self.waits.until(record.start, &self.profile.objects);
        if record.flags.waiting {
            self.waits.noticed(record);
            self.object(record.object).wait_begins(record);
        } else if record.flags.failed {
            if record.op == Op::Acquire && record.side == Side::Requester {
                self.waits.acquired(record);
                self.object(record.object).wait_fails(record);
            }
        } else if record.side == Side::Requester {
            self.access(record);
        }
    }

    fn access(&mut self, record: &Record) {
        let end = record.end();
        self.seen = Some(match self.seen {
            Some((from, to)) => (from.min(record.start), to.max(end)),
            None => (record.start, end),
        });
        let own = self.profile.aps.entry(record.ap).or_default();
        self.following.access(record, &mut self.profile.sequences);
        self.sections.access(record);
        let n = record.accesses();
        own.counts.count(record.op, n);
        own.time += record.spent();
        own.wait += record.wait;
        let spent = self.spent.entry(record.ap).or_default();
        let before = *spent;
        spent.accesses += record.spent();
        if record.op == Op::Barrier {
            spent.waiting += record.duration;
            self.barrier(record, before);
            return;
        }
        spent.waiting += record.wait;
        if n == 1 {
            self.waits.acquired(record);
        }
        // What a process does in itself costs it nothing that would tell what a message costs.
        if !record.flags.in_process {
            let undelayed = record.spent() - record.wait;
            self.profile.costs.add(record.origin, undelayed.0, n);
        }
        self.object(record.object).access(record);
        self.windows.access(record);
    }

    fn barrier(&mut self, record: &Record, before: Spent) {
        let all = || {
            let topology = &self.profile.catalog.topology;
            (None, topology.application_processes().len())
        };
        let id = record.object.var;
        let (group, members) = *self.barriers.entry(id).or_insert_with(all);
        let phases = self.profile.barriers.entry(group).or_default();
        if let Some(phase) = phases.passed(record, members, before) {
            self.windows.phase(group, &phase);
        }
    }

    fn object(&mut self, id: ObjectId) -> &mut ObjectProfile {
        self.profile.objects.entry(id).or_default()
    }

    /// The profile, over `window` or over what the records cover.
    pub fn finish(mut self, window: Option<TimeRange>) -> Profile {
        self.waits.until(Nanos::MAX, &self.profile.objects);
        self.profile.broken = std::mem::take(&mut self.waits.broken);
        std::mem::take(&mut self.following).finish(&mut self.profile.sequences);
        self.profile.read_only = std::mem::take(&mut self.sections).finish();
        let (from, to) = self.seen.unwrap_or_default();
        self.profile.window = window.unwrap_or(TimeRange { from, to });
        for phases in self.profile.barriers.values_mut() {
            let aps = phases.by_ap.keys().copied().collect();
            let pieces = &self.times.phases;
            phases.processor = OnProcessor::of(pieces, &aps, self.profile.window);
            let told: BTreeSet<ApId> = pieces.iter().map(|piece| piece.ap).collect();
            let silent: Vec<ApId> = aps.difference(&told).copied().collect();
            if !silent.is_empty() {
                let told = aps.intersection(&told).copied().collect();
                let partly = OnProcessor::of(pieces, &told, self.profile.window);
                phases.partly = partly.map(|own| (own, silent));
            }
        }
        // Of a part of a run, what lies in it.
        let inside = |p: &&PhaseTimes| window.is_none_or(|w| w.from <= p.start && p.end() <= w.to);
        self.profile.efficiency = Efficiency::of(self.times.phases.iter().filter(inside));
        if window.is_none() {
            self.profile.beginnings = Beginnings::of(&self.times.phases);
            self.profile.hops = self.hops();
        }
        for object in self.profile.objects.values_mut() {
            object.finish();
        }
        let windows = std::mem::take(&mut self.windows);
        self.profile.windows = windows.finish(&self.profile, &self.times.phases);
        self.finish_path(window);
        self.profile
    }

    /// What calls took beyond what memory processes say that they took.
    fn hops(&self) -> BTreeMap<ApId, Nanos> {
        const CALLS: [Component; 5] = [
            Component::Local,
            Component::Fault,
            Component::Cold,
            Component::Lock,
            Component::Barrier,
        ];
        let processes = self.times.by_process().into_iter();
        let hop = |process: PhaseTimes| {
            let served = self.profile.aps.get(&process.ap)?.time;
            let sum = |of: &dyn Fn(Component) -> u64| CALLS.into_iter().map(of).sum::<u64>();
            let calls = sum(&|c| process.spent.calls(c));
            let time = sum(&|c| process.spent.time(c).0);
            let each = time.checked_sub(served.0)?.checked_div(calls)?;
            Some((process.ap, Nanos(each)))
        };
        processes.filter_map(hop).collect()
    }

    /// Of a part of a run the path ends with its last record, not with its processes.
    fn finish_path(&mut self, window: Option<TimeRange>) {
        let ends = match window {
            Some(_) => Breakdown::default(),
            None => std::mem::take(&mut self.times),
        };
        let catalog = &self.profile.catalog;
        (self.profile.path, self.profile.delays) = self.path.finish(catalog, &ends);
    }
}
