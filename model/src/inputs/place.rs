//! Where processes and objects stand: today, and in a proposed cluster file.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, GroupId, MpId, ObjectId, Topology, VarId};

use super::tally::Objects;
use crate::error::ModelError;

/// A cluster in which the run is imagined: its processes, matched to the measured ones by name, and
/// variables that have other owners there.
#[derive(Clone, Debug, Default)]
pub struct Placement {
    /// The processes and groups.
    pub topology: Topology,
    /// New owners of variables: object i at the i-th of them, a shorter list repeats. Those not named keep
    /// theirs.
    pub moved: BTreeMap<VarId, Vec<MpId>>,
    /// New owners of single objects, whatever `moved` says.
    pub objects: BTreeMap<ObjectId, MpId>,
}

/// From the processes of the run to those of a placement.
#[derive(Clone, Debug)]
pub(super) struct Places<'a> {
    today: &'a Topology,
    topology: &'a Topology,
    placement: Option<&'a Placement>,
    /// New number of each memory process of the run; itself without a placement.
    mps: Option<Vec<MpId>>,
    aps: Option<Vec<ApId>>,
}

impl<'a> Places<'a> {
    /// The run as it was.
    pub(super) fn today(topology: &'a Topology) -> Self {
        Self {
            today: topology,
            topology,
            placement: None,
            mps: None,
            aps: None,
        }
    }

    /// The run in another cluster.
    ///
    /// # Errors
    /// [`ModelError::Unknown`] naming a process of the run that the other cluster does not have.
    pub(super) fn imagined(
        today: &'a Topology,
        placement: &'a Placement,
    ) -> Result<Self, ModelError> {
        let there = &placement.topology;
        let missing = |name: &str| ModelError::Unknown {
            field: "groups".to_owned(),
            name: name.to_owned(),
            known: there.process_names().collect::<Vec<_>>().join(", "),
        };
        // Link processes come and go with groups: nobody owns by them.
        let mps = today.memory_processes().iter().map(|mp| {
            let found = there.find_mp(&mp.name);
            found
                .or(mp.link.then_some(MpId(u32::MAX)))
                .ok_or_else(|| missing(&mp.name))
        });
        let aps = today
            .application_processes()
            .iter()
            .map(|ap| there.find_ap(&ap.name).ok_or_else(|| missing(&ap.name)));
        Ok(Self {
            today,
            topology: there,
            placement: Some(placement),
            mps: Some(mps.collect::<Result<_, _>>()?),
            aps: Some(aps.collect::<Result<_, _>>()?),
        })
    }

    /// The same run as it was.
    pub(super) fn before(&self) -> Self {
        Self::today(self.today)
    }

    /// The memory process that serves a process.
    pub(super) fn home(&self, ap: ApId) -> MpId {
        let ap = match &self.aps {
            Some(aps) => aps.get(ap.index()).copied().unwrap_or(ap),
            None => ap,
        };
        self.topology
            .ap(ap)
            .map_or(MpId(u32::MAX), |a| a.memory_process)
    }

    /// Who owns, in which shares, what a process accesses of a variable's objects at `owner`; `objects`
    /// counts its accesses to each.
    pub(super) fn owners(
        &self,
        var: VarId,
        owner: MpId,
        objects: Option<&Objects>,
    ) -> Vec<(MpId, f64)> {
        let mps = self.mps.as_ref();
        let same = mps.and_then(|mps| mps.get(owner.index())).copied();
        let same = same.unwrap_or(owner);
        let (Some(placement), Some(objects)) = (self.placement, objects) else {
            return vec![(same, 1.0)];
        };
        let list = placement.moved.get(&var).filter(|list| !list.is_empty());
        let new_owner = |index: u32| {
            let single = placement.objects.get(&ObjectId::new(var, index));
            let listed = list.map(|list| list[index as usize % list.len()]);
            single.copied().or(listed).unwrap_or(same)
        };
        let mut shares: BTreeMap<MpId, u64> = BTreeMap::new();
        for (index, used) in objects {
            *shares.entry(new_owner(*index)).or_default() += used.count;
        }
        let all = shares.values().sum::<u64>().max(1) as f64;
        shares
            .into_iter()
            .map(|(mp, n)| (mp, n as f64 / all))
            .collect()
    }

    /// Link processes that a message between two memory processes crosses; none within a group.
    pub(super) fn links(&self, a: MpId, b: MpId) -> Vec<MpId> {
        let group = |mp: MpId| self.topology.mp(mp).map(|p| p.group);
        let (Some(a), Some(b)) = (group(a), group(b)) else {
            return Vec::new();
        };
        if a == b {
            return Vec::new();
        }
        let up: Vec<GroupId> = self.topology.ancestry(a).collect();
        let down: Vec<GroupId> = self.topology.ancestry(b).collect();
        let shared = up.iter().position(|g| down.contains(g));
        let until = shared.map_or(down.len(), |at| {
            down.iter().position(|g| *g == up[at]).unwrap_or(0)
        });
        // Up to the group that holds both (if one does), then down.
        let rise = &up[..shared.map_or(up.len(), |at| at + 1)];
        let groups = rise.iter().chain(down[..until].iter().rev());
        groups.filter_map(|g| self.topology.link_of(*g)).collect()
    }

    /// How far an access goes: 0 at home, 1 within the group, 2 and more across groups.
    pub(super) fn distance(&self, a: MpId, b: MpId) -> usize {
        match (a == b, self.topology.mp(a), self.topology.mp(b)) {
            (true, ..) => 0,
            (_, Some(p), Some(q)) if p.group != q.group => 1 + self.links(a, b).len().max(1),
            _ => 1,
        }
    }
}
