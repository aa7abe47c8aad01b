//! The efficiency of the parts of a run: of its groups, processes and phases.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, GroupId, MpId, Nanos, PhaseTimes, Topology};

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
    /// What all processes did between two barriers, by number from 0.
    Phase(u64),
}

impl Part {
    /// What kind of part it is.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Group(_) => "group",
            Self::Process(_) => "process",
            Self::Phase(_) => "phase",
        }
    }

    /// Which of its kind.
    pub fn name(self, topology: &Topology) -> String {
        match self {
            Self::Run => "all".to_owned(),
            Self::Group(group) => topology.group_name(group),
            Self::Process(ap) => topology.ap_name(ap),
            Self::Phase(number) => number.to_string(),
        }
    }
}

/// The efficiency of a part of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct OfPart {
    /// Of what.
    pub part: Part,
    /// How much of its time was computing, and where the rest went.
    pub efficiency: Efficiency,
    /// The most that recording can have cost, as a fraction of its time: what its memory processes spent on it, as if
    /// somebody had waited for all of it. It is part of the accesses. None of a phase, and where nobody said.
    pub recording: Option<f64>,
}

/// The efficiency of the run, of its groups (if there is more than one), of its processes, and of its phases (if there is
/// more than one), those first that lost most time. `monitor` says how much processor time memory processes spent on recording.
pub fn of_parts(
    pieces: &[PhaseTimes],
    topology: &Topology,
    monitor: &BTreeMap<MpId, Nanos>,
) -> Vec<OfPart> {
    let run = Efficiency::of(pieces);
    let mut parts: Vec<OfPart> = run
        .into_iter()
        .map(|efficiency| OfPart {
            recording: recording(&efficiency, monitor.values()),
            part: Part::Run,
            efficiency,
        })
        .collect();
    let groups: Vec<GroupId> = (0..topology.groups().len() as u32).map(GroupId).collect();
    for &group in groups.iter().filter(|_| groups.len() > 1) {
        let inside = |g: GroupId| topology.within(g, group);
        let its = |p: &&PhaseTimes| topology.group_of_ap(p.ap).is_some_and(inside);
        let spent = monitor.iter().filter(|(mp, _)| {
            let its = topology.mp(**mp);
            its.is_some_and(|mp| inside(mp.group))
        });
        parts.extend(
            Efficiency::of(pieces.iter().filter(its)).map(|efficiency| OfPart {
                recording: recording(&efficiency, spent.map(|(_, spent)| spent)),
                part: Part::Group(group),
                efficiency,
            }),
        );
    }
    parts.extend(of_processes(pieces, topology, monitor));
    parts.extend(of_phases(pieces));
    parts
}

fn of_processes<'a>(
    pieces: &'a [PhaseTimes],
    topology: &'a Topology,
    monitor: &'a BTreeMap<MpId, Nanos>,
) -> impl Iterator<Item = OfPart> + 'a {
    let mut by_ap: BTreeMap<ApId, Vec<&PhaseTimes>> = BTreeMap::new();
    pieces
        .iter()
        .for_each(|p| by_ap.entry(p.ap).or_default().push(p));
    by_ap.into_iter().filter_map(|(ap, pieces)| {
        let efficiency = Efficiency::of(pieces)?;
        let mp = topology.ap(ap).map(|ap| ap.memory_process);
        let spent = mp.and_then(|mp| monitor.get(&mp));
        Some(OfPart {
            recording: recording(&efficiency, spent),
            part: Part::Process(ap),
            efficiency,
        })
    })
}

fn of_phases(pieces: &[PhaseTimes]) -> Vec<OfPart> {
    let mut by_phase: BTreeMap<u64, Vec<&PhaseTimes>> = BTreeMap::new();
    for piece in pieces {
        by_phase.entry(piece.phase).or_default().push(piece);
    }
    if by_phase.len() < 2 {
        return Vec::new();
    }
    let phases = by_phase.into_iter().filter_map(|(phase, pieces)| {
        Some(OfPart {
            part: Part::Phase(phase),
            efficiency: Efficiency::of(pieces)?,
            recording: None,
        })
    });
    let mut phases: Vec<OfPart> = phases.collect();
    phases.sort_by(|a, b| b.efficiency.lost_ns().total_cmp(&a.efficiency.lost_ns()));
    phases
}

/// None if nobody said how much was spent.
fn recording<'a>(of: &Efficiency, spent: impl IntoIterator<Item = &'a Nanos>) -> Option<f64> {
    let spent = spent.into_iter().map(|n| n.0).reduce(|a, b| a + b)?;
    Some((spent as f64 / of.time_ns()).min(1.0))
}

#[cfg(test)]
mod tests {
    use dosmos_proto::topology::{
        ApplicationProcess, EventManager, Group, GroupPath, MemoryProcess,
    };
    use dosmos_proto::{Component, EmpId, Spent, TopologyBuilder};

    use super::*;

    fn topology() -> Topology {
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
        TopologyBuilder {
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
        }
        .build()
        .unwrap()
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
        let t = topology();
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
                    p.part.name(&t)
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

    #[test]
    fn without_times_there_is_nothing_and_without_counters_no_recording() {
        let t = topology();
        assert!(of_parts(&[], &t, &BTreeMap::new()).is_empty());
        let parts = of_parts(&[piece(0, 0, 5, 5)], &t, &BTreeMap::new());
        assert!(parts.iter().all(|p| p.recording.is_none()));
        assert!(
            !parts.iter().any(|p| p.part.kind() == "phase"),
            "one phase is the run"
        );
    }
}
