//! The efficiency of the parts of a run: of its groups, processes and phases.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, GroupId, MpId, Nanos, PhaseTimes, Topology};

use dosmos_trace::query::{Catalog, TimeRange};

use super::verdict::Efficiency;

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Run,
    /// The application processes of a group, those of the groups in it too.
    Group(GroupId),
    /// One application process.
    Process(ApId),
    /// What processes did between two barriers: of a group where groups have barriers of their own, and so count them
    /// apart; otherwise of all. By number from 0.
    Phase(Option<GroupId>, u64),
}

impl Part {
    /// What kind of part it is.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Group(_) => "group",
            Self::Process(_) => "process",
            Self::Phase(..) => "phase",
        }
    }

    /// Which of its kind.
    pub fn name(self, topology: &Topology) -> String {
        match self {
            Self::Run => "all".to_owned(),
            Self::Group(group) => topology.group_name(group),
            Self::Process(ap) => topology.ap_name(ap),
            Self::Phase(None, number) => number.to_string(),
            Self::Phase(Some(group), number) => {
                format!("{} {number}", topology.group_name(group))
            }
        }
    }
}

/// The efficiency of a part of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct OfPart {
    /// Of what.
    pub part: Part,
    /// From the first start to the last end.
    pub range: TimeRange,
    /// How much of its time was computing, and where the rest went.
    pub efficiency: Efficiency,
    /// The most that recording can have cost, as a fraction of its time: what its memory processes spent on it, as if
    /// somebody had waited for all of it. It is part of the accesses. None of a phase, and where nobody said.
    pub recording: Option<f64>,
}

impl OfPart {
    /// Of these pieces, if there is any; `spent` is what its memory processes spent on recording.
    fn new(part: Part, pieces: &[&PhaseTimes], spent: Vec<&Nanos>) -> Option<Self> {
        let efficiency = Efficiency::of(pieces.iter().copied())?;
        let starts = pieces.iter().map(|p| p.start);
        let ends = pieces.iter().map(|p| p.end());
        Some(Self {
            part,
            range: TimeRange {
                from: starts.min().unwrap_or_default(),
                to: ends.max().unwrap_or_default(),
            },
            recording: recording(&efficiency, spent),
            efficiency,
        })
    }
}

/// The efficiency of the run, of its groups (if there is more than one), of its processes, and of its phases (if there is
/// more than one), those first that lost most time. `monitor` says how much processor time memory processes spent on recording.
pub fn of_parts(
    pieces: &[PhaseTimes],
    catalog: &Catalog,
    monitor: &BTreeMap<MpId, Nanos>,
) -> Vec<OfPart> {
    let topology = &catalog.topology;
    let mut parts: Vec<OfPart> = Vec::new();
    let mut add = |part, pieces: Vec<&PhaseTimes>, spent: Vec<&Nanos>| {
        parts.extend(OfPart::new(part, &pieces, spent));
    };
    add(
        Part::Run,
        pieces.iter().collect(),
        monitor.values().collect(),
    );
    let groups: Vec<GroupId> = (0..topology.groups().len() as u32).map(GroupId).collect();
    for &group in groups.iter().filter(|_| groups.len() > 1) {
        let inside = |g: GroupId| topology.within(g, group);
        let its = |p: &&PhaseTimes| topology.group_of_ap(p.ap).is_some_and(inside);
        let spent = monitor.iter().filter(|(mp, _)| {
            let its = topology.mp(**mp);
            its.is_some_and(|mp| inside(mp.group))
        });
        let spent = spent.map(|(_, spent)| spent).collect();
        add(
            Part::Group(group),
            pieces.iter().filter(its).collect(),
            spent,
        );
    }
    let mut by_ap: BTreeMap<ApId, Vec<&PhaseTimes>> = BTreeMap::new();
    for piece in pieces {
        by_ap.entry(piece.ap).or_default().push(piece);
    }
    for (ap, pieces) in by_ap {
        let mp = topology.ap(ap).map(|ap| ap.memory_process);
        let spent = mp.and_then(|mp| monitor.get(&mp));
        add(Part::Process(ap), pieces, spent.into_iter().collect());
    }
    parts.extend(of_phases(pieces, catalog));
    parts
}

/// The efficiency of the phases alone: see [`of_parts`].
pub fn of_phases(pieces: &[PhaseTimes], catalog: &Catalog) -> Vec<OfPart> {
    // Processes of a group pass the same barriers.
    let apart = catalog.barriers.iter().any(|b| b.group.is_some());
    let mut by_phase: BTreeMap<(u64, Option<GroupId>), Vec<&PhaseTimes>> = BTreeMap::new();
    for piece in pieces {
        let group = catalog.topology.group_of_ap(piece.ap).filter(|_| apart);
        let phase = by_phase.entry((piece.phase, group));
        phase.or_default().push(piece);
    }
    if by_phase.keys().all(|(number, _)| *number == 0) {
        return Vec::new();
    }
    let phases = by_phase.into_iter();
    let phases = phases.filter_map(|((number, group), pieces)| {
        OfPart::new(Part::Phase(group, number), &pieces, Vec::new())
    });
    let mut phases: Vec<OfPart> = phases.collect();
    phases.sort_by(|a, b| b.efficiency.lost_ns().total_cmp(&a.efficiency.lost_ns()));
    phases
}

/// None if nobody said how much was spent.
fn recording(of: &Efficiency, spent: Vec<&Nanos>) -> Option<f64> {
    let spent = spent.into_iter().map(|n| n.0).reduce(|a, b| a + b)?;
    Some((spent as f64 / of.time_ns()).min(1.0))
}

#[cfg(test)]
mod tests {
    use dosmos_proto::topology::{
        ApplicationProcess, EventManager, Group, GroupPath, MemoryProcess,
    };
    use dosmos_proto::{Component, EmpId, Spent, TopologyBuilder, VarId};
    use dosmos_trace::query::BarrierName;

    use super::*;

    fn catalog() -> Catalog {
        let all = GroupPath::top("all");
        let group = |path: GroupPath, parent| Group { path, parent };
        let mp = |i: u32| MemoryProcess {
            name: format!("mp{i}"),
            group: GroupId(i + 1),
            link: false,
            event_manager: EmpId(0),
        };
        let ap = |i: u32| ApplicationProcess {
            name: format!("ap{i}"),
            memory_process: MpId(i / 2),
        };
        let builder = TopologyBuilder {
            name: "test".into(),
            groups: vec![
                group(all.clone(), None),
                group(all.child("north"), Some(GroupId(0))),
                group(all.child("south"), Some(GroupId(0))),
            ],
            memory_processes: vec![mp(0), mp(1)],
            application_processes: (0..4).map(ap).collect(),
            event_managers: vec![EventManager {
                name: "emp0".into(),
            }],
        };
        Catalog {
            topology: builder.build().unwrap(),
            ..Catalog::default()
        }
    }

    fn piece(ap: u32, phase: u64, busy: u64, barrier: u64) -> PhaseTimes {
        let mut spent = Spent::default();
        spent.add(Component::Busy, Nanos(busy), 0);
        spent.add(Component::Barrier, Nanos(barrier), 1);
        PhaseTimes {
            ap: ApId(ap),
            phase,
            start: Nanos(phase * 1_000),
            wall: spent.total(),
            spent,
        }
    }

    #[test]
    fn parts_are_the_run_its_groups_processes_and_phases_the_worst_first() {
        let t = catalog();
        let mut pieces = Vec::new();
        for ap in 0..4 {
            // The first phase loses little, the second much; the south waits for the north.
            pieces.push(piece(ap, 0, 900, 100));
            let busy = if ap < 2 { 1_000 } else { 100 };
            pieces.push(piece(ap, 1, busy, 1_000 - busy));
        }
        let monitor = BTreeMap::from([(MpId(0), Nanos(400)), (MpId(1), Nanos(0))]);
        let parts = of_parts(&pieces, &t, &monitor);
        let told: Vec<String> = parts
            .iter()
            .map(|p| {
                let parallel = 100.0 * p.efficiency.parallel;
                let recording = p.recording.map(|r| format!(" {:.0}", 100.0 * r));
                let recording = recording.unwrap_or_default();
                format!(
                    "{} {} {parallel:.1}{recording}",
                    p.part.kind(),
                    p.part.name(&t.topology)
                )
            })
            .collect();
        let expected = [
            "run all 72.5 5",
            "group /all 72.5 5",
            "group /all/north 95.0 10",
            "group /all/south 50.0 0",
            "process ap0 95.0 20",
            "process ap1 95.0 20",
            "process ap2 50.0 0",
            "process ap3 50.0 0",
            "phase 1 55.0",
            "phase 0 90.0",
        ];
        assert_eq!(told, expected);
    }

    /// Barriers of groups say nothing of how far another group is.
    #[test]
    fn phases_between_barriers_of_groups_are_of_each_group() {
        let mut catalog = catalog();
        let pieces: Vec<PhaseTimes> = (0..4)
            .flat_map(|ap| {
                // The south is slower and begins its second phase when the north has ended it.
                let length = if ap < 2 { 100 } else { 1_000 };
                (0..2).map(move |phase| PhaseTimes {
                    start: Nanos(phase * length),
                    ..piece(ap, phase, length, 0)
                })
            })
            .collect();
        let told = |catalog: &Catalog| -> Vec<String> {
            let parts = of_parts(&pieces, catalog, &BTreeMap::new()).into_iter();
            let phases = parts.filter(|p| matches!(p.part, Part::Phase(..)));
            let mut told: Vec<String> = phases
                .map(|p| {
                    let name = p.part.name(&catalog.topology);
                    format!("{name}: {:.0}", 100.0 * p.efficiency.parallel)
                })
                .collect();
            told.sort();
            told
        };
        let group = Some(GroupId(1));
        catalog.barriers = vec![BarrierName {
            id: VarId(1),
            group,
            name: String::new(),
        }];
        let south_and_north = [
            "/all/north 0: 100",
            "/all/north 1: 100",
            "/all/south 0: 100",
            "/all/south 1: 100",
        ];
        assert_eq!(told(&catalog), south_and_north);
        catalog.barriers[0].group = None;
        assert_eq!(
            told(&catalog)[0],
            "0: 55",
            "of all: they wait for the slowest"
        );
    }

    #[test]
    fn without_times_there_is_nothing_and_without_counters_no_recording() {
        let t = catalog();
        assert!(of_parts(&[], &t, &BTreeMap::new()).is_empty());
        let parts = of_parts(&[piece(0, 0, 5, 5)], &t, &BTreeMap::new());
        assert!(parts.iter().all(|p| p.recording.is_none()));
        assert!(
            !parts.iter().any(|p| p.part.kind() == "phase"),
            "one phase is the run"
        );
    }
}
