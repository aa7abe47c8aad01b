//! What following an advice would save, by the model of the run.
//!
//! A detector estimates the gain of its advice from what accesses cost: time that is lost is time that is saved. The
//! phase model knows more: that a phase is as long as its slowest process, that others wait at the barrier, that
//! work moves along with objects. Where a whole run is known, with the times of its processes,
//! [`Analysis::predict_gains`] puts the model's answer in place of the estimate, and says so ([`GainFrom`]).
//!
//! | finding | what the model is asked |
//! |---|---|
//! | bad group, misplaced owner | these objects and processes at those memory processes |
//! | no sharing | no access to the objects |
//! | false sharing, ping-pong | an object each, at the own memory process, and nobody to wait for |
//! | bottleneck | nobody waits for a section on the object |
//! | imbalance | the processes divide what they do in each phase evenly |
//! | policy mismatch | nothing: messages that keep copies are in no model |
//!
//! Each advice is followed alone; gains of several do not add up.

use dosmos_model::inputs::Measured;

use crate::analyse::Analysis;
use crate::cure::GainFrom;

impl Analysis {
    /// Puts the gain that the model of the whole run predicts in place of each estimate. Findings without a cure
    /// that the model knows keep theirs, as do all if the model fails.
    pub fn predict_gains(&mut self, run: &Measured) {
        for finding in &mut self.findings {
            let Some(cure) = &finding.cure else { continue };
            if let Ok(gain) = run.gain(&cure.change(run.catalog())) {
                finding.predicted_gain = Some(gain);
                finding.gain_from = Some(GainFrom::Model);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use dosmos_model::inputs::{Builder, NetworkRecord};
    use dosmos_proto::topology::{ApplicationProcess, EventManager, Group, MemoryProcess};
    use dosmos_proto::{
        ApId, Component, EmpId, GroupId, GroupPath, MpId, Nanos, ObjectId, PhaseTimes,
        TopologyBuilder, VarId,
    };
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
            run: None,
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

    /// ap1 reads an object of mp0 a hundred times, 1 ms each, and computes 100 ms; ap0 computes 50 ms.
    fn run() -> Measured {
        let mut builder = Builder::new(catalog(), NetworkRecord::typical()).unwrap();
        for i in 0..100 {
            builder.add(&Record {
                start: Nanos(2_000_000 * i),
                duration: Nanos(1_000_000),
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
                range: (0, 0),
            });
        }
        let times = |ap: u32, parts: &[(Component, u64, u64)]| {
            let mut times = PhaseTimes {
                ap: ApId(ap),
                ..PhaseTimes::default()
            };
            for (of, ms, calls) in parts {
                times.spent.add(*of, Nanos(ms * 1_000_000), *calls);
            }
            times.wall = times.spent.total();
            times
        };
        let breakdown = Breakdown {
            phases: vec![
                times(0, &[(Component::Busy, 50, 0)]),
                times(
                    1,
                    &[
                        (Component::Busy, 100, 0),
                        (Component::Cold, 1, 1),
                        (Component::Fault, 99, 99),
                    ],
                ),
            ],
            ..Breakdown::default()
        };
        builder.finish(&breakdown).unwrap()
    }

    fn gain(kind: Kind, cure: Option<Cure>) -> (f64, Option<GainFrom>) {
        let mut finding = Finding::new(kind, TimeRange::ALL);
        finding.predicted_gain = Some(0.123);
        finding.gain_from = Some(GainFrom::Costs);
        finding.cure = cure;
        let mut analysis = Analysis {
            complete: 1.0,
            from_ns: 0,
            to_ns: 1,
            efficiency: None,
            verdict: String::new(),
            findings: vec![finding],
            withheld: Vec::new(),
            groups: Default::default(),
            phases: BTreeMap::new(),
        };
        analysis.predict_gains(&run());
        let finding = &analysis.findings[0];
        (finding.predicted_gain.unwrap(), finding.gain_from)
    }

    #[track_caller]
    fn about(found: (f64, Option<GainFrom>), expected: f64) {
        assert_eq!(found.1, Some(GainFrom::Model));
        assert!((found.0 - expected).abs() < 0.002, "{} {expected}", found.0);
    }

    #[test]
    fn each_cure_is_put_to_the_model() {
        // Without the reads ap1 computes 100 of its 200 ms.
        about(
            gain(Kind::NoSharing, Some(Cure::Private([OBJECT].into()))),
            0.5,
        );
        // Near, a read takes the way to the own memory process, 45 µs.
        let near = (100.0 - 4.5) / 200.0;
        about(
            gain(Kind::PingPong, Some(Cure::Split([OBJECT].into()))),
            near,
        );
        let to_mp1 = Cure::owners([(OBJECT, MpId(1))].into());
        about(gain(Kind::MisplacedOwner, Some(to_mp1)), near);
        let to_mp0 = Cure::Move {
            owners: BTreeMap::new(),
            processes: [(ApId(1), MpId(0))].into(),
        };
        about(gain(Kind::BadGroup, Some(to_mp0)), near);
        // 50 and 200 ms are 125 each.
        let all = [ApId(0), ApId(1)].into();
        about(
            gain(Kind::Imbalance, Some(Cure::Balance(all))),
            75.0 / 200.0,
        );
        // Nobody waited.
        about(
            gain(Kind::Bottleneck, Some(Cure::Free([OBJECT].into()))),
            0.0,
        );
    }

    #[test]
    fn what_the_model_does_not_know_stays_an_estimate_and_says_so() {
        let estimate = (0.123, Some(GainFrom::Costs));
        assert_eq!(gain(Kind::PolicyMismatch, None), estimate);
        let text = serde_json::to_string(&GainFrom::Costs).unwrap();
        assert_eq!(text, "\"costs\"");
    }
}
