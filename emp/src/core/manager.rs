//! An event manager without its connections and its store: what it takes from memory processes and other event managers, what
//! is to be written of it, and what follows once that is on disk.
//!
//! Invariant: what is known ([`Manager::metas`], what is due to other event managers) is a fold of the log, in its order;
//! nothing is answered for before it is on disk.

use std::collections::BTreeMap;

use dosmos_node::metrics::AccessCounts;
use dosmos_proto::clock::ClockEstimate;
use dosmos_proto::names::check_name;
use dosmos_proto::{
    EmpId, Incarnation, MAX_DECLARED_BYTES, Malformed, MpId, Nanos, PhaseTimes, Topology, VarId,
    Variable, wire,
};
use dosmos_trace::Record;
use dosmos_trace::clock::Corrections;
use dosmos_trace::meta::{MetaState, SecondaryContent};
use dosmos_trace::selection::Selection;
use dosmos_trace::store::{BatchMark, Commit, Event, Item, Snapshot};

use super::steps::Steps;
use super::{Dictionary, Full, Ingest, Link, Outbox, Pending, PositionedEvent, Refused, Verdict};

/// Why a batch is not taken; the stream that brought it ends.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// It makes no sense.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// Its declarations do not fit.
    #[error(transparent)]
    Full(#[from] Full),
    /// Batches before it are missing.
    #[error("batch {sequence} arrived, {due} is due; connect again")]
    Gap {
        /// Its number.
        sequence: u64,
        /// The number that is due.
        due: u64,
    },
    /// A later start of the process reports.
    #[error(transparent)]
    Superseded(#[from] Refused),
}

/// Who is to be told that something is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durable {
    /// A memory process: its batches up to this one.
    Batch(MpId, u64),
    /// Another event manager: what it handed over up to this number.
    Content(EmpId, u64),
}

/// An event manager without its connections and its store.
pub struct Manager {
    topology: Topology,
    ingest: Ingest,
    pending: Pending,
    /// Declarations that were received.
    dictionary: Dictionary,
    metas: MetaState,
    /// Accesses in the log, for metrics.
    accesses: AccessCounts,
    outbox: Outbox,
    links: BTreeMap<MpId, Link>,
    /// Whether this start's clock is that of earlier ones.
    steps: Steps,
    /// The variables of `metas`.
    variables: BTreeMap<VarId, Variable>,
    /// What the memory processes were told to record; none: what the cluster file says.
    selection: Option<Selection>,
    /// What the cluster file says.
    configured: Selection,
}

impl Manager {
    /// One whose log has these marks, before the log is [replayed](Self::replay).
    pub fn new<'a>(
        topology: Topology,
        me: EmpId,
        configured: Selection,
        marks: impl IntoIterator<Item = &'a BatchMark> + Clone,
    ) -> Self {
        Self {
            ingest: Ingest::from_marks(marks.clone()),
            steps: Steps::new(marks),
            pending: Pending::default(),
            dictionary: Dictionary::default(),
            metas: MetaState::new(topology.clone(), me),
            accesses: AccessCounts::default(),
            outbox: Outbox::default(),
            links: BTreeMap::new(),
            variables: BTreeMap::new(),
            selection: None,
            configured,
            topology,
        }
    }

    /// Who is to report here. It stands in the log before anybody can reach this process: a memory process that never came
    /// to speak is missing all the same.
    pub fn expected_reports(topology: &Topology, me: EmpId) -> Commit {
        let processes = (0..)
            .map(MpId)
            .zip(topology.memory_processes())
            .filter(|(_, process)| process.event_manager == me);
        let expected = processes.map(|(mp, _)| Event::Report {
            mp,
            incarnation: 0,
            ended: false,
        });
        Commit {
            events: expected.map(|event| (0, event)).collect(),
            ..Commit::default()
        }
    }

    /// Goes on after earlier starts, which corrected the times of these starts of memory processes.
    pub fn goes_on_after(
        &mut self,
        corrections: impl IntoIterator<Item = ((MpId, u64), Corrections)>,
    ) {
        self.steps.know(corrections);
    }

    /// Goes on from what was saved; what followed is replayed.
    pub fn resume(&mut self, snapshot: Snapshot, variables: Vec<Variable>) {
        self.metas = snapshot.metas;
        variables.iter().for_each(|v| self.dictionary.add(v));
        for (to, content) in snapshot.due {
            self.outbox.push(to, content);
        }
        self.variables = variables.into_iter().map(|v| (v.id(), v)).collect();
    }

    /// Takes one entry of the log into account.
    pub fn replay(&mut self, item: Item<'_>) {
        match item {
            Item::Record(record) => self.record(record),
            Item::Event(event) => self.event(event),
        }
    }

    /// What all that is on disk comes to.
    pub fn snapshot(&self) -> Snapshot {
        let due = self.outbox.due();
        Snapshot {
            metas: self.metas.clone(),
            due: due.map(|(to, content)| (to, content.clone())).collect(),
        }
    }

    /// A start of a memory process connects: the number of its last batch on disk.
    ///
    /// # Errors
    /// If a later start of it was seen.
    pub fn hello(&mut self, mp: MpId, incarnation: Incarnation) -> Result<u64, Refused> {
        let before = self.ingest.incarnation(mp);
        let durable = self.ingest.hello(mp, incarnation)?;
        let is_new = !self.links.contains_key(&mp);
        let link = self.links.entry(mp).or_default();
        // Another start has another clock.
        if is_new || before != Some(incarnation) {
            let start = (mp, incarnation.to_wire());
            link.clock = self.steps.corrector(start, &link.clock);
        }
        self.note_selection(mp);
        self.report(mp, incarnation, false);
        Ok(durable)
    }

    /// Puts into the log that a start of a memory process reports here, or has `ended` with all it made in
    /// the log: a reader of the store knows who did not report to the end.
    fn report(&mut self, mp: MpId, incarnation: Incarnation, ended: bool) {
        self.pending.event(Event::Report {
            mp,
            incarnation: incarnation.to_wire(),
            ended,
        });
    }

    /// A memory process says what it makes of its clock.
    pub fn learn_clock(&mut self, mp: MpId, estimate: ClockEstimate) {
        if let Some(incarnation) = self.ingest.incarnation(mp) {
            let news = self.steps.learn((mp, incarnation.to_wire()), &estimate);
            news.into_iter().for_each(|event| self.pending.event(event));
        }
        if let Some(link) = self.links.get_mut(&mp) {
            link.clock.learn(estimate);
        }
    }

    /// A memory process does not hold the batches up to `to` any more, which this store has lost. How many are gone.
    pub fn skip(&mut self, mp: MpId, incarnation: Incarnation, to: u64) -> u64 {
        self.ingest.skip(mp, incarnation, to)
    }

    /// A memory process says that `last` was its last batch.
    pub fn bye(&mut self, mp: MpId, incarnation: Incarnation, last: u64) {
        let ended = self.ingest.has_all(mp, incarnation, last);
        // A reader of the store compares what was made with what is there.
        if ended && let Some(link) = self.links.get(&mp) {
            let (counted, serving) = (link.counted(), link.counters().serving());
            let incarnation = incarnation.to_wire();
            if let Some(time) = serving {
                self.pending.event(Event::Processor {
                    mp,
                    incarnation,
                    time,
                });
            }
            if let Some(counters) = counted {
                self.pending.event(Event::Counters {
                    mp,
                    incarnation,
                    counters,
                });
            }
        }
        self.report(mp, incarnation, ended);
    }

    /// A batch arrived: what is malformed in it is refused before anything of it counts.
    ///
    /// # Errors
    /// If it cannot be taken.
    pub fn batch(
        &mut self,
        mp: MpId,
        incarnation: Incarnation,
        batch: wire::Batch,
        now: Nanos,
    ) -> Result<(), BatchError> {
        let mut records = dosmos_trace::wire::decode(&batch.records.unwrap_or_default())?;
        let mut events: Vec<PositionedEvent> = Vec::new();
        let mut declared = Vec::new();
        let mut bytes = 0;
        for variable in batch.variables {
            let variable = Variable::try_from(variable)?;
            bytes += variable.footprint();
            if bytes > MAX_DECLARED_BYTES {
                return Err(Full.into());
            }
            declared.push(variable);
        }
        for barrier in batch.barriers {
            check_name("barrier name", &barrier.name)?;
            events.push((0, Event::Barrier(barrier.into())));
        }
        for hand_over in &batch.hand_overs {
            let (at, hand_over) = dosmos_trace::wire::hand_over_from_wire(hand_over, mp);
            if hand_over.primary_emp.index() >= self.topology.event_managers().len() {
                return Err(Malformed::new("hand_over", "no event manager has this number").into());
            }
            events.push((at, Event::HandOver(hand_over)));
        }
        let selection = batch.selection.map(Selection::try_from).transpose()?;
        if let Some(selection) = selection {
            let incarnation = incarnation.to_wire();
            events.push((
                0,
                Event::Selection {
                    mp,
                    incarnation,
                    selection,
                },
            ));
        }
        self.dictionary.check(&declared)?;
        match self.ingest.batch(mp, incarnation, batch.sequence) {
            Verdict::New => {}
            Verdict::Duplicate => return Ok(()),
            Verdict::Gap { due } => {
                let sequence = batch.sequence;
                return Err(BatchError::Gap { sequence, due });
            }
            Verdict::Superseded(refused) => return Err(refused.into()),
        }
        for variable in declared {
            self.dictionary.add(&variable);
            events.push((0, Event::Variable(variable)));
        }
        events.sort_by_key(|e| e.0);
        let mut mark = self.ingest.mark(mp, batch.sequence);
        let times = batch.times.into_iter().map(Into::into).collect();
        let said = (batch.counters.map(Into::into), batch.sampling);
        self.correct(&mut mark, &mut records, &mut events, times);
        let last = records.iter().map(Record::end).max();
        let link = self.links.entry(mp).or_default();
        if let Some(last) = last {
            link.arrived(now, last);
        }
        if let Some(counters) = link.batch(said.0, said.1, last.unwrap_or_default()) {
            let incarnation = mark.incarnation;
            events.push((
                records.len() as u32,
                Event::Counters {
                    mp,
                    incarnation,
                    counters,
                },
            ));
        }
        self.pending.batch(mark, &records, events);
        Ok(())
    }

    /// The only correction there is: batches hold times of the sender's clock.
    fn correct(
        &mut self,
        mark: &mut BatchMark,
        records: &mut [Record],
        events: &mut Vec<PositionedEvent>,
        mut times: Vec<PhaseTimes>,
    ) {
        let link = self.links.entry(mark.mp).or_default();
        if let Some(correction) = link.clock.correct(records, &mut times) {
            let clock = Event::Clock {
                mp: mark.mp,
                incarnation: mark.incarnation,
                correction: self.steps.widen(correction),
            };
            events.insert(0, (0, clock));
        }
        mark.until = link.clock.until();
        let all = records.len() as u32;
        events.extend(times.into_iter().map(|piece| (all, Event::Times(piece))));
    }

    /// Another event manager hands something over.
    pub fn content(&mut self, from: EmpId, content: SecondaryContent) {
        self.pending.event(Event::Received { from, content });
    }

    /// Another event manager has on disk what was handed over to it up to `sequence`.
    pub fn handed_over(&mut self, to: EmpId, sequence: u64) {
        self.outbox.acknowledged(to, sequence);
    }

    /// What is due to other event managers.
    pub fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// What was received and is not on disk.
    pub fn pending(&self) -> &Pending {
        &self.pending
    }

    /// All that was received since, to be written.
    pub fn take_pending(&mut self) -> Commit {
        self.pending.take()
    }

    /// A commit is on disk: meta-objects take it into account, in the order of the log. Who is to be told.
    pub fn durable(&mut self, commit: &Commit) -> Vec<Durable> {
        let mut events = commit.events.iter().peekable();
        for (i, record) in (0u32..).zip(&commit.records) {
            while let Some((_, event)) = events.next_if(|(at, _)| *at <= i) {
                self.event(event);
            }
            self.record(record);
        }
        events.for_each(|(_, event)| self.event(event));
        let mut told = Vec::new();
        for mark in &commit.marks {
            if self.ingest.durable(mark) {
                told.push(Durable::Batch(mark.mp, mark.sequence));
            }
        }
        for (_, event) in &commit.events {
            if let Event::Received { from, .. } = event {
                told.push(Durable::Content(*from, self.metas.last_received(*from)));
            }
        }
        told
    }

    fn record(&mut self, record: &Record) {
        self.metas.apply(record);
        self.accesses.count(record);
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::HandOver(hand_over) => {
                if let Some((to, content)) = self.metas.hand_over(hand_over) {
                    self.outbox.push(to, content);
                }
            }
            Event::Received { from, content } => {
                self.metas.receive(*from, content);
            }
            Event::Variable(variable) => {
                self.metas.declare(variable);
                self.dictionary.add(variable);
                self.variables.insert(variable.id(), variable.clone());
            }
            Event::Barrier(_)
            | Event::Counters { .. }
            | Event::Selection { .. }
            | Event::Report { .. }
            | Event::Times(_)
            | Event::Imported(_)
            | Event::Clock { .. }
            | Event::Processor { .. } => {}
        }
    }

    /// From now on memory processes record something else; `connected` are told now, others when they connect.
    pub fn select(&mut self, selection: Selection, connected: &[MpId]) {
        self.selection = Some(selection);
        connected.iter().for_each(|mp| self.note_selection(*mp));
    }

    /// What memory processes were told to record, if that was changed.
    pub fn selection(&self) -> Option<&Selection> {
        self.selection.as_ref()
    }

    /// Puts into the log what a memory process leaves out from now on: a reader of the store knows that it is not there.
    fn note_selection(&mut self, mp: MpId) {
        let selection = self.selection.as_ref().unwrap_or(&self.configured);
        if selection.leaves_out().is_some()
            && let Some(incarnation) = self.ingest.incarnation(mp)
        {
            self.pending.event(Event::Selection {
                mp,
                incarnation: incarnation.to_wire(),
                selection: selection.clone(),
            });
        }
    }

    /// The meta-objects.
    pub fn metas(&self) -> &MetaState {
        &self.metas
    }

    /// The variables that have meta-objects.
    pub fn variables(&self) -> &BTreeMap<VarId, Variable> {
        &self.variables
    }

    /// Accesses in the log.
    pub fn accesses(&self) -> &AccessCounts {
        &self.accesses
    }

    /// The memory processes that have connected.
    pub fn links(&self) -> &BTreeMap<MpId, Link> {
        &self.links
    }
}
