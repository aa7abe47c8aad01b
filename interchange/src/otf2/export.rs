//! Writing an archive.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use dosmos_proto::{ApId, MpId, VarId};
use dosmos_trace::query::Completeness;
use dosmos_trace::record::{Op, Record, Side};

use super::chunks::{Chunks, OF_DEFINITIONS, OF_EVENTS};
use super::definitions::{Attribute, Definitions};
use super::ids::{self, event, frame, kind};
use super::put::Bytes;
use crate::jsonl::Jsonl;
use crate::lanes::{Lanes, Process};
use crate::{Export, Run};

/// The format of the anchor file, and of traces.
const ANCHOR: u8 = 3;
const TRACES: u8 = 2;
/// The version of the library that writes the same.
const LIBRARY: [u8; 3] = [3, 0, 0];

/// A timeline in the making.
#[derive(Debug)]
struct Location {
    file: Chunks,
    process: Process,
    /// Its number among those of its process.
    number: u32,
}

/// Writes an archive into a directory. Memory grows with the processes, variables and regions, not with the records.
#[derive(Debug)]
pub struct Otf2 {
    dir: PathBuf,
    definitions: Definitions,
    locations: Vec<Location>,
    lanes: HashMap<Process, Lanes>,
    /// Regions by what they are of: variable or barrier, what is done to it, whether by its owner.
    regions: HashMap<(VarId, Op, bool, bool), u32>,
    windows: HashMap<VarId, u32>,
    /// Identifies the operations on windows.
    operations: u64,
    /// The communicator of all processes.
    everybody: u32,
    last: u64,
    /// Of the event that is put together.
    event: Bytes,
}

impl Otf2 {
    /// Writes into `dir`, an empty directory.
    pub fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_owned(),
            definitions: Definitions::default(),
            locations: Vec::new(),
            lanes: HashMap::new(),
            regions: HashMap::new(),
            windows: HashMap::new(),
            operations: 0,
            everybody: 0,
            last: 0,
            event: Bytes::default(),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The first location of a process, which stands for it.
    fn of(run: &Run, process: Process) -> io::Result<u64> {
        let topology = &run.catalog.topology;
        let (aps, mps) = (
            topology.application_processes().len(),
            topology.memory_processes().len(),
        );
        let (number, known) = match process {
            Process::Ap(ap) => (ap.index(), ap.index() < aps),
            Process::Mp(mp) => (aps + mp.index(), mp.index() < mps),
        };
        if known {
            return Ok(number as u64);
        }
        let unknown = format!("a record is of process {process:?}, which the run does not have");
        Err(io::Error::new(io::ErrorKind::InvalidData, unknown))
    }

    /// Another timeline of a process.
    fn locate(&mut self, process: Process, number: u32) -> io::Result<u64> {
        let id = self.locations.len() as u64;
        let place = self.file(ids::STEM);
        Chunks::create(&place.join(format!("{id}.def")), OF_DEFINITIONS)?.finish()?;
        let file = Chunks::create(&place.join(format!("{id}.evt")), OF_EVENTS)?;
        self.locations.push(Location {
            file,
            process,
            number,
        });
        Ok(id)
    }

    /// A timeline of `process` that is free from `begin` to `end`.
    fn lane(&mut self, run: &Run, process: Process, begin: u64, end: u64) -> io::Result<usize> {
        let first = Self::of(run, process)?;
        let lanes = self.lanes.entry(process).or_insert_with(|| {
            let mut lanes = Lanes::default();
            lanes.occupy(first, 0);
            lanes
        });
        if let Some(lane) = lanes.take(begin, end) {
            return Ok(lane as usize);
        }
        let of_it = |l: &&Location| l.process == process;
        let number = self.locations.iter().filter(of_it).count() as u32;
        let lane = self.locate(process, number)?;
        let lanes = self.lanes.entry(process).or_default();
        lanes.occupy(lane, end);
        Ok(lane as usize)
    }

    fn region(&mut self, run: &Run, r: &Record) -> u32 {
        let owner = serves(r);
        let key = (r.object.var, r.op, r.flags.atomic, owner);
        if let Some(&region) = self.regions.get(&key) {
            return region;
        }
        let name = match r.op {
            Op::Barrier => run.names.barrier(r.object.var).0.into(),
            _ => run.names.variable(r.object.var),
        };
        let served = if owner { "serve " } else { "" };
        let name = format!("{served}{} {name}", r.op);
        let region = self.definitions.region(&name, r.op, r.flags.atomic);
        self.regions.insert(key, region);
        region
    }

    /// The window of a variable, or that of a barrier, whose participants it has.
    fn window(&mut self, run: &Run, r: &Record) -> u32 {
        let var = r.object.var;
        if let Some(&window) = self.windows.get(&var) {
            return window;
        }
        let everybody = self.everybody;
        let window = match r.op {
            Op::Barrier => {
                let (name, group) = run.names.barrier(var);
                let of = group
                    .as_ref()
                    .map(|g| format!(" of {g}"))
                    .unwrap_or_default();
                let title = format!("barrier {name}{of}");
                // Ranks of application processes are their numbers.
                let its = run.catalog.barriers.iter().find(|b| b.id == var);
                let aps = run.catalog.topology.aps_in(its.and_then(|b| b.group));
                let members: Vec<u64> = aps.map(|ap| u64::from(ap.0)).collect();
                self.definitions
                    .window(&title, |d| d.communicator(&title, members.into_iter()))
            }
            _ => {
                let name = run.names.variable(var);
                self.definitions.window(&name, |_| everybody)
            }
        };
        self.windows.insert(var, window);
        window
    }

    /// Puts the attributes of a record before its event; `end`: when its region ends.
    fn attributes(&mut self, run: &Run, r: &Record, pending: bool, end: u64) -> io::Result<()> {
        let mut list = List::default();
        use Attribute as A;
        list.number(A::Object, kind::UINT32, r.object.index.into());
        if r.range != (0, 0) {
            list.number(A::First, kind::UINT32, r.range.0.into());
            list.number(A::End, kind::UINT32, r.range.1.into());
        }
        for (attribute, value) in [
            (A::Bytes, r.bytes),
            (A::Version, r.version),
            (A::Wait, r.wait.0),
            (A::Service, r.service.0),
        ] {
            if value > 0 {
                list.number(attribute, kind::UINT64, value);
            }
        }
        if r.count != 1 {
            list.number(A::Count, kind::UINT32, r.count.into());
        }
        let begin = run.since_start(r.start);
        if end - begin != r.duration.0 {
            list.number(A::Duration, kind::UINT64, r.duration.0);
        }
        let origin = self.definitions.string(r.origin.name());
        list.number(A::Origin, kind::STRING, origin.into());
        list.number(
            A::Owner,
            kind::LOCATION,
            Self::of(run, Process::Mp(r.peer))?,
        );
        let its = run.catalog.topology.ap(r.ap).map(|ap| ap.memory_process);
        if its != Some(r.mp) {
            list.number(
                A::MemoryProcess,
                kind::LOCATION,
                Self::of(run, Process::Mp(r.mp))?,
            );
        }
        if r.side == Side::Owner {
            list.number(
                A::Requester,
                kind::LOCATION,
                Self::of(run, Process::Ap(r.ap))?,
            );
        }
        if r.op == Op::Barrier
            && let (_, Some(group)) = run.names.barrier(r.object.var)
        {
            let group = self.definitions.string(&group);
            list.number(A::BarrierGroup, kind::STRING, group.into());
        }
        for (attribute, set) in [
            (A::Optimized, r.flags.optimized),
            (A::Sampled, r.flags.sampled),
            (A::Failed, r.flags.failed),
            (A::Waiting, r.flags.waiting && !pending),
            (A::Pending, pending),
            (A::InProcess, r.flags.in_process),
            (A::Atomic, r.flags.atomic),
            (A::FirstOfProcess, r.flags.first),
            (A::OwnClock, r.flags.own_clock),
            (A::Ahead, r.flags.ahead),
            (A::Posted, r.flags.posted),
        ] {
            if set {
                list.number(attribute, kind::UINT8, 1);
            }
        }
        self.event.record(frame::ATTRIBUTES, |b| {
            b.u32(list.length);
            b.0.extend(&list.entries.0);
        });
        Ok(())
    }

    /// Adds an event to a timeline.
    fn event(&mut self, lane: usize, time: u64, put: impl FnOnce(&mut Bytes)) -> io::Result<()> {
        put(&mut self.event);
        let done = self.locations[lane].file.event(time, &self.event.0);
        self.event.0.clear();
        done
    }

    fn put(&mut self, run: &Run, r: &Record, pending: bool) -> io::Result<()> {
        let begin = run.since_start(r.start);
        let end = match pending {
            true => self.last.max(begin),
            false => begin.saturating_add(r.duration.0),
        };
        self.last = self.last.max(end);
        let process = match serves(r) {
            false => Process::Ap(r.ap),
            true => Process::Mp(r.peer),
        };
        let lane = self.lane(run, process, begin, end)?;
        let region = self.region(run, r);
        self.attributes(run, r, pending, end)?;
        self.event(lane, begin, |b| {
            b.byte(event::ENTER);
            b.u32(region);
        })?;
        if r.is_access() || pending {
            self.one_sided(run, r, lane, (begin, end), pending)?;
        }
        self.event(lane, end, |b| {
            b.byte(event::LEAVE);
            b.u32(region);
        })
    }

    /// What an operation is to tools that know one-sided communication.
    fn one_sided(
        &mut self,
        run: &Run,
        r: &Record,
        lane: usize,
        (begin, end): (u64, u64),
        pending: bool,
    ) -> io::Result<()> {
        let target = Self::of(run, Process::Mp(r.peer))? as u32;
        // Nothing travels for a cached read, nor for what was done in the process.
        let travels = !r.flags.optimized && !r.flags.in_process;
        // When each of several sections was held is not known.
        let held = !r.is_of_past_sections();
        match r.op {
            Op::Read | Op::Write if travels => {
                let window = self.window(run, r);
                self.operations += 1;
                let number = self.operations;
                self.event(lane, begin, |b| match (r.op, r.flags.atomic) {
                    (Op::Read, _) => b.record(event::RMA_GET, |b| {
                        transfer(b, window, target, r.bytes, number);
                    }),
                    (_, false) => b.record(event::RMA_PUT, |b| {
                        transfer(b, window, target, r.bytes, number);
                    }),
                    (_, true) => b.record(event::RMA_ATOMIC, |b| {
                        b.u32(window);
                        b.u32(target);
                        b.byte(ids::FETCH_AND_ACCUMULATE);
                        b.u64(r.bytes);
                        b.u64(0);
                        b.u64(number);
                    }),
                })?;
                self.event(lane, end, |b| {
                    b.record(event::RMA_COMPLETE_BLOCKING, |b| {
                        b.u32(window);
                        b.u64(number);
                    });
                })
            }
            Op::Acquire if held => {
                let window = self.window(run, r);
                let lock = |b: &mut Bytes| {
                    b.u32(window);
                    b.u32(target);
                    b.u64(r.object.index.into());
                    b.byte(ids::EXCLUSIVE);
                };
                self.event(lane, begin, |b| b.record(event::RMA_REQUEST_LOCK, lock))?;
                if pending {
                    return Ok(());
                }
                self.event(lane, end, |b| b.record(event::RMA_ACQUIRE_LOCK, lock))
            }
            Op::Release if held => {
                let window = self.window(run, r);
                self.event(lane, begin, |b| {
                    b.record(event::RMA_RELEASE_LOCK, |b| {
                        b.u32(window);
                        b.u32(target);
                        b.u64(r.object.index.into());
                    });
                })
            }
            Op::Barrier => {
                let window = self.window(run, r);
                self.event(lane, begin, |b| {
                    b.record(event::RMA_COLLECTIVE_BEGIN, |_| {});
                })?;
                self.event(lane, end, |b| {
                    b.record(event::RMA_COLLECTIVE_END, |b| {
                        b.byte(ids::BARRIER);
                        b.u32(ids::SYNCHRONIZES);
                        b.u32(window);
                        b.u32(ids::NONE);
                        b.u64(0);
                        b.u64(0);
                    });
                })
            }
            _ => Ok(()),
        }
    }

    /// Groups as nodes of a tree below the run.
    fn tree(&mut self, run: &Run) {
        let topology = &run.catalog.topology;
        self.definitions.node(0, topology.name(), "machine", None);
        for (number, group) in (1..).zip(topology.groups()) {
            let path = group.path.as_str();
            let name = path.rsplit('/').next().unwrap_or(path);
            let parent = group.parent.map_or(0, |g| g.0 + 1);
            self.definitions.node(number, name, "group", Some(parent));
        }
    }

    /// Processes and their timelines; how many timelines.
    fn processes(&mut self, run: &Run) -> io::Result<u64> {
        let topology = &run.catalog.topology;
        let node = |mp: MpId| topology.mp(mp).map_or(0, |mp| mp.group.0 + 1);
        let aps = topology.application_processes();
        for (number, ap) in (0..).zip(aps) {
            self.definitions
                .process(number, &ap.name, node(ap.memory_process));
        }
        let mps = (0..).map(MpId).zip(topology.memory_processes());
        for (number, (mp, its)) in (aps.len() as u32..).zip(mps) {
            self.definitions.process(number, &its.name, node(mp));
        }
        let locations = std::mem::take(&mut self.locations);
        let count = locations.len() as u64;
        for (id, location) in (0u64..).zip(locations) {
            let name = match location.process {
                Process::Ap(ap) => run.names.ap(ap),
                Process::Mp(mp) => run.names.mp(mp),
            };
            let name = match location.number {
                0 => name.into_owned(),
                n => format!("{name}, beside {n}"),
            };
            let process = Self::of(run, location.process)? as u32;
            let events = location.file.finish()?;
            self.definitions.location(id, &name, events, process);
        }
        Ok(count)
    }

    /// What the archive is, and what it says of itself.
    fn anchor(
        &self,
        run: &Run,
        lacking: &Completeness,
        locations: u64,
        definitions: u64,
    ) -> io::Result<()> {
        let about = about(run, lacking)?;
        let mut b = Bytes::default();
        b.byte(frame::CHUNK_HEADER);
        b.byte(frame::LITTLE_ENDIAN);
        b.text("OTF2");
        b.byte(ANCHOR);
        b.byte(TRACES);
        LIBRARY.into_iter().for_each(|part| b.byte(part));
        b.whole_u64(OF_EVENTS);
        b.whole_u64(OF_DEFINITIONS);
        b.byte(ids::FILES);
        b.byte(ids::NOT_COMPRESSED);
        b.whole_u64(locations);
        b.whole_u64(definitions);
        b.text(""); // The machine is not known.
        b.text(&format!("dosmos {}", env!("CARGO_PKG_VERSION")));
        b.text(run.catalog.topology.name());
        b.whole_u32(1);
        b.text(ids::ABOUT);
        b.text(&about);
        b.whole_u64(fingerprint(about.as_bytes()));
        b.whole_u32(0); // Snapshots and thumbnails.
        b.whole_u32(0);
        b.byte(frame::END_OF_FILE);
        b.byte(frame::END_OF_BUFFER);
        b.byte(frame::END_OF_CHUNK);
        fs::File::create_new(self.file(&format!("{}.otf2", ids::STEM)))?.write_all(&b.0)
    }
}

impl Export for Otf2 {
    fn begin(&mut self, run: &Run) -> io::Result<()> {
        fs::create_dir(self.file(ids::STEM))?;
        self.last = run.since_start(run.end);
        self.definitions.begin();
        let topology = &run.catalog.topology;
        let aps = (0..topology.application_processes().len() as u32).map(|i| Process::Ap(ApId(i)));
        let mps = (0..topology.memory_processes().len() as u32).map(|i| Process::Mp(MpId(i)));
        for process in aps.chain(mps) {
            self.locate(process, 0)?;
        }
        // The rank of a process is the number of its first location.
        let all = self.locations.len();
        self.definitions.ranks((0..all).map(|i| i as u64));
        self.everybody = self
            .definitions
            .communicator("all processes", (0..all).map(|i| i as u64));
        Ok(())
    }

    fn in_order_of_start(&self) -> bool {
        true
    }

    fn record(&mut self, run: &Run, record: &Record, pending: bool) -> io::Result<()> {
        self.put(run, record, pending)
    }

    fn end(&mut self, run: &Run, lacking: &Completeness) -> io::Result<()> {
        self.tree(run);
        let locations = self.processes(run)?;
        let path = self.file(&format!("{}.def", ids::STEM));
        let definitions = self.definitions.write(&path, run.start.0, self.last)?;
        self.anchor(run, lacking, locations, definitions)
    }
}

/// Attributes of an event.
#[derive(Debug, Default)]
struct List {
    length: u32,
    entries: Bytes,
}

impl List {
    fn number(&mut self, attribute: Attribute, kind: u8, value: u64) {
        self.length += 1;
        self.entries.u32(attribute as u32);
        self.entries.byte(kind);
        match kind {
            kind::UINT8 => self.entries.byte(value as u8),
            // Of 32 bits or more: compressed alike, but for the greatest.
            kind::UINT32 | kind::STRING => self.entries.u32(value as u32),
            _ => self.entries.u64(value),
        }
    }
}

/// Whether a record is of what an owner did for another memory process. (That a process waits is known to the owner, too.)
fn serves(r: &Record) -> bool {
    r.side == Side::Owner && !r.flags.waiting
}

fn transfer(b: &mut Bytes, window: u32, target: u32, bytes: u64, number: u64) {
    b.u32(window);
    b.u32(target);
    b.u64(bytes);
    b.u64(number);
}

/// The lines of the JSONL format but for the records. Owners' records cannot be read back: the times of what was handed over to
/// them are not known.
fn about(run: &Run, lacking: &Completeness) -> io::Result<String> {
    let run = Run {
        owner_records: false,
        ..run.clone()
    };
    let mut lines = Jsonl::new(Vec::new());
    lines.begin(&run)?;
    lines.end(&run, lacking)?;
    String::from_utf8(lines.into_inner()).map_err(io::Error::other)
}

/// Tells archives apart (FNV-1a).
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &b| {
        (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    })
}
