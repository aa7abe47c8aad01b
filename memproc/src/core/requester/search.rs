//! Declarations and look-ups of names whose home is lost: whoever uses the variable knows it too.

use std::collections::BTreeSet;

use dosmos_proto::{ErrorCode, MpId, Refusal, VariableSpec};

use super::leave::describe;
use super::pending::{Kind, Operation, Search, call};
use super::role::Requester;
use crate::core::context::Context;
use crate::core::directory::variables::conflict;
use crate::core::messages::{Announced, Cost, PeerRequest, Reply, Response};

/// The variable, unless it was declared otherwise.
pub(super) fn fits(kind: &Kind, announced: &Announced) -> Result<Reply, Refusal> {
    let declared: Option<&VariableSpec> = match kind {
        Kind::Declare(spec) => Some(spec),
        _ => None,
    };
    let known = announced.variable.spec();
    match declared.filter(|spec| *spec != known) {
        Some(spec) => Err(conflict(known, spec)),
        None => Ok(Reply::Variable(announced.variable.clone())),
    }
}

impl Requester {
    /// Whether an operation asks for a name.
    pub(super) fn is_of_name(&self, number: u64) -> bool {
        let operation = self.pending.get(number);
        operation.is_some_and(|o| o.kind.name().is_some())
    }

    /// Asks the home of a name, or, since that is lost, all others that can be reached.
    pub(super) fn ask_for_name(&mut self, cx: &mut Context, number: u64) {
        let Some(operation) = self.pending.get(number) else {
            return;
        };
        let (home, me) = (operation.to, cx.me());
        let Some(name) = operation.kind.name().map(str::to_owned) else {
            return;
        };
        let Err(why) = cx.check_reachable(home) else {
            let request = match &operation.kind {
                Kind::Declare(spec) => PeerRequest::Declare {
                    spec: (**spec).clone(),
                    creator: me,
                },
                _ => PeerRequest::Open(name),
            };
            self.pending.searches.remove(&number);
            return cx.request(home, call(number), request);
        };
        let there = |mp: &MpId| cx.check_reachable(*mp).is_ok() && cx.missing(*mp).is_none();
        let others = cx.cluster.owners().iter().copied();
        let left: BTreeSet<MpId> = others
            .filter(|mp| *mp != me && *mp != home)
            .filter(there)
            .collect();
        for mp in left.iter().copied() {
            cx.request(mp, call(number), PeerRequest::Open(name.clone()));
        }
        self.pending.searches.insert(number, Search { left, why });
        self.search_ends(cx, number);
    }

    /// Nobody is left who may know the name.
    fn search_ends(&mut self, cx: &mut Context, number: u64) {
        if !self
            .pending
            .searches
            .get(&number)
            .is_some_and(|s| s.left.is_empty())
        {
            return;
        }
        let search = self.pending.searches.remove(&number);
        if let (Some(search), Some(operation)) = (search, self.pending.get(number)) {
            let why = format!("{}: {}", describe(cx, operation), search.why.message);
            let refusal = Refusal::new(ErrorCode::Unreachable, why);
            self.complete(cx, number, Err(refusal), Cost::default());
        }
    }

    /// The response of somebody who was asked in the place of a home; given back if it is none.
    pub(super) fn found(
        &mut self,
        cx: &mut Context,
        (number, from): (u64, MpId),
        response: Response,
    ) -> Option<Response> {
        let search = self.pending.searches.get_mut(&number);
        if !search.is_some_and(|s| s.left.remove(&from)) {
            return Some(response);
        }
        match (response, self.pending.get(number)) {
            (Response::Variable(announced), Some(operation)) => {
                let outcome = fits(&operation.kind, &announced);
                self.complete(cx, number, outcome, Cost::default());
            }
            _ => self.search_ends(cx, number),
        }
        None
    }

    /// A process is lost: names of which it is the home are looked for elsewhere, and it does not answer for others.
    pub(super) fn search_without(&mut self, cx: &mut Context, mp: MpId) {
        let asked: Vec<u64> = self.pending.searches.keys().copied().collect();
        for number in asked {
            if let Some(search) = self.pending.searches.get_mut(&number) {
                search.left.remove(&mp);
            }
            self.search_ends(cx, number);
        }
    }

    /// The home of names is back: it is asked.
    pub(super) fn search_at_home(&mut self, cx: &mut Context, home: MpId) {
        let names = |o: &Operation| o.to == home && o.kind.name().is_some();
        for number in self.pending.select(names) {
            self.ask_for_name(cx, number);
        }
    }
}
