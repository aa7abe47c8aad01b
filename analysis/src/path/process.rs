//! A process as its records are read: up to when it is known what it did, and what that was.

use dosmos_proto::{ApId, GroupId, Nanos, ObjectId};

use super::chains::{Chain, Chains};
use super::tally::{Doing, Tally};

/// Sections that a process may be in at a time; more are not looked into.
const SECTIONS: usize = 64;

/// What a process did since the begin of a part of its time.
#[derive(Clone, Debug)]
struct Part {
    of: PartOf,
    from: Nanos,
    did: Tally,
}

/// Of what it is a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PartOf {
    /// From one barrier of a group (none: of all) to the next.
    Phase(Option<GroupId>),
    /// From the grant of an object to its release.
    Section(ObjectId),
}

/// An application process.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub(super) ap: ApId,
    /// Its chain up to where it last parted from others, and what it did since then.
    chain: Chain,
    own: Tally,
    /// Up to when it is known what it did.
    pub(super) known: Nanos,
    /// The operation under way that ends last.
    under_way: Option<(Nanos, Doing)>,
    /// The end of its last record.
    pub(super) last: Nanos,
    parts: Vec<Part>,
}

impl Process {
    /// One that is there from `begin` on.
    pub(super) fn new(ap: ApId, chain: Chain, begin: Nanos) -> Self {
        Self {
            ap,
            chain,
            own: Tally::default(),
            known: begin,
            under_way: None,
            last: begin,
            parts: Vec::new(),
        }
    }

    /// From now on it does `doing` until `end`. Of several operations at a time the one counts that ends last.
    pub(super) fn begins(&mut self, doing: Doing, end: Nanos) {
        if self.under_way.is_none_or(|(until, _)| until <= end) {
            self.under_way = Some((end, doing));
        }
    }

    /// Time goes on, to `now`.
    pub(super) fn until(&mut self, now: Nanos) {
        if let Some((end, doing)) = self.under_way {
            self.spend(doing, end.min(now));
            if end <= now {
                self.under_way = None;
            }
        }
        self.spend(Doing::Computing, now);
    }

    /// The same; if it was doing `what`, that is now known to have been `instead`.
    pub(super) fn until_as(&mut self, now: Nanos, what: Doing, instead: Doing) {
        if let Some((end, doing)) = self.under_way
            && doing == what
        {
            self.spend(instead, end.min(now));
        }
        self.until(now);
    }

    /// In an acquire it has waited until `to`, for one process this long, and for others.
    pub(super) fn waited_for(&mut self, object: ObjectId, mostly: Option<(ApId, u64)>, to: Nanos) {
        let Some((end, doing)) = self.under_way else {
            return;
        };
        let to = end.min(to);
        if doing == Doing::Lock(object.var)
            && let Some((ap, time)) = mostly
        {
            let one = (self.known + Nanos(time)).min(to);
            self.spend(Doing::HeldBy(object, Some(ap)), one);
            self.spend(Doing::HeldBy(object, None), to);
        }
    }

    fn spend(&mut self, doing: Doing, to: Nanos) {
        if to <= self.known {
            return;
        }
        self.own.add(doing.on_path(), (to - self.known).0);
        for part in &mut self.parts {
            let from = part.from.max(self.known);
            part.did.add(doing, (to - from).0);
        }
        self.known = to;
    }

    /// Its chain at the instant up to which it is known, to be continued by another too.
    pub(super) fn share(&mut self, chains: &mut Chains) -> Chain {
        self.chain = chains.extend(self.chain, self.ap, &self.own);
        self.own.clear();
        chains.share(self.chain)
    }

    /// What it did until `now` was not decisive: its chain is another's, up to `at`, and then `doing`.
    pub(super) fn follow(
        &mut self,
        chains: &mut Chains,
        (chain, at): (Chain, Nanos),
        doing: Doing,
        now: Nanos,
    ) {
        if self.known > now || at > now {
            // Records out of order: its own chain stays.
            chains.end(chain);
            return;
        }
        self.until(now);
        chains.end(self.chain);
        self.chain = chain;
        self.own.clear();
        self.own.add(doing, (now - at).0);
    }

    /// A phase begins, and the one before is over.
    pub(super) fn begin_phase(&mut self, group: Option<GroupId>, now: Nanos) {
        match self.find(PartOf::Phase(group)) {
            Some(at) => {
                self.parts[at].from = now;
                self.parts[at].did.clear();
            }
            None => self.begin(PartOf::Phase(group), now),
        }
    }

    /// What it did since the last barrier of a group.
    pub(super) fn phase(&self, group: Option<GroupId>) -> Option<&Tally> {
        let at = self.find(PartOf::Phase(group))?;
        Some(&self.parts[at].did)
    }

    /// A section begins, at its grant.
    pub(super) fn begin_section(&mut self, object: ObjectId, granted: Nanos) {
        self.end_section(object);
        if self.parts.len() < SECTIONS {
            self.begin(PartOf::Section(object), granted);
        }
    }

    /// A section is over: what was done in it, if anybody knows.
    pub(super) fn end_section(&mut self, object: ObjectId) -> Option<Tally> {
        let at = self.find(PartOf::Section(object))?;
        Some(self.parts.swap_remove(at).did)
    }

    fn begin(&mut self, of: PartOf, from: Nanos) {
        self.parts.push(Part {
            of,
            from,
            did: Tally::default(),
        });
    }

    fn find(&self, of: PartOf) -> Option<usize> {
        self.parts.iter().position(|part| part.of == of)
    }
}
