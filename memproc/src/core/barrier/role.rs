//! The state of barriers: at the members, and at the coordinator.

use std::collections::BTreeSet;

use dosmos_proto::names::check_name;
use dosmos_proto::{ApId, ErrorCode, GroupId, Incarnation, MpId, Refusal, VarId, blame};
use dosmos_trace::query::BarrierName;
use rustc_hash::FxHashMap;

use super::gone::{Absent, Gone};
use super::group::{coordinator, group_of, members, number};
use super::late::{Late, did_not_open};
use crate::core::context::Context;
use crate::core::effects::{Effect, Waiter};
use crate::core::messages::{Item, Notice, Opening, Scope};

/// Most barrier names.
const MAX_BARRIERS: usize = 65_536;

/// What the coordinator told the only other memory process of its own participants, of this generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Nothing,
    /// All of them wait: the other one may open the barrier for its own without asking.
    Arrived,
    /// Not all wait any more, and the other one has not said yet that it did not open the barrier before it knew.
    Withdrawn,
}

/// One named barrier.
#[derive(Debug)]
struct Barrier {
    group: Option<GroupId>,
    name: String,
    generation: u64,
    /// Participants here, and memory processes with participants.
    own: Vec<ApId>,
    members: Vec<MpId>,
    /// Those of ours that arrived, and the operations that wait.
    arrived: BTreeSet<ApId>,
    waiting: Vec<Waiter>,
    /// The coordinator was told that all of ours arrived.
    sent: bool,
    /// It was told so for this generation, and it is true no more. What says so may get lost, when the arrival does not.
    void: Option<u64>,
    /// At the coordinator: the members that said so. At another one: the coordinator, if it did.
    here: BTreeSet<MpId>,
    /// At the coordinator, where there are only two memory processes.
    told: Told,
    /// The last generation, if it opened without a word to the other one, which opened it by itself.
    unsaid: Option<u64>,
    /// What the coordinator said when it failed it the last time, if it blamed a participant.
    blamed: Option<Refusal>,
    late: Late,
}

impl Barrier {
    fn coordinator(&self) -> Option<MpId> {
        self.members.first().copied()
    }

    /// At the coordinator: the other member, if it is the only other memory process there is. Then whatever either of them
    /// learns of the other's participants it learns on the link between them, so each may open the barrier for its own.
    fn other(&self, cx: &Context) -> Option<MpId> {
        let other = cx.cluster.only_other()?;
        (self.coordinator() == Some(cx.me()) && self.members.contains(&other)).then_some(other)
    }

    /// At the coordinator: tells the other member that all participants here wait, if it does not know.
    fn tell(&mut self, cx: &mut Context) {
        if self.told == Told::Nothing
            && self.here.contains(&cx.me())
            && let Some(other) = self.other(cx)
        {
            self.told = Told::Arrived;
            cx.notice(other, self.arrival());
        }
    }

    /// Our arrival does not count any more; whether there was one.
    fn take_back(&mut self) -> bool {
        let sent = std::mem::take(&mut self.sent);
        if sent {
            self.void = Some(self.generation);
        }
        sent
    }

    /// Says so to whoever was told: the coordinator, or by the coordinator the other member.
    fn say_void(&mut self, cx: &mut Context) {
        let Some(generation) = self.void else { return };
        let to = match self.coordinator() {
            Some(to) if to != cx.me() => Some(to),
            _ if self.told == Told::Arrived => self.other(cx),
            _ => None,
        };
        let Some(to) = to else { return };
        if self.told == Told::Arrived {
            self.told = Told::Withdrawn;
        }
        let notice = Notice::BarrierWithdraw {
            group: self.group,
            name: self.name.clone(),
            generation,
        };
        cx.notice(to, notice);
    }

    fn arrival(&self) -> Notice {
        Notice::BarrierArrive {
            group: self.group,
            name: self.name.clone(),
            generation: self.generation,
        }
    }

    /// Forgets the arrivals of ours; those that wait.
    fn reset(&mut self) -> Vec<Waiter> {
        self.arrived.clear();
        self.late.is_over();
        self.take_back();
        std::mem::take(&mut self.waiting)
    }

    /// Who has not arrived, as far as it is known here, for a message.
    fn missing_text(&self, cx: &Context) -> String {
        let mut missing = self.late.missing(cx, &self.own, &self.arrived);
        let coordinator = self.coordinator().unwrap_or(cx.me());
        if coordinator == cx.me() {
            let members = (&self.members[..], &self.here);
            let others = self.late.missing_elsewhere(cx, self.group, members);
            missing.extend(others);
        }
        did_not_open(cx.cluster, &self.name, &missing, coordinator)
    }

    fn release(&self, generation: u64, failed: Option<Refusal>) -> Notice {
        Notice::BarrierRelease {
            group: self.group,
            name: self.name.clone(),
            generation,
            failed,
        }
    }
}

/// All barriers known here, and who is missing.
#[derive(Debug, Default)]
pub(crate) struct Barriers {
    table: FxHashMap<VarId, Barrier>,
    absent: Absent,
}

impl Barriers {
    /// A barrier's number, and its coordinator if `ap` may wait at it.
    pub(crate) fn place(
        &mut self,
        cx: &mut Context,
        ap: ApId,
        scope: &Scope,
        name: &str,
    ) -> (VarId, Result<MpId, Refusal>) {
        let group = group_of(cx.cluster, scope);
        let id = number(group.as_ref().map_or(None, |g| *g), name);
        let coordinator = group.and_then(|group| {
            if !name.is_empty() {
                check_name("barrier name", name)?;
            }
            if !cx.cluster.topology.aps_in(group).any(|p| p == ap) {
                return Err(Refusal::new(
                    ErrorCode::Invalid,
                    format!(
                        "{} is not of group {}, whose barrier it called; name its own group or one around it",
                        cx.cluster.ap_name(ap),
                        group.map_or_else(String::new, |g| cx.cluster.topology.group_name(g))
                    ),
                ));
            }
            let barrier = self.known(cx, group, name)?;
            Ok(barrier.coordinator().unwrap_or(cx.me()))
        });
        (id, coordinator)
    }

    /// The barrier's state, made at its first use.
    fn known(
        &mut self,
        cx: &mut Context,
        group: Option<GroupId>,
        name: &str,
    ) -> Result<&mut Barrier, Refusal> {
        let id = number(group, name);
        let count = self.table.len();
        let entry = match self.table.entry(id) {
            std::collections::hash_map::Entry::Occupied(entry) => {
                let b = entry.into_mut();
                if b.group == group && b.name == name {
                    return Ok(b);
                }
                return Err(Refusal::new(
                    ErrorCode::Invalid,
                    format!(
                        "barriers {:?} and {name:?} have the same number; rename one of them",
                        b.name
                    ),
                ));
            }
            std::collections::hash_map::Entry::Vacant(entry) => entry,
        };
        if count >= MAX_BARRIERS {
            return Err(Refusal::new(
                ErrorCode::Limit,
                format!("{MAX_BARRIERS} barrier names are in use; use the same name again"),
            ));
        }
        let me = cx.me();
        let name = name.to_owned();
        cx.trace(Item::Barrier(BarrierName {
            id,
            group,
            name: name.clone(),
        }));
        let of_group = cx.cluster.topology.aps_in(group);
        Ok(entry.insert(Barrier {
            group,
            name,
            generation: 1,
            own: of_group
                .filter(|ap| cx.cluster.mp_of(*ap) == Some(me))
                .collect(),
            members: members(cx.cluster, group),
            arrived: BTreeSet::new(),
            waiting: Vec::new(),
            sent: false,
            void: None,
            here: BTreeSet::new(),
            told: Told::Nothing,
            unsaid: None,
            blamed: None,
            late: Late::default(),
        }))
    }

    /// An application process of ours arrived, its writes published.
    pub(crate) fn arrive(&mut self, cx: &mut Context, barrier: VarId, waiter: Waiter) {
        let Some(b) = self.table.get_mut(&barrier) else {
            return;
        };
        if let Some(refusal) = self.absent.refusal(cx, b.group) {
            let outcome = Err(b.blamed.clone().unwrap_or(refusal));
            return cx.effect(Effect::Opened { waiter, outcome });
        }
        b.arrived.insert(waiter.ap);
        b.late.arrives(waiter.ap);
        b.waiting.push(waiter);
        if b.arrived.len() < b.own.len() || b.sent {
            return;
        }
        (b.sent, b.void) = (true, None);
        let generation = b.generation;
        match b.coordinator() {
            Some(to) if to != cx.me() => {
                cx.notice(to, b.arrival());
                if b.here.contains(&to) {
                    self.opened(cx, barrier, generation, None);
                }
            }
            _ => self.member_arrived(cx, cx.me(), barrier, generation),
        }
    }

    /// An operation does not wait any more: its arrival counts no longer, unless the barrier has opened
    /// already and we have not heard it.
    pub(crate) fn withdraw(&mut self, cx: &mut Context, barrier: VarId, waiter: Waiter) {
        let Some(b) = self.table.get_mut(&barrier) else {
            return;
        };
        b.late.forget(waiter);
        let Some(at) = b.waiting.iter().position(|w| *w == waiter) else {
            return;
        };
        b.waiting.remove(at);
        b.arrived.remove(&waiter.ap);
        b.late.gives_up(cx.now, waiter.ap);
        if b.take_back() {
            b.here.remove(&cx.me());
            b.say_void(cx);
        }
    }

    /// The time of an operation is over: its arrival is withdrawn, and the other process that knows of it says whether the
    /// barrier opened before, and a coordinator who is missing. Whether there is one.
    pub(crate) fn ask(&mut self, cx: &mut Context, barrier: VarId, waiter: Waiter) -> bool {
        let me = cx.me();
        let asked = |b: &&mut Barrier| {
            let (to, knows) = match b.coordinator() {
                Some(to) if to != me => (Some(to), b.sent),
                _ => (b.other(cx), b.told == Told::Arrived),
            };
            let reachable = |to| cx.missing(to).is_none() && cx.check_reachable(to).is_ok();
            let answers = to.is_some_and(reachable);
            answers && b.waiting.contains(&waiter) && (knows || b.late.is_asking())
        };
        if self.table.get_mut(&barrier).filter(asked).is_none() {
            return false;
        }
        self.withdraw(cx, barrier, waiter);
        if let Some(b) = self.table.get_mut(&barrier) {
            b.late.asks(waiter);
        }
        true
    }

    /// Not all participants of a memory process wait any more, which had said that they do: at the coordinator of another
    /// member, or the other way round.
    pub(crate) fn withdrawn(
        &mut self,
        cx: &mut Context,
        from: MpId,
        (group, name): (Option<GroupId>, &str),
        generation: u64,
    ) {
        let Ok(b) = self.known(cx, group, name) else {
            return;
        };
        if b.coordinator() == Some(from) {
            // If it opened here, our arrival is on its way and says so.
            if generation >= b.generation {
                b.here.remove(&from);
                let closed = Refusal::new(ErrorCode::Deadline, b.missing_text(cx));
                cx.notice(from, b.release(generation, Some(closed)));
            }
        } else if b.unsaid == Some(generation) {
            cx.notice(from, b.release(generation, None));
        } else if b.generation == generation && b.here.contains(&from) {
            let missing = Refusal::new(ErrorCode::Deadline, b.missing_text(cx));
            b.here.remove(&from);
            b.late.member_gives_up(cx.now, from);
            cx.notice(from, b.release(generation, Some(missing)));
        }
    }

    /// A memory process says that all its participants arrived: a member, or the coordinator.
    pub(crate) fn arrived(
        &mut self,
        cx: &mut Context,
        from: MpId,
        (group, name): (Option<GroupId>, String),
        generation: u64,
    ) {
        let barrier = number(group, &name);
        match self.known(cx, group, &name) {
            Ok(b) if b.coordinator() == Some(from) => {
                // One of us was started again if it is another generation: our own arrival tells the coordinator.
                if b.generation == generation {
                    b.here.insert(from);
                    if b.sent {
                        self.opened(cx, barrier, generation, None);
                    }
                }
            }
            Ok(_) => self.member_arrived(cx, from, barrier, generation),
            // So is whoever arrives here.
            Err(_) if coordinator(cx.cluster, group) == Some(from) => {}
            Err(refusal) => {
                let failed = Notice::BarrierRelease {
                    group,
                    name,
                    generation,
                    failed: Some(refusal),
                };
                cx.notice(from, failed);
            }
        }
    }

    fn member_arrived(&mut self, cx: &mut Context, from: MpId, barrier: VarId, generation: u64) {
        let Some(b) = self.table.get_mut(&barrier) else {
            return;
        };
        let missing = self.absent.refusal(cx, b.group);
        if b.coordinator() != Some(cx.me()) || !b.members.contains(&from) {
            return;
        }
        if generation < b.generation {
            let current = b.generation;
            let why = format!(
                "barrier {:?} is at its generation {current} already: {} was cut off or started again; arrive again",
                b.name,
                cx.cluster.mp_name(from)
            );
            let late = Refusal::new(ErrorCode::ProcessLost, why);
            cx.notice(from, b.release(current - 1, Some(late)));
            if b.told == Told::Arrived {
                // What it was told was of a generation that it did not know.
                cx.notice(from, b.arrival());
            }
            return;
        }
        if generation > b.generation {
            // We started again, and the others are further. Those of ours that wait have arrived for
            // this generation as well; who arrived for one between must arrive again.
            (b.generation, b.told) = (generation, Told::Nothing);
            let why = format!(
                "the coordinator of barrier {:?} was started again; arrive again",
                b.name
            );
            let late = Refusal::new(ErrorCode::ProcessLost, why);
            for member in std::mem::take(&mut b.here) {
                if member == cx.me() {
                    b.here.insert(member);
                } else {
                    cx.notice(member, b.release(generation - 1, Some(late.clone())));
                }
            }
        }
        b.here.insert(from);
        b.late.member_arrives(from);
        // It arrived before it heard that ours do not wait any more: it has opened.
        let opened = b.told == Told::Withdrawn && from != cx.me();
        if missing.is_some() || opened || b.here.len() == b.members.len() {
            self.open(cx, barrier, missing);
        } else {
            b.tell(cx);
        }
    }

    /// At the coordinator: opens a barrier for all, or fails it.
    fn open(&mut self, cx: &mut Context, barrier: VarId, failed: Option<Refusal>) {
        let Some(b) = self.table.get_mut(&barrier) else {
            return;
        };
        let (generation, me) = (b.generation, cx.me());
        // Who was told opens it by itself.
        let knows = b.told == Told::Arrived && failed.is_none();
        b.unsaid = knows.then_some(generation);
        for member in b.members.iter().filter(|m| **m != me && !knows) {
            cx.notice(*member, b.release(generation, failed.clone()));
        }
        self.opened(cx, barrier, generation, failed);
    }

    /// The coordinator opened or failed a barrier.
    pub(crate) fn released(
        &mut self,
        cx: &mut Context,
        (group, name): (Option<GroupId>, &str),
        generation: u64,
        failed: Option<Refusal>,
    ) {
        let Ok(b) = self.known(cx, group, name) else {
            return;
        };
        let Some(missing) = failed.as_ref().filter(|f| f.code == ErrorCode::Deadline) else {
            return self.opened(cx, number(group, name), generation, failed);
        };
        // It is still closed: the answer to a withdrawal.
        if b.generation != generation {
            return;
        }
        let mut missing = missing.clone();
        if b.coordinator() == Some(cx.me()) {
            if b.told != Told::Withdrawn {
                return;
            }
            b.told = Told::Nothing;
            missing.message = b.missing_text(cx);
        }
        for waiter in b.late.take_asking() {
            let outcome = Err(missing.clone());
            cx.effect(Effect::Opened { waiter, outcome });
        }
        b.tell(cx);
    }

    fn opened(
        &mut self,
        cx: &mut Context,
        barrier: VarId,
        generation: u64,
        failed: Option<Refusal>,
    ) {
        let Some(b) = self.table.get_mut(&barrier) else {
            return;
        };
        if generation < b.generation {
            return;
        }
        b.here.clear();
        b.told = Told::Nothing;
        let late = b.late.take_asking();
        let waiting = b.reset();
        (b.generation, b.void) = (generation + 1, None);
        b.blamed = failed
            .clone()
            .filter(|f| blame::blamed(&f.message).is_some());
        let too_late = || Refusal::new(ErrorCode::Deadline, "it opened when the time was over");
        for waiter in late {
            let outcome = Err(failed.clone().unwrap_or_else(too_late));
            cx.effect(Effect::Opened { waiter, outcome });
        }
        let coordinator = b.coordinator().unwrap_or(cx.me());
        let start = match coordinator == cx.me() {
            true => Some(cx.own_incarnation()),
            // Whose message this is.
            false => cx.incarnation_of(coordinator),
        };
        let opening = Opening {
            generation,
            start: start.map_or(0, Incarnation::start),
        };
        let outcome = failed.map_or(Ok(opening), Err);
        for waiter in waiting {
            let outcome = outcome.clone();
            cx.effect(Effect::Opened { waiter, outcome });
        }
    }

    /// A participant is missing from now on: what waits for it fails.
    pub(crate) fn lose_participant(&mut self, cx: &mut Context, ap: ApId, cause: Gone) {
        self.absent.add(ap, cause);
        let t = &cx.cluster.topology;
        let Some(its) = t.group_of_ap(ap) else { return };
        for barrier in self.select(|b| b.group.is_none_or(|g| t.within(its, g))) {
            let Some(b) = self.table.get_mut(&barrier) else {
                continue;
            };
            let group = b.group;
            b.arrived.remove(&ap);
            b.waiting.retain(|w| w.ap != ap);
            let coordinates = b.coordinator() == Some(cx.me()) && !b.here.is_empty();
            if !coordinates && b.sent {
                if !b.own.contains(&ap) {
                    continue; // The coordinator tells.
                }
                // Unless it never heard of the arrival: then nobody does.
                b.take_back();
                b.say_void(cx);
            }
            let refusal = self.absent.refusal(cx, group);
            if coordinates {
                self.open(cx, barrier, refusal);
            } else if let Some(refusal) = refusal {
                self.fail_here(cx, barrier, &refusal);
            }
        }
    }

    fn fail_here(&mut self, cx: &mut Context, barrier: VarId, refusal: &Refusal) {
        let waiting = self.table.get_mut(&barrier).map(Barrier::reset);
        for waiter in waiting.into_iter().flatten() {
            let outcome = Err(refusal.clone());
            cx.effect(Effect::Opened { waiter, outcome });
        }
    }

    /// Whether it is missing.
    pub(crate) fn is_absent(&self, ap: ApId) -> bool {
        self.absent.has(ap)
    }

    /// A participant is back.
    pub(crate) fn regain_participant(&mut self, ap: ApId, cause: Gone) {
        self.absent.remove(ap, cause);
    }

    /// Another memory process is lost: our arrivals with it are void, and its own; it does not know of any of ours.
    pub(crate) fn lose(&mut self, cx: &mut Context, mp: MpId, why: &Refusal) {
        for barrier in self.select(|b| b.coordinator() == Some(mp)) {
            if let Some(b) = self.table.get_mut(&barrier) {
                b.here.clear();
            }
            self.fail_here(cx, barrier, why);
        }
        for barrier in self.select(|b| b.told != Told::Nothing) {
            if let Some(b) = self.table.get_mut(&barrier) {
                b.told = Told::Nothing;
            }
        }
    }

    /// A coordinator that was lost can be reached: arrivals of ours that failed do not count, if they got through after all.
    pub(crate) fn regain_coordinator(&mut self, cx: &mut Context, mp: MpId) {
        for barrier in self.select(|b| b.coordinator() == Some(mp)) {
            if let Some(b) = self.table.get_mut(&barrier) {
                b.say_void(cx);
            }
        }
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

    /// Who has not arrived, as far as it is known here, for a message.
    pub(crate) fn missing_text(&self, cx: &Context, barrier: VarId) -> Option<String> {
        self.table.get(&barrier).map(|b| b.missing_text(cx))
    }
}
