//! The home of names: numbers the variables whose names hash to this process and decides their owners.
//!
//! A name has one home in the cluster, so two declarations of one name meet there, and the second is
//! the same variable or a conflict. A variable is announced only when every owner knows it. A home that
//! was started again first hears from the others which names its earlier starts knew (`rebuild`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dosmos_proto::{ErrorCode, Incarnation, MpId, Nanos, Refusal, VarId, Variable, VariableSpec};
use rustc_hash::FxHashMap;

use super::declared::Declared;
use super::place::seat_of;
use super::placement::{COUNTER_BITS, home_of, place};
use super::rebuild::{Rebuild, Wanted};
use super::variables::conflict;
use crate::core::context::Context;
use crate::core::effects::Caller;
use crate::core::messages::{Announced, CallId, KnownNames, PeerRequest, Response, Role};
use crate::core::replica::seats::placed;

/// Most names of one home.
const MAX_NAMES: u32 = 1 << (COUNTER_BITS - 1);

/// The number of a home's first variable. A home that was started again may not hear of any which numbers it
/// gave out before: each start begins as far from all before as there is room, and whoever knows a number already refuses a second
/// variable under it.
fn first_number(cx: &Context) -> u32 {
    let earlier = cx.own_incarnation().start().saturating_sub(1);
    // 0, a half, a quarter, three quarters, …
    earlier.reverse_bits() >> (u32::BITS - (COUNTER_BITS - 1))
}

/// Who serves the objects of a variable now, in order.
fn servers(cx: &Context, variable: &Variable) -> Vec<MpId> {
    let seats = cx.variables.seats();
    let serves = |(index, owner): (u32, &MpId)| match seat_of(variable, index) {
        Some(seat) => seats.holder(seat).1,
        None => *owner,
    };
    let mut list: Vec<MpId> = (0..).zip(variable.owners()).map(serves).collect();
    list.sort_unstable();
    list.dedup();
    list
}

/// Who is told of a variable: whoever serves its objects or keeps them.
fn to_tell(cx: &Context, variable: &Variable) -> Vec<MpId> {
    let mut list = servers(cx, variable);
    let count = variable.owners().len() as u32;
    for seat in (0..count).filter_map(|index| seat_of(variable, index)) {
        list.extend(placed(cx.cluster, seat));
    }
    list.sort_unstable();
    list.dedup();
    list
}

/// Of a variable that was there before this process was started again, and of an owner that does not know it: if that was started again too,
/// it may have lost what it held, so it is told by nobody as if it were new. None if it never knew it.
fn may_have_lost(cx: &Context, owner: MpId) -> Option<Result<(MpId, Incarnation), Refusal>> {
    let start = match owner == cx.me() {
        true => Some(cx.own_incarnation()),
        false => cx.incarnation_of(owner),
    };
    match start {
        Some(start) if start.start() <= 1 => None,
        // An earlier start than every other.
        Some(_) => Some(Ok((owner, Incarnation::new(0, 0)))),
        None => {
            let why = format!(
                "{} has not been heard yet; try again",
                cx.cluster.mp_name(owner)
            );
            Some(Err(Refusal::new(ErrorCode::Unreachable, why)))
        }
    }
}

/// A name this process is the home of.
#[derive(Debug)]
struct Entry {
    variable: Arc<Variable>,
    /// Which starts of owners an earlier start of this process told. They may have been used since, so a later start
    /// of one is not told again: it has lost what there was.
    told_before: Vec<(MpId, Incarnation)>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Owners are being told.
    Creating {
        left: usize,
        told: Vec<(MpId, Incarnation)>,
        failed: Option<Refusal>,
        callers: Vec<Caller>,
    },
    /// An owner could not be told; the next declaration tries again.
    Incomplete,
    /// All owners know it: which starts of them.
    Ready(Vec<(MpId, Incarnation)>),
}

/// An owner that is being told of a variable.
#[derive(Debug)]
struct Creation {
    owner: MpId,
    name: String,
}

/// The names this process is the home of.
#[derive(Debug, Default)]
pub(crate) struct Home {
    entries: BTreeMap<String, Entry>,
    /// Numbers given out.
    counter: u32,
    declared: Declared,
    creations: FxHashMap<u64, Creation>,
    next_call: u64,
    rebuild: Rebuild,
    /// Numbers that earlier starts gave out and that are known.
    given_out: BTreeSet<VarId>,
}

impl Home {
    /// Time passed: a home that was started again asks for its names.
    pub(crate) fn tick(&mut self, cx: &mut Context) {
        self.rebuild.ask(cx, &mut self.next_call);
        self.go_on(cx);
    }

    /// What waited for names is done, if they are known.
    fn go_on(&mut self, cx: &mut Context) {
        if self.rebuild.is_under_way(cx) {
            return;
        }
        for (caller, wanted) in self.rebuild.take_waiting() {
            match wanted {
                Wanted::Declare(spec, creator) => self.declare(cx, caller, &spec, creator),
                Wanted::Open(name) => self.open(cx, caller, &name),
            }
        }
    }

    /// A declaration.
    pub(crate) fn declare(
        &mut self,
        cx: &mut Context,
        caller: Caller,
        spec: &VariableSpec,
        creator: MpId,
    ) {
        if self.rebuild.is_under_way(cx) {
            self.rebuild.ask(cx, &mut self.next_call);
            let wanted = Wanted::Declare(Box::new(spec.clone()), creator);
            return self.rebuild.wait(caller, wanted);
        }
        if let Some(entry) = self.entries.get(spec.name()) {
            if entry.variable.spec() != spec {
                let refusal = conflict(entry.variable.spec(), spec);
                return cx.respond(caller, Response::Refused(refusal), Nanos::ZERO);
            }
            return self.announce(cx, caller, spec.name());
        }
        match self.number(cx, spec, creator) {
            Ok(variable) => {
                let entry = Entry {
                    variable: Arc::new(variable),
                    told_before: Vec::new(),
                    state: State::Incomplete,
                };
                self.entries.insert(spec.name().to_owned(), entry);
                self.create(cx, spec.name(), caller);
            }
            Err(refusal) => cx.respond(caller, Response::Refused(refusal), Nanos::ZERO),
        }
    }

    /// A look-up by name. Of a name with another home, which is lost, what is known here is told.
    pub(crate) fn open(&mut self, cx: &mut Context, caller: Caller, name: &str) {
        if home_of(cx.cluster, name) != Ok(cx.me()) {
            if let Some(announced) = cx.variables.announced(name) {
                return cx.respond(caller, Response::Variable(announced), Nanos::ZERO);
            }
        } else if self.rebuild.is_under_way(cx) {
            self.rebuild.ask(cx, &mut self.next_call);
            return self.rebuild.wait(caller, Wanted::Open(name.to_owned()));
        } else if self.entries.contains_key(name) {
            return self.announce(cx, caller, name);
        }
        let refusal = Refusal::new(
            ErrorCode::UnknownVariable,
            format!("no variable {name:?} has been declared; check the name or declare it"),
        );
        cx.respond(caller, Response::Refused(refusal), Nanos::ZERO);
    }

    /// Responds with a variable as soon as all its owners know it.
    fn announce(&mut self, cx: &mut Context, caller: Caller, name: &str) {
        let Some(entry) = self.entries.get_mut(name) else {
            return;
        };
        match &mut entry.state {
            State::Ready(owners) => {
                let announced = Announced {
                    variable: Arc::clone(&entry.variable),
                    owners: owners.clone(),
                };
                cx.respond(caller, Response::Variable(announced), Nanos::ZERO);
            }
            State::Creating { callers, .. } => callers.push(caller),
            State::Incomplete => self.create(cx, name, caller),
        }
    }

    fn number(
        &mut self,
        cx: &Context,
        spec: &VariableSpec,
        creator: MpId,
    ) -> Result<Variable, Refusal> {
        let (owners, group) = place(cx.cluster, spec, creator)?;
        let homes = cx.cluster.owners().iter();
        let position = homes.take_while(|m| **m != cx.me()).count() as u32;
        if self.counter >= MAX_NAMES {
            return Err(Refusal::new(
                ErrorCode::Limit,
                format!(
                    "{} is the home of {} variables already; use arrays instead of many scalars",
                    cx.cluster.mp_name(cx.me()),
                    self.counter
                ),
            ));
        }
        let number = |counter| VarId(position << COUNTER_BITS | (first_number(cx) + counter));
        while self.given_out.contains(&number(self.counter)) {
            self.counter += 1;
        }
        let id = number(self.counter);
        let variable = Variable::new(id, spec.clone(), owners, group)?;
        self.declared.add(cx.cluster, &variable)?;
        self.counter += 1;
        Ok(variable)
    }

    /// Tells every owner of a variable.
    fn create(&mut self, cx: &mut Context, name: &str, caller: Caller) {
        let Some(entry) = self.entries.get_mut(name) else {
            return;
        };
        let variable = Arc::clone(&entry.variable);
        let mut owners = to_tell(cx, &variable);
        let told = entry.told_before.clone();
        let known_before = !told.is_empty();
        owners.retain(|owner| !told.iter().any(|(mp, _)| mp == owner));
        if owners.is_empty() {
            entry.state = State::Ready(told);
            return self.announce(cx, caller, name);
        }
        entry.state = State::Creating {
            left: owners.len(),
            told,
            failed: None,
            callers: vec![caller],
        };
        for owner in owners {
            if let Err(refusal) = cx.check_reachable(owner) {
                self.created(cx, name, (owner, false), Err(refusal));
                continue;
            }
            if known_before && let Some(lost) = may_have_lost(cx, owner) {
                let answered = lost.is_ok();
                self.created(cx, name, (owner, answered), lost);
                continue;
            }
            let call = CallId {
                role: Role::Home,
                number: self.next_call,
            };
            self.next_call += 1;
            let creation = Creation {
                owner,
                name: name.to_owned(),
            };
            self.creations.insert(call.number, creation);
            cx.request(owner, call, PeerRequest::Create(Arc::clone(&variable)));
        }
    }

    /// The response of an owner that was told of a variable.
    pub(crate) fn receive(
        &mut self,
        cx: &mut Context,
        (from, incarnation): (MpId, Option<Incarnation>),
        number: u64,
        response: Response,
    ) {
        if let Some(mp) = self.rebuild.take(number) {
            return self.hear_names(cx, (mp, incarnation), response);
        }
        if self.creations.get(&number).is_none_or(|c| c.owner != from) {
            return;
        }
        let Some(creation) = self.creations.remove(&number) else {
            return;
        };
        let answered = incarnation.is_some();
        let result = match response {
            Response::Refused(refusal) => Err(refusal),
            _ => incarnation.map(|i| (from, i)).ok_or_else(|| {
                let why = "a response that names no incarnation; are all processes of one version?";
                Refusal::new(ErrorCode::Invalid, why)
            }),
        };
        self.created(cx, &creation.name, (from, answered), result);
    }

    /// An owner knows the variable, or cannot: as it answered, or since it was not reached.
    fn created(
        &mut self,
        cx: &mut Context,
        name: &str,
        (from, answered): (MpId, bool),
        result: Result<(MpId, Incarnation), Refusal>,
    ) {
        let Some(entry) = self.entries.get_mut(name) else {
            return;
        };
        let needed = servers(cx, &entry.variable).contains(&from);
        let State::Creating {
            left,
            told,
            failed,
            callers,
        } = &mut entry.state
        else {
            return;
        };
        *left -= 1;
        match result {
            Ok(owner) => told.push(owner),
            // Whoever only keeps objects for others, as far as is known here, learns of it from them; unless it says that it cannot.
            Err(_) if !needed && !answered => {}
            Err(refusal) => {
                failed.get_or_insert(refusal);
            }
        }
        if *left > 0 {
            return;
        }
        let (failed, callers) = (failed.take(), std::mem::take(callers));
        let owners = std::mem::take(told);
        entry.state = match failed {
            Some(_) => State::Incomplete,
            None => State::Ready(owners.clone()),
        };
        for caller in callers {
            let response = match &failed {
                Some(refusal) => Response::Refused(refusal.clone()),
                None => Response::Variable(Announced {
                    variable: Arc::clone(&entry.variable),
                    owners: owners.clone(),
                }),
            };
            cx.respond(caller, response, Nanos::ZERO);
        }
    }

    /// Names of which this process is the home, that another knows.
    fn hear_names(
        &mut self,
        cx: &mut Context,
        (from, incarnation): (MpId, Option<Incarnation>),
        response: Response,
    ) {
        match (response, incarnation) {
            (Response::Names(names), Some(incarnation)) => {
                let last = [
                    names.announced.last().map(|a| &a.variable),
                    names.told.last(),
                ];
                let last = last.into_iter().flatten().map(|v| v.spec().name()).max();
                let up_to = last.filter(|_| names.more).map(str::to_owned);
                self.remember(cx, names, (from, incarnation));
                self.rebuild.heard(from, up_to);
            }
            (Response::Refused(refusal), _) if refusal.code != ErrorCode::Invalid => {
                self.rebuild.refused(from, cx.now);
            }
            // It does not understand the question.
            _ => self.rebuild.heard(from, None),
        }
        self.tick(cx);
    }

    fn remember(&mut self, cx: &Context, names: KnownNames, from: (MpId, Incarnation)) {
        for Announced { variable, owners } in names.announced {
            if let Some(entry) = self.entry_of(cx, &variable)
                && matches!(entry.state, State::Incomplete)
            {
                entry.state = State::Ready(owners);
            }
        }
        for variable in names.told {
            if let Some(entry) = self.entry_of(cx, &variable)
                && matches!(entry.state, State::Incomplete)
                && !entry.told_before.iter().any(|told| told.0 == from.0)
            {
                entry.told_before.push(from);
            }
        }
    }

    /// The entry of a variable that others know; none if the name is another one's by now.
    fn entry_of(&mut self, cx: &Context, variable: &Arc<Variable>) -> Option<&mut Entry> {
        let name = variable.spec().name();
        if home_of(cx.cluster, name) != Ok(cx.me()) {
            return None;
        }
        if !self.entries.contains_key(name) {
            self.declared.add(cx.cluster, variable).ok()?;
            self.given_out.insert(variable.id());
            let entry = Entry {
                variable: Arc::clone(variable),
                told_before: Vec::new(),
                state: State::Incomplete,
            };
            self.entries.insert(name.to_owned(), entry);
        }
        let entry = self.entries.get_mut(name)?;
        (entry.variable == *variable).then_some(entry)
    }

    /// A process is lost: owners there cannot be told.
    pub(crate) fn lose(&mut self, cx: &mut Context, mp: MpId, why: &Refusal) {
        self.rebuild.lose(mp);
        let mut lost: Vec<u64> = self
            .creations
            .iter()
            .filter(|(_, c)| c.owner == mp)
            .map(|(number, _)| *number)
            .collect();
        lost.sort_unstable();
        for number in lost {
            self.receive(cx, (mp, None), number, Response::Refused(why.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::context::View;
    use crate::core::effects::Effect;
    use crate::core::lease::RETRY;
    use crate::core::test_topology;
    use dosmos_proto::{ElementType, Layout, Placement};

    const NOW: Nanos = Nanos::from_millis(10_000);

    fn view(start: u32) -> View {
        View::of_start(test_topology(&["/a"], 3, 1), MpId(0), start)
    }

    fn spec(name: &str) -> VariableSpec {
        let layout = Layout::new(ElementType::U64, (1, 1), (1, 1)).unwrap();
        let owner = Placement::explicit(["mp0"]).unwrap();
        VariableSpec::new(name, layout)
            .unwrap()
            .with_placement(owner)
    }

    #[test]
    fn each_start_gives_out_numbers_of_its_own() {
        let first = |start| {
            let view = view(start);
            let mut effects = Vec::new();
            first_number(&Context::new(NOW, &view, &mut effects))
        };
        assert_eq!((first(0), first(1)), (0, 0));
        for starts in [2, 8, 64, 1024] {
            let mut all: Vec<u32> = (1..=starts).map(first).collect();
            all.sort_unstable();
            let room = MAX_NAMES / starts;
            let apart = |pair: &[u32]| pair[1] - pair[0] == room;
            assert!(all.windows(2).all(apart), "{room} numbers each: {all:?}");
            assert!(all.iter().all(|n| *n < MAX_NAMES));
        }
    }

    #[test]
    fn a_number_that_an_earlier_start_gave_out_is_not_given_out_again() {
        let view = view(1);
        let mut effects = Vec::new();
        let cx = Context::new(NOW, &view, &mut effects);
        let mut home = Home {
            given_out: [VarId(0), VarId(1), VarId(3)].into(),
            ..Home::default()
        };
        let mut next = |name: &str| home.number(&cx, &spec(name), MpId(0)).unwrap().id();
        assert_eq!([next("a"), next("b"), next("c")], [2, 4, 5].map(VarId));
    }

    #[test]
    fn who_was_started_again_and_does_not_know_a_variable_may_have_lost_it() {
        let lost = |own: u32, other: Option<u32>, owner: MpId| {
            let mut view = view(own);
            if let Some(start) = other {
                view.incarnations.meet(MpId(1), Incarnation::new(start, 0));
            }
            let mut effects = Vec::new();
            may_have_lost(&Context::new(NOW, &view, &mut effects), owner)
        };
        let as_new = |mp| Some(Ok((MpId(mp), Incarnation::new(0, 0))));
        assert_eq!(lost(2, Some(1), MpId(1)), None);
        assert_eq!(lost(1, Some(2), MpId(1)), as_new(1));
        assert_eq!(lost(1, Some(2), MpId(0)), None);
        assert_eq!(lost(2, Some(1), MpId(0)), as_new(0));
        let unheard = lost(2, None, MpId(1)).unwrap().unwrap_err();
        assert_eq!(unheard.code, ErrorCode::Unreachable);
    }

    /// Which processes are asked for names at a tick.
    fn asked(home: &mut Home, view: &View, now: Nanos) -> Vec<u32> {
        let mut effects = Vec::new();
        home.tick(&mut Context::new(now, view, &mut effects));
        let asked = effects.iter().filter_map(|e| match e {
            Effect::Request {
                to,
                request: PeerRequest::Names { .. },
                ..
            } => Some(to.0),
            _ => None,
        });
        asked.collect()
    }

    #[test]
    fn who_cannot_answer_is_asked_again_and_who_does_not_understand_is_not() {
        let mut view = view(2);
        for peer in [MpId(1), MpId(2)] {
            view.router.peer_up(&view.cluster, peer, &mut Vec::new());
        }
        let mut home = Home::default();
        assert_eq!(asked(&mut home, &view, NOW), [1, 2]);
        let refuses = |home: &mut Home, mp: u32, number: u64, code| {
            let mut effects = Vec::new();
            let cx = &mut Context::new(NOW, &view, &mut effects);
            let refusal = Response::Refused(Refusal::new(code, "no"));
            home.receive(cx, (MpId(mp), None), number, refusal);
        };
        refuses(&mut home, 1, 0, ErrorCode::Unreachable);
        refuses(&mut home, 2, 1, ErrorCode::Invalid);
        assert!(asked(&mut home, &view, NOW).is_empty());
        assert_eq!(asked(&mut home, &view, NOW + RETRY), [1]);
    }

    #[test]
    fn of_owners_that_are_lost_while_they_are_told_the_callers_hear() {
        let view = view(1);
        let mut home = Home::default();
        let two = Placement::explicit(["mp1", "mp2"]).unwrap();
        let layout = Layout::new(ElementType::U64, (1, 2), (1, 2)).unwrap();
        let spec = VariableSpec::new("x", layout).unwrap().with_placement(two);
        let variable = {
            let mut effects = Vec::new();
            home.number(&Context::new(NOW, &view, &mut effects), &spec, MpId(1))
        };
        let state = State::Incomplete;
        let entry = Entry {
            variable: Arc::new(variable.unwrap()),
            told_before: Vec::new(),
            state,
        };
        home.entries.insert("x".into(), entry);
        let responses = |effects: &[Effect]| {
            let all = effects.iter().filter_map(|e| match e {
                Effect::Respond { response, .. } => Some(match response {
                    Response::Refused(refusal) => Some(refusal.code),
                    _ => None,
                }),
                _ => None,
            });
            all.collect::<Vec<_>>()
        };
        let mut effects = Vec::new();
        home.create(
            &mut Context::new(NOW, &view, &mut effects),
            "x",
            Caller::of_test(MpId(1)),
        );
        assert_eq!(home.creations.len(), 2);
        let why = Refusal::new(ErrorCode::Unreachable, "lost");
        effects.clear();
        home.lose(&mut Context::new(NOW, &view, &mut effects), MpId(2), &why);
        assert!(responses(&effects).is_empty(), "the other may still answer");
        assert_eq!(home.creations.len(), 1);
        let number = *home.creations.keys().next().unwrap();
        let from = (MpId(1), Some(Incarnation::new(1, 0)));
        let cx = &mut Context::new(NOW, &view, &mut effects);
        home.receive(cx, from, number, Response::Created);
        assert_eq!(responses(&effects), [Some(ErrorCode::Unreachable)]);
        // The next one tries again. Who refuses does not know it.
        effects.clear();
        let cx = &mut Context::new(NOW, &view, &mut effects);
        home.create(cx, "x", Caller::of_test(MpId(1)));
        let mut told: Vec<u64> = home.creations.keys().copied().collect();
        told.sort_unstable();
        for (number, mp) in told.into_iter().zip([1, 2]) {
            let from = (MpId(mp), Some(Incarnation::new(1, 0)));
            let response = match mp {
                1 => Response::Created,
                _ => Response::Refused(Refusal::new(ErrorCode::Limit, "full")),
            };
            let cx = &mut Context::new(NOW, &view, &mut effects);
            home.receive(cx, from, number, response);
        }
        assert_eq!(responses(&effects), [Some(ErrorCode::Limit)]);
    }
}
