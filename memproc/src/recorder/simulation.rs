//! Records on their way from memory processes to the log of their event manager, simulated: the real [`Recorder`] and the
//! event manager's real bookkeeping, between them connections that break at any moment, processes that are started again, and a
//! store that is full, lost, or replaced by an older copy of itself.
//!
//! Checked all the time: a record is in the log once at most, in the order in which it was made. At the end, when everything is
//! up: nothing is sent for ever; each record of the last start is in the log or counted as dropped, and nothing is counted that
//! is in the log; the log says what they are of.

use std::collections::VecDeque;

use dosmos_emp::core::{Ingest, Pending, Verdict};
use dosmos_proto::wire::ingest_request::Body;
use dosmos_proto::{
    ElementType, GroupId, Incarnation, Layout, MpId, Nanos, ProcessCounters, VarId, VariableSpec,
    wire,
};
use dosmos_trace::Op;
use dosmos_trace::store::{BatchMark, Commit, Event};
use dosmos_trace::wire::decode;
use prost::Message;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::testing::record;
use super::*;
use crate::core::test_topology;

const MP: MpId = MpId(0);

/// A connection of one start of the memory process.
struct Connection {
    incarnation: Incarnation,
    /// On its way to the event manager.
    up: VecDeque<wire::IngestRequest>,
    /// On its way back: the number that is durable; the first is the welcome.
    down: VecDeque<u64>,
    /// The event manager has heard the greeting.
    greeted: bool,
    /// The memory process has heard the welcome.
    welcomed: bool,
    /// The memory process has given it up; what is on its way may still arrive.
    left: bool,
}

struct Simulation {
    rng: StdRng,
    recorder: Recorder,
    incarnation: Incarnation,
    /// Records that this start made; each has its number, from 1, in its start.
    made: u64,
    connections: Vec<Connection>,
    ingest: Ingest,
    pending: Pending,
    /// What the event manager could not write yet.
    unwritten: Option<Commit>,
    full: bool,
    log: Vec<Commit>,
    trace: Vec<String>,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let incarnation = Incarnation::new(1, 7);
        Self {
            recorder: recorder(&mut rng),
            rng,
            incarnation,
            made: 0,
            connections: Vec::new(),
            ingest: Ingest::default(),
            pending: Pending::default(),
            unwritten: None,
            full: false,
            log: Vec::new(),
            trace: Vec::new(),
        }
    }

    fn run(mut self) {
        for _ in 0..self.rng.random_range(50..600) {
            self.step();
            self.check_log();
        }
        self.heal();
        let counters = self.counters();
        self.must(
            self.stored().is_empty() || self.is_named(),
            "the log does not say what its records are of",
        );
        let start = u64::from(self.incarnation.start());
        let stored: Vec<u64> = self
            .stored()
            .into_iter()
            .filter(|r| r.0 == start)
            .map(|r| r.1)
            .collect();
        self.must(
            stored.len() as u64 + counters.dropped == self.made && counters.recorded == self.made,
            &format!(
                "{} made, {} in the log, {} dropped",
                self.made,
                stored.len(),
                counters.dropped
            ),
        );
    }

    /// The variable that the records are of has a name in the log.
    fn is_named(&self) -> bool {
        let mut events = self.log.iter().flat_map(|c| &c.events);
        events.any(|(_, event)| matches!(event, Event::Variable(_)))
    }

    fn step(&mut self) {
        match self.rng.random_range(0..1000) {
            0..300 => self.make(),
            300..400 => self.pack(),
            400..450 => self.connect(),
            450..600 => self.send(),
            600..800 => self.arrive_up(),
            800..880 => self.arrive_down(),
            880..950 => self.write(),
            950..965 => self.leave(),
            965..975 => self.lose_connection(),
            975..982 => self.full = !self.full,
            982..988 => self.restart_event_manager(None),
            988..991 => self.restart_event_manager(Some(0)),
            991..994 => {
                let kept = self.rng.random_range(0..=self.log.len());
                self.restart_event_manager(Some(kept));
            }
            _ => self.restart_memory_process(),
        }
    }

    fn make(&mut self) {
        for _ in 0..self.rng.random_range(1..20) {
            self.made += 1;
            let mut record = record(Op::Read, self.made);
            record.version = self.incarnation.start().into();
            self.recorder.push(Item::Record(record), Nanos(0));
        }
    }

    fn pack(&mut self) {
        self.recorder.set_aside();
        while let Some(raw) = self.recorder.take() {
            self.recorder.pack(raw, ProcessCounters::default());
        }
    }

    fn connect(&mut self) {
        if self.connections.iter().any(|c| !c.left) {
            return;
        }
        self.say("connects");
        self.connections.push(Connection {
            incarnation: self.incarnation,
            up: VecDeque::new(),
            down: VecDeque::new(),
            greeted: false,
            welcomed: false,
            left: false,
        });
    }

    /// The memory process sends what it has to send.
    fn send(&mut self) {
        let most = self.rng.random_range(1..4);
        let Some(c) = self.connections.iter_mut().find(|c| !c.left && c.welcomed) else {
            return;
        };
        for _ in 0..most {
            let Some(batch) = self.recorder.outbox().next_to_send() else {
                return;
            };
            c.up.push_back(wire::IngestRequest::decode(batch).unwrap());
        }
    }

    /// Something reaches the event manager: the greeting, or what follows it.
    fn arrive_up(&mut self) {
        let ready = |c: &Connection| !c.greeted || !c.up.is_empty();
        let Some(at) = self.connections.iter().position(ready) else {
            return;
        };
        let c = &mut self.connections[at];
        let (incarnation, greeted) = (c.incarnation, c.greeted);
        if !greeted {
            match self.ingest.hello(MP, incarnation) {
                Ok(durable) => {
                    c.greeted = true;
                    c.down.push_back(durable);
                    self.say(&format!("{durable} are durable, says the welcome"));
                }
                Err(_) => drop(self.connections.remove(at)),
            }
            return;
        }
        match c.up.pop_front().and_then(|request| request.body) {
            Some(Body::Skip(skip)) => {
                self.ingest.skip(MP, incarnation, skip.to);
                self.say(&format!("skips to {}", skip.to));
            }
            Some(Body::Batch(batch)) => self.batch(at, batch),
            other => panic!("{other:?}"),
        }
    }

    fn batch(&mut self, at: usize, batch: wire::Batch) {
        let sequence = batch.sequence;
        let verdict = self
            .ingest
            .batch(MP, self.connections[at].incarnation, sequence);
        self.say(&format!("batch {sequence}: {verdict:?}"));
        match verdict {
            Verdict::New => {
                let records = decode(&batch.records.unwrap_or_default()).unwrap();
                let mark = self.ingest.mark(MP, sequence);
                let variables = batch.variables.into_iter();
                let named = |v: wire::Variable| (0, Event::Variable(v.try_into().unwrap()));
                self.pending
                    .batch(mark, &records, variables.map(named).collect());
            }
            Verdict::Duplicate => {}
            Verdict::Gap { .. } | Verdict::Superseded(_) => self.end(at),
        }
    }

    /// The event manager ends a connection.
    fn end(&mut self, at: usize) {
        self.connections.remove(at);
    }

    /// Something reaches the memory process.
    fn arrive_down(&mut self) {
        let ready = |c: &Connection| !c.left && !c.down.is_empty();
        let Some(at) = self.connections.iter().position(ready) else {
            return;
        };
        let c = &mut self.connections[at];
        let Some(durable) = c.down.pop_front() else {
            return;
        };
        if c.welcomed {
            let taken = self.recorder.outbox().acknowledged(durable);
            return self.must(taken.is_ok(), &format!("{taken:?}"));
        }
        c.welcomed = true;
        let gap = self.recorder.welcome(durable);
        self.must(gap.is_ok(), &format!("{gap:?}"));
        if let Ok(Some(gap)) = gap {
            let skip = wire::Skip {
                to: gap.to,
                records: gap.records,
            };
            let body = Some(Body::Skip(skip));
            self.connections[at]
                .up
                .push_back(wire::IngestRequest { body });
        }
    }

    /// The event manager writes what is pending, if there is room, and acknowledges it.
    fn write(&mut self) {
        if self.unwritten.is_none() && !self.pending.is_empty() {
            self.unwritten = Some(self.pending.take());
        }
        if self.full {
            return;
        }
        let Some(commit) = self.unwritten.take() else {
            return;
        };
        self.say(&format!("writes {:?}", commit.marks));
        self.log.push(commit);
        // It may end in between.
        if self.rng.random_bool(0.1) {
            return self.restart_event_manager(None);
        }
        let marks = self.log.last().map_or(Vec::new(), |c| c.marks.clone());
        for mark in marks {
            if self.ingest.durable(&mark)
                && let Some(c) = self
                    .connections
                    .iter_mut()
                    .rev()
                    .find(|c| c.greeted && c.incarnation.to_wire() == mark.incarnation)
            {
                c.down.push_back(mark.sequence);
            }
        }
    }

    /// The memory process gives its connection up; what it sent may still arrive.
    fn leave(&mut self) {
        if let Some(c) = self.connections.iter_mut().find(|c| !c.left) {
            c.left = true;
            self.say("gives the connection up");
        }
    }

    /// What was on its way is lost.
    fn lose_connection(&mut self) {
        if !self.connections.is_empty() {
            let at = self.rng.random_range(0..self.connections.len());
            self.connections.remove(at);
            self.say("a connection is lost");
        }
    }

    /// It goes on from its log, or from the first `kept` commits of it.
    fn restart_event_manager(&mut self, kept: Option<usize>) {
        self.say(&format!("the event manager starts again, {kept:?}"));
        self.connections.clear();
        (self.pending, self.unwritten) = (Pending::default(), None);
        if let Some(kept) = kept {
            self.log.truncate(kept);
        }
        let mut marks: Vec<&BatchMark> = self.log.iter().flat_map(|c| &c.marks).collect();
        marks.sort_by_key(|m| (m.incarnation, m.sequence));
        self.ingest = Ingest::from_marks(marks);
    }

    fn restart_memory_process(&mut self) {
        self.say("the memory process starts again");
        self.connections.iter_mut().for_each(|c| c.left = true);
        self.incarnation = Incarnation::new(self.incarnation.start() + 1, self.rng.random());
        self.recorder = recorder(&mut self.rng);
        self.made = 0;
    }

    /// From now on nothing goes wrong.
    fn heal(&mut self) {
        self.full = false;
        self.say("all is well");
        self.leave();
        for _ in 0..10_000 {
            self.pack();
            self.connect();
            self.send();
            self.arrive_up();
            self.arrive_down();
            self.write();
            self.check_log();
            if self.recorder.is_drained() {
                return;
            }
        }
        self.must(false, "it is sent for ever");
    }

    fn counters(&self) -> ProcessCounters {
        let mut counters = ProcessCounters::default();
        self.recorder.measure(&mut counters);
        counters
    }

    /// The records in the log, in its order: which start made them, and their numbers.
    fn stored(&self) -> Vec<(u64, u64)> {
        let records = self.log.iter().flat_map(|c| &c.records);
        records.map(|r| (r.version, r.start.0)).collect()
    }

    fn check_log(&mut self) {
        let stored = self.stored();
        let rises = stored.is_sorted_by(|a, b| a < b);
        self.must(rises, &format!("not in order, or twice: {stored:?}"));
    }

    fn say(&mut self, what: &str) {
        self.trace.push(what.to_owned());
    }

    #[track_caller]
    fn must(&self, holds: bool, what: &str) {
        assert!(holds, "{what}\n{}", self.trace.join("\n"));
    }
}

/// A recorder with more or less room.
fn recorder(rng: &mut StdRng) -> Recorder {
    let recording = Recording {
        buffer_bytes: if rng.random_bool(0.5) { 2_000 } else { 1 << 20 },
        ..Recording::default()
    };
    let mut recorder = Recorder::new(test_topology(&["/a"], 1, 1), MP, recording);
    let layout = Layout::new(ElementType::F64, (1, 1), (1, 1)).unwrap();
    let spec = VariableSpec::new("x", layout).unwrap();
    let variable = Variable::new(VarId(0), spec, vec![MP], GroupId(0)).unwrap();
    recorder.push(Item::Variable(Arc::new(variable)), Nanos(0));
    recorder
}

#[test]
fn records_are_in_the_log_once_or_counted_as_dropped_whatever_fails() {
    let first = dosmos_testseeds::seed();
    for i in 0..dosmos_testseeds::cases(1000) {
        let seed = first.wrapping_add(i.into());
        let run = std::panic::catch_unwind(|| Simulation::new(seed).run());
        assert!(run.is_ok(), "{}", dosmos_testseeds::repeat_command(seed));
    }
}
