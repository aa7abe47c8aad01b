//! Changes of the cluster file, as unified-diff hunks without line numbers: lines to take out begin with
//! `-`, lines to add with `+`; context lines say in which table. A `[[variable]]` table is always
//! added (it overrides what the program declares), an application process's memory process is replaced.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use dosmos_proto::{ApId, CopyPolicy, GroupId, MpId, ObjectId, VarId};

use crate::profile::Profile;

/// Objects up to which owners are listed one by one.
const LISTED: u32 = 64;

/// A memory process for each process that is to move to a group: those who leave one make room for those who come.
pub(crate) fn seats(profile: &Profile, moved: &[(ApId, usize)]) -> Vec<(ApId, MpId)> {
    let topology = &profile.catalog.topology;
    let mut free: BTreeMap<usize, Vec<MpId>> = BTreeMap::new();
    for (ap, _) in moved {
        if let (Some(p), Some(g)) = (topology.ap(*ap), topology.group_of_ap(*ap)) {
            free.entry(g.index()).or_default().push(p.memory_process);
        }
    }
    let seat = |(ap, to): &(ApId, usize)| {
        let left = free.get_mut(to).and_then(Vec::pop);
        let first = || topology.owners_in(Some(GroupId(*to as u32))).next();
        Some((*ap, left.or_else(first)?))
    };
    moved.iter().filter_map(seat).collect()
}

/// Moves processes and objects to memory processes.
pub(crate) fn regroup(
    profile: &Profile,
    seats: &[(ApId, MpId)],
    owners: &BTreeMap<VarId, BTreeMap<ObjectId, MpId>>,
) -> String {
    let topology = &profile.catalog.topology;
    let mut text = String::new();
    for (ap, seat) in seats {
        let Some(process) = topology.ap(*ap) else {
            continue;
        };
        let _ = writeln!(
            text,
            " [[ap]]\n name = {:?}\n-mp = {:?}\n+mp = {:?}",
            process.name,
            topology.mp_name(process.memory_process),
            topology.mp_name(*seat)
        );
    }
    for (&variable, moves) in owners {
        text += &self::owners(profile, variable, moves).unwrap_or_default();
    }
    text
}

/// A table that names the owner of every object of `variable`, the moved ones at their new owner. None if the
/// variable's declaration is not known.
pub(crate) fn owners(
    profile: &Profile,
    variable: VarId,
    moves: &BTreeMap<ObjectId, MpId>,
) -> Option<String> {
    let mut all = profile.catalog.variables.iter();
    let declared = all.find(|v| v.id() == variable)?;
    let name = |mp: MpId| format!("{:?}", profile.catalog.topology.mp_name(mp));
    let count = declared.spec().layout().objects();
    let mut owners: Vec<String> = (0..count.min(LISTED))
        .map(|i| {
            let moved = moves.get(&ObjectId::new(variable, i));
            name(moved.copied().unwrap_or_else(|| declared.owner(i)))
        })
        .collect();
    if owners.iter().all(|o| *o == owners[0]) && count <= LISTED {
        owners.truncate(1); // a shorter list repeats
    }
    let mut text = format!(
        "+[[variable]]\n+name = {:?}\n+owners = [{}]\n",
        declared.spec().name(),
        owners.join(", ")
    );
    if count > LISTED {
        let _ = writeln!(
            text,
            "+# … and so on for the other {} objects",
            count - LISTED
        );
    }
    Some(text)
}

/// A table that sets the copy policy.
pub(crate) fn policy(name: &str, policy: CopyPolicy) -> String {
    format!("+[[variable]]\n+name = {name:?}\n+policy = \"{policy}\"\n")
}
