//! How the times of records were corrected, as it is stored with them (docs/design/monitoring.md#clocks).

use dosmos_proto::clock::ClockEstimate;
use dosmos_proto::{MpId, Nanos, Topology};
use serde::{Deserialize, Serialize};

/// Corrections of one start of a memory process that are remembered, for what began long ago.
const REMEMBERED: usize = 64;

/// By what the times of a memory process's records are corrected from here on, and the most that any of them is off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Correction {
    /// What is known of its clock.
    pub by: ClockEstimate,
    /// The bound; [`Nanos::MAX`]: nothing is known of the clock, and the times are as it has them.
    pub error: Nanos,
    /// The latest time that was corrected before: this holds for later ones, and corrects none of them to before that. None: it is
    /// the first.
    pub begins: Option<Corrected>,
}

/// A time by the clock of a memory process, and what it was corrected to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Corrected {
    /// By its clock.
    pub local: Nanos,
    /// In the store.
    pub to: Nanos,
}

/// How the times of one start of a memory process were corrected: one correction after another, and the last with the bound of
/// all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Corrections(Vec<Correction>);

impl Corrections {
    /// What is said next: another one, or a wider bound.
    pub fn add(&mut self, said: Correction) {
        let error = self.last().map_or(said.error, |l| l.error.max(said.error));
        let known = |c: &Correction| (c.by, c.begins) == (said.by, said.begins);
        let begins = |c: &Correction| c.begins.map(|b| b.local);
        // A bound may be of one that is not remembered any more.
        let forgotten = self.last().is_some_and(|l| begins(&said) < begins(l));
        if !forgotten && !self.0.iter().any(known) {
            if self.0.len() == REMEMBERED {
                self.0.remove(0);
            }
            self.0.push(said);
        }
        if let Some(last) = self.0.last_mut() {
            last.error = error;
        }
    }

    /// The last correction. No correction has a smaller error than one before it, so the error of the last holds for every record so far.
    pub fn last(&self) -> Option<&Correction> {
        self.0.last()
    }

    /// All that are remembered, in order.
    pub fn all(&self) -> &[Correction] {
        &self.0
    }
}

impl FromIterator<Correction> for Corrections {
    fn from_iter<T: IntoIterator<Item = Correction>>(said: T) -> Self {
        let mut all = Self::default();
        said.into_iter().for_each(|c| all.add(c));
        all
    }
}

/// What is known of the clock of a memory process, over the whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessClock {
    /// Which.
    pub mp: MpId,
    /// Cluster time minus its clock, at last, in nanoseconds.
    pub offset_ns: i64,
    /// How much that grows, in nanoseconds per second, at last.
    pub drift_ppb: i64,
    /// The most that a time of its records is off; none: nothing is known of its clock.
    pub error: Option<Nanos>,
}

impl ProcessClock {
    /// What a correction of its records comes to.
    pub fn new(mp: MpId, corrected: &Correction) -> Self {
        Self {
            mp,
            offset_ns: corrected.by.offset_ns,
            drift_ppb: corrected.by.drift_ppb,
            error: Some(corrected.error).filter(|&e| e < Nanos::MAX),
        }
    }

    /// The same as the correction of everything that a store holds of it.
    pub fn correction(&self) -> Correction {
        let by = ClockEstimate {
            offset_ns: self.offset_ns,
            drift_ppb: self.drift_ppb,
            ..ClockEstimate::default()
        };
        Correction {
            by,
            error: self.error.unwrap_or(Nanos::MAX),
            begins: None,
        }
    }

    /// Two starts of a process, or what two stores say of one: the later counts, with the bound of both.
    #[must_use]
    pub fn after(self, before: &Self) -> Self {
        let error = self.error.zip(before.error).map(|(a, b)| a.max(b));
        Self { error, ..self }
    }
}

/// How far the times of two memory processes can be apart, as their stores have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Apart {
    /// By at most this much: they have one clock, or both relate to one event manager's.
    AtMost(Nanos),
    /// Nobody knows: they relate to different clocks, or nothing is known of one of them.
    Unknown,
    /// Nobody said: the records were not made by memory processes of a run, or by none that says.
    Unsaid,
}

/// How far the times of memory processes `a` and `b` can be apart, by what is known of all `clocks`.
pub fn apart(clocks: &[ProcessClock], topology: &Topology, a: MpId, b: MpId) -> Apart {
    if a == b {
        return Apart::AtMost(Nanos::ZERO);
    }
    let manager = |mp: MpId| topology.mp(mp).map(|its| its.event_manager);
    if manager(a) != manager(b) {
        return Apart::Unknown;
    }
    let of = |mp: MpId| clocks.iter().find(|c| c.mp == mp);
    match (of(a), of(b)) {
        (Some(a), Some(b)) => match a.error.zip(b.error) {
            Some((a, b)) => Apart::AtMost(a + b),
            None => Apart::Unknown,
        },
        _ => Apart::Unsaid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(offset_ns: i64, error: u64, begins: u64) -> Correction {
        let by = ClockEstimate {
            offset_ns,
            ..ClockEstimate::default()
        };
        let begins = Corrected {
            local: Nanos(begins),
            to: Nanos(begins),
        };
        Correction {
            by,
            error: Nanos(error),
            begins: Some(begins),
        }
    }

    #[test]
    fn a_wider_bound_of_an_earlier_correction_is_one_of_the_last() {
        let mut all = Corrections::default();
        assert_eq!(all.last(), None);
        // The same estimate twice, from two times on.
        for next in [said(5, 20, 100), said(7, 10, 200), said(5, 10, 300)] {
            all.add(next);
        }
        assert_eq!(all.last(), Some(&said(5, 20, 300)));
        all.add(said(7, 40, 200));
        let offsets: Vec<_> = all.all().iter().map(|c| c.by.offset_ns).collect();
        assert_eq!(offsets, [5, 7, 5]);
        assert_eq!(all.last(), Some(&said(5, 40, 300)));
        let again: Corrections = all.all().iter().copied().collect();
        assert_eq!(again, all);
    }

    #[test]
    fn the_last_corrections_of_many_are_remembered() {
        let many = (0..200).map(|n| said(n, 1, n.cast_unsigned()));
        let mut all: Corrections = many.collect();
        assert_eq!(all.all().len(), REMEMBERED);
        assert_eq!(all.all()[0].by.offset_ns, 200 - REMEMBERED as i64);
        assert_eq!(all.last(), Some(&said(199, 1, 199)));
        all.add(said(3, 50, 3));
        assert_eq!(all.last(), Some(&said(199, 50, 199)));
    }
}
