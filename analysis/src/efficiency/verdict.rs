//! Parallel efficiency, what was lost to what, and the sentence that says it.

use std::collections::BTreeMap;

use dosmos_proto::{ApId, Component, Nanos, PhaseTimes};
use serde::Serialize;

/// Load balance below this is named.
const BALANCED: f64 = 0.9;

/// What processes did instead of computing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Instead {
    /// Reads and writes that another memory process had to serve.
    RemoteAccess,
    /// Reads and writes that the own memory process served.
    LocalAccess,
    /// Acquires and releases.
    Locks,
    /// Barriers, with the wait for slower processes.
    Barriers,
    /// Nothing: others had the processor, or the program slept.
    NoProcessor,
    /// Declarations, publications and connecting.
    Other,
    /// They had not started yet, or had ended.
    Absent,
}

impl Instead {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::RemoteAccess,
        Self::LocalAccess,
        Self::Locks,
        Self::Barriers,
        Self::NoProcessor,
        Self::Other,
        Self::Absent,
    ];

    fn of(component: Component) -> Option<Self> {
        Some(match component {
            Component::Busy => return None,
            Component::Service => Self::NoProcessor,
            Component::Local => Self::LocalAccess,
            Component::Fault | Component::Cold => Self::RemoteAccess,
            Component::Lock => Self::Locks,
            Component::Barrier => Self::Barriers,
            Component::Other => Self::Other,
        })
    }

    /// Where the time went, in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::RemoteAccess => "in reads and writes at other memory processes",
            Self::LocalAccess => "in reads and writes at the own memory process",
            Self::Locks => "at locks",
            Self::Barriers => "at barriers",
            Self::NoProcessor => "without a processor (others had it, or the program slept)",
            Self::Other => "in declarations, publications and connecting",
            Self::Absent => "before processes started and after they ended",
        }
    }
}

impl Instead {
    /// The same in a word or two.
    pub fn name(self) -> &'static str {
        match self {
            Self::RemoteAccess => "remote access",
            Self::LocalAccess => "local access",
            Self::Locks => "locks",
            Self::Barriers => "barriers",
            Self::NoProcessor => "no processor",
            Self::Other => "other",
            Self::Absent => "absent",
        }
    }
}

/// A part of the processes' time that was lost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LostTo {
    /// What they did instead.
    pub to: Instead,
    /// Fraction of the processes' time, 0 to 1.
    pub share: f64,
}

/// The efficiency of some processes over some time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Efficiency {
    /// Number of processes.
    pub processes: usize,
    /// From the first start to the last end, nanoseconds.
    pub span_ns: u64,
    /// Fraction of the processes' time that was spent computing: `load_balance` × `communication`.
    pub parallel: f64,
    /// Mean over longest computing time.
    pub load_balance: f64,
    /// Longest computing time over `span_ns`.
    pub communication: f64,
    /// The rest, the largest first.
    pub lost: Vec<LostTo>,
}

impl Efficiency {
    /// Of these pieces of the times of processes; none if they took no time.
    pub fn of<'a>(pieces: impl IntoIterator<Item = &'a PhaseTimes>) -> Option<Self> {
        let mut busy: BTreeMap<ApId, Nanos> = BTreeMap::new();
        let mut instead: BTreeMap<Instead, Nanos> = BTreeMap::new();
        let (mut from, mut to, mut present) = (Nanos(u64::MAX), Nanos::ZERO, Nanos::ZERO);
        for piece in pieces {
            from = from.min(piece.start);
            to = to.max(piece.end());
            present += piece.wall;
            *busy.entry(piece.ap).or_default() += piece.spent.time(Component::Busy);
            for component in Component::ALL {
                if let Some(instead_of) = Instead::of(component) {
                    *instead.entry(instead_of).or_default() += piece.spent.time(component);
                }
            }
        }
        let (n, span) = (busy.len(), (to - from).0 as f64);
        let longest = busy.values().max()?.0 as f64;
        let all = span * n as f64;
        if all <= 0.0 {
            return None;
        }
        let sum: f64 = busy.values().map(|b| b.0 as f64).sum();
        *instead.entry(Instead::Absent).or_default() += Nanos(all as u64) - present;
        let share = |t: Nanos| (t.0 as f64 / all).min(1.0);
        let lost = instead.into_iter().map(|(to, time)| LostTo {
            to,
            share: share(time),
        });
        let mut lost: Vec<LostTo> = lost.filter(|l| l.share > 0.0).collect();
        lost.sort_by(|a, b| b.share.total_cmp(&a.share));
        Some(Self {
            processes: n,
            span_ns: span as u64,
            parallel: (sum / all).min(1.0),
            load_balance: if longest > 0.0 {
                sum / n as f64 / longest
            } else {
                1.0
            },
            communication: (longest / span).min(1.0),
            lost,
        })
    }

    /// Time of all its processes together, nanoseconds.
    pub fn time_ns(&self) -> f64 {
        self.span_ns as f64 * self.processes as f64
    }

    /// What of it was not computing, nanoseconds.
    pub fn lost_ns(&self) -> f64 {
        self.time_ns() * (1.0 - self.parallel)
    }

    /// The part of its time that was lost to something, 0 to 1.
    pub fn lost_to(&self, to: Instead) -> f64 {
        let lost = self.lost.iter().find(|l| l.to == to);
        lost.map_or(0.0, |l| l.share)
    }

    /// It and the largest losses, in one line of at most 80 characters.
    pub fn line(&self) -> String {
        let lost = self.lost.iter().filter(|l| l.share >= 0.005).take(3);
        let lost: Vec<String> = lost
            .map(|l| format!("{} {}", l.to.name(), percent(l.share)))
            .collect();
        let mut text = format!("efficiency {}", percent(self.parallel));
        if !lost.is_empty() {
            text += &format!(", lost: {}", lost.join(", "));
        }
        text
    }

    /// The sentence that says it, and where most of the rest went if it is below `good`.
    fn verdict(&self, good: f64) -> String {
        let (who, whose) = match self.processes {
            1 => ("the process".to_owned(), "its"),
            n => (format!("the {n} processes"), "their"),
        };
        let computed = percent(self.parallel);
        let mut text =
            format!("efficiency {computed}: {who} computed for {computed} of {whose} time");
        if self.parallel >= good {
            return text;
        }
        let mut worst = self.lost.iter();
        if let Some(first) = worst.next() {
            text += &format!(
                "; most was lost {} ({})",
                first.to.words(),
                percent(first.share)
            );
        }
        if let Some(second) = worst.next().filter(|l| l.share >= 0.05) {
            text += &format!(", then {} ({})", second.to.words(), percent(second.share));
        }
        if self.load_balance < BALANCED {
            text += &format!("; load balance {}", percent(self.load_balance));
        }
        text
    }
}

/// The sentence that says it, and where most of the rest went if it is below `good`; also of a run without times.
pub fn verdict(efficiency: Option<&Efficiency>, good: f64) -> String {
    match efficiency {
        Some(efficiency) => efficiency.verdict(good),
        None => "efficiency unknown: the processes did not say where their time went (recording was off, or the run was \
                 imported)"
            .to_owned(),
    }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dosmos_proto::Spent;

    fn piece(ap: u32, start: u64, times: &[(Component, u64)]) -> PhaseTimes {
        let mut spent = Spent::default();
        for (component, time) in times {
            spent.add(*component, Nanos(*time), 1);
        }
        PhaseTimes {
            ap: ApId(ap),
            phase: 0,
            start: Nanos(start),
            wall: spent.total(),
            spent,
        }
    }

    #[test]
    fn efficiency_is_load_balance_times_communication_and_the_rest_is_told() {
        use Component::{Barrier, Busy, Cold, Fault, Lock};
        let pieces = [
            piece(0, 1_000, &[(Busy, 60), (Fault, 20), (Cold, 20)]),
            piece(1, 1_000, &[(Busy, 10), (Lock, 10), (Barrier, 70)]),
            // The other half of the second process's time comes in two pieces.
            piece(1, 1_090, &[(Busy, 10)]),
        ];
        let e = Efficiency::of(&pieces).unwrap();
        assert_eq!((e.processes, e.span_ns), (2, 100));
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(near(e.parallel, 0.4) && near(e.communication, 0.6), "{e:?}");
        assert!(near(e.parallel, e.load_balance * e.communication), "{e:?}");
        let lost: f64 = e.lost.iter().map(|l| l.share).sum();
        assert!(near(e.parallel + lost, 1.0), "{e:?}");
        assert_eq!(
            e.verdict(0.8),
            "efficiency 40 %: the 2 processes computed for 40 % of their time; most was lost at barriers (35 %), then in reads \
             and writes at other memory processes (20 %); load balance 67 %"
        );
        assert_eq!(
            e.line(),
            "efficiency 40 %, lost: barriers 35 %, remote access 20 %, locks 5 %"
        );
        assert_eq!(
            e.verdict(0.4),
            "efficiency 40 %: the 2 processes computed for 40 % of their time"
        );
    }

    #[test]
    fn who_comes_late_is_absent() {
        use Component::Busy;
        let pieces = [piece(0, 0, &[(Busy, 100)]), piece(1, 50, &[(Busy, 50)])];
        let e = Efficiency::of(&pieces).unwrap();
        assert_eq!(e.lost.len(), 1);
        assert_eq!((e.lost[0].to, e.lost[0].share), (Instead::Absent, 0.25));
    }

    #[test]
    fn no_time_has_no_efficiency() {
        assert_eq!(Efficiency::of(&[]), None);
        assert_eq!(Efficiency::of(&[piece(0, 5, &[])]), None);
    }
}
