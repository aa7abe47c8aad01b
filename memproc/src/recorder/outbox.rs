//! Exactly-once bookkeeping: numbered batches, kept until the event manager says they are durable,
//! sent again from where it left off after a reconnect. Sans-IO.
//!
//! Invariant: batches leave in the order of their numbers, without a gap; none is forgotten before
//! it is acknowledged. The receiver drops what it has; so each arrives once.

use std::collections::VecDeque;

use bytes::Bytes;

/// Batches on their way.
#[derive(Debug, Default)]
pub struct Outbox {
    unacked: VecDeque<Batch>,
    /// Number of the last acknowledged batch; that of the first kept is one higher.
    durable: u64,
    /// Number of the last batch handed to the current connection.
    sent: u64,
    /// Number of the last batch handed to any connection: what an earlier one carried may be acknowledged by the current one.
    carried: u64,
    bytes: usize,
    /// Records of the batches acknowledged, by number, and the accesses that they stand for beyond one each: what is
    /// lost if the receiver forgets them.
    acknowledged: Vec<(u32, u64)>,
}

#[derive(Debug)]
struct Batch {
    encoded: Bytes,
    records: u32,
    extra: u64,
}

/// Batches that the receiver had made durable and has lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Number of the last batch before them, which the receiver has.
    after: u64,
    /// Number of the last of them; the next batch kept is one higher.
    pub to: u64,
    /// Their records.
    pub records: u64,
    /// Accesses that they stand for, beyond one each.
    pub extra: u64,
}

/// The event manager acknowledged something that was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("batch {acknowledged} was acknowledged, but only {last} exist")]
pub struct Unsent {
    acknowledged: u64,
    last: u64,
}

impl Outbox {
    /// The number the next batch will have.
    pub fn next_number(&self) -> u64 {
        self.last() + 1
    }

    fn last(&self) -> u64 {
        self.durable + self.unacked.len() as u64
    }

    /// Keeps a batch of `records` records, which stand for `extra` accesses beyond one each, made with
    /// [`next_number`](Self::next_number).
    pub(crate) fn push(&mut self, encoded: Bytes, records: u32, extra: u64) {
        self.bytes += encoded.len();
        self.unacked.push_back(Batch {
            encoded,
            records,
            extra,
        });
    }

    /// The next batch for the current connection.
    pub fn next_to_send(&mut self) -> Option<Bytes> {
        let batch = self.unacked.get((self.sent - self.durable) as usize)?;
        self.sent += 1;
        self.carried = self.carried.max(self.sent);
        Some(batch.encoded.clone())
    }

    /// A new connection: the event manager has everything up to `durable`; the rest is sent again. What
    /// it had acknowledged beyond that is gone.
    pub(crate) fn welcome(&mut self, durable: u64) -> Result<Option<Gap>, Unsent> {
        self.drop_until(durable)?;
        self.sent = self.durable;
        if durable == self.durable {
            return Ok(None);
        }
        let lost = self.acknowledged.iter().skip(durable as usize);
        Ok(Some(Gap {
            after: durable,
            to: self.durable,
            records: lost.clone().map(|(records, _)| u64::from(*records)).sum(),
            extra: lost.map(|(_, extra)| extra).sum(),
        }))
    }

    /// What was in a gap has been counted as dropped; it is not counted again.
    pub(crate) fn forget(&mut self, gap: Gap) {
        let gone = self.acknowledged.iter_mut().take(gap.to as usize);
        let gone = gone.skip(gap.after as usize);
        gone.for_each(|lost| *lost = (0, 0));
    }

    /// The event manager made everything up to `durable` durable. An older number changes nothing.
    ///
    /// # Errors
    /// If it was never sent.
    pub fn acknowledged(&mut self, durable: u64) -> Result<(), Unsent> {
        if durable > self.carried {
            return Err(Unsent {
                acknowledged: durable,
                last: self.carried,
            });
        }
        self.drop_until(durable)
    }

    fn drop_until(&mut self, durable: u64) -> Result<(), Unsent> {
        if durable > self.last() {
            return Err(Unsent {
                acknowledged: durable,
                last: self.last(),
            });
        }
        while self.durable < durable {
            if let Some(batch) = self.unacked.pop_front() {
                self.bytes -= batch.encoded.len();
                self.acknowledged.push((batch.records, batch.extra));
            }
            self.durable += 1;
        }
        self.sent = self.sent.max(self.durable);
        Ok(())
    }

    /// Batches kept.
    pub(crate) fn len(&self) -> usize {
        self.unacked.len()
    }

    /// Memory taken.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Everything is durable.
    pub(crate) fn is_empty(&self) -> bool {
        self.unacked.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(n: u64) -> Bytes {
        Bytes::copy_from_slice(&n.to_le_bytes())
    }

    fn filled(n: u64) -> Outbox {
        let mut o = Outbox::default();
        for i in 1..=n {
            assert_eq!(o.next_number(), i);
            o.push(batch(i), 10, 5);
        }
        o
    }

    fn drain(o: &mut Outbox) -> Vec<u64> {
        let numbers = std::iter::from_fn(|| o.next_to_send());
        numbers
            .map(|b| u64::from_le_bytes(b[..].try_into().unwrap()))
            .collect()
    }

    #[test]
    fn what_is_not_durable_is_sent_again_from_where_the_receiver_left_off() {
        let mut o = filled(5);
        o.welcome(0).unwrap();
        assert_eq!(drain(&mut o), [1, 2, 3, 4, 5]);
        o.acknowledged(2).unwrap();
        // The receiver had made 3 durable, but its acknowledgement was lost with the connection.
        o.welcome(3).unwrap();
        assert_eq!(drain(&mut o), [4, 5]);
        o.acknowledged(5).unwrap();
        assert!(o.is_empty());
        assert_eq!((o.bytes(), o.next_number()), (0, 6));
    }

    #[test]
    fn repeated_and_late_acknowledgements_change_nothing() {
        let mut o = filled(3);
        drain(&mut o);
        o.acknowledged(2).unwrap();
        o.acknowledged(2).unwrap();
        o.acknowledged(1).unwrap();
        assert_eq!(o.bytes(), 8);
        o.push(batch(4), 10, 5);
        assert_eq!(drain(&mut o), [4]);
    }

    #[test]
    fn what_is_lost_later_is_counted_too() {
        let mut o = filled(3);
        drain(&mut o);
        o.acknowledged(3).unwrap();
        // An older copy of the store has the first batch; then that is gone too.
        let lost = |o: &mut Outbox, durable| {
            let gap = o.welcome(durable).unwrap().unwrap();
            o.forget(gap);
            gap.records
        };
        assert_eq!(lost(&mut o, 1), 20);
        assert_eq!(lost(&mut o, 0), 10);
        assert_eq!(lost(&mut o, 0), 0);
    }

    #[test]
    fn what_an_earlier_connection_carried_is_acknowledged_by_the_next() {
        let mut o = filled(3);
        drain(&mut o);
        // The receiver has all, and none on disk; then it has.
        o.welcome(0).unwrap();
        o.next_to_send();
        o.acknowledged(2).unwrap();
        assert_eq!(drain(&mut o), [3]);
    }

    #[test]
    fn an_acknowledgement_of_what_was_not_sent_is_refused() {
        let mut o = filled(3);
        assert!(o.acknowledged(1).is_err());
        o.next_to_send();
        assert!(o.acknowledged(2).is_err());
        assert!(o.welcome(4).is_err());
        assert_eq!(o.bytes(), 24);
    }

    #[test]
    fn what_a_receiver_forgot_is_a_gap_with_its_records_and_the_rest_follows() {
        let mut o = filled(4);
        drain(&mut o);
        o.acknowledged(2).unwrap();
        assert_eq!(o.welcome(2), Ok(None));
        let gap = Gap {
            after: 0,
            to: 2,
            records: 20,
            extra: 10,
        };
        assert_eq!(o.welcome(0), Ok(Some(gap)));
        assert_eq!(drain(&mut o), [3, 4]);
        // An older copy of the store has the first batch.
        let one = Gap {
            after: 1,
            to: 2,
            records: 10,
            extra: 5,
        };
        assert_eq!(o.welcome(1), Ok(Some(one)));
        o.forget(gap);
        let again = o.welcome(0).unwrap();
        let nothing = Gap {
            after: 0,
            to: 2,
            records: 0,
            extra: 0,
        };
        assert_eq!(again, Some(nothing), "counted once");
        o.acknowledged(2).unwrap();
    }
}
