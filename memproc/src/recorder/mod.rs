//! The recorder: from the core's records to numbered batches at the event manager.
//!
//! The core's side is [`Recorder::push`]: no allocation, no system call, no lock but the core's own.
//! Packing (encoding, numbering) and sending happen in tasks of their own. What is not acknowledged
//! is held up to a bound in bytes; past it, `drop` loses whole batches and counts them, `block` stops
//! taking requests of application processes until there is room. Names of variables and barriers
//! are never lost.

mod buffer;
mod filter;
mod meter;
mod outbox;
#[cfg(test)]
mod simulation;
#[cfg(test)]
mod testing;

use std::sync::Arc;

use bytes::Bytes;
use dosmos_node::clock::ClockEstimator;
use dosmos_node::metrics::AccessCounts;
use dosmos_proto::{MpId, Nanos, PhaseTimes, ProcessCounters, Topology, Variable, wire};
use dosmos_trace::Record;
use dosmos_trace::query::BarrierName;
use dosmos_trace::selection::Selection;
use dosmos_trace::wire::{encode, hand_over_to_wire};
use prost::Message;
use serde::{Deserialize, Serialize};

use crate::core::messages::Item;
pub use buffer::Raw;
use buffer::{BATCH_RECORDS, Buffer};
use filter::Filter;
use meter::Meter;
pub use outbox::{Gap, Outbox, Unsent};

/// What becomes of records that find the buffer full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Overflow {
    /// They are lost, and counted.
    #[default]
    Drop,
    /// The memory process takes no requests of its application processes until there is room.
    Block,
}

/// What is recorded, and how much of it is held.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Recording {
    /// What is recorded.
    pub selection: Selection,
    /// What happens past the bound.
    pub overflow: Overflow,
    /// Bound of the records not yet durable, in bytes.
    pub buffer_bytes: usize,
}

impl Default for Recording {
    fn default() -> Self {
        Self {
            selection: Selection::default(),
            overflow: Overflow::Drop,
            buffer_bytes: 64 << 20,
        }
    }
}

/// Under the policy to block, room past twice the bound, in bytes.
const RESERVE_BYTES: usize = 8 * BATCH_RECORDS * size_of::<Record>();

/// The recorder of one memory process.
#[derive(Debug)]
pub struct Recorder {
    topology: Arc<Topology>,
    me: MpId,
    filter: Filter,
    known: Vec<Arc<Variable>>,
    known_barriers: Vec<BarrierName>,
    buffer: Buffer,
    outbox: Outbox,
    clock: ClockEstimator,
    overflow: Overflow,
    limit: usize,
    recorded: u64,
    dropped: u64,
    /// Accesses that the selection left out.
    /// Accesses that these records stand for, beyond one each.
    extra_recorded: u64,
    extra_dropped: u64,
    unselected: u64,
    /// Whether the event manager knows what is selected.
    selection_told: bool,
    lost_hand_overs: u64,
    /// All accesses, recorded or not.
    accesses: AccessCounts,
    meter: Meter,
}

impl Recorder {
    /// One that was told nothing yet.
    pub fn new(topology: Arc<Topology>, me: MpId, recording: Recording) -> Self {
        Self {
            filter: Filter::new(recording.selection, &topology),
            topology,
            me,
            known: Vec::new(),
            known_barriers: Vec::new(),
            buffer: Buffer::new(),
            outbox: Outbox::default(),
            clock: ClockEstimator::default(),
            overflow: recording.overflow,
            limit: recording.buffer_bytes,
            recorded: 0,
            dropped: 0,
            extra_recorded: 0,
            extra_dropped: 0,
            unselected: 0,
            selection_told: false,
            lost_hand_overs: 0,
            accesses: AccessCounts::default(),
            meter: Meter::default(),
        }
    }

    /// The intrusion meter.
    pub(crate) fn meter(&mut self) -> &mut Meter {
        &mut self.meter
    }

    /// Takes what the core has to tell; `cost` is how long this process took for it. Whether a batch
    /// is full and waits to be packed.
    pub fn push(&mut self, item: Item, cost: Nanos) -> bool {
        let full = match item {
            Item::Record(mut record) => {
                self.accesses.count(&record);
                if !self.filter.selects(&record) {
                    if record.is_access() {
                        self.unselected += record.accesses();
                    }
                    return false;
                }
                if !self.filter.samples(&mut record) {
                    return false;
                }
                // Nobody here served what an application process did in itself.
                let served = !record.flags.in_process && !record.flags.own_clock;
                if record.count == 1 && served {
                    record.duration += cost;
                    if record.peer == self.me || record.flags.optimized {
                        record.service += cost;
                    }
                }
                self.recorded += 1;
                self.extra_recorded += record.accesses() - 1;
                self.buffer.push(record)
            }
            Item::HandOver(hand_over) => self.filter.events() && self.buffer.hand_over(hand_over),
            Item::Variable(variable) => {
                self.filter.learn(&variable);
                self.known.push(Arc::clone(&variable));
                self.buffer.names().variables.push(variable);
                false
            }
            Item::Barrier(barrier) => {
                self.known_barriers.push(barrier.clone());
                self.buffer.names().barriers.push(barrier);
                false
            }
        };
        if full {
            self.set_aside();
        }
        full
    }

    /// Takes what an application process said of its time.
    pub fn times(&mut self, piece: PhaseTimes) {
        if !self.filter.off() {
            self.buffer.names().times.push(piece);
        }
    }

    /// The event manager greets: it has everything up to batch `durable`. If it lost what it had
    /// acknowledged, that is dropped, and the dictionary is told again.
    ///
    /// # Errors
    /// If it has more than was made.
    pub fn welcome(&mut self, durable: u64) -> Result<Option<Gap>, Unsent> {
        let gap = self.outbox.welcome(durable)?;
        if let Some(gap) = gap {
            self.dropped += gap.records;
            self.extra_dropped += gap.extra;
            self.outbox.forget(gap);
            let names = self.buffer.names();
            names.variables.clone_from(&self.known);
            names.barriers.clone_from(&self.known_barriers);
        }
        Ok(gap)
    }

    /// Ends the current batch, or loses it if there is no room. Under the policy to block there is room
    /// for as much again and a few batches: application processes wait, but requests of other memory
    /// processes do not.
    pub fn set_aside(&mut self) {
        let most = match self.overflow {
            Overflow::Drop => self.limit,
            Overflow::Block => self.limit.saturating_mul(2).saturating_add(RESERVE_BYTES),
        };
        if self.bytes() >= most {
            let lost = self.buffer.discard();
            self.dropped += lost.records;
            self.extra_dropped += lost.extra;
            self.lost_hand_overs += lost.hand_overs;
        } else {
            self.buffer.set_aside();
        }
    }

    /// No room is left.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes() >= self.limit
    }

    /// Application processes have to wait for room.
    pub fn blocks(&self) -> bool {
        self.overflow == Overflow::Block && self.is_full()
    }

    fn bytes(&self) -> usize {
        self.outbox.bytes() + self.buffer.bytes()
    }

    /// The oldest batch to be packed.
    pub fn take(&mut self) -> Option<Raw> {
        self.buffer.take()
    }

    /// Encodes a batch, gives it its number and keeps it to be sent.
    pub fn pack(&mut self, raw: Raw, counters: ProcessCounters) {
        let names = &raw.names;
        let batch = wire::Batch {
            sequence: self.outbox.next_number(),
            records: Some(encode(&raw.records)),
            hand_overs: raw
                .hand_overs
                .iter()
                .map(|(at, h)| hand_over_to_wire(h, *at))
                .collect(),
            variables: names
                .variables
                .iter()
                .map(|v| (**v).clone().into())
                .collect(),
            barriers: names.barriers.iter().map(|b| b.clone().into()).collect(),
            counters: Some(counters.into()),
            selection: (!self.selection_told).then(|| self.filter.selection().clone().into()),
            sampling: self.filter.sampling(),
            times: names.times.iter().map(|t| (*t).into()).collect(),
        };
        self.selection_told = true;
        let encoded = request(wire::ingest_request::Body::Batch(batch));
        let extra = raw.records.iter().map(|r| r.accesses() - 1).sum();
        self.outbox.push(encoded, raw.records.len() as u32, extra);
        self.buffer.give_back(raw);
    }

    /// Whether a batch with counters only should go out: nothing else is under way.
    pub fn idle(&self) -> bool {
        self.outbox.is_empty() && !self.filter.off()
    }

    /// Everything handed in is durable.
    pub fn is_drained(&self) -> bool {
        // Names that are told again to an event manager that has lost them have a batch of their own.
        self.outbox.is_empty() && self.buffer.bytes() == 0 && !self.buffer.has_names()
    }

    /// The batches on their way.
    pub fn outbox(&mut self) -> &mut Outbox {
        &mut self.outbox
    }

    /// What is known of this process's clock.
    pub fn clock(&mut self) -> &mut ClockEstimator {
        &mut self.clock
    }

    /// The event manager wants something else recorded.
    pub fn select(&mut self, selection: Selection) {
        let known = self.known.iter().map(|v| &**v);
        self.filter.change(selection, &self.topology, known);
        self.selection_told = false;
    }

    /// All accesses of own application processes, whatever is recorded.
    pub(crate) fn accesses(&self) -> &AccessCounts {
        &self.accesses
    }

    /// Batches that the event manager has not acknowledged.
    pub fn unacknowledged(&self) -> u64 {
        self.outbox.len() as u64
    }

    /// Adds this recorder's figures.
    pub fn measure(&self, counters: &mut ProcessCounters) {
        counters.recorded = self.recorded;
        counters.dropped = self.dropped;
        counters.extra_recorded = self.extra_recorded;
        counters.extra_dropped = self.extra_dropped;
        counters.unselected = self.unselected;
        counters.lost_hand_overs = self.lost_hand_overs;
        counters.buffered_bytes = self.bytes() as u64;
        counters.monitor = self.meter.total();
    }
}

/// An encoded ingest request.
pub fn request(body: wire::ingest_request::Body) -> Bytes {
    wire::IngestRequest { body: Some(body) }
        .encode_to_vec()
        .into()
}

#[cfg(test)]
mod tests {
    use super::testing::record;
    use super::*;
    use crate::core::test_topology;
    use dosmos_proto::ObjectId;
    use dosmos_trace::Op;
    use dosmos_trace::meta::HandOver;
    use dosmos_trace::wire::decode;

    fn recorder(overflow: Overflow, buffer_bytes: usize) -> Recorder {
        let recording = Recording {
            overflow,
            buffer_bytes,
            ..Recording::default()
        };
        Recorder::new(test_topology(&["/a"], 1, 1), MpId(0), recording)
    }

    fn fill(r: &mut Recorder, batches: usize) {
        for i in 0..batches * BATCH_RECORDS {
            r.push(Item::Record(record(Op::Read, i as u64)), Nanos(0));
        }
    }

    fn pack_all(r: &mut Recorder) {
        while let Some(raw) = r.take() {
            r.pack(raw, ProcessCounters::default());
        }
    }

    fn sent(r: &mut Recorder) -> Vec<wire::Batch> {
        let batches = std::iter::from_fn(|| r.outbox().next_to_send());
        batches
            .map(
                |b| match wire::IngestRequest::decode(b).unwrap().body.unwrap() {
                    wire::ingest_request::Body::Batch(batch) => batch,
                    other => panic!("{other:?}"),
                },
            )
            .collect()
    }

    fn hand_over() -> Item {
        Item::HandOver(HandOver {
            object: ObjectId::default(),
            copy_at: MpId(0),
            primary_emp: dosmos_proto::EmpId(0),
            dropped: true,
        })
    }

    #[test]
    fn hand_overs_that_find_no_room_are_counted() {
        let mut r = recorder(Overflow::Drop, 1);
        fill(&mut r, 1); // There was room when it was set aside.
        for _ in 0..3 {
            r.push(hand_over(), Nanos(0));
        }
        r.set_aside();
        let mut counters = ProcessCounters::default();
        r.measure(&mut counters);
        assert_eq!(counters.lost_hand_overs, 3);
        pack_all(&mut r);
        assert!(sent(&mut r).iter().all(|b| b.hand_overs.is_empty()));
    }

    #[test]
    fn batches_hold_records_and_hand_overs_in_order() {
        let mut r = recorder(Overflow::Drop, 1 << 30);
        r.push(Item::Record(record(Op::Read, 1)), Nanos(7));
        r.push(hand_over(), Nanos(0));
        r.push(Item::Record(record(Op::Write, 2)), Nanos(0));
        // Nobody here served it.
        let mut told = record(Op::Acquire, 3);
        told.flags.own_clock = true;
        r.push(Item::Record(told), Nanos(7));
        r.set_aside();
        pack_all(&mut r);
        let batches = sent(&mut r);
        let records = decode(batches[0].records.as_ref().unwrap()).unwrap();
        assert_eq!(
            records.iter().map(|r| r.op).collect::<Vec<_>>(),
            [Op::Read, Op::Write, Op::Acquire]
        );
        assert_eq!(records[0].duration, record(Op::Read, 1).duration + Nanos(7));
        assert_eq!(records[2].duration, told.duration);
        assert_eq!(batches[0].hand_overs[0].position, 1);
    }

    #[test]
    fn what_finds_no_room_is_dropped_and_counted_but_room_comes_back() {
        let mut r = recorder(Overflow::Drop, 1);
        fill(&mut r, 1); // There was room when it was set aside.
        fill(&mut r, 2); // There is none now.
        pack_all(&mut r);
        let mut m = ProcessCounters::default();
        r.measure(&mut m);
        assert_eq!(m.recorded, 3 * BATCH_RECORDS as u64);
        assert_eq!(m.dropped, 2 * BATCH_RECORDS as u64);
        assert_eq!(sent(&mut r).len(), 1);
        r.outbox().acknowledged(1).unwrap();
        fill(&mut r, 1);
        pack_all(&mut r);
        assert_eq!(sent(&mut r)[0].sequence, 2);
    }

    #[test]
    fn accesses_of_dropped_records_are_counted_too() {
        let mut r = recorder(Overflow::Drop, 1);
        fill(&mut r, 1);
        let mut counted = record(Op::Read, 1);
        counted.count = 1_000;
        r.push(Item::Record(counted), Nanos(5));
        r.set_aside();
        let mut m = ProcessCounters::default();
        r.measure(&mut m);
        assert_eq!((m.dropped, m.extra_dropped), (1, 999));
        assert_eq!(m.extra_recorded, 999);
    }

    #[test]
    fn names_survive_an_overflow() {
        let mut r = recorder(Overflow::Drop, 1);
        fill(&mut r, 1);
        r.push(
            Item::Barrier(dosmos_trace::query::BarrierName {
                id: dosmos_proto::VarId(1 << 31),
                group: None,
                name: "b".into(),
            }),
            Nanos(0),
        );
        fill(&mut r, 1);
        pack_all(&mut r);
        sent(&mut r);
        r.outbox().acknowledged(1).unwrap();
        r.set_aside();
        pack_all(&mut r);
        assert_eq!(sent(&mut r)[0].barriers[0].name, "b");
    }

    #[test]
    fn the_blocking_policy_asks_for_a_pause_and_loses_nothing_within_its_bound() {
        let batch = BATCH_RECORDS * size_of::<dosmos_trace::Record>();
        let mut r = recorder(Overflow::Block, 2 * batch);
        assert!(!r.blocks());
        fill(&mut r, 3);
        assert!(r.blocks());
        pack_all(&mut r);
        assert_eq!(sent(&mut r).len(), 3);
        r.outbox().acknowledged(3).unwrap();
        assert!(!r.blocks());
    }

    #[test]
    fn records_of_served_requests_are_bounded_under_the_blocking_policy_too() {
        let batch = BATCH_RECORDS * size_of::<dosmos_trace::Record>();
        let mut r = recorder(Overflow::Block, 2 * batch);
        // Application processes wait; other memory processes do not.
        fill(&mut r, 20);
        let mut counters = ProcessCounters::default();
        r.measure(&mut counters);
        assert_eq!(counters.buffered_bytes, 12 * batch as u64);
        assert_eq!(counters.recorded, 20 * BATCH_RECORDS as u64);
        assert_eq!(counters.dropped, 8 * BATCH_RECORDS as u64);
    }

    #[test]
    fn times_leave_as_the_clock_of_this_process_has_them() {
        let mut r = recorder(Overflow::Drop, 1 << 30);
        // The event manager's clock is 50 ms ahead: it corrects, nobody else.
        let (sent_at, there) = (Nanos(1_000_000), Nanos(51_000_100));
        r.clock().sample(sent_at, there, there, Nanos(1_000_200));
        assert_eq!(r.clock().estimate(sent_at).unwrap().offset_ns, 50_000_000);
        r.push(Item::Record(record(Op::Read, 2_000_000)), Nanos(0));
        r.set_aside();
        pack_all(&mut r);
        let records = decode(sent(&mut r)[0].records.as_ref().unwrap()).unwrap();
        assert_eq!(records[0].start, Nanos(2_000_000));
    }

    #[test]
    fn an_event_manager_that_lost_its_store_gets_the_dictionary_again_and_the_loss_counts() {
        let mut r = recorder(Overflow::Drop, 1 << 30);
        let barrier = BarrierName {
            id: dosmos_proto::VarId(1 << 31),
            group: None,
            name: "b".into(),
        };
        r.push(Item::Barrier(barrier), Nanos(0));
        fill(&mut r, 2);
        pack_all(&mut r);
        sent(&mut r);
        r.outbox().acknowledged(2).unwrap();
        assert_eq!(r.welcome(2), Ok(None));
        let gap = r.welcome(0).unwrap().unwrap();
        assert_eq!((gap.to, gap.records), (2, 2 * BATCH_RECORDS as u64));
        fill(&mut r, 1);
        pack_all(&mut r);
        let batch = &sent(&mut r)[0];
        assert_eq!((batch.sequence, batch.barriers.len()), (3, 1));
        let mut counters = ProcessCounters::default();
        r.measure(&mut counters);
        assert_eq!(counters.dropped, 2 * BATCH_RECORDS as u64);
        let again = r.welcome(0).unwrap().unwrap();
        assert_eq!(again.records, 0, "what is counted is not counted again");
    }
}
