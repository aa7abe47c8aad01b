//! Barriers: of all application processes or of a group with its sub-groups, by name.
//!
//! Each memory process waits for all its own participants, then says so once to the coordinator (the
//! lowest of the participants' memory processes), which opens the barrier for all when the last said
//! so. Generations count up at each opening or failure, in step everywhere; a message of an older one
//! is void. A participant that left fails the barrier for everyone.
//!
//! An arrival stands, also when its application process stopped waiting: asked again, it goes on
//! waiting, or passes at once if the barrier opened in between.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::variable::check_name;
use dosmos_proto::{ApId, ErrorCode, GroupId, MpId, Refusal, VarId};
use dosmos_trace::query::BarrierName;

use super::calls::{Operation, What};
use super::cluster::{Cluster, list};
use super::hash::{FastMap, stable};
use super::input::{Item, Output, Reply, Scope, Tell};
use super::replies::Cost;
use super::{Core, Cx};

/// Most barrier names.
const MAX_BARRIERS: usize = 65_536;
/// Set in the numbers of barriers, never in those of variables.
const BARRIER_BIT: u32 = 1 << 31;

/// One named barrier.
#[derive(Debug)]
struct Barrier {
    group: Option<GroupId>,
    name: String,
    generation: u64,
    /// Participants here, and memory processes with participants.
    own: Vec<ApId>,
    members: Vec<MpId>,
    /// Those of ours that arrived, and the calls that wait.
    arrived: BTreeSet<ApId>,
    waiting: Vec<(ApId, u64)>,
    /// The coordinator was told that all of ours arrived.
    sent: bool,
    /// Passed while they had stopped waiting.
    missed: BTreeMap<ApId, u64>,
    /// At the coordinator: the members that said so.
    here: BTreeSet<MpId>,
}

impl Barrier {
    fn coordinator(&self) -> Option<MpId> {
        self.members.first().copied()
    }

    /// Takes back what arrived of ours; gives the calls that waited.
    fn reset(&mut self) -> Vec<(ApId, u64)> {
        self.arrived.clear();
        self.sent = false;
        std::mem::take(&mut self.waiting)
    }
}

/// Why an application process does not take part any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// It left.
    Left,
    /// Its memory process is cut off.
    Cut,
}

/// All barriers known here, and who is missing.
#[derive(Debug, Default)]
pub(crate) struct Barriers {
    table: FastMap<VarId, Barrier>,
    gone: BTreeMap<ApId, Gone>,
}

impl Barriers {
    /// A call does not wait any more.
    pub(crate) fn forget_call(&mut self, barrier: VarId, call: u64) {
        if let Some(b) = self.table.get_mut(&barrier) {
            b.waiting.retain(|(_, c)| *c != call);
        }
    }

    /// Whether a call of `ap` waits at a barrier.
    pub(crate) fn awaits(&self, barrier: VarId, ap: ApId) -> bool {
        let barrier = self.table.get(&barrier);
        barrier.is_some_and(|b| b.waiting.iter().any(|(w, _)| *w == ap))
    }

    /// Numbers of the barriers for which `is`, in order.
    fn select(&self, is: impl Fn(&Barrier) -> bool) -> Vec<VarId> {
        let mut list: Vec<VarId> = self
            .table
            .iter()
            .filter(|(_, b)| is(b))
            .map(|(id, _)| *id)
            .collect();
        list.sort_unstable();
        list
    }
}

/// The coordinator of barriers of a group or of all.
pub(crate) fn coordinator(cluster: &Cluster, group: Option<GroupId>) -> Option<MpId> {
    members(cluster, group).first().copied()
}

fn members(cluster: &Cluster, group: Option<GroupId>) -> Vec<MpId> {
    let mut members: Vec<MpId> = cluster
        .topology
        .aps_in(group)
        .filter_map(|ap| cluster.mp_of(ap))
        .collect();
    members.sort_unstable();
    members.dedup();
    members
}

fn number(group: Option<GroupId>, name: &str) -> VarId {
    let text = format!("{}\n{name}", group.map_or(-1, |g| i64::from(g.0)));
    VarId(BARRIER_BIT | stable(text.as_bytes()) as u32)
}

impl Core {
    fn group_of(&self, scope: &Scope) -> Result<Option<GroupId>, Refusal> {
        let t = &self.cluster.topology;
        let unknown = |what: String| {
            let groups = list(t.groups().iter().map(|g| g.path.as_str()));
            let why = format!("there is no group {what}; there are {groups}");
            Err(Refusal::new(ErrorCode::Invalid, why))
        };
        match scope {
            Scope::All => Ok(None),
            Scope::Path(path) if path.is_empty() || path == "/" => Ok(None),
            Scope::Path(path) => match t.find_group(path) {
                Some(group) => Ok(Some(group)),
                None => unknown(path.clone()),
            },
            Scope::Group(group) if group.index() < t.groups().len() => Ok(Some(*group)),
            Scope::Group(group) => unknown(group.to_string()),
        }
    }

    /// The number a barrier has in records, in every process.
    pub(super) fn barrier_number(&self, scope: &Scope, name: &str) -> VarId {
        number(self.group_of(scope).unwrap_or(None), name)
    }

    /// The barrier's state, made at its first use.
    fn known_barrier(
        &mut self,
        cx: &mut Cx,
        group: Option<GroupId>,
        name: &str,
    ) -> Result<VarId, Refusal> {
        let id = number(group, name);
        if let Some(b) = self.barriers.table.get(&id) {
            if b.group == group && b.name == name {
                return Ok(id);
            }
            return Err(Refusal::new(
                ErrorCode::Invalid,
                format!(
                    "barriers {:?} and {name:?} have the same number; rename one of them",
                    b.name
                ),
            ));
        }
        if self.barriers.table.len() >= MAX_BARRIERS {
            return Err(Refusal::new(
                ErrorCode::Limit,
                format!("{MAX_BARRIERS} barrier names are in use; use the same name again"),
            ));
        }
        let me = self.cluster.me;
        let t = &self.cluster.topology;
        let barrier = Barrier {
            group,
            name: name.to_owned(),
            generation: 1,
            own: t
                .aps_in(group)
                .filter(|ap| self.cluster.mp_of(*ap) == Some(me))
                .collect(),
            members: members(&self.cluster, group),
            arrived: BTreeSet::new(),
            waiting: Vec::new(),
            sent: false,
            missed: BTreeMap::new(),
            here: BTreeSet::new(),
        };
        self.barriers.table.insert(id, barrier);
        cx.out.push(Output::Trace(Item::Barrier(BarrierName {
            id,
            group,
            name: name.to_owned(),
        })));
        Ok(id)
    }

    /// An application process asks for a barrier.
    pub(super) fn barrier(
        &mut self,
        cx: &mut Cx,
        op: &Operation,
        scope: &Scope,
        name: &str,
    ) -> Result<(), Refusal> {
        if !name.is_empty() {
            check_name("barrier name", name)?;
        }
        let group = self.group_of(scope)?;
        let member = self.cluster.topology.aps_in(group).any(|ap| ap == op.ap);
        if !member {
            return Err(Refusal::new(
                ErrorCode::Invalid,
                format!(
                    "{} is not of group {}, whose barrier it called; name its own group or one around it",
                    self.cluster.ap_name(op.ap),
                    group.map_or_else(String::new, |g| self.cluster.topology.group_name(g))
                ),
            ));
        }
        let barrier = self.known_barrier(cx, group, name)?;
        let coordinator = self.barriers.table[&barrier]
            .coordinator()
            .unwrap_or(self.cluster.me);
        self.peers.reach(&self.cluster, coordinator)?;
        let what = What::Barrier {
            barrier,
            arrived: None,
        };
        let call = self.open_operation(op, coordinator, what);
        self.prepare(cx, op.ap, call);
        Ok(())
    }

    /// The first participant known to be missing.
    fn missing_of(&self, group: Option<GroupId>) -> Option<Refusal> {
        let t = &self.cluster.topology;
        let (ap, cause) = self.barriers.gone.iter().find(|(ap, _)| {
            let its = t.group_of_ap(**ap);
            group.is_none_or(|g| its.is_some_and(|its| t.within(its, g)))
        })?;
        let name = self.cluster.ap_name(*ap);
        let why = match cause {
            Gone::Left => format!("{name} has left"),
            Gone::Cut => format!(
                "{name} is lost with {}",
                self.cluster
                    .mp_name(self.cluster.mp_of(*ap).unwrap_or_default())
            ),
        };
        Some(Refusal::new(
            ErrorCode::ProcessLost,
            format!("the barrier cannot open: {why}, and it is one of its participants"),
        ))
    }

    /// An application process of ours arrived, its writes published.
    pub(super) fn barrier_arrive(&mut self, cx: &mut Cx, ap: ApId, call: u64, barrier: VarId) {
        let group = self.barriers.table.get(&barrier).and_then(|b| b.group);
        let missing = self.missing_of(group);
        let now = cx.now;
        if let Some(op) = self.calls.operation(call) {
            op.what = What::Barrier {
                barrier,
                arrived: Some(now),
            };
        }
        let Some(b) = self.barriers.table.get_mut(&barrier) else {
            return;
        };
        if let Some(generation) = b.missed.remove(&ap) {
            return self.finish(cx, call, Ok(Reply::Passed { generation }), Cost::default());
        }
        if let Some(refusal) = missing {
            return self.finish(cx, call, Err(refusal), Cost::default());
        }
        b.arrived.insert(ap);
        b.waiting.push((ap, call));
        if b.arrived.len() < b.own.len() || b.sent {
            return;
        }
        b.sent = true;
        let arrival = Tell::BarrierArrive {
            group: b.group,
            name: b.name.clone(),
            generation: b.generation,
            arrived: b.own.len() as u32,
        };
        let (coordinator, generation) = (b.coordinator(), b.generation);
        match coordinator {
            Some(mp) if mp != self.cluster.me => self.tell(cx, mp, arrival),
            _ => self.member_arrived(cx, self.cluster.me, barrier, generation),
        }
    }

    /// At the coordinator: a memory process says that all its participants arrived.
    pub(super) fn barrier_arrived(
        &mut self,
        cx: &mut Cx,
        from: MpId,
        group: Option<GroupId>,
        name: &str,
        generation: u64,
    ) {
        match self.known_barrier(cx, group, name) {
            Ok(barrier) => self.member_arrived(cx, from, barrier, generation),
            Err(refusal) => {
                let failed = Tell::BarrierRelease {
                    group,
                    name: name.to_owned(),
                    generation,
                    failed: Some(refusal),
                };
                self.tell(cx, from, failed);
            }
        }
    }

    fn member_arrived(&mut self, cx: &mut Cx, from: MpId, barrier: VarId, generation: u64) {
        let missing = self
            .barriers
            .table
            .get(&barrier)
            .and_then(|b| self.missing_of(b.group));
        let me = self.cluster.me;
        let Some(b) = self.barriers.table.get_mut(&barrier) else {
            return;
        };
        if b.coordinator() != Some(me) || !b.members.contains(&from) {
            return;
        }
        if generation < b.generation {
            let current = b.generation;
            let late = Tell::BarrierRelease {
                group: b.group,
                name: b.name.clone(),
                generation: current - 1,
                failed: Some(Refusal::new(
                    ErrorCode::ProcessLost,
                    format!(
                        "barrier {:?} is at its generation {current} already: {} was cut off or started again; arrive again",
                        b.name,
                        self.cluster.mp_name(from)
                    ),
                )),
            };
            return self.tell(cx, from, late);
        }
        if generation > b.generation {
            // We started again; the others are further.
            b.generation = generation;
            b.here.clear();
        }
        b.here.insert(from);
        if missing.is_some() || b.here.len() == b.members.len() {
            self.barrier_open(cx, barrier, missing.as_ref());
        }
    }

    /// At the coordinator: opens a barrier for all, or fails it.
    fn barrier_open(&mut self, cx: &mut Cx, barrier: VarId, failed: Option<&Refusal>) {
        let Some(b) = self.barriers.table.get(&barrier) else {
            return;
        };
        let (group, name, generation) = (b.group, b.name.clone(), b.generation);
        for member in b.members.clone() {
            if member != self.cluster.me {
                let release = Tell::BarrierRelease {
                    group,
                    name: name.clone(),
                    generation,
                    failed: failed.cloned(),
                };
                self.tell(cx, member, release);
            }
        }
        self.barrier_opened(cx, barrier, generation, failed);
    }

    /// The coordinator opened or failed a barrier.
    pub(super) fn barrier_released(
        &mut self,
        cx: &mut Cx,
        group: Option<GroupId>,
        name: &str,
        generation: u64,
        failed: Option<&Refusal>,
    ) {
        if let Ok(barrier) = self.known_barrier(cx, group, name) {
            self.barrier_opened(cx, barrier, generation, failed);
        }
    }

    fn barrier_opened(
        &mut self,
        cx: &mut Cx,
        barrier: VarId,
        generation: u64,
        failed: Option<&Refusal>,
    ) {
        let Some(b) = self.barriers.table.get_mut(&barrier) else {
            return;
        };
        if generation < b.generation {
            return;
        }
        b.generation = generation + 1;
        b.here.clear();
        if failed.is_none() {
            for ap in &b.arrived {
                let here = self.sessions.get(*ap).is_some_and(|s| s.connected);
                if here && !b.waiting.iter().any(|(w, _)| w == ap) {
                    b.missed.insert(*ap, generation);
                }
            }
        }
        let waiting = b.reset();
        for (_, call) in waiting {
            let wait = match self.calls.operation(call).map(|op| &op.what) {
                Some(What::Barrier {
                    arrived: Some(at), ..
                }) => cx.now - *at,
                _ => continue,
            };
            let cost = Cost {
                wait,
                ..Cost::default()
            };
            let outcome = match failed {
                None => Ok(Reply::Passed { generation }),
                Some(refusal) => Err(refusal.clone()),
            };
            self.finish(cx, call, outcome, cost);
        }
    }

    /// A participant is missing from now on: what waits for it fails.
    pub(super) fn barrier_loses(&mut self, cx: &mut Cx, ap: ApId, cause: Gone) {
        let known = self.barriers.gone.entry(ap).or_insert(cause);
        if cause == Gone::Left {
            *known = cause;
        }
        let t = self.cluster.topology.clone();
        let Some(its) = t.group_of_ap(ap) else { return };
        let concerned = self
            .barriers
            .select(|b| b.group.is_none_or(|g| t.within(its, g)));
        for barrier in concerned {
            let Some(b) = self.barriers.table.get_mut(&barrier) else {
                continue;
            };
            let group = b.group;
            b.missed.remove(&ap);
            b.arrived.remove(&ap);
            let coordinates = !b.here.is_empty();
            if !coordinates && b.sent {
                continue; // The coordinator tells.
            }
            let refusal = self.missing_of(group);
            if coordinates {
                self.barrier_open(cx, barrier, refusal.as_ref());
            } else {
                self.barrier_fails_here(cx, barrier, refusal);
            }
        }
    }

    fn barrier_fails_here(&mut self, cx: &mut Cx, barrier: VarId, refusal: Option<Refusal>) {
        let waiting = match self.barriers.table.get_mut(&barrier) {
            Some(b) => b.reset(),
            None => return,
        };
        let Some(refusal) = refusal else { return };
        for (_, call) in waiting {
            self.finish(cx, call, Err(refusal.clone()), Cost::default());
        }
    }

    /// A participant is back.
    pub(super) fn barrier_regains(&mut self, ap: ApId, cause: Gone) {
        if self.barriers.gone.get(&ap) == Some(&cause) || cause == Gone::Left {
            self.barriers.gone.remove(&ap);
        }
    }

    /// A coordinator is cut off: our arrivals with it are void.
    pub(super) fn barrier_loses_coordinator(&mut self, cx: &mut Cx, mp: MpId, refusal: &Refusal) {
        for barrier in self.barriers.select(|b| b.coordinator() == Some(mp)) {
            self.barrier_fails_here(cx, barrier, Some(refusal.clone()));
        }
    }

    /// Who has not arrived of ours, for a message.
    pub(super) fn barrier_text(&self, barrier: VarId) -> String {
        let Some(b) = self.barriers.table.get(&barrier) else {
            return String::new();
        };
        let missing: Vec<String> = b
            .own
            .iter()
            .filter(|ap| !b.arrived.contains(ap))
            .map(|ap| self.cluster.ap_name(*ap))
            .collect();
        let coordinator = self.cluster.mp_name(b.coordinator().unwrap_or_default());
        if missing.is_empty() {
            format!(
                "barrier {:?} did not open: all of {} arrived, others did not (its coordinator is {coordinator})",
                b.name,
                self.cluster.mp_name(self.cluster.me)
            )
        } else {
            format!(
                "barrier {:?} did not open: {} did not arrive",
                b.name,
                list(missing.iter().map(String::as_str))
            )
        }
    }
}
