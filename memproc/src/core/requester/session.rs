//! What is known of each of our application processes: whether it is here, the sections it is in, and what it has to
//! publish.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{ApId, ErrorCode, MpId, Nanos, ObjectId, Refusal};
use rustc_hash::FxHashMap;

use super::line::Line;
use super::pending::{Acquire, Kind, Operation, Pending, Ticket};
use crate::core::context::Context;
use crate::core::lease::MAX_SILENCE;

/// Most requests of one application process under way at once.
pub const MAX_OUTSTANDING: u32 = 4096;

/// An exclusive section an application process is in.
#[derive(Clone, Copy, Debug)]
struct Section {
    epoch: u64,
    /// Of the content that it began with.
    version: u64,
    /// It wrote: from now on it reads at the owner, where its writes are.
    wrote: bool,
    owner: MpId,
    /// The owner was lost and the section with it.
    lost: bool,
}

/// One application process.
#[derive(Debug, Default)]
pub(crate) struct Session {
    connected: bool,
    /// When it was heard last.
    heard: Nanos,
    /// Its operations that are not complete.
    outstanding: u32,
    /// It accessed an object or came to a barrier.
    accessed: bool,
    sections: BTreeMap<ObjectId, Section>,
    /// When sections that it had to itself were reported last.
    pub(super) sections_reported: Nanos,
    /// Objects whose acquires are at their owners.
    acquiring: BTreeSet<ObjectId>,
    pub(super) line: Line,
}

impl Session {
    /// It accesses an object, or comes to a barrier; whether that is the first time.
    pub(super) fn begins_to_access(&mut self) -> bool {
        !std::mem::replace(&mut self.accessed, true)
    }

    /// It writes: in its section, or for everyone, and then the owner has to tell the copies.
    pub(super) fn write(
        &mut self,
        cx: &Context,
        (object, owner): (ObjectId, MpId),
        in_section: bool,
    ) {
        match self.sections.get_mut(&object) {
            Some(section) if in_section => section.wrote = true,
            _ => {
                let incarnation = cx.variables.incarnation_of(object.var, owner);
                self.line.wrote(owner, incarnation);
            }
        }
    }

    /// An acquire is sent to its owner.
    pub(super) fn acquire_begins(&mut self, object: ObjectId) {
        self.acquiring.insert(object);
    }

    /// An acquire is complete: granted with this epoch by its owner, or not.
    pub(super) fn acquire_ends(&mut self, acquire: &Acquire, granted: Option<(u64, u64, MpId)>) {
        if acquire.sent {
            self.acquiring.remove(&acquire.object);
        }
        if let Some((epoch, version, owner)) = granted {
            self.section_begins(acquire.object, (epoch, version), owner);
        }
    }

    /// It is in a section of this epoch.
    pub(super) fn section_begins(
        &mut self,
        object: ObjectId,
        (epoch, version): (u64, u64),
        owner: MpId,
    ) {
        let section = Section {
            epoch,
            version,
            wrote: false,
            owner,
            lost: false,
        };
        self.sections.insert(object, section);
    }

    /// A release is sent to its owner: the section is over. Whether it wrote.
    pub(super) fn release_begins(&mut self, object: ObjectId) -> bool {
        self.line.release_begins();
        self.sections.remove(&object).is_some_and(|s| s.wrote)
    }

    /// One of its operations is complete; whether it was in line.
    pub(super) fn operation_ends(&mut self, number: u64) -> bool {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.line.remove(number)
    }

    /// Owners of what it holds and wrote.
    pub(super) fn into_owners(self) -> BTreeSet<MpId> {
        let sections = self.sections.into_values().filter(|s| !s.lost);
        let owners = sections.map(|s| s.owner);
        owners.chain(self.line.into_dirty()).collect()
    }
}

/// All application processes that ever connected.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    by_ap: FxHashMap<ApId, Session>,
    /// Requests so far.
    requests: u64,
    /// This process ends: it admits nobody.
    closing: bool,
}

impl Sessions {
    fn get(&self, ap: ApId) -> Option<&Session> {
        self.by_ap.get(&ap)
    }

    pub(super) fn get_mut(&mut self, ap: ApId) -> &mut Session {
        self.by_ap.entry(ap).or_default()
    }

    /// An owner can be reached again.
    pub(super) fn regain(&mut self, owner: MpId) {
        self.by_ap.values_mut().for_each(|s| s.line.regain(owner));
    }

    fn section(&self, ap: ApId, object: ObjectId) -> Option<&Section> {
        self.get(ap)?.sections.get(&object)
    }

    /// An application process is heard.
    pub(crate) fn hear(&mut self, now: Nanos, ap: ApId) {
        self.get_mut(ap).heard = now;
    }

    /// Whether an application process has not been heard for too long.
    pub(crate) fn is_silent(&self, now: Nanos, ap: ApId) -> bool {
        let heard = self.get(ap).map_or(Nanos::ZERO, |s| s.heard);
        heard + MAX_SILENCE <= now
    }

    /// Whether an application process is here.
    pub(crate) fn is_connected(&self, ap: ApId) -> bool {
        self.get(ap).is_some_and(|s| s.connected)
    }

    /// Requests so far.
    pub(super) fn requests(&self) -> u64 {
        self.requests
    }

    fn check_open(&self, cx: &Context) -> Result<(), Refusal> {
        let why = || format!("{} is ending", cx.cluster.mp_name(cx.me()));
        match self.closing {
            true => Err(Refusal::new(ErrorCode::ShuttingDown, why())),
            false => Ok(()),
        }
    }

    /// An application process introduces itself.
    pub(super) fn connect(&mut self, cx: &Context, ap: ApId) -> Result<(), Refusal> {
        self.check_open(cx)?;
        let session = self.get_mut(ap);
        if session.connected {
            let me = cx.cluster.mp_name(cx.me());
            let name = cx.cluster.ap_name(ap);
            return Err(Refusal::new(
                ErrorCode::AlreadyConnected,
                format!(
                    "{name} is connected to {me} already; end that process or use another name"
                ),
            ));
        }
        session.connected = true;
        Ok(())
    }

    /// An application process is gone; what was known of it, if it was here.
    pub(super) fn leave(&mut self, ap: ApId) -> Option<Session> {
        let session = self.by_ap.get_mut(&ap).filter(|s| s.connected)?;
        Some(std::mem::take(session))
    }

    /// This process ends; those connected, in order.
    pub(super) fn close(&mut self) -> Vec<ApId> {
        self.closing = true;
        let connected = self.by_ap.iter().filter(|(_, s)| s.connected);
        let mut list: Vec<ApId> = connected.map(|(ap, _)| *ap).collect();
        list.sort_unstable();
        list
    }

    /// A request of an application process that is here and may have one more under way.
    pub(super) fn admit(&mut self, cx: &Context, ap: ApId) -> Result<&mut Session, Refusal> {
        self.requests += 1;
        self.check_open(cx)?;
        let me = || cx.cluster.mp_name(cx.me());
        let ap_name = || cx.cluster.ap_name(ap);
        let session = self.by_ap.get_mut(&ap).filter(|s| s.connected);
        match session {
            None => Err(Refusal::new(
                ErrorCode::Invalid,
                format!("{} is not connected to {}", ap_name(), me()),
            )),
            Some(s) if s.outstanding >= MAX_OUTSTANDING => Err(Refusal::new(
                ErrorCode::Limit,
                format!(
                    "{} has {MAX_OUTSTANDING} requests under way at {}; await some first",
                    ap_name(),
                    me()
                ),
            )),
            Some(session) => Ok(session),
        }
    }

    /// Registers an operation that `to` serves; its number. One that publishes, or may come after one that does, lines up.
    pub(super) fn open(
        &mut self,
        pending: &mut Pending,
        ticket: Ticket,
        to: MpId,
        kind: Kind,
    ) -> u64 {
        let session = self.get_mut(ticket.ap);
        session.outstanding += 1;
        let lines_up = kind.lines_up();
        let number = pending.open(Operation::new(ticket, to, kind));
        if lines_up {
            session.line.push(number);
        }
        number
    }

    /// As [`check_section`](Self::check_section), of a read; and whether that section wrote, so that it finds its writes at the owner
    /// only.
    pub(super) fn check_read(
        &self,
        cx: &Context,
        ap: ApId,
        object: ObjectId,
        epoch: Option<u64>,
    ) -> Result<(Option<u64>, bool), Refusal> {
        let epoch = self.check_section(cx, ap, object, epoch)?;
        let section = self.section(ap, object);
        Ok((epoch, section.is_some_and(|s| s.wrote)))
    }

    /// The epoch of the section that a write or release belongs to, if any; refused if that section is
    /// over.
    pub(super) fn check_section(
        &self,
        cx: &Context,
        ap: ApId,
        object: ObjectId,
        epoch: Option<u64>,
    ) -> Result<Option<u64>, Refusal> {
        let stale = |why: String| {
            Err(Refusal::new(
                ErrorCode::StaleEpoch,
                format!(
                    "the section of {} on {} is over: {why}; acquire it again",
                    cx.cluster.ap_name(ap),
                    cx.variables.object_name(object)
                ),
            ))
        };
        match (self.section(ap, object), epoch) {
            (Some(s), _) if s.lost => stale(format!("{} was lost", cx.cluster.mp_name(s.owner))),
            (Some(s), Some(epoch)) if epoch != s.epoch => {
                stale(format!("epoch {epoch} was given, {} is current", s.epoch))
            }
            (Some(s), _) => Ok(Some(s.epoch)),
            (None, Some(epoch)) => stale(format!("epoch {epoch} is not current")),
            (None, None) => Ok(None),
        }
    }

    /// The epoch of the section to be released. One that was lost is over with this.
    pub(super) fn check_release(
        &mut self,
        cx: &Context,
        ap: ApId,
        object: ObjectId,
        epoch: Option<u64>,
    ) -> Result<u64, Refusal> {
        match self.check_section(cx, ap, object, epoch) {
            Ok(Some(epoch)) => Ok(epoch),
            Ok(None) => Err(Refusal::new(
                ErrorCode::NotHeld,
                format!(
                    "{} does not hold {}; acquire it before releasing it",
                    cx.cluster.ap_name(ap),
                    cx.variables.object_name(object)
                ),
            )),
            Err(refusal) => {
                let sections = &mut self.get_mut(ap).sections;
                if sections.get(&object).is_some_and(|s| s.lost) {
                    sections.remove(&object);
                }
                Err(refusal)
            }
        }
    }

    /// Refuses an acquire that the owner would refuse: so at most one acquire of an object by one
    /// application process is at its owner, and taking that back cannot hit another.
    pub(super) fn check_acquire(
        &self,
        cx: &Context,
        ap: ApId,
        object: ObjectId,
    ) -> Result<(), Refusal> {
        let session = self.get(ap);
        let section = session.and_then(|s| s.sections.get(&object));
        if let Some(section) = section.filter(|s| !s.lost) {
            let name = cx.variables.object_name(object);
            return Err(cx.held_already(ap, &name, section.epoch));
        }
        if session.is_some_and(|s| s.acquiring.contains(&object)) {
            return Err(cx.awaited_already(ap, &cx.variables.object_name(object)));
        }
        Ok(())
    }

    /// Sections that are not lost are, if they are `of` this: of an object, at an owner. Which they were, and the version that each
    /// began with, in order.
    pub(super) fn lose_sections(
        &mut self,
        of: impl Fn(ObjectId, MpId) -> bool,
    ) -> Vec<(ApId, ObjectId, u64)> {
        let mut lost = Vec::new();
        for (ap, session) in &mut self.by_ap {
            for (object, section) in &mut session.sections {
                if !section.lost && of(*object, section.owner) {
                    section.lost = true;
                    lost.push((*ap, *object, section.version));
                }
            }
        }
        lost.sort_unstable();
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::context::View;
    use crate::core::test_topology;
    use dosmos_proto::VarId;

    const AP: ApId = ApId(0);
    const X: ObjectId = ObjectId {
        var: VarId(1),
        index: 0,
    };
    const OWNER: MpId = MpId(1);

    fn view() -> View {
        View::of_test(test_topology(&["/a"], 2, 1), MpId(0))
    }

    fn acquire(sent: bool) -> Acquire {
        Acquire {
            object: X,
            want_value: false,
            sent,
        }
    }

    #[test]
    fn one_acquire_of_an_object_at_a_time_is_at_its_owner() {
        let view = view();
        let mut effects = Vec::new();
        let cx = Context::new(Nanos(1), &view, &mut effects);
        let mut all = Sessions::default();
        let code = |all: &Sessions| all.check_acquire(&cx, AP, X).map_err(|r| r.message);
        assert_eq!(code(&all), Ok(()), "of one that is not known");
        all.get_mut(AP).acquire_begins(X);
        assert!(code(&all).unwrap_err().contains("already waits for"));
        let y = ObjectId { index: 1, ..X };
        assert_eq!(all.check_acquire(&cx, AP, y), Ok(()));
        // Another one that waited in line is not at the owner.
        all.get_mut(AP).acquire_ends(&acquire(false), None);
        assert!(code(&all).is_err());
        all.get_mut(AP).acquire_ends(&acquire(true), None);
        assert_eq!(code(&all), Ok(()));
        all.get_mut(AP).acquire_begins(X);
        let granted = Some((3, 7, OWNER));
        all.get_mut(AP).acquire_ends(&acquire(true), granted);
        let held = code(&all).unwrap_err();
        assert!(held.contains("already holds") && held.contains("epoch 3"));
        // What was lost with its owner may be acquired again.
        assert_eq!(all.lose_sections(|_, owner| owner == OWNER), [(AP, X, 7)]);
        assert_eq!(all.lose_sections(|_, owner| owner == OWNER), [], "once");
        assert_eq!(code(&all), Ok(()));
    }

    #[test]
    fn what_is_written_in_a_section_is_no_write_for_everyone() {
        let view = view();
        let mut effects = Vec::new();
        let cx = Context::new(Nanos(1), &view, &mut effects);
        let mut session = Session::default();
        session.section_begins(X, (1, 0), OWNER);
        session.write(&cx, (X, OWNER), true);
        assert!(session.sections[&X].wrote && !session.line.is_busy());
        assert!(session.release_begins(X));
        let mut session = Session::default();
        session.section_begins(X, (1, 0), OWNER);
        session.write(&cx, (X, OWNER), false);
        assert!(!session.sections[&X].wrote && session.line.is_busy());
        assert!(!session.release_begins(X));
        let owners = Session {
            line: session.line,
            ..Session::default()
        };
        assert_eq!(owners.into_owners(), [OWNER].into());
    }

    #[test]
    fn of_a_process_it_is_known_whether_it_is_here_and_what_it_asks() {
        let view = view();
        let mut effects = Vec::new();
        let cx = Context::new(Nanos(1), &view, &mut effects);
        let mut all = Sessions::default();
        assert!(!all.is_connected(AP));
        assert!(all.admit(&cx, AP).is_err());
        all.connect(&cx, AP).unwrap();
        assert!(all.is_connected(AP) && !all.is_connected(ApId(1)));
        let session = all.admit(&cx, AP).unwrap();
        assert!(session.begins_to_access() && !session.begins_to_access());
        assert_eq!(all.requests(), 2, "refused or not");
        assert!(all.leave(AP).is_some() && all.leave(AP).is_none());
        assert!(!all.is_connected(AP));
    }
}
