//! The overview's tree: groups, their processes, and the figures of each.

use std::collections::{BTreeMap, BTreeSet};

use dosmos_proto::{ApId, GroupId, MpId, Topology};
use dosmos_trace::query::ProcessStatus;

use super::data::Data;
use super::list::{List, Rows};
use super::screen::Place;

/// What a row of the tree stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Node {
    /// A group, with all in it.
    Group(GroupId),
    /// A memory or link process, with its application processes.
    Mp(MpId),
    /// An application process.
    Ap(ApId),
}

/// A row of the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What it stands for.
    pub node: Node,
    /// How far below the top it is.
    pub depth: usize,
    /// Its name; of a group, the last part of its path.
    pub label: String,
    /// A group whose content is not shown.
    pub folded: bool,
    /// A link process.
    pub link: bool,
    /// Its event manager hears nothing from it (memory and link processes of a live run).
    pub lost: bool,
    /// Its figures.
    pub figures: Figures,
}

/// A number that may not be known, or only of a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Count {
    /// Nobody told.
    #[default]
    Unknown,
    /// A part told this.
    AtLeast(u64),
    /// All of it.
    Exactly(u64),
}

impl Count {
    /// What is known of it; none if that is nothing.
    pub fn known(self) -> Option<u64> {
        match self {
            Self::Unknown => None,
            Self::AtLeast(n) | Self::Exactly(n) => Some(n),
        }
    }

    /// All of it, if it is known.
    pub fn exactly(self) -> Option<u64> {
        match self {
            Self::Exactly(n) => Some(n),
            Self::Unknown | Self::AtLeast(_) => None,
        }
    }

    fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Self::Exactly(a), Self::Exactly(b)) => Self::Exactly(a.saturating_add(b)),
            (a, b) => match (a.known(), b.known()) {
                (None | Some(0), None | Some(0)) => Self::Unknown,
                (a, b) => Self::AtLeast(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
            },
        }
    }
}

impl From<Option<u64>> for Count {
    fn from(n: Option<u64>) -> Self {
        n.map_or(Self::Unknown, Self::Exactly)
    }
}

/// Figures of a row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Accesses so far (of a link process: messages passed on).
    pub accesses: Count,
    /// Accesses per second: recently if live, on average of a finished run.
    pub rate: Option<f64>,
    /// Accesses by origin; none of link processes.
    pub origins: Option<[u64; 3]>,
    /// Records lost.
    pub dropped: Count,
}

impl Figures {
    fn add(&mut self, other: &Self) {
        self.accesses = self.accesses.plus(other.accesses);
        self.dropped = self.dropped.plus(other.dropped);
        if let Some(rate) = other.rate {
            *self.rate.get_or_insert(0.0) += rate;
        }
        if let Some(theirs) = other.origins {
            let mine = self.origins.get_or_insert([0; 3]);
            for (sum, n) in mine.iter_mut().zip(theirs) {
                *sum += n;
            }
        }
    }
}

/// The tree, with what is selected and folded in it.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    rows: Rows<Row>,
    folded: BTreeSet<GroupId>,
}

impl Tree {
    /// The rows shown.
    pub fn rows(&self) -> &Rows<Row> {
        &self.rows
    }

    /// Where the selected row leads to.
    pub(super) fn opens(&self, here: Place) -> Option<Place> {
        match self.rows.selected()?.node {
            Node::Ap(ap) => Some(here.process_history(ap)),
            Node::Group(_) | Node::Mp(_) => None,
        }
    }

    /// The selection, and the number of rows.
    pub(super) fn list(&mut self) -> (&mut List, usize) {
        self.rows.list()
    }

    /// Folds or unfolds the selected group; whether it is one. The rows follow with the next [`Self::refresh`].
    pub(super) fn toggle(&mut self) -> bool {
        let Some(Node::Group(group)) = self.rows.selected().map(|row| row.node) else {
            return false;
        };
        if !self.folded.remove(&group) {
            self.folded.insert(group);
        }
        true
    }

    /// Works out the rows again, of those that the filter lets through.
    pub(super) fn refresh(&mut self, data: &Data, passes: impl Fn(&str) -> bool) {
        let rows = rows(data, &self.folded, passes);
        self.rows.replace_by_key(rows, |row| row.node);
    }
}

/// The rows of the tree, top groups first; of a group its processes, then its sub-groups. Of those whose
/// names a filter lets through, and what they stand below.
fn rows(data: &Data, folded: &BTreeSet<GroupId>, passes: impl Fn(&str) -> bool) -> Vec<Row> {
    let topology = &data.catalog.topology;
    let figures = Computed::new(data);
    let mut rows = Vec::new();
    let tops = groups_below(topology, None);
    for group in tops {
        add_group(&mut rows, data, &figures, folded, group, 0);
    }
    keep_passing(&mut rows, passes);
    rows
}

/// Drops rows that neither pass nor stand above one that does.
fn keep_passing(rows: &mut Vec<Row>, passes: impl Fn(&str) -> bool) {
    // From the bottom: the depth of the last kept row; the next row of a smaller depth is its parent.
    let mut needed = 0;
    let mut keep: Vec<bool> = rows
        .iter()
        .rev()
        .map(|row| {
            let kept = passes(&row.label) || row.depth < needed;
            if kept {
                needed = row.depth;
            }
            kept
        })
        .collect();
    rows.retain(|_| keep.pop().unwrap_or(true));
}

fn groups_below(topology: &Topology, parent: Option<GroupId>) -> Vec<GroupId> {
    let groups = (0u32..).zip(topology.groups());
    groups
        .filter(|(_, g)| g.parent == parent)
        .map(|(i, _)| GroupId(i))
        .collect()
}

fn add_group(
    rows: &mut Vec<Row>,
    data: &Data,
    figures: &Computed,
    folded: &BTreeSet<GroupId>,
    group: GroupId,
    depth: usize,
) {
    let topology = &data.catalog.topology;
    let path = topology.group_name(group);
    let label = path.rsplit('/').next().unwrap_or_default();
    let is_folded = folded.contains(&group);
    rows.push(Row {
        node: Node::Group(group),
        depth,
        label: format!("/{label}"),
        folded: is_folded,
        link: false,
        lost: false,
        figures: figures.groups.get(&group).cloned().unwrap_or_default(),
    });
    if is_folded {
        return;
    }
    for &mp in figures.members.get(&group).map_or(&[][..], Vec::as_slice) {
        add_process(rows, data, figures, mp, depth + 1);
    }
    for child in groups_below(topology, Some(group)) {
        add_group(rows, data, figures, folded, child, depth + 1);
    }
}

fn add_process(rows: &mut Vec<Row>, data: &Data, figures: &Computed, mp: MpId, depth: usize) {
    let topology = &data.catalog.topology;
    rows.push(Row {
        node: Node::Mp(mp),
        depth,
        label: topology.mp_name(mp),
        folded: false,
        link: topology.mp(mp).is_some_and(|p| p.link),
        lost: figures.lost.contains(&mp),
        figures: figures.mps.get(&mp).cloned().unwrap_or_default(),
    });
    for &ap in figures.aps.get(&mp).map_or(&[][..], Vec::as_slice) {
        rows.push(Row {
            node: Node::Ap(ap),
            depth: depth + 1,
            label: topology.ap_name(ap),
            folded: false,
            link: false,
            lost: false,
            figures: ap_figures(data, ap),
        });
    }
}

/// What rows need, looked up once for all.
#[derive(Default)]
struct Computed {
    groups: BTreeMap<GroupId, Figures>,
    members: BTreeMap<GroupId, Vec<MpId>>,
    mps: BTreeMap<MpId, Figures>,
    aps: BTreeMap<MpId, Vec<ApId>>,
    lost: BTreeSet<MpId>,
}

impl Computed {
    fn new(data: &Data) -> Self {
        let topology = &data.catalog.topology;
        let mut all = Self::default();
        for (i, ap) in (0u32..).zip(topology.application_processes()) {
            all.aps.entry(ap.memory_process).or_default().push(ApId(i));
        }
        let told: BTreeMap<MpId, &ProcessStatus> = data.processes().map(|s| (s.mp, s)).collect();
        let nobody_dropped = data.nobody_dropped();
        for (i, process) in (0u32..).zip(topology.memory_processes()) {
            let mp = MpId(i);
            let status = told.get(&mp);
            let mut its = all.aps.get(&mp).into_iter().flatten();
            let known = status.is_some() || its.all(|ap| data.knows_ap(*ap));
            let origins = data.origins.get(&mp).copied().unwrap_or_default();
            let accesses: Option<u64> = known.then(|| origins.iter().sum());
            let dropped = match status {
                Some(status) => Some(status.counters.dropped),
                None => nobody_dropped.then_some(0),
            };
            all.mps.insert(
                mp,
                Figures {
                    accesses: accesses.into(),
                    rate: rate(data, accesses, data.rate_of_mp(mp)),
                    origins: (!process.link && known).then_some(origins),
                    dropped: dropped.into(),
                },
            );
            all.members.entry(process.group).or_default().push(mp);
            if data.catalog.live && status.is_some_and(|s| !s.connected) {
                all.lost.insert(mp);
            }
        }
        for (i, process) in (0u32..).zip(topology.memory_processes()) {
            for group in topology.ancestry(process.group) {
                let its = &all.mps[&MpId(i)];
                let sum = all.groups.entry(group);
                sum.and_modify(|sum| sum.add(its))
                    .or_insert_with(|| its.clone());
            }
        }
        for (i, _) in (0u32..)
            .zip(topology.memory_processes())
            .filter(|(_, p)| p.link)
        {
            let forwarded = told.get(&MpId(i)).map(|s| s.counters.forwarded);
            let figures = all.mps.entry(MpId(i)).or_default();
            (figures.accesses, figures.rate) = (forwarded.into(), None);
        }
        all
    }
}

fn ap_figures(data: &Data, ap: ApId) -> Figures {
    let its = data.by_ap.get(&ap).copied().unwrap_or_default();
    let known = data.knows_ap(ap);
    let accesses = known.then(|| its.counts.total());
    Figures {
        accesses: accesses.into(),
        rate: rate(data, accesses, data.rate_of_ap(ap)),
        origins: known.then_some(its.origins),
        dropped: Count::Unknown,
    }
}

/// The recent rate of a live run, the mean rate of a finished one.
fn rate(data: &Data, accesses: Option<u64>, recent: Option<f64>) -> Option<f64> {
    if data.catalog.live {
        return recent;
    }
    let seconds = data.extent().length().as_secs_f64();
    (seconds > 0.0).then_some(accesses? as f64 / seconds)
}
