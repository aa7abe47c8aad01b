//! The requester's state, and requests on their way in.

use std::sync::Arc;

use dosmos_proto::names::check_name;
use dosmos_proto::{ApId, MpId, Nanos, Refusal, VarId, VariableSpec};

use super::asking::{ask, check_served};
use super::caches::Caches;
use super::flushes::Flushes;
use super::pending::{
    Acquire, Again, Barrier, Kind, Operation, Pending, Release, Ticket, Write, call,
};
use super::records::report;
use super::session::Sessions;
use super::unsettled::Unsettled;
use crate::core::context::Context;
use crate::core::directory::place::Place;
use crate::core::directory::placement::home_of;
use crate::core::directory::variables::conflict;
use crate::core::messages::{
    Access, AccessKind, Cost, ElementRange, Keep, PeerRequest, Reply, WriteData,
};

/// The requester's state.
#[derive(Debug)]
pub(crate) struct Requester {
    pub(crate) sessions: Sessions,
    pub(crate) caches: Caches,
    pub(super) pending: Pending,
    pub(super) flushes: Flushes,
    pub(super) unsettled: Unsettled,
    default_timeout: Nanos,
}

impl Requester {
    pub(crate) fn new(default_timeout: Nanos) -> Self {
        Self {
            sessions: Sessions::default(),
            caches: Caches::default(),
            pending: Pending::default(),
            flushes: Flushes::default(),
            unsettled: Unsettled::default(),
            default_timeout,
        }
    }

    /// Requests of application processes so far.
    pub(crate) fn requests(&self) -> u64 {
        self.sessions.requests()
    }

    /// An application process introduces itself.
    pub(crate) fn connect(&mut self, cx: &Context, ap: ApId) -> Result<(), Refusal> {
        self.sessions.connect(cx, ap)
    }

    /// A request of this number arrived now.
    pub(crate) fn ticket(&self, now: Nanos, ap: ApId, id: u64, timeout: Option<Nanos>) -> Ticket {
        Ticket {
            ap,
            id,
            start: now,
            timeout: timeout.unwrap_or(self.default_timeout),
            first: false,
            posted: false,
        }
    }

    /// An application process declares a variable.
    pub(crate) fn declare(&mut self, cx: &mut Context, ticket: Ticket, spec: VariableSpec) {
        let spec = cx.variables.overridden(spec);
        let differs = |known: &VariableSpec| (*known != spec).then(|| conflict(known, &spec));
        let checked = self.sessions.admit(cx, ticket.ap).and_then(|_| {
            let known = cx.variables.named(spec.name());
            let conflict = known.and_then(|(v, _)| differs(v.spec()));
            conflict.map_or(Ok(()), Err)
        });
        let name = spec.name().to_owned();
        self.find(cx, ticket, Kind::Declare(Box::new(spec)), &name, checked);
    }

    /// An application process looks a variable up.
    pub(crate) fn open(&mut self, cx: &mut Context, ticket: Ticket, name: &str) {
        let kind = Kind::Open(name.to_owned());
        let admitted = self.sessions.admit(cx, ticket.ap);
        let checked = admitted.and_then(|_| Ok(check_name("variable name", name)?));
        self.find(cx, ticket, kind, name, checked);
    }

    /// Replies with a variable if all its owners are known to know it, else asks its home, or others if that is lost.
    fn find(
        &mut self,
        cx: &mut Context,
        ticket: Ticket,
        kind: Kind,
        name: &str,
        checked: Result<(), Refusal>,
    ) {
        let home = checked.and_then(|()| {
            if let Some((variable, true)) = cx.variables.named(name) {
                let variable = Reply::Variable(Arc::clone(variable));
                cx.reply(ticket.ap, ticket.id, variable, false);
                return Ok(None);
            }
            home_of(cx.cluster, name).map(Some)
        });
        match home {
            Ok(None) => {}
            Ok(Some(home)) => {
                let number = self.sessions.open(&mut self.pending, ticket, home, kind);
                self.ask_for_name(cx, number);
            }
            Err(refusal) => refuse(cx, ticket, (cx.me(), kind), refusal),
        }
    }

    /// An application process accesses an object.
    pub(crate) fn access(&mut self, cx: &mut Context, mut ticket: Ticket, access: Access) {
        let object = access.object;
        let kind = Kind::unchecked(&access);
        let place = self.sessions.admit(cx, ticket.ap).and_then(|session| {
            ticket.first = session.begins_to_access();
            cx.variables.place(cx.cluster, object)
        });
        // An access that is refused here is so in the place of its owner.
        let (to, begun) = match place {
            Ok(place) => (place.owner, self.begin(cx, ticket, &place, access.kind)),
            Err(refusal) => (cx.me(), Err(refusal)),
        };
        if let Err(refusal) = begun {
            refuse(cx, ticket, (to, kind), refusal);
        }
    }

    /// An access goes to its owner, is served from a copy, or lines up.
    fn begin(
        &mut self,
        cx: &mut Context,
        ticket: Ticket,
        place: &Place,
        kind: AccessKind,
    ) -> Result<(), Refusal> {
        let Place { object, owner, .. } = *place;
        let ap = ticket.ap;
        let kind = match kind {
            AccessKind::Read { range, epoch, keep } => {
                return self.read(cx, ticket, place, (range, keep), epoch);
            }
            AccessKind::Write { write, epoch } => {
                let traced = checked_write(place, &write)?;
                let epoch = self.sessions.check_section(cx, ap, object, epoch)?;
                let kind = AccessKind::Write { write, epoch };
                return self.change(cx, ticket, place, (traced, epoch), kind);
            }
            AccessKind::Atomic {
                element,
                element_type,
                op,
                epoch,
            } => {
                let traced = Write {
                    object,
                    range: place.check_atomic(element, element_type, op)?,
                    bytes: place.width,
                    accesses: 1,
                    silent: false,
                    atomic: true,
                    through: false,
                };
                let epoch = self.sessions.check_section(cx, ap, object, epoch)?;
                let kind = AccessKind::Atomic {
                    element,
                    element_type,
                    op,
                    epoch,
                };
                return self.change(cx, ticket, place, (traced, epoch), kind);
            }
            AccessKind::Acquire { want_value } => {
                check_served(cx, place)?;
                Kind::Acquire(Acquire {
                    object,
                    want_value,
                    sent: false,
                })
            }
            AccessKind::Release { epoch, write: data } => {
                let current = self.sessions.check_release(cx, ap, object, epoch)?;
                let checked = data.as_ref().map(|write| checked_write(place, write));
                let (mut write, mut data) = (checked.transpose()?, data);
                if self.sessions.get_mut(ap).line.is_busy()
                    && let (Some(traced), Some(write)) = (write.take(), data.take())
                {
                    // The release waits: what its application process reads meanwhile must not miss this.
                    let traced = Write {
                        silent: true,
                        ..traced
                    };
                    let epoch = Some(current);
                    let kind = AccessKind::Write { write, epoch };
                    self.change(cx, ticket, place, (traced, epoch), kind)?;
                }
                Kind::Release(Box::new(Release {
                    object,
                    epoch,
                    write,
                    data,
                    sent: None,
                }))
            }
        };
        self.sessions.open(&mut self.pending, ticket, owner, kind);
        self.advance(cx, ap);
        Ok(())
    }

    fn read(
        &mut self,
        cx: &mut Context,
        ticket: Ticket,
        place: &Place,
        (range, keep): (ElementRange, Keep),
        epoch: Option<u64>,
    ) -> Result<(), Refusal> {
        let Place { object, owner, .. } = *place;
        // Ahead of accesses to it, if it may come.
        let ahead = keep > Keep::Nothing && (range.first, range.end) == (0, Some(0));
        let (range, asked) = match ahead {
            true => (ElementRange::ALL, place.check_range(ElementRange::ALL)?),
            false => (range, place.check_range(range)?),
        };
        let (epoch, wrote) = self.sessions.check_read(cx, ticket.ap, object, epoch)?;
        let read = self
            .caches
            .read(cx, ticket, place, (asked, keep, ahead), wrote)?;
        let Some(read) = read else {
            return Ok(());
        };
        let pending = &mut self.pending;
        let number = self.sessions.open(pending, ticket, owner, Kind::Read(read));
        let whole = read.is_whole();
        let kind = AccessKind::Read {
            range: if whole { ElementRange::ALL } else { range },
            epoch,
            // Only here is it known who keeps what.
            keep: if owner == cx.me() {
                read.keep
            } else {
                Keep::Nothing
            },
        };
        let pending = &mut self.pending;
        send_access(cx, pending, (number, ticket.ap), place, kind, whole);
        Ok(())
    }

    /// Sends a write or atomic operation to the owner; our copy is void from now on.
    fn change(
        &mut self,
        cx: &mut Context,
        ticket: Ticket,
        place: &Place,
        (write, epoch): (Write, Option<u64>),
        access: AccessKind,
    ) -> Result<(), Refusal> {
        let Place { object, owner, .. } = *place;
        check_served(cx, place)?;
        let session = self.sessions.get_mut(ticket.ap);
        let through = place.seat.is_some() && epoch.is_none();
        let write = Write { through, ..write };
        if through {
            session.line.release_begins();
        } else {
            session.write(cx, (object, owner), epoch.is_some());
        }
        // It dropped its copy when it sent this.
        self.caches.holders.remove(object, ticket.ap);
        let upcoming = self.pending.upcoming();
        self.caches.forget(cx, (object, owner), upcoming);
        let (pending, kind) = (&mut self.pending, Kind::Write(write));
        let number = self.sessions.open(pending, ticket, owner, kind);
        send_access(cx, pending, (number, ticket.ap), place, access, false);
        Ok(())
    }

    /// An application process comes to a barrier: its number, and its coordinator if it may.
    pub(crate) fn barrier(
        &mut self,
        cx: &mut Context,
        mut ticket: Ticket,
        barrier: VarId,
        coordinator: Result<MpId, Refusal>,
    ) {
        let kind = Kind::Barrier(Barrier {
            barrier,
            arrived: None,
        });
        let admitted = self.sessions.admit(cx, ticket.ap);
        let admitted = admitted.map(|session| ticket.first = session.begins_to_access());
        let to = admitted
            .and(coordinator)
            .and_then(|mp| cx.check_reachable(mp).map(|()| mp));
        match to {
            Ok(to) => {
                self.sessions.open(&mut self.pending, ticket, to, kind);
                self.advance(cx, ticket.ap);
            }
            Err(refusal) => refuse(cx, ticket, (cx.me(), kind), refusal),
        }
    }

    /// An application process publishes what it wrote outside sections.
    pub(crate) fn publish(&mut self, cx: &mut Context, ticket: Ticket) {
        let (to, kind) = (cx.me(), Kind::Publish);
        if let Err(refusal) = self.sessions.admit(cx, ticket.ap) {
            return refuse(cx, ticket, (to, kind), refusal);
        }
        self.sessions.open(&mut self.pending, ticket, to, kind);
        self.advance(cx, ticket.ap);
    }

    /// Asks owners of copies whose lease runs out to renew it.
    pub(crate) fn renew_leases(&mut self, cx: &mut Context) {
        self.caches.renew_leases(cx, &mut self.pending);
    }
}

/// The refusal of a request that does not become an operation.
fn refuse(cx: &mut Context, ticket: Ticket, (to, kind): (MpId, Kind), refusal: Refusal) {
    let operation = Operation::new(ticket, to, kind);
    report(cx, &operation, Err(refusal), Cost::default());
}

/// What a record says of a write that fits its object.
fn checked_write(place: &Place, write: &WriteData) -> Result<Write, Refusal> {
    let bytes = write.data.len();
    Ok(Write {
        object: place.object,
        range: place.check_write(write)?,
        bytes: bytes as u32,
        accesses: write.accesses,
        silent: false,
        atomic: write.adds,
        through: false,
    })
}

/// Sends an access to the owner.
pub(super) fn send_access(
    cx: &mut Context,
    pending: &mut Pending,
    (number, ap): (u64, ApId),
    place: &Place,
    kind: AccessKind,
    want_copy: bool,
) {
    let object = place.object;
    if let Some(seat) = place.seat {
        let access = Access { object, kind };
        let again = Again {
            seat,
            access,
            want_copy,
            waits: None,
            repeated: 0,
        };
        pending.again.insert(number, again);
        return ask(cx, pending, number, ap);
    }
    let request = PeerRequest::Access {
        access: Access { object, kind },
        ap,
        want_copy,
    };
    // A local object that is lost is refused by its place.
    let incarnation = (place.owner != cx.me())
        .then(|| cx.variables.start_of_owner(place))
        .flatten();
    cx.request_of(place.owner, incarnation, call(number), request);
}
