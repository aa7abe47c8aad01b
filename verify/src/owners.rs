//! What the records of owners say: who owned, the order of grants by the owner's clock, and what was served.

use dosmos_proto::{ApId, MpId, ObjectId};
use dosmos_trace::{Op, Record, Side};

use crate::found::Found;
use crate::kind::Kind;
use crate::locks::Locks;
use crate::pairs::{Odd, Pairs, is_remote};

/// Grants of an object to one process that are kept while they are open: an earlier one may have been given up.
const OPEN: usize = 2;

/// One object, and the last steps of its lock by the clock of its owner.
#[derive(Debug, Default)]
struct Object {
    released: Option<Record>,
    granted: Option<Record>,
    /// The grant of another process's request that ended last.
    latest: Option<Record>,
    /// Grants of other processes' requests, by when these arrived: of sections that are not released by the owner's records, or
    /// that begin later.
    open: Vec<Record>,
    pairs: Pairs,
}

#[derive(Debug)]
pub(crate) struct Owners {
    objects: Vec<Object>,
    /// Of each process, whether an operation failed, so that its requests and what was served of them may differ.
    failed: Vec<bool>,
    /// There are records of owners.
    recorded: bool,
}

impl Owners {
    pub(crate) fn new(processes: usize) -> Self {
        Self {
            objects: Vec::new(),
            failed: vec![false; processes],
            recorded: false,
        }
    }

    pub(crate) fn add_object(&mut self) {
        self.objects.push(Object::default());
    }

    /// The owner ended a section without a release: from which version it was granted, if that is known.
    pub(crate) fn ended(&mut self, slot: usize, end: &Record) -> Option<u64> {
        let open = &mut self.objects[slot].open;
        let its = |g: &Record| g.ap == end.ap && g.peer == end.peer && g.end() <= end.start;
        let granted = open.iter().filter(|g| its(g)).max_by_key(|g| g.end());
        let version = granted.map(|g| g.version);
        open.retain(|g| !its(g));
        version
    }

    /// A record of either side, of an operation on an object.
    pub(crate) fn take(&mut self, slot: usize, record: &Record, found: &mut Found) {
        self.recorded |= record.side == Side::Owner;
        if record.flags.failed {
            return;
        }
        check_place(record, found);
        let o = &mut self.objects[slot];
        // What is read or acquired when an owner is lost is asked again, and may have been served before.
        if is_remote(record) && !found.names().has_replicas(record.object.var) {
            o.pairs.take(record);
        }
        let by_owner_s_clock = record.side == Side::Owner || record.mp == record.peer;
        if by_owner_s_clock && !record.is_of_past_sections() {
            match record.op {
                Op::Acquire => o.grant(record, found),
                Op::Release => o.release(record),
                Op::Read | Op::Write | Op::Barrier => return,
            }
            o.check_release_before_grant(found);
        }
    }

    /// An operation of a process failed.
    pub(crate) fn failed(&mut self, ap: ApId) {
        self.failed[ap.index()] = true;
    }

    /// What of the objects `ids` was served otherwise than requested.
    pub(crate) fn close(&self, ids: &[ObjectId], locks: &Locks, found: &mut Found) {
        if !self.recorded {
            return;
        }
        for (slot, id) in ids.iter().enumerate() {
            if !locks.is_unversioned(slot) {
                for odd in self.objects[slot].pairs.odd(|ap| !self.failed[ap.index()]) {
                    say(*id, &odd, found);
                }
            }
        }
    }
}

impl Object {
    fn release(&mut self, release: &Record) {
        self.released = Some(*release);
        self.open.retain(|g| g.version >= release.version);
    }

    fn grant(&mut self, grant: &Record, found: &mut Found) {
        self.granted = Some(*grant);
        if grant.side != Side::Owner {
            return;
        }
        let its = |g: &Record| g.ap == grant.ap;
        if self.open.iter().filter(|g| its(g)).count() >= OPEN
            && let Some(first) = self.open.iter().position(its)
        {
            self.open.remove(first);
        }
        self.open.push(*grant);
        let error = found.names().own_clock_error(grant.peer);
        // Of one owner: what has replicas may have several, one after the other.
        let latest = self.latest.filter(|l| l.peer == grant.peer);
        self.latest = latest.into_iter().chain([*grant]).max_by_key(Record::end);
        let Some(latest) = latest.filter(|l| l.end() - grant.end() > error) else {
            return;
        };
        found.certain(Kind::OutOfTurn, grant.object, &[latest, *grant], |names| {
            format!(
                "the request of {} reached the owner before that of {} and was granted after it",
                names.ap(latest.ap),
                names.ap(grant.ap)
            )
        });
    }

    fn check_release_before_grant(&mut self, found: &mut Found) {
        if let (Some(release), Some(grant)) = (self.released, self.granted)
            && release.version == grant.version
            && release.ap != grant.ap
            && release.peer == grant.peer
            && release.end() - grant.end() > found.names().own_clock_error(grant.peer)
        {
            let records = [release, grant];
            found.certain(Kind::GrantedTooEarly, grant.object, &records, |names| {
                format!(
                    "by the owner's clock version {} was granted to {} {} ns before the release of {} that made it was complete",
                    grant.version, names.ap(grant.ap), (release.end() - grant.end()).0, names.ap(release.ap)
                )
            });
            self.granted = None;
        }
    }
}

/// Whether an access went where it had to.
fn check_place(record: &Record, found: &mut Found) {
    let object = record.object;
    let Some(variable) = found.names().variable(object.var) else {
        return;
    };
    let elements = variable.spec().layout().elements_of(object.index);
    let owner = variable.owner(object.index);
    if elements.is_none_or(|n| record.range.1 > n) {
        return found.certain(Kind::OutsideObject, object, &[*record], |names| {
            format!(
                "elements {} to {} were accessed; {} has {}",
                record.range.0,
                record.range.1,
                names.object(object),
                elements.unwrap_or(0)
            )
        });
    }
    let serves = match found.names().has_replicas(object.var) {
        true => found.names().may_keep_for(owner, record.peer),
        false => record.peer == owner,
    };
    if !serves {
        found.certain(Kind::WrongOwner, object, &[*record], |names| {
            format!(
                "{} is owned by {} and was served by {}",
                names.object(object),
                names.mp(owner),
                names.mp(record.peer)
            )
        });
    }
    let topology = found.names().topology();
    let group = |mp: MpId| topology.mp(mp).map(|mp| mp.group);
    if record.flags.optimized && !record.flags.in_process && group(record.mp) != group(record.peer)
    {
        found.certain(Kind::CopyAcrossGroups, object, &[*record], |names| {
            format!(
                "{} read a copy at {}, and the owner {} is in another group",
                names.ap(record.ap),
                names.mp(record.mp),
                names.mp(record.peer)
            )
        });
    }
}

fn say(id: ObjectId, odd: &Odd, found: &mut Found) {
    match odd {
        Odd::Differ(a, b) => {
            let (told, served) = if a.side == Side::Owner {
                (b, a)
            } else {
                (a, b)
            };
            found.presumed(Kind::AnswerDiffers, id, &[*served, *told], |names| {
                format!(
                    "the owner served version {} and {} was told version {}",
                    served.version,
                    names.ap(told.ap),
                    told.version
                )
            });
        }
        Odd::Alone(record, count) => {
            let (kind, what) = match record.side {
                Side::Owner => (
                    Kind::ServedTwice,
                    "served by the owner more often than requested",
                ),
                Side::Requester => (Kind::NeverServed, "successful and not served by the owner"),
            };
            found.presumed(kind, id, &[*record], |names| {
                format!("{count} {}(s) of {} {what}", record.op, names.ap(record.ap))
            });
        }
    }
}
