//! What following an advice would save, by a replay of the run.
//!
//! A detector estimates the gain of its advice from what accesses cost: time that is lost is time that is saved. A replay
//! knows more: that a phase is as long as its slowest process, that others wait at the barrier, that who waits for a
//! lock waits for what its holder does, that memory processes need processors, and that a request that others overlap
//! costs nothing. Where a whole run is known, with the times of its processes, [`Analysis::predict_gains`] replays it
//! with each advice followed and puts what that gives in place of the estimate ([`GainFrom`]).
//!
//! | finding | what is replayed |
//! |---|---|
//! | bad group, misplaced owner | these objects and processes at those memory processes |
//! | no sharing | no access to the objects |
//! | bottleneck, false sharing, ping-pong | an object for each process, at its own memory process |
//! | imbalance | the processes divide what they compute in each phase evenly |
//! | policy mismatch | the other policy |
//! | fine-grained access | one access in place of each sequence |
//! | polling | who reads until something has changed is told at once, with the content: the most that waiting for it can gain |
//! | read-only locking | one read in place of each section |
//! | barrier overhead | barriers that open when the last has arrived, and at once: the most that fewer barriers can gain |
//!
//! What another finding explains (`explain`) is told beside it where its own cure gains more: elements that are accessed one by
//! one cost less where their owner is nearer, and still less at once.
//!
//! Some findings stand only if a replay confirms them: where what the records show is less than the threshold of the kind, and the
//! replay says that the cure gains as much as that (barrier overhead of processes that share processors).
//!
//! Findings are in the order of these gains. That of an ideal which no program reaches as a whole ([`Cure::is_ideal`]: barriers that cost
//! nothing, work divided evenly, a wait that ends by itself) counts half there: what can be done at once goes before what gains a little
//! more at best.
//!
//! Each advice is followed alone; gains of several do not add up. Where the advice is a change of the cluster file, or another way
//! to read or write the same (at once, without a lock), and the replay is not faster with it, the finding is *dismissed*: it is
//! listed apart, with what the replay says.

use dosmos_replay::Calibrated;

use crate::analyse::{Analysis, verdict};
use crate::cure::{Cure, GainFrom};
use crate::finding::{Dismissed, Finding};
use crate::oversubscribed::Oversubscribed;
use crate::thresholds::Thresholds;

/// What another finding explains is a finding of its own if its cure saves so much more, as a fraction of the run.
const BETTER: f64 = 0.05;

/// Of the gain of an ideal, what can be expected of a change of the program.
const IDEAL: f64 = 0.5;

impl Analysis {
    /// Whether there is anything for a replay to tell.
    pub fn has_cures(&self) -> bool {
        let mut all = self.findings.iter().chain(&self.suspected);
        all.any(|f| f.cure.is_some())
    }

    /// Puts the gain that a replay of the whole run gives in place of each estimate, and the findings in the order of
    /// their gains. Those without a cure that can be replayed keep their estimate, as do all whose replay does not come to an end.
    pub fn predict_gains(&mut self, run: &Calibrated, thresholds: &Thresholds) {
        let whole = run.script().part() >= 1.0;
        // Less is not worth a change of the cluster file: few measurements could tell.
        let least = thresholds.patch_gain;
        let of_cure = |f: &Finding| f.cure.as_ref().and_then(|c| run.gain(&c.change()));
        let mut found = Vec::new();
        for finding in std::mem::take(&mut self.suspected) {
            let gain = of_cure(&finding);
            if gain.is_some_and(|g| g.gain >= thresholds.barrier_overhead) {
                // It says more than that there is such a thing in a part of the run.
                let other = |f: &Finding| f.kind != finding.kind || f.aps != finding.aps;
                self.findings.retain(other);
                found.push((finding, gain));
            }
        }
        for mut finding in std::mem::take(&mut self.findings) {
            let gain = of_cure(&finding);
            let explained = std::mem::take(&mut finding.explained).into_iter();
            found.push((finding, gain));
            if let Some(gain) = gain {
                let explained = explained.map(|f| (of_cure(&f), f));
                let better =
                    explained.filter(|(own, _)| own.is_some_and(|g| g.gain > gain.gain + BETTER));
                found.extend(better.map(|(own, f)| (f, own)));
            }
        }
        for (mut finding, gain) in found {
            // What would be different is not in the script.
            let without = gain.is_some_and(|g| !g.differs);
            match gain {
                // What it is about may come later than what is replayed.
                Some(gain) if gain.gain < least && !whole => {}
                Some(gain) if gain.gain < least && needs_a_gain(&finding, without) => {
                    self.dismissed.push(Dismissed {
                        kind: finding.kind,
                        target: finding.target(),
                        gain: gain.gain,
                    });
                    continue;
                }
                Some(_) if without => {}
                Some(gain) => {
                    finding.predicted_gain = Some(shown(gain.gain));
                    finding.gain_range = Some([shown(gain.least), shown(gain.most)]);
                    finding.gain_from = Some(GainFrom::Replay);
                }
                None => {}
            }
            self.findings.push(finding);
        }
        self.findings.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
        self.conclude_again(thresholds);
    }

    /// Says whether processes of one host lack processors, by a replay of the whole run on its processors.
    pub fn look_at_processors(&mut self, run: &Calibrated, thresholds: &Thresholds) {
        self.oversubscribed = Oversubscribed::of(run, thresholds.time_lost);
        self.conclude_again(thresholds);
    }

    fn conclude_again(&mut self, thresholds: &Thresholds) {
        let explained = !self.findings.is_empty() || self.oversubscribed.is_some();
        self.verdict = verdict(self.efficiency.as_ref(), thresholds, explained);
    }
}

/// What a finding is sorted by: the gain that can be expected.
fn rank(finding: &Finding) -> f64 {
    let gain = finding.predicted_gain.unwrap_or(finding.severity);
    match &finding.cure {
        Some(cure) if cure.is_ideal() => IDEAL * gain,
        _ => gain,
    }
}

/// A gain, or 0 in place of a loss.
fn shown(gain: f64) -> f64 {
    gain.clamp(0.0, 1.0)
}

/// Whether following the advice is worth nothing unless the run is faster for it: a change of the cluster file, which is exactly
/// what was replayed; the search for what keeps some processes from processors now and then, which hardly concerns the program; and,
/// unless the replay is `without` them, other reads or writes of the same, which is right as it is.
fn needs_a_gain(finding: &Finding, without: bool) -> bool {
    match finding.cure {
        Some(Cure::Move { .. } | Cure::Policy(..) | Cure::Unhindered { .. }) => true,
        Some(Cure::Together(..) | Cure::Unlocked(..)) => !without,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use dosmos_proto::topology::{ApplicationProcess, EventManager, Group, MemoryProcess};
    use dosmos_proto::{
        ApId, Component, CopyPolicy, EmpId, GroupId, GroupPath, MpId, Nanos, ObjectId, PhaseTimes,
        TopologyBuilder, VarId,
    };
    use dosmos_replay::{Costs, ScriptBuilder};
    use dosmos_trace::query::{Breakdown, Catalog, TimeRange};
    use dosmos_trace::record::{Flags, Op, Origin, Record, Side};

    use super::*;
    use crate::cure::Cure;
    use crate::finding::{Finding, Kind};

    const OBJECT: ObjectId = ObjectId {
        var: VarId(1),
        index: 0,
    };

    fn catalog() -> Catalog {
        let names = ["0", "1"];
        let mp = |n: &&str| MemoryProcess {
            name: format!("mp{n}"),
            group: GroupId(0),
            event_manager: EmpId(0),
            link: false,
        };
        let ap = |(i, n): (usize, &&str)| ApplicationProcess {
            name: format!("ap{n}"),
            memory_process: MpId(i as u32),
        };
        Catalog {
            topology: TopologyBuilder {
                groups: vec![Group {
                    path: GroupPath::top("g"),
                    parent: None,
                }],
                memory_processes: names.iter().map(mp).collect(),
                application_processes: names.iter().enumerate().map(ap).collect(),
                event_managers: vec![EventManager { name: "emp".into() }],
                ..TopologyBuilder::default()
            }
            .build()
            .unwrap(),
            ..Catalog::default()
        }
    }

    /// ap1 reads an object of mp0 a hundred times and computes 1 ms before each; ap0 computes 50 ms. An end of a message
    /// takes 125 µs, so that a read takes 1 ms: half on the way to its memory process, half on that to mp0.
    fn run() -> Calibrated {
        run_on(4)
    }

    /// On that many processors.
    fn run_on(processors: usize) -> Calibrated {
        run_with(processors, 0)
    }

    /// The first reads are of neighbours, one right after the other.
    fn run_with(processors: usize, neighbours: u64) -> Calibrated {
        const MS: u64 = 1_000_000;
        let mut script = ScriptBuilder::new(catalog());
        for i in 0..100 {
            let near = i < neighbours;
            let element = i as u32;
            script.add(&Record {
                start: match near {
                    true => Nanos(MS / 2 * i),
                    false => Nanos(2 * MS * i + 5 * MS / 4),
                },
                duration: Nanos(MS / 2),
                wait: Nanos::ZERO,
                service: Nanos(10_000),
                op: Op::Read,
                side: Side::Requester,
                origin: Origin::Intra,
                flags: Flags::default(),
                object: OBJECT,
                ap: ApId(1),
                mp: MpId(1),
                peer: MpId(0),
                count: 1,
                bytes: 8,
                version: i,
                range: if near { (element, element + 1) } else { (0, 0) },
            });
        }
        let times = |ap: u32, parts: &[(Component, u64, u64)]| {
            let mut times = PhaseTimes {
                ap: ApId(ap),
                ..PhaseTimes::default()
            };
            for (of, ms, calls) in parts {
                times.spent.add(*of, Nanos(ms * MS), *calls);
            }
            times.wall = times.spent.total();
            times
        };
        let breakdown = Breakdown {
            phases: vec![
                times(0, &[(Component::Busy, 50, 0)]),
                times(
                    1,
                    &[(Component::Busy, 100, 0), (Component::Fault, 100, 100)],
                ),
            ],
            ..Breakdown::default()
        };
        let costs = Costs {
            end_ns: 125_000.0,
            end_ns_per_byte: 0.0,
            between: 1.0,
            serve_ns: 0.0,
            near_ns: 0.0,
            far_ns: 0.0,
            link_ns: 0.0,
            way_ns_per_byte: 0.0,
            network_ns_per_byte: 0.0,
            woken_ns: 0.0,
            wake_ns: 0.0,
            processors,
            shared: 1.0,
            carried_ns: 0.0,
            carried_ns_per_byte: 0.0,
        };
        Calibrated::new(script.finish(&breakdown).unwrap(), &costs).unwrap()
    }

    fn predicted(kind: Kind, cure: Option<Cure>) -> Finding {
        analysed(kind, cure).findings.remove(0)
    }

    fn analysed(kind: Kind, cure: Option<Cure>) -> Analysis {
        let mut finding = Finding::new(kind, TimeRange::ALL);
        finding.predicted_gain = Some(0.123);
        finding.gain_from = Some(GainFrom::Costs);
        finding.patch = Some("+a line".to_owned());
        finding.cure = cure;
        analysed_finding(finding)
    }

    fn analysed_finding(finding: Finding) -> Analysis {
        let mut analysis = with(finding);
        analysis.predict_gains(&run(), &Thresholds::default());
        analysis
    }

    fn with(finding: Finding) -> Analysis {
        Analysis {
            complete: 1.0,
            from_ns: 0,
            to_ns: 1,
            efficiency: None,
            verdict: String::new(),
            critical_path: None,
            delays: Vec::new(),
            findings: vec![finding],
            suspected: Vec::new(),
            oversubscribed: None,
            dismissed: Vec::new(),
            withheld: Vec::new(),
            races: Default::default(),
            groups: Default::default(),
            phases: BTreeMap::new(),
        }
    }

    #[track_caller]
    fn about(found: &Finding, expected: f64) {
        assert_eq!(found.gain_from, Some(GainFrom::Replay));
        let gain = found.predicted_gain.unwrap();
        assert!((gain - expected).abs() < 0.01, "{gain} {expected}");
        let [least, most] = found.gain_range.unwrap();
        assert!(least <= gain && gain <= most, "{least} {gain} {most}");
    }

    #[test]
    fn each_cure_is_replayed() {
        // Without the reads ap1 computes 100 of its 200 ms.
        let private = Cure::Private([OBJECT].into());
        about(&predicted(Kind::NoSharing, Some(private)), 0.5);
        // Near, a read takes half as long.
        let split = Cure::Split([OBJECT].into());
        about(&predicted(Kind::PingPong, Some(split)), 0.25);
        let to_mp1 = Cure::owners([(OBJECT, MpId(1))].into());
        about(&predicted(Kind::MisplacedOwner, Some(to_mp1)), 0.25);
        let to_mp0 = Cure::Move {
            owners: BTreeMap::new(),
            processes: [(ApId(1), MpId(0))].into(),
        };
        about(&predicted(Kind::BadGroup, Some(to_mp0)), 0.25);
        // 50 and 100 ms of computing are 75 each.
        let all = [ApId(0), ApId(1)].into();
        about(&predicted(Kind::Imbalance, Some(Cure::Balance(all))), 0.125);
    }

    #[test]
    fn what_is_suspected_stands_if_its_cure_gains_as_much_as_its_threshold() {
        let overhead = |from: u64, cure: Option<Cure>| {
            let mut finding = Finding::new(Kind::BarrierOverhead, TimeRange::ALL);
            (finding.from_ns, finding.cure) = (from, cure);
            finding
        };
        let stands = |cure: Option<Cure>| {
            // Found in a part of the run.
            let mut analysis = with(overhead(7, None));
            assert!(!analysis.has_cures());
            analysis.suspected = vec![overhead(0, cure.clone())];
            assert_eq!(analysis.has_cures(), cure.is_some());
            analysis.predict_gains(&run(), &Thresholds::default());
            assert!(analysis.suspected.is_empty());
            let found = analysis.findings.iter();
            found.map(|f| f.from_ns).collect::<Vec<_>>()
        };
        assert_eq!(stands(Some(Cure::Private([OBJECT].into()))), [0]);
        // 12.5 % are less than the threshold.
        let all = [ApId(0), ApId(1)].into();
        assert_eq!(stands(Some(Cure::Balance(all))), [7]);
        assert_eq!(stands(None), [7]);
    }

    #[test]
    fn more_processes_than_processors_are_said_with_what_they_cost() {
        let mut analysis = with(Finding::new(Kind::Deadlock, TimeRange::ALL));
        analysis.look_at_processors(&run(), &Thresholds::default());
        assert_eq!(analysis.oversubscribed, None);
        // The 50 ms of the one are in the way of the other.
        let crowded = run_on(1);
        analysis.look_at_processors(&crowded, &Thresholds::default());
        let found = analysis.oversubscribed.unwrap();
        let counts = (
            found.application_processes,
            found.memory_processes,
            found.processors,
        );
        assert_eq!(counts, (2, 2, 1));
        assert!(found.gain > 0.1, "{found:?}");
        let said = found.sentence();
        let begins =
            "2 application processes and 2 memory and link processes share one processor: ";
        assert!(said.starts_with(begins), "{said}");
        // As little as nobody would do anything for.
        assert_eq!(Oversubscribed::of(&crowded, found.gain + 0.01), None);
    }

    #[test]
    fn a_process_that_is_slow_for_a_moment_only_is_no_finding() {
        let slow = Cure::Unhindered {
            slow: [ApId(0)].into(),
            others: [ApId(1)].into(),
        };
        let analysis = analysed(Kind::SlowProcess, Some(slow));
        assert!(analysis.findings.is_empty());
        assert_eq!(analysis.dismissed[0].kind, Kind::SlowProcess);
        assert!(analysis.dismissed[0].gain < 0.02);
    }

    #[test]
    fn a_change_of_the_cluster_file_that_gains_nothing_is_not_advised() {
        let same = Cure::owners([(OBJECT, MpId(0))].into());
        let same = analysed(Kind::MisplacedOwner, Some(same));
        assert!(same.findings.is_empty());
        assert_eq!(same.dismissed.len(), 1);
        assert_eq!(
            (same.dismissed[0].kind, same.dismissed[0].gain),
            (Kind::MisplacedOwner, 0.0)
        );
        // All reads but the first find a copy that nobody changes.
        let update = Cure::Policy(VarId(1), CopyPolicy::Update);
        about(&predicted(Kind::PolicyMismatch, Some(update)), 0.2475);
        let nearer = Cure::owners([(OBJECT, MpId(1))].into());
        let nearer = predicted(Kind::MisplacedOwner, Some(nearer));
        assert_eq!(nearer.patch.as_deref(), Some("+a line"));
    }

    #[test]
    fn another_way_to_read_the_same_that_gains_next_to_nothing_is_not_advised() {
        let read_at_once = |neighbours: u64| {
            let mut finding = Finding::new(Kind::FineGrained, TimeRange::ALL);
            finding.predicted_gain = Some(0.123);
            finding.cure = Some(Cure::Together(VarId(1), false));
            let mut analysis = with(finding);
            analysis.predict_gains(&run_with(4, neighbours), &Thresholds::default());
            analysis
        };
        about(&read_at_once(20).findings[0], 0.095);
        let three_of_a_hundred = read_at_once(4);
        assert!(three_of_a_hundred.findings.is_empty());
        assert_eq!(three_of_a_hundred.dismissed[0].kind, Kind::FineGrained);
        // None of them is in what is replayed.
        let kept = read_at_once(0);
        assert_eq!(kept.findings[0].predicted_gain, Some(0.123));
        assert!(kept.dismissed.is_empty());
    }

    #[test]
    fn what_can_be_done_goes_before_a_little_more_at_best() {
        let ranked = |gain: f64, cure: Option<Cure>| {
            let mut finding = Finding::new(Kind::Imbalance, TimeRange::ALL);
            (finding.severity, finding.cure) = (0.5, cure);
            finding.predicted_gain = (gain > 0.0).then_some(gain);
            rank(&finding)
        };
        let ideals = [
            Cure::Balance([ApId(0)].into()),
            Cure::Wait([OBJECT].into()),
            Cure::FreeBarriers([VarId(0)].into()),
        ];
        for ideal in ideals {
            assert_eq!(ranked(0.3, Some(ideal)), 0.15);
        }
        let policy = Cure::Policy(VarId(1), CopyPolicy::Update);
        assert_eq!(ranked(0.2, Some(policy)), 0.2);
        assert_eq!(ranked(0.2, None), 0.2);
        assert_eq!(ranked(0.0, None), 0.5);
    }

    #[test]
    fn what_is_explained_is_told_too_if_its_own_cure_saves_more() {
        let explained = |cure: Cure| {
            let mut symptom = Finding::new(Kind::FineGrained, TimeRange::ALL);
            symptom.cure = Some(cure);
            let mut cause = Finding::new(Kind::MisplacedOwner, TimeRange::ALL);
            cause.cure = Some(Cure::owners([(OBJECT, MpId(1))].into()));
            cause.explained = vec![symptom];
            let found = analysed_finding(cause).findings;
            found.iter().map(|f| f.kind).collect::<Vec<_>>()
        };
        // Nearer, the reads take half as long; without them nothing is lost at all.
        let better = explained(Cure::Private([OBJECT].into()));
        assert_eq!(better, [Kind::FineGrained, Kind::MisplacedOwner]);
        // One object each is as good as the owner nearby.
        let as_good = explained(Cure::Split([OBJECT].into()));
        assert_eq!(as_good, [Kind::MisplacedOwner]);
    }

    #[test]
    fn what_no_replay_knows_stays_an_estimate_and_says_so() {
        // Nobody reads it until it has changed.
        let not_polled = predicted(Kind::Polling, Some(Cure::Wait([OBJECT].into())));
        assert_eq!(not_polled.predicted_gain, Some(0.123));
        assert_eq!(not_polled.gain_from, Some(GainFrom::Costs));
        let kept = predicted(Kind::Deadlock, None);
        assert_eq!(kept.predicted_gain, Some(0.123));
        assert_eq!(
            (kept.gain_from, kept.gain_range),
            (Some(GainFrom::Costs), None)
        );
        let text = serde_json::to_string(&GainFrom::Replay).unwrap();
        assert_eq!(text, "\"replay\"");
    }
}
