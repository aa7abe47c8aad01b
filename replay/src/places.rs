//! Who owns what, who is where, and the way between two processes.

use dosmos_proto::{ApId, Cache, CopyPolicy, GroupId, MpId, ObjectId, Topology, VarId, Variable};
use dosmos_trace::record::Op;
use rustc_hash::FxHashMap;

use crate::change::Change;
use crate::ids::Process;

/// The most memory and link processes on the way of a message; groups nested deeper than that are taken to be nearer.
pub(crate) const LONGEST: usize = 8;

/// The processes on the way of a message, in order; the sender is not among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Way {
    by: [Process; LONGEST],
    len: u8,
}

impl Way {
    pub(crate) fn to(process: Process) -> Self {
        let mut way = Self::default();
        way.push(process);
        way
    }

    fn push(&mut self, process: Process) {
        if let Some(free) = self.by.get_mut(usize::from(self.len)) {
            *free = process;
            self.len += 1;
        }
    }

    pub(crate) fn get(&self, at: usize) -> Option<Process> {
        self.by[..usize::from(self.len)].get(at).copied()
    }

    pub(crate) fn len(&self) -> usize {
        usize::from(self.len)
    }
}

/// The places of a run, changed or not.
#[derive(Debug)]
pub(crate) struct Places<'a> {
    recorded: &'a Topology,
    topology: &'a Topology,
    change: &'a Change,
    variables: FxHashMap<VarId, &'a Variable>,
    homes: Vec<MpId>,
    /// The application processes of each memory process.
    its: Vec<Vec<u32>>,
    /// The number here of each memory process of the run; none: the same.
    numbers: Option<Vec<MpId>>,
}

impl<'a> Places<'a> {
    pub(crate) fn new(
        recorded: &'a Topology,
        variables: &'a [Variable],
        change: &'a Change,
    ) -> Self {
        let topology = change.topology.as_ref().unwrap_or(recorded);
        let homes = recorded.application_processes().iter().zip(0u32..);
        let homes = homes
            .map(|(ap, i)| {
                let there = topology.find_ap(&ap.name).and_then(|ap| topology.ap(ap));
                let home = there.map_or(ap.memory_process, |ap| ap.memory_process);
                change.homes.get(&ApId(i)).copied().unwrap_or(home)
            })
            .collect::<Vec<MpId>>();
        let mut its = vec![Vec::new(); topology.memory_processes().len()];
        for (ap, home) in (0u32..).zip(&homes) {
            if let Some(its) = its.get_mut(home.index()) {
                its.push(ap);
            }
        }
        let numbers = change.topology.as_ref().map(|there| {
            let all = recorded.memory_processes().iter();
            all.map(|mp| there.find_mp(&mp.name).unwrap_or_default())
                .collect()
        });
        Self {
            recorded,
            topology,
            change,
            variables: variables.iter().map(|v| (v.id(), v)).collect(),
            homes,
            its,
            numbers,
        }
    }

    /// The number here of a memory process of the run.
    pub(crate) fn number(&self, recorded: MpId) -> MpId {
        let here = self.numbers.as_ref().and_then(|n| n.get(recorded.index()));
        here.copied().unwrap_or(recorded)
    }

    /// All processes of the run.
    pub(crate) fn processes(&self) -> usize {
        self.homes.len() + self.topology.memory_processes().len()
    }

    pub(crate) fn process_of(&self, mp: MpId) -> Process {
        (self.homes.len() + mp.index()) as Process
    }

    /// The memory process of an application process.
    pub(crate) fn home(&self, ap: u32) -> MpId {
        self.homes.get(ap as usize).copied().unwrap_or(MpId(0))
    }

    /// The application processes of a memory process; none of another process.
    pub(crate) fn its(&self, process: Process) -> &[u32] {
        let mp = (process as usize).checked_sub(self.homes.len());
        let its = mp.and_then(|mp| self.its.get(mp));
        its.map_or(&[], Vec::as_slice)
    }

    /// The owner of an object for a process of `home`: of its own for an object that is split.
    pub(crate) fn owner(&self, object: ObjectId, home: MpId, recorded: MpId) -> MpId {
        if self.change.split.contains(&object) {
            return home;
        }
        if let Some(owner) = self.change.owners.get(&object) {
            return *owner;
        }
        let declared = self.variables.get(&object.var);
        self.number(declared.map_or(recorded, |v| v.owner(object.index)))
    }

    pub(crate) fn policy(&self, variable: VarId) -> CopyPolicy {
        if let Some(policy) = self.change.policies.get(&variable) {
            return *policy;
        }
        let declared = self.variables.get(&variable);
        declared.map_or(CopyPolicy::default(), |v| v.spec().policy())
    }

    /// Whether an object of the variable may be in the hands of an application process.
    pub(crate) fn may_be_delegated(&self, variable: VarId) -> bool {
        let spec = self.variables.get(&variable).map(|v| v.spec());
        let kept = spec.is_some_and(|s| s.cache() == Cache::Ap && s.replicas() == 0);
        kept && self.policy(variable) == CopyPolicy::Invalidate
    }

    /// Content of an object, bytes.
    pub(crate) fn bytes(&self, object: ObjectId) -> u32 {
        let declared = self.variables.get(&object.var);
        let bytes = declared.and_then(|v| v.spec().layout().bytes_of(object.index));
        bytes.unwrap_or(0)
    }

    /// Whether copies of the object, which `recorded` owned, at the memory process of this process may be others than
    /// in the run.
    pub(crate) fn copies_differ(&self, object: ObjectId, ap: u32, recorded: MpId) -> bool {
        let change = self.change;
        let owner = change.owners.get(&object);
        owner.is_some_and(|owner| *owner != recorded)
            || self.is_farther_or_nearer(ap, recorded)
            || change.policies.contains_key(&object.var)
            || change.homes.contains_key(&ApId(ap))
            || self.is_unlocked(object, ap)
    }

    /// Whether a process and an owner of the run are in one group here and were not there, or the other way round.
    fn is_farther_or_nearer(&self, ap: u32, owner: MpId) -> bool {
        let there = |mp: MpId| self.recorded.mp(mp).map(|p| p.group);
        let home = self.recorded.ap(ApId(ap)).map(|a| a.memory_process);
        let near_there = home.is_some_and(|home| there(home) == there(owner));
        near_there != self.same_group(self.home(ap), self.number(owner))
    }

    /// Whether who reads the object until it has changed waits for that instead.
    pub(crate) fn is_awaited(&self, object: ObjectId) -> bool {
        self.change.awaited.contains(&object)
    }

    /// Whether the process reads the object without acquiring it.
    pub(crate) fn is_unlocked(&self, object: ObjectId, ap: u32) -> bool {
        self.change.unlocked.contains(&(object, ApId(ap)))
    }

    pub(crate) fn is_private(&self, object: ObjectId) -> bool {
        self.change.private.contains(&object)
    }

    pub(crate) fn is_split(&self, object: ObjectId) -> bool {
        self.change.split.contains(&object)
    }

    /// Whether a barrier costs nothing but waiting.
    pub(crate) fn is_free(&self, barrier: VarId) -> bool {
        self.change.free_barriers.contains(&barrier)
    }

    /// Whether accesses of this sort are one with those that go on from them.
    pub(crate) fn are_together(&self, variable: VarId, op: Op) -> bool {
        self.change.together.contains(&(variable, op == Op::Write))
    }

    pub(crate) fn same_group(&self, a: MpId, b: MpId) -> bool {
        self.group(a) == self.group(b)
    }

    fn group(&self, mp: MpId) -> Option<GroupId> {
        self.topology.mp(mp).map(|p| p.group)
    }

    /// The way from one memory process to another: up the tree of groups and down again, over the link process of each.
    pub(crate) fn way(&self, from: MpId, to: MpId) -> Way {
        let mut way = Way::default();
        if let (Some(a), Some(b)) = (self.group(from), self.group(to))
            && a != b
        {
            let mut by = Vec::new();
            let mut shared = None;
            for group in self.topology.ancestry(a) {
                by.push(group);
                if self.topology.within(b, group) {
                    shared = Some(group);
                    break;
                }
            }
            let down = self.topology.ancestry(b);
            let down: Vec<GroupId> = down.take_while(|g| Some(*g) != shared).collect();
            by.extend(down.into_iter().rev());
            for link in by.into_iter().filter_map(|g| self.topology.link_of(g)) {
                if link != from && link != to {
                    way.push(self.process_of(link));
                }
            }
        }
        way.push(self.process_of(to));
        way
    }
}
