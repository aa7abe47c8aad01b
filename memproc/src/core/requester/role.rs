//! The requester's state, and requests on their way in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dosmos_proto::names::check_name;
use dosmos_proto::{
    ApId, Cache, ElementType, ErrorCode, MpId, Nanos, Refusal, VarId, VariableSpec,
};
use dosmos_trace::Origin;

use super::caches::Caches;
use super::pending::{Acquire, Barrier, Kind, Operation, Pending, Read, Release, Ticket, Write};
use super::records::{operation_record, report};
use super::session::{Session, Sessions};
use crate::core::context::Context;
use crate::core::directory::place::Place;
use crate::core::directory::placement::home_of;
use crate::core::directory::variables::conflict;
use crate::core::messages::{
    Access, AccessKind, AtomicOp, CallId, Cost, ElementRange, Item, Keep, PeerRequest, Reply, Role,
    WriteData,
};

/// Part of a larger object is read without fetching all of it, if application processes keep copies.
const LARGE: usize = 16 << 10;

/// The requester's state.
#[derive(Debug)]
pub(crate) struct Requester {
    pub(crate) sessions: Sessions,
    pub(super) pending: Pending,
    pub(crate) caches: Caches,
    default_timeout: Nanos,
    requests: u64,
    pub(super) closing: bool,
    /// Application processes with an acquire that nobody waits for any more, by owner: it may have arrived, or may yet, though the
    /// link broke that it and what takes it back went over.
    pub(super) unsettled: BTreeMap<MpId, BTreeSet<ApId>>,
}

/// The number of an operation or flush, as others know it.
pub(super) fn call(number: u64) -> CallId {
    CallId {
        role: Role::Requester,
        number,
    }
}

impl Requester {
    pub(crate) fn new(default_timeout: Nanos) -> Self {
        Self {
            sessions: Sessions::default(),
            pending: Pending::default(),
            caches: Caches::default(),
            default_timeout,
            requests: 0,
            closing: false,
            unsettled: BTreeMap::new(),
        }
    }

    /// Requests of application processes so far.
    pub(crate) fn requests(&self) -> u64 {
        self.requests
    }

    /// An application process introduces itself.
    pub(crate) fn connect(&mut self, cx: &Context, ap: ApId) -> Result<(), Refusal> {
        let me = cx.cluster.mp_name(cx.me());
        if self.closing {
            let why = format!("{me} is ending");
            return Err(Refusal::new(ErrorCode::ShuttingDown, why));
        }
        let session = self.sessions.get_mut(ap);
        if session.connected {
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

    /// A request of this number arrived now.
    pub(crate) fn ticket(&self, now: Nanos, ap: ApId, id: u64, timeout: Option<Nanos>) -> Ticket {
        Ticket {
            ap,
            id,
            start: now,
            timeout: timeout.unwrap_or(self.default_timeout),
            first: false,
        }
    }

    fn admit(&mut self, cx: &Context, ap: ApId) -> Result<&mut Session, Refusal> {
        self.requests += 1;
        if self.closing {
            let why = format!("{} is ending", cx.cluster.mp_name(cx.me()));
            return Err(Refusal::new(ErrorCode::ShuttingDown, why));
        }
        self.sessions.check_admission(cx, ap)
    }

    /// Registers an operation; its number.
    pub(super) fn open_operation(&mut self, ticket: Ticket, to: MpId, kind: Kind) -> u64 {
        self.sessions.get_mut(ticket.ap).outstanding += 1;
        self.pending.open(Operation { ticket, to, kind })
    }

    /// An application process declares a variable.
    pub(crate) fn declare(&mut self, cx: &mut Context, ticket: Ticket, spec: VariableSpec) {
        let kind = Kind::Declare(spec.name().to_owned());
        let spec = cx.variables.overridden(spec);
        let name = spec.name();
        let differs = |known: &VariableSpec| (*known != spec).then(|| conflict(known, &spec));
        let checked = self.admit(cx, ticket.ap).map(|_| ()).and_then(|()| {
            let known = cx.variables.named(name);
            known
                .and_then(|(v, _)| differs(v.spec()))
                .map_or(Ok(()), Err)
        });
        let creator = cx.me();
        self.find(cx, ticket, kind, name, checked, || PeerRequest::Declare {
            spec: spec.clone(),
            creator,
        });
    }

    /// An application process looks a variable up.
    pub(crate) fn open(&mut self, cx: &mut Context, ticket: Ticket, name: &str) {
        let kind = Kind::Open(name.to_owned());
        let checked = self
            .admit(cx, ticket.ap)
            .map(|_| ())
            .and_then(|()| Ok(check_name("variable name", name)?));
        self.find(cx, ticket, kind, name, checked, || {
            PeerRequest::Open(name.to_owned())
        });
    }

    /// Replies with a variable if all its owners are known to know it, else asks its home.
    fn find(
        &mut self,
        cx: &mut Context,
        ticket: Ticket,
        kind: Kind,
        name: &str,
        checked: Result<(), Refusal>,
        request: impl FnOnce() -> PeerRequest,
    ) {
        let to = cx.me();
        let home = checked.and_then(|()| {
            if let Some((variable, true)) = cx.variables.named(name) {
                let variable = Reply::Variable(Arc::clone(variable));
                cx.reply(ticket.ap, ticket.id, variable, false);
                return Ok(None);
            }
            let home = home_of(cx.cluster, name)?;
            cx.check_reachable(home).map(|()| Some(home))
        });
        match home {
            Ok(None) => {}
            Ok(Some(home)) => {
                let number = self.open_operation(ticket, home, kind);
                cx.request(home, call(number), request());
            }
            Err(refusal) => {
                let operation = Operation { ticket, to, kind };
                report(cx, &operation, Err(refusal), Cost::default());
            }
        }
    }

    /// An application process accesses an object.
    pub(crate) fn access(&mut self, cx: &mut Context, mut ticket: Ticket, access: Access) {
        let object = access.object;
        let kind = Kind::unchecked(&access);
        match self.admit(cx, ticket.ap) {
            Ok(session) => ticket.first = session.begins_to_access(),
            Err(refusal) => {
                let to = cx.me();
                let operation = Operation { ticket, to, kind };
                return report(cx, &operation, Err(refusal), Cost::default());
            }
        }
        let begun = match cx.variables.place(cx.cluster, object) {
            Ok(place) => self.begin_access(cx, ticket, &place, access.kind),
            Err(refusal) => Err((cx.me(), refusal)),
        };
        if let Err((to, refusal)) = begun {
            let operation = Operation { ticket, to, kind };
            report(cx, &operation, Err(refusal), Cost::default());
        }
    }

    /// An access that is refused here is so in the place of its owner.
    fn begin_access(
        &mut self,
        cx: &mut Context,
        ticket: Ticket,
        place: &Place,
        kind: AccessKind,
    ) -> Result<(), (MpId, Refusal)> {
        let begun = match kind {
            AccessKind::Read { range, epoch, keep } => {
                self.read(cx, ticket, place, (range, keep), epoch)
            }
            AccessKind::Write { write, epoch } => self.write(cx, ticket, place, write, epoch),
            AccessKind::Atomic {
                element,
                element_type,
                op,
                epoch,
            } => self.atomic(cx, ticket, place, (element, element_type, op), epoch),
            AccessKind::Acquire { want_value } => self.acquire(cx, ticket, place, want_value),
            AccessKind::Release { epoch, write } => self.release(cx, ticket, place, (epoch, write)),
        };
        begun.map_err(|refusal| (place.owner, refusal))
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
        let asked = place.check_range(range)?;
        let epoch = self.sessions.check_section(cx, ticket.ap, object, epoch)?;
        let near = owner != cx.me() && cx.cluster.same_group(owner, cx.me());
        let section = self.sessions.section(ticket.ap, object);
        // Who wrote in its section finds its writes at the owner only.
        let wrote = section.is_some_and(|s| s.wrote);
        let fetch = near && !wrote;
        let caches = place.variable.spec().cache() == Cache::Ap;
        let may_keep = caches && !wrote && (near || owner == cx.me());
        let keep = if may_keep { keep } else { Keep::Nothing };
        // Where copies are for application processes, part of a large object does not fetch all of it.
        let large = place.bytes() > LARGE && asked.1 - asked.0 <= place.elements / 2;
        let fetch = fetch && !(caches && large && keep == Keep::Nothing);
        let kind = Kind::Read(Read {
            object,
            range: asked,
            width: place.width,
            fetch,
            keep,
        });
        let copy = self
            .caches
            .copies
            .get(object, cx.now)
            .filter(|_| near && !wrote);
        if let Some((copy, true)) = copy {
            let keep = keep > Keep::Nothing;
            let data = match keep {
                true => copy.data.clone(),
                false => copy.data.slice(place.bytes_of(asked)),
            };
            let version = copy.version;
            if keep {
                let until = self.caches.copies.lease_end(object);
                self.caches.holders.add(object, ticket.ap, until);
            }
            let to = owner;
            let mut record = operation_record(cx, &Operation { ticket, to, kind });
            if let Some(record) = &mut record {
                record.flags.optimized = true;
                record.origin = Origin::Local;
                record.version = version;
            }
            record.into_iter().for_each(|r| cx.trace(Item::Record(r)));
            let reply = Reply::Read {
                version,
                data,
                keep,
                delegation: None,
                unchanged: false,
            };
            cx.reply(ticket.ap, ticket.id, reply, false);
            return Ok(());
        }
        if copy.is_some() {
            // Its lease is over: it may be out of date.
            self.caches.drop_copy(cx, object, owner);
        }
        cx.check_reachable(owner)?;
        let number = self.open_operation(ticket, owner, kind);
        if fetch {
            self.caches.copies.fetch_begins(object);
        }
        let whole = fetch || keep > Keep::Nothing;
        let kind = AccessKind::Read {
            range: if whole { ElementRange::ALL } else { range },
            epoch,
            // Only here is it known who keeps what.
            keep: if owner == cx.me() {
                keep
            } else {
                Keep::Nothing
            },
        };
        send_access(cx, number, ticket.ap, place, kind, whole);
        Ok(())
    }

    fn write(
        &mut self,
        cx: &mut Context,
        ticket: Ticket,
        place: &Place,
        write: WriteData,
        epoch: Option<u64>,
    ) -> Result<(), Refusal> {
        let traced = checked_write(place, &write)?;
        let epoch = self
            .sessions
            .check_section(cx, ticket.ap, place.object, epoch)?;
        let kind = AccessKind::Write { write, epoch };
        self.change(cx, ticket, place, traced, epoch, kind)
    }

    fn atomic(
        &mut self,
        cx: &mut Context,
        ticket: Ticket,
        place: &Place,
        (element, element_type, op): (u32, ElementType, AtomicOp),
        epoch: Option<u64>,
    ) -> Result<(), Refusal> {
        let range = place.check_atomic(element, element_type, op)?;
        let epoch = self
            .sessions
            .check_section(cx, ticket.ap, place.object, epoch)?;
        let kind = AccessKind::Atomic {
            element,
            element_type,
            op,
            epoch,
        };
        let write = Write {
            object: place.object,
            range,
            bytes: place.width,
            accesses: 1,
            silent: false,
            atomic: true,
        };
        self.change(cx, ticket, place, write, epoch, kind)
    }

    /// Sends a write or atomic operation to the owner; our copy is void from now on.
    fn change(
        &mut self,
        cx: &mut Context,
        ticket: Ticket,
        place: &Place,
        write: Write,
        epoch: Option<u64>,
        access: AccessKind,
    ) -> Result<(), Refusal> {
        let Place { object, owner, .. } = *place;
        cx.check_reachable(owner)?;
        let session = self.sessions.get_mut(ticket.ap);
        match session.sections.get_mut(&object) {
            Some(section) if epoch.is_some() => section.wrote = true,
            _ => {
                let incarnation = cx.variables.incarnation_of(object.var, owner);
                session.dirty.entry(owner).or_insert(incarnation);
            }
        }
        // It dropped its copy when it sent this.
        self.caches.holders.remove(object, ticket.ap);
        if owner != cx.me() {
            let upcoming = self.pending.upcoming();
            self.caches.forget(cx, (object, owner), upcoming);
        }
        let number = self.open_operation(ticket, owner, Kind::Write(write));
        send_access(cx, number, ticket.ap, place, access, false);
        Ok(())
    }

    fn acquire(
        &mut self,
        cx: &mut Context,
        ticket: Ticket,
        place: &Place,
        want_value: bool,
    ) -> Result<(), Refusal> {
        cx.check_reachable(place.owner)?;
        let kind = Kind::Acquire(Acquire {
            object: place.object,
            want_value,
            sent: false,
        });
        let number = self.open_operation(ticket, place.owner, kind);
        self.line_up(cx, ticket.ap, number);
        Ok(())
    }

    fn release(
        &mut self,
        cx: &mut Context,
        ticket: Ticket,
        place: &Place,
        (epoch, write): (Option<u64>, Option<WriteData>),
    ) -> Result<(), Refusal> {
        let object = place.object;
        let current = self.sessions.check_release(cx, ticket.ap, object, epoch)?;
        let checked = write.map(|write| Ok::<_, Refusal>((checked_write(place, &write)?, write)));
        let mut write = checked.transpose()?;
        if self.sessions.get_mut(ticket.ap).publishes()
            && let Some((traced, write)) = write.take()
        {
            // The release waits: what its application process reads meanwhile must not miss this.
            let traced = Write {
                silent: true,
                ..traced
            };
            let epoch = Some(current);
            let kind = AccessKind::Write { write, epoch };
            self.change(cx, ticket, place, traced, epoch, kind)?;
        }
        let kind = Kind::Release(Box::new(Release {
            object,
            epoch,
            write,
            sent: None,
        }));
        let number = self.open_operation(ticket, place.owner, kind);
        self.line_up(cx, ticket.ap, number);
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
        let admitted = self.admit(cx, ticket.ap);
        let admitted = admitted.map(|session| ticket.first = session.begins_to_access());
        let to = admitted
            .and(coordinator)
            .and_then(|mp| cx.check_reachable(mp).map(|()| mp));
        match to {
            Ok(to) => {
                let number = self.open_operation(ticket, to, kind);
                self.line_up(cx, ticket.ap, number);
            }
            Err(refusal) => {
                let to = cx.me();
                let operation = Operation { ticket, to, kind };
                report(cx, &operation, Err(refusal), Cost::default());
            }
        }
    }

    /// An application process publishes what it wrote outside sections.
    pub(crate) fn publish(&mut self, cx: &mut Context, ticket: Ticket) {
        let to = cx.me();
        let kind = Kind::Publish;
        if let Err(refusal) = self.admit(cx, ticket.ap) {
            let operation = Operation { ticket, to, kind };
            return report(cx, &operation, Err(refusal), Cost::default());
        }
        let number = self.open_operation(ticket, to, kind);
        self.line_up(cx, ticket.ap, number);
    }

    /// Asks owners of copies whose lease runs out to renew it.
    pub(crate) fn renew_leases(&mut self, cx: &mut Context) {
        for owner in self.caches.copies.to_renew(cx.now) {
            let number = self.pending.number();
            self.caches.copies.renewal_begins(owner, number, cx.now);
            cx.request(owner, call(number), PeerRequest::Renew);
        }
    }
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
    })
}

/// Sends an access to the owner.
pub(super) fn send_access(
    cx: &mut Context,
    number: u64,
    ap: ApId,
    place: &Place,
    kind: AccessKind,
    want_copy: bool,
) {
    let object = place.object;
    let request = PeerRequest::Access {
        access: Access { object, kind },
        ap,
        want_copy,
    };
    // A local object that is lost is refused by its place.
    let incarnation = (place.owner != cx.me())
        .then(|| cx.variables.incarnation_of(object.var, place.owner))
        .flatten();
    cx.request_of(place.owner, incarnation, call(number), request);
}
