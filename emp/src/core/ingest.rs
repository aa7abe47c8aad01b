//! Exactly once: which batches of which start of a memory process were received, and which are durable.
//!
//! A batch has the number of its memory process, of that process's start (incarnation) and its own:
//! 1, 2, 3 … Whatever is sent again after a lost connection is recognised by these three.

use std::collections::BTreeMap;

use dosmos_proto::{Incarnation, MpId};
use dosmos_trace::clock::Corrected;
use dosmos_trace::store::BatchMark;

/// What to do with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is the next one.
    New,
    /// It was received before.
    Duplicate,
    /// Batches before it are missing; the sender is to start again from this number.
    Gap {
        /// Number of the batch that is due.
        due: u64,
    },
    /// A later start of the process has reported; this one is over.
    Superseded(Refused),
}

/// Why a memory process is sent away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "incarnation {theirs} is older than {newest}, which has reported already; only one process may run under this name"
)]
pub struct Refused {
    /// What it says it is.
    pub theirs: Incarnation,
    /// What is known.
    pub newest: Incarnation,
}

#[derive(Clone, Copy, Debug)]
struct Progress {
    incarnation: Incarnation,
    received: u64,
    durable: u64,
}

/// What was received of each memory process.
#[derive(Clone, Debug, Default)]
pub struct Ingest {
    by_mp: BTreeMap<MpId, Progress>,
}

impl Ingest {
    /// Goes on from what the store holds.
    pub fn from_marks<'a>(marks: impl IntoIterator<Item = &'a BatchMark>) -> Self {
        let progress = |m: &BatchMark| Progress {
            incarnation: Incarnation::from_wire(m.incarnation),
            received: m.sequence,
            durable: m.sequence,
        };
        Self {
            by_mp: marks.into_iter().map(|m| (m.mp, progress(m))).collect(),
        }
    }

    /// A memory process connects; the answer is the number of its last durable batch.
    ///
    /// # Errors
    /// If a later start of it was seen.
    pub fn hello(&mut self, mp: MpId, incarnation: Incarnation) -> Result<u64, Refused> {
        let fresh = Progress {
            incarnation,
            received: 0,
            durable: 0,
        };
        let known = self.by_mp.entry(mp).or_insert(fresh);
        if incarnation < known.incarnation {
            return Err(Refused {
                theirs: incarnation,
                newest: known.incarnation,
            });
        }
        if incarnation > known.incarnation {
            *known = fresh;
        }
        Ok(known.durable)
    }

    /// A batch arrives from the start of a process that said hello.
    pub fn batch(&mut self, mp: MpId, incarnation: Incarnation, sequence: u64) -> Verdict {
        let Some(known) = self.by_mp.get_mut(&mp) else {
            return Verdict::Gap { due: 1 };
        };
        if known.incarnation != incarnation {
            return Verdict::Superseded(Refused {
                theirs: incarnation,
                newest: known.incarnation,
            });
        }
        let due = known.received + 1;
        if sequence < due {
            Verdict::Duplicate
        } else if sequence > due {
            Verdict::Gap { due }
        } else {
            known.received = sequence;
            Verdict::New
        }
    }

    /// The process does not hold the batches up to `to` any more, which the store has lost: what follows
    /// goes on behind them. How many are gone.
    pub fn skip(&mut self, mp: MpId, incarnation: Incarnation, to: u64) -> u64 {
        match self.by_mp.get_mut(&mp) {
            Some(known) if known.incarnation == incarnation && known.received < to => {
                let gone = to - known.received;
                known.received = to;
                known.durable = known.durable.max(to);
                gone
            }
            _ => 0,
        }
    }

    /// Which start of the process reports now, if any has.
    pub fn incarnation(&self, mp: MpId) -> Option<Incarnation> {
        self.by_mp.get(&mp).map(|known| known.incarnation)
    }

    /// Whether everything up to batch `last` of this start of the process was received.
    pub fn has_all(&self, mp: MpId, incarnation: Incarnation, last: u64) -> bool {
        let known = self.by_mp.get(&mp);
        known.is_some_and(|k| k.incarnation == incarnation && k.received >= last)
    }

    /// The mark of a batch that was just received.
    pub fn mark(&self, mp: MpId, sequence: u64) -> BatchMark {
        BatchMark {
            mp,
            incarnation: self.by_mp.get(&mp).map_or(0, |p| p.incarnation.to_wire()),
            sequence,
            until: Corrected::default(),
        }
    }

    /// A batch is on disk. Whether that is news for the process that runs now.
    pub fn durable(&mut self, mark: &BatchMark) -> bool {
        match self.by_mp.get_mut(&mark.mp) {
            Some(known) if known.incarnation.to_wire() == mark.incarnation => {
                known.durable = known.durable.max(mark.sequence);
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MP: MpId = MpId(3);
    const FIRST: Incarnation = Incarnation::new(1, 7);
    const SECOND: Incarnation = Incarnation::new(2, 3);

    #[test]
    fn each_batch_counts_once_whatever_is_resent() {
        let mut ingest = Ingest::default();
        assert_eq!(ingest.hello(MP, FIRST), Ok(0));
        let mut batch = |n| ingest.batch(MP, FIRST, n);
        assert_eq!(batch(1), Verdict::New);
        assert_eq!(batch(1), Verdict::Duplicate);
        assert_eq!(batch(3), Verdict::Gap { due: 2 });
        assert_eq!(batch(2), Verdict::New);
        assert!(ingest.durable(&ingest.mark(MP, 1)));
        assert_eq!(ingest.hello(MP, FIRST), Ok(1), "it resends from 2 …");
        let mut batch = |n| ingest.batch(MP, FIRST, n);
        assert_eq!(batch(2), Verdict::Duplicate, "… which is known");
        assert_eq!(batch(3), Verdict::New);
        assert!(ingest.has_all(MP, FIRST, 3));
        assert!(!ingest.has_all(MP, FIRST, 4) && !ingest.has_all(MP, SECOND, 3));
    }

    #[test]
    fn a_restarted_process_begins_anew_and_its_ghost_is_refused() {
        let mut ingest = Ingest::default();
        ingest.hello(MP, FIRST).unwrap();
        ingest.batch(MP, FIRST, 1);
        let old = ingest.mark(MP, 1);
        assert_eq!(ingest.hello(MP, SECOND), Ok(0));
        assert!(
            !ingest.durable(&old),
            "not an acknowledgement for the new one"
        );
        let refused = Refused {
            theirs: FIRST,
            newest: SECOND,
        };
        // The old stream may still be open: its batches are not the new one's.
        assert_eq!(ingest.batch(MP, FIRST, 1), Verdict::Superseded(refused));
        assert_eq!(ingest.skip(MP, FIRST, 9), 0);
        assert_eq!(ingest.batch(MP, SECOND, 1), Verdict::New);
        assert_eq!(ingest.hello(MP, FIRST), Err(refused));
    }

    #[test]
    fn a_restarted_event_manager_goes_on_from_its_store() {
        let mark = BatchMark {
            mp: MP,
            incarnation: FIRST.to_wire(),
            sequence: 7,
            until: Corrected::default(),
        };
        let mut ingest = Ingest::from_marks([&mark]);
        assert_eq!(ingest.hello(MP, FIRST), Ok(7));
        assert_eq!(ingest.batch(MP, FIRST, 7), Verdict::Duplicate);
        assert_eq!(ingest.batch(MP, FIRST, 8), Verdict::New);
    }

    #[test]
    fn one_that_lost_its_store_goes_on_behind_the_gap() {
        let mut ingest = Ingest::default();
        assert_eq!(ingest.hello(MP, FIRST), Ok(0));
        assert_eq!(ingest.skip(MP, FIRST, 7), 7);
        assert_eq!(ingest.skip(MP, FIRST, 7), 0, "said twice, gone once");
        assert_eq!(ingest.batch(MP, FIRST, 8), Verdict::New);
        assert_eq!(
            ingest.hello(MP, FIRST),
            Ok(7),
            "it is not asked for them again"
        );
    }
}
