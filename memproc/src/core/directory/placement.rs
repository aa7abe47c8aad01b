//! Which process is the home of a name, and which processes own the objects of a variable.

use dosmos_proto::{
    ErrorCode, GroupId, LockKind, MpId, Placement, Refusal, Variable, VariableSpec,
};

use crate::core::cluster::{Cluster, list};
use crate::core::hash::stable;
use crate::core::replica::seat::Seat;
use crate::core::replica::seats::too_few;

/// Bits of a variable's number that its home counts; above them is the home's position.
pub(super) const COUNTER_BITS: u32 = 20;
/// Barriers have the top bit set, so homes have the 11 bits between.
const MAX_HOMES: usize = 1 << (31 - COUNTER_BITS);

/// The home of a name: it alone numbers the variable and decides its owners.
pub(crate) fn home_of(cluster: &Cluster, name: &str) -> Result<MpId, Refusal> {
    let owners = cluster.owners();
    if owners.is_empty() || owners.len() > MAX_HOMES {
        return Err(Refusal::new(
            ErrorCode::Limit,
            format!(
                "a cluster has 1 to {MAX_HOMES} memory processes, this one {}",
                owners.len()
            ),
        ));
    }
    Ok(owners[stable(name.as_bytes()) as usize % owners.len()])
}

/// The owners a placement means, and the group of the creator.
pub(super) fn place(
    cluster: &Cluster,
    spec: &VariableSpec,
    creator: MpId,
) -> Result<(Vec<MpId>, GroupId), Refusal> {
    let creator = cluster
        .topology
        .mp(creator)
        .filter(|mp| !mp.link)
        .map(|mp| (creator, mp.group))
        .ok_or_else(|| invalid(spec, &format!("{creator} cannot own objects")))?;
    let mut owners = match spec.placement() {
        Placement::Creator => vec![creator.0],
        Placement::ByName => {
            let owners = cluster.owners();
            vec![owners[stable(spec.name().as_bytes()) as usize % owners.len()]]
        }
        Placement::RoundRobin(None) => cluster.owners().to_vec(),
        Placement::RoundRobin(Some(path)) => of_group(cluster, spec, path)?,
        Placement::Explicit(names) => names
            .as_slice()
            .iter()
            .map(|name| named(cluster, spec, name))
            .collect::<Result<_, _>>()?,
    };
    owners.truncate(spec.layout().objects() as usize);
    check_replicas(cluster, spec, &owners)?;
    Ok((owners, creator.1))
}

fn invalid(spec: &VariableSpec, why: &str) -> Refusal {
    Refusal::new(
        ErrorCode::Invalid,
        format!("variable {}: {why}", spec.name()),
    )
}

/// Whether the group of each owner can keep as many replicas.
fn check_replicas(cluster: &Cluster, spec: &VariableSpec, owners: &[MpId]) -> Result<(), Refusal> {
    let replicas = spec.replicas();
    if replicas == 0 {
        return Ok(());
    }
    if spec.lock() != LockKind::Queue {
        let why = format!(
            "a {} lock is not kept elsewhere; replicas need the queue of the owner",
            spec.lock()
        );
        return Err(invalid(spec, &why));
    }
    let mut seats = owners.iter().map(|mp| Seat { mp: *mp, replicas });
    match seats.find_map(|seat| too_few(cluster, seat)) {
        Some(why) => Err(invalid(spec, &why)),
        None => Ok(()),
    }
}

fn of_group(cluster: &Cluster, spec: &VariableSpec, path: &str) -> Result<Vec<MpId>, Refusal> {
    let t = &cluster.topology;
    let group = t.find_group(path).ok_or_else(|| {
        let groups = list(t.groups().iter().map(|g| g.path.as_str()));
        invalid(
            spec,
            &format!("there is no group {path}; there are {groups}"),
        )
    })?;
    let owners: Vec<MpId> = t.owners_in(Some(group)).collect();
    if owners.is_empty() {
        let why = format!("group {path} has no memory process");
        return Err(invalid(spec, &why));
    }
    Ok(owners)
}

fn named(cluster: &Cluster, spec: &VariableSpec, name: &str) -> Result<MpId, Refusal> {
    let t = &cluster.topology;
    let known = || {
        let owners = cluster.owners().iter().filter_map(|m| t.mp(*m));
        list(owners.map(|m| m.name.as_str()))
    };
    match t.find_mp(name) {
        Some(mp) if !t.mp(mp).is_some_and(|m| m.link) => Ok(mp),
        Some(_) => {
            let why = format!(
                "{name} is a link process and owns nothing; name one of {}",
                known()
            );
            Err(invalid(spec, &why))
        }
        None => {
            let why = format!("there is no memory process {name}; there are {}", known());
            Err(invalid(spec, &why))
        }
    }
}

/// How many objects of a variable `mp` owns.
pub(super) fn share(variable: &Variable, mp: MpId) -> u64 {
    let objects = u64::from(variable.spec().layout().objects());
    let cycle = variable.owners().len() as u64;
    (0u64..)
        .zip(variable.owners())
        .filter(|(_, owner)| **owner == mp)
        // More owners than objects own nothing.
        .map(|(i, _)| objects.saturating_sub(i).div_ceil(cycle))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::testing::topology;
    use dosmos_proto::{ElementType, Layout, VarId};

    #[test]
    fn a_cluster_of_as_many_owners_as_numbers_have_room_for_has_homes() {
        let home = |owners: u32| {
            let cluster = Cluster::new(topology(&["/a"], owners, 0), MpId(0));
            home_of(&cluster, "x").map_err(|refusal| refusal.code)
        };
        let limit = Err(ErrorCode::Limit);
        assert_eq!(home(0), limit);
        assert_eq!(home(1), Ok(MpId(0)));
        assert!(home(MAX_HOMES as u32).is_ok());
        assert_eq!(home(MAX_HOMES as u32 + 1), limit);
    }

    #[test]
    fn a_link_process_owns_nothing() {
        let cluster = Cluster::new(topology(&["/a", "/b"], 1, 0), MpId(0));
        let spec = VariableSpec::new("x", Layout::new(ElementType::U64, (1, 1), (1, 1)).unwrap());
        let of = |name: &str| named(&cluster, spec.as_ref().unwrap(), name);
        assert_eq!(of("mp1"), Ok(MpId(1)));
        let link = of("lp.a").unwrap_err().message;
        assert!(link.contains("lp.a is a link process"), "{link}");
        assert!(link.contains("name one of mp0, mp1"), "{link}");
        let nobody = of("mp7").unwrap_err().message;
        assert!(
            nobody.contains("there is no memory process mp7"),
            "{nobody}"
        );
    }

    #[test]
    fn shares_are_what_the_owners_of_the_objects_say() {
        for objects in 1..12_u32 {
            for owners in [
                vec![0],
                vec![0, 1],
                vec![0, 1, 0],
                vec![2, 1, 1, 0],
                vec![1; 5],
            ] {
                let layout = Layout::new(ElementType::U64, (1, 24), (1, objects)).unwrap();
                let spec = VariableSpec::new("x", layout).unwrap();
                let owners: Vec<MpId> = owners.into_iter().map(MpId).collect();
                let variable = Variable::new(VarId(1), spec, owners, GroupId(0)).unwrap();
                for mp in (0..4).map(MpId) {
                    let count = layout.objects();
                    let owned = (0..count).filter(|i| variable.owner(*i) == mp).count() as u64;
                    assert_eq!(share(&variable, mp), owned, "{objects} {variable:?} {mp}");
                }
            }
        }
    }
}
