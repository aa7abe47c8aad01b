//! What the records of an owner say: who owned, the order of its grants by its own clock, and what it served.

use dosmos_proto::MpId;
use dosmos_trace::{Op, Record, Side};

use crate::kind::Kind;
use crate::pairs::is_remote;
use crate::verifier::Verifier;

impl Verifier {
    /// A record of either side, of an operation on an object.
    pub(crate) fn at_owner(&mut self, slot: usize, record: &Record) {
        self.owners |= record.side == Side::Owner;
        if record.flags.failed {
            return;
        }
        self.check_place(record);
        let o = &mut self.objects[slot];
        if is_remote(record) {
            o.pairs.take(record);
        }
        let by_owner_s_clock = record.side == Side::Owner || record.mp == record.peer;
        let section =
            matches!(record.op, Op::Acquire | Op::Release) && !record.is_of_past_sections();
        if !section || !by_owner_s_clock {
            return;
        }
        let names = &self.names;
        let own = &mut o.at_owner;
        if record.op == Op::Release {
            own.released = Some(*record);
        } else {
            if record.side == Side::Owner {
                if let Some(latest) = own.latest.filter(|l| record.end() < l.end()) {
                    let records = [latest, *record];
                    self.found
                        .certain(names, Kind::OutOfTurn, record.object, &records, || {
                            format!(
                                "the request of {} reached the owner before that of {} and was granted after it",
                                names.ap(latest.ap), names.ap(record.ap)
                            )
                        });
                } else {
                    own.latest = Some(*record);
                }
            }
            own.granted = Some(*record);
        }
        if let (Some(release), Some(grant)) = (own.released, own.granted)
            && release.version == grant.version
            && release.ap != grant.ap
            && grant.end() < release.end()
        {
            let records = [release, grant];
            self.found
                .certain(names, Kind::GrantedTooEarly, record.object, &records, || {
                    format!(
                        "by the owner's clock version {} was granted to {} {} ns before the release of {} that made it was complete",
                        grant.version, names.ap(grant.ap), (release.end() - grant.end()).0, names.ap(release.ap)
                    )
                });
            own.granted = None;
        }
    }

    /// Whether an access went where it had to.
    fn check_place(&mut self, record: &Record) {
        let names = &self.names;
        let Some(variable) = names.variable(record.object.var) else {
            return;
        };
        let object = record.object;
        let elements = variable.spec().layout().elements_of(object.index);
        if elements.is_none_or(|n| record.range.1 > n) {
            return self
                .found
                .certain(names, Kind::OutsideObject, object, &[*record], || {
                    format!(
                        "elements {} to {} were accessed; {} has {}",
                        record.range.0,
                        record.range.1,
                        names.object(object),
                        elements.unwrap_or(0)
                    )
                });
        }
        let owner = variable.owner(object.index);
        if record.peer != owner {
            self.found
                .certain(names, Kind::WrongOwner, object, &[*record], || {
                    format!(
                        "{} is owned by {} and was served by {}",
                        names.object(object),
                        names.mp(owner),
                        names.mp(record.peer)
                    )
                });
        }
        let group = |mp: MpId| names.topology().mp(mp).map(|mp| mp.group);
        if record.flags.optimized
            && !record.flags.in_process
            && group(record.mp) != group(record.peer)
        {
            self.found
                .certain(names, Kind::CopyAcrossGroups, object, &[*record], || {
                    format!(
                        "{} read a copy at {}, and the owner {} is in another group",
                        names.ap(record.ap),
                        names.mp(record.mp),
                        names.mp(record.peer)
                    )
                });
        }
    }
}
