//! From records to slices, arrows and counters.

use std::collections::HashMap;
use std::io::{self, Write};

use dosmos_proto::ObjectId;
use dosmos_trace::query::Completeness;
use dosmos_trace::record::{Op, Record, Side};

use super::packets::{Category, Details, MARKS, Packets};
use super::rates::{COUNTERS, Rates};
use super::schema::{
    CounterDescriptor, EventType, ProcessDescriptor, TracePacket, TrackDescriptor, TrackEvent,
};
use crate::lanes::{Lanes, Process};
use crate::sections::{Section, Sections, is_of_section};
use crate::{Names, Run};

/// Timelines below a process are in the order of their ranks.
const BY_RANK: i32 = 3;
/// Processes get numbers for the viewer: application processes from here,
const FIRST_AP: u32 = 1;
/// memory processes from here.
const FIRST_MP: u32 = 1 << 24;

/// What tells names of slices apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Name {
    Of(Op, ObjectId),
    Barrier(ObjectId),
    WaitFor(Op, ObjectId),
    WaitAt(ObjectId),
    Section(ObjectId),
}

/// Writes slices.
#[derive(Debug)]
pub(super) struct Timeline<W> {
    out: Packets<W, Name>,
    processes: HashMap<Process, u64>,
    lanes: HashMap<(Process, &'static str), Lanes>,
    /// Releases are known by the arrows that begin there.
    sections: Sections<(), u64>,
    rates: Rates,
    flows: u64,
    /// End of the last slice, nanoseconds of the run.
    last: u64,
}

impl<W: Write> Timeline<W> {
    pub(super) fn new(out: W) -> Self {
        Self {
            out: Packets::new(out),
            processes: HashMap::new(),
            lanes: HashMap::new(),
            sections: Sections::default(),
            rates: Rates::new(0),
            flows: 0,
            last: 0,
        }
    }

    pub(super) fn begin(&mut self, run: &Run) -> io::Result<()> {
        self.rates = Rates::new(run.since_start(run.end));
        self.last = run.since_start(run.end);
        self.out.begin(run.start.0)
    }

    /// Adds a record.
    pub(super) fn put(&mut self, run: &Run, r: &Record, pending: bool) -> io::Result<()> {
        let begin = run.since_start(r.start);
        // A wait is within its operation, also where the file says otherwise.
        let end = after(begin, r.duration.max(r.wait).0);
        self.last = self.last.max(end);
        if r.side == Side::Owner && !r.flags.waiting {
            return self.served(run, r, (begin, end));
        }
        if r.flags.waiting && !pending {
            // The grant follows, and has the wait.
            return Ok(());
        }
        if r.is_access() {
            self.rates.count(begin, r);
        }
        let released = self.section_ends(run, r, begin)?;
        let lane = match pending {
            true => (begin, self.last.max(begin)),
            false => (begin, end),
        };
        self.access(run, r, lane, pending, released)?;
        if r.op == Op::Acquire && is_of_section(r) {
            self.sections.begins(r, ());
        }
        Ok(())
    }

    /// What an application process did, and its wait within.
    fn access(
        &mut self,
        run: &Run,
        r: &Record,
        (begin, end): (u64, u64),
        pending: bool,
        released: Option<u64>,
    ) -> io::Result<()> {
        let track = self.lane(run, Process::Ap(r.ap), "operations", (begin, end))?;
        let (name, key) = (&run.names, name_of(r));
        let name = self.out.name(key, || say(name, key));
        let mut details = self.details(&run.names, r);
        details.flag("pending", pending);
        details.begins = released;
        self.out
            .slice_begins(begin, track, Category::Access, name, details)?;
        let wait = match pending {
            true => end - begin,
            false => r.wait.0,
        };
        if wait > 0 {
            let key = match r.op {
                Op::Barrier => Name::WaitAt(ObjectId::new(r.object.var, 0)),
                op => Name::WaitFor(op, r.object),
            };
            let name = self.out.name(key, || say(&run.names, key));
            let none = Details::default();
            self.out
                .slice_begins(begin, track, Category::Wait, name, none)?;
            self.out.slice_ends(after(begin, wait), track)?;
        }
        self.out.slice_ends(end, track)
    }

    /// What a memory process did for another.
    fn served(&mut self, run: &Run, r: &Record, (begin, end): (u64, u64)) -> io::Result<()> {
        let track = self.lane(run, Process::Mp(r.peer), "served", (begin, end))?;
        let key = name_of(r);
        let name = self.out.name(key, || say(&run.names, key));
        let details = self.details(&run.names, r);
        self.out
            .slice_begins(begin, track, Category::Served, name, details)?;
        self.out.slice_ends(end, track)
    }

    /// If the record ends a section of its process, draws that. Of a release: the arrow that begins there.
    fn section_ends(&mut self, run: &Run, r: &Record, at: u64) -> io::Result<Option<u64>> {
        if !is_of_section(r) {
            return Ok(None);
        }
        if let Some(section) = self.sections.ended_by(r) {
            let lost = r.op == Op::Acquire;
            self.section(run, section, at, lost)?;
        }
        if r.op == Op::Acquire {
            return Ok(None);
        }
        self.flows += 1;
        let flow = self.flows;
        self.sections.released(r, flow);
        Ok(Some(flow))
    }

    fn section(&mut self, run: &Run, section: Section<()>, end: u64, open: bool) -> io::Result<()> {
        let begin = run.since_start(section.begin);
        let end = end.max(begin);
        let track = self.lane(run, Process::Ap(section.ap), "sections", (begin, end))?;
        let key = Name::Section(section.object);
        let name = self.out.name(key, || say(&run.names, key));
        let mut details = Details::default();
        details.number("version", section.version);
        details.flag("open", open);
        details.ends = self.sections.handed_over_by(&section).map(|last| last.mark);
        self.out
            .slice_begins(begin, track, Category::Section, name, details)?;
        self.out.slice_ends(end, track)
    }

    fn details(&mut self, names: &Names, r: &Record) -> Details {
        let mut details = Details::default();
        let origin = self.out.text(r.origin.name());
        details.add("origin", origin);
        let owner = self.out.text(&names.mp(r.peer));
        details.add("owner", owner);
        details.number("bytes", r.bytes);
        if r.count > 1 {
            details.number("count", r.count.into());
        }
        details.number("version", r.version);
        if r.wait.0 > 0 {
            details.number("wait_ns", r.wait.0);
        }
        if r.service.0 > 0 {
            details.number("service_ns", r.service.0);
        }
        details.flag("optimized", r.flags.optimized);
        details.flag("in_process", r.flags.in_process);
        details.flag("failed", r.flags.failed);
        details.flag("sampled", r.flags.sampled);
        details
    }

    /// A timeline of `process` that is free for a slice.
    fn lane(
        &mut self,
        run: &Run,
        process: Process,
        kind: &'static str,
        (begin, end): (u64, u64),
    ) -> io::Result<u64> {
        self.last = self.last.max(end);
        let lanes = self.lanes.entry((process, kind)).or_default();
        if let Some(track) = lanes.take(begin, end) {
            return Ok(track);
        }
        let parent = self.process(run, process)?;
        let track = self.out.track(TrackDescriptor {
            parent_uuid: Some(parent),
            name: Some(kind.to_owned()),
            sibling_order_rank: Some(i32::from(kind == "sections")),
            ..TrackDescriptor::default()
        })?;
        let lanes = self.lanes.entry((process, kind)).or_default();
        lanes.occupy(track, end);
        Ok(track)
    }

    fn process(&mut self, run: &Run, process: Process) -> io::Result<u64> {
        if let Some(&track) = self.processes.get(&process) {
            return Ok(track);
        }
        let topology = &run.catalog.topology;
        let (name, mp, number) = match process {
            Process::Ap(ap) => {
                let mp = topology.ap(ap).map(|p| p.memory_process);
                (run.names.ap(ap), mp, FIRST_AP.saturating_add(ap.0))
            }
            Process::Mp(mp) => (run.names.mp(mp), Some(mp), FIRST_MP.saturating_add(mp.0)),
        };
        let group = mp.and_then(|mp| topology.mp(mp)).map(|mp| mp.group);
        let name = match group {
            Some(group) => format!("{name} ({})", run.names.group(group)),
            None => name.into_owned(),
        };
        let track = self.out.track(TrackDescriptor {
            process: Some(ProcessDescriptor {
                pid: i32::try_from(number).ok(),
                process_name: Some(name),
            }),
            child_ordering: Some(BY_RANK),
            ..TrackDescriptor::default()
        })?;
        self.processes.insert(process, track);
        Ok(track)
    }

    /// Ends what is open, and adds counters and what is missing.
    pub(super) fn end(&mut self, run: &Run, lacking: &Completeness) -> io::Result<()> {
        // Drawn in the order of their begins: their ends are the same.
        for section in self.sections.take_open() {
            self.section(run, section, self.last, true)?;
        }
        self.counters()?;
        self.completeness(run, lacking)?;
        self.out.flush()
    }

    fn counters(&mut self) -> io::Result<()> {
        let parent = self.out.track(TrackDescriptor {
            name: Some("rates".to_owned()),
            ..TrackDescriptor::default()
        })?;
        for (i, (name, unit)) in COUNTERS.iter().enumerate() {
            let track = self.out.track(TrackDescriptor {
                parent_uuid: Some(parent),
                name: Some((*name).to_owned()),
                counter: Some(CounterDescriptor {
                    unit_name: Some((*unit).to_owned()),
                }),
                ..TrackDescriptor::default()
            })?;
            let mut shown = None;
            for (at, values) in self.rates.values() {
                if shown != Some(values[i]) {
                    self.out.counter(at, track, values[i])?;
                    shown = Some(values[i]);
                }
            }
            self.out.counter(self.rates.end(), track, 0.0)?;
        }
        Ok(())
    }

    /// A timeline over the whole run: how complete it is, and why not; and how far times of different event managers can be
    /// compared.
    fn completeness(&mut self, run: &Run, lacking: &Completeness) -> io::Result<()> {
        let track = self.out.track(TrackDescriptor {
            name: Some("completeness".to_owned()),
            ..TrackDescriptor::default()
        })?;
        let lost = !lacking.is_complete();
        let mut mark = |at, kind: EventType, name: Option<String>| {
            self.out.packet(&TracePacket {
                timestamp: Some(at),
                track_event: Some(TrackEvent {
                    track_uuid: Some(track),
                    r#type: Some(kind.into()),
                    name,
                    ..TrackEvent::default()
                }),
                trusted_packet_sequence_id: Some(MARKS),
                previous_packet_dropped: lost.then_some(1),
                ..TracePacket::default()
            })
        };
        let recorded = lacking.recorded;
        mark(
            0,
            EventType::Instant,
            Some(format!("{recorded} records were made")),
        )?;
        for line in run.about_clocks() {
            mark(0, EventType::Instant, Some(line))?;
        }
        let reasons = lacking.reasons();
        for reason in &reasons {
            mark(
                0,
                EventType::SliceBegin,
                Some(format!("incomplete: {reason}")),
            )?;
        }
        for _ in &reasons {
            mark(self.last, EventType::SliceEnd, None)?;
        }
        Ok(())
    }
}

/// Viewers have signed time stamps.
fn after(begin: u64, length: u64) -> u64 {
    const LAST: u64 = i64::MAX as u64;
    begin.saturating_add(length).min(LAST)
}

fn name_of(r: &Record) -> Name {
    match r.op {
        // Generations of one barrier have one name.
        Op::Barrier => Name::Barrier(ObjectId::new(r.object.var, 0)),
        op => Name::Of(op, r.object),
    }
}

fn say(names: &Names, name: Name) -> String {
    let object = |o: ObjectId| format!("{}[{}]", names.variable(o.var), o.index);
    let barrier = |o: ObjectId| {
        let (name, group) = names.barrier(o.var);
        let group = group.map(|g| format!(" of {g}")).unwrap_or_default();
        let space = if name.is_empty() { "" } else { " " };
        format!("barrier{space}{name}{group}")
    };
    match name {
        Name::Of(op, o) => format!("{op} {}", object(o)),
        Name::Barrier(o) => barrier(o),
        Name::WaitAt(o) => format!("wait at {}", barrier(o)),
        Name::WaitFor(Op::Release, o) => format!("wait for copies of {}", object(o)),
        Name::WaitFor(_, o) => format!("wait for {}", object(o)),
        Name::Section(o) => format!("section {}", object(o)),
    }
}
