//! Archives of other programs: one-sided operations (MPI, OpenSHMEM, GASPI) as accesses to shared memory.
//!
//! * A window is a variable with an object for each rank of its communicator, which the rank's process owns.
//! * `RmaGet` is a read, `RmaPut` and `RmaAtomic` are writes, from the operation to its completion.
//! * Exclusive locks are sections: from the request to the lock an acquire, at the release a release.
//! * Collective operations that are barriers are barriers, named after their window or communicator.
//! * A process is an application process with a memory process of its own; the nodes of the system tree are groups.

use std::collections::{BTreeMap, HashMap, HashSet};

use dosmos_proto::names::MAX_NAME_BYTES;
use dosmos_proto::{Cache, CopyPolicy, LockKind, Nanos};
use dosmos_trace::record::{Op, Side};

use super::archive::{Archive, Defined};
use super::events::{Event, Locking, What};
use super::ids;
use crate::jsonl::{line, rfc3339};

/// Names of a process: as application process and as memory process.
#[derive(Clone, Debug)]
struct Names {
    ap: String,
    mp: String,
}

/// A window.
#[derive(Clone, Debug)]
struct Window {
    name: String,
    /// Processes by rank.
    ranks: Vec<u32>,
}

/// What is under way at a location.
#[derive(Clone, Copy, Debug)]
struct Transfer {
    begin: u64,
    write: bool,
    atomic: bool,
    target: u32,
    bytes: u64,
}

/// A lock: of a location, a window, a rank and a number.
type Lock = (u64, u32, u32, u64);

/// Makes records of events.
#[derive(Debug)]
pub(super) struct Rma<'a> {
    defined: &'a Defined,
    processes: BTreeMap<u32, Names>,
    windows: BTreeMap<u32, Window>,
    transfers: HashMap<(u64, u32, u64), Vec<Transfer>>,
    requests: HashMap<Lock, u64>,
    held: HashSet<Lock>,
    collectives: HashMap<u64, u64>,
    messages: u64,
    shared_locks: u64,
    collective_operations: u64,
    unknown_targets: u64,
    without_lock: u64,
    unfinished: u64,
}

impl<'a> Rma<'a> {
    pub(super) fn new(archive: &'a Archive) -> Self {
        let defined = &archive.defined;
        let mut taken = HashSet::new();
        let busy = defined.locations.values().filter(|l| l.events > 0);
        let busy: HashSet<u32> = busy.map(|l| l.process).collect();
        let processes: BTreeMap<u32, Names> = defined
            .processes
            .iter()
            .filter(|(number, p)| p.kind == ids::PROCESS || busy.contains(number))
            .map(|(&number, _)| {
                let ap = unique(
                    defined.process(number),
                    &format!("process {number}"),
                    &mut taken,
                );
                let mp = unique(&format!("memory of {ap}"), "", &mut taken);
                (number, Names { ap, mp })
            })
            .collect();
        let mut taken = HashSet::new();
        let windows = defined.windows().map(|(number, name, communicator)| {
            let members = defined.members(communicator).into_iter();
            let window = Window {
                name: unique(name, &format!("window {number}"), &mut taken),
                ranks: members.filter_map(|l| defined.process_of(l)).collect(),
            };
            (number, window)
        });
        Self {
            defined,
            windows: windows.collect(),
            processes,
            transfers: HashMap::new(),
            requests: HashMap::new(),
            held: HashSet::new(),
            collectives: HashMap::new(),
            messages: 0,
            shared_locks: 0,
            collective_operations: 0,
            unknown_targets: 0,
            without_lock: 0,
            unfinished: 0,
        }
    }

    /// What comes before the records: the run, its processes and its variables.
    pub(super) fn declarations(&self, archive: &Archive) -> Vec<line::Line<'_>> {
        let stem = archive
            .path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy();
        let name = match archive.description.trim() {
            "" => stem.into_owned(),
            description => plain(description),
        };
        let known = archive.clock.unix != 0 && i64::try_from(archive.clock.unix).is_ok();
        let mut lines = vec![line::Line::Run(line::Run {
            name: line::Text(name.into()),
            start: known.then(|| line::Text(rfc3339(Nanos(archive.clock.unix)).into())),
            end_ns: None,
            owner_records: false,
        })];
        for (number, names) in &self.processes {
            let node = self.defined.processes.get(number).map(|p| p.node);
            let path = self.defined.path(node.unwrap_or(ids::NONE));
            lines.push(line::Line::Mp(line::Mp {
                name: names.mp.as_str().into(),
                group: line::Text(group_of(&path).into()),
                link: false,
                clock: None,
            }));
        }
        for names in self.processes.values() {
            lines.push(line::Line::Ap(line::Ap {
                name: names.ap.as_str().into(),
                mp: names.mp.as_str().into(),
                group: None,
            }));
        }
        for window in self.windows.values() {
            let owner = |process: &u32| Some(self.processes.get(process)?.mp.as_str().into());
            let owners: Vec<line::Text<'_>> = window.ranks.iter().filter_map(owner).collect();
            if owners.is_empty() || owners.len() < window.ranks.len() {
                continue;
            }
            lines.push(line::Line::Variable(Box::new(line::Variable {
                name: window.name.as_str().into(),
                objects: Some(owners.len() as u32),
                owner: line::Owner::Each(owners),
                group: None,
                bytes: None,
                policy: CopyPolicy::default(),
                lock: LockKind::default(),
                cache: Cache::default(),
                replicas: 0,
                layout: None,
            })));
        }
        lines
    }

    /// Takes an event of a location; the records that it completes go to `put`.
    pub(super) fn take<E>(
        &mut self,
        location: u64,
        event: &Event,
        mut put: impl FnMut(&line::Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let now = event.time;
        match event.what {
            What::Transfer {
                write,
                atomic,
                window,
                target,
                bytes,
                number,
            } => {
                let transfer = Transfer {
                    begin: now,
                    write,
                    atomic,
                    target,
                    bytes,
                };
                let key = (location, window, number);
                self.transfers.entry(key).or_default().push(transfer);
                Ok(())
            }
            What::Complete { window, number } => {
                let done = self.transfers.remove(&(location, window, number));
                done.unwrap_or_default()
                    .into_iter()
                    .try_for_each(|transfer| {
                        self.transferred(location, window, transfer, now, &mut put)
                    })
            }
            What::Lock {
                exclusive: false,
                what,
                ..
            } => {
                self.shared_locks += u64::from(what == Locking::Acquire);
                Ok(())
            }
            What::Lock {
                what,
                window,
                target,
                lock,
                ..
            } => self.lock((location, window, target, lock), what, now, &mut put),
            What::CollectiveBegin => {
                self.collectives.insert(location, now);
                Ok(())
            }
            What::CollectiveOfComm { op, communicator } => {
                let name = self.defined.communicator(communicator).map(plain);
                let name = name.filter(|name| !name.is_empty());
                let name = name.unwrap_or_else(|| format!("communicator {communicator}"));
                self.collective(location, op, &name, now, &mut put)
            }
            What::CollectiveOfWindow { op, window } => {
                let name = self.windows.get(&window).map(|w| w.name.clone());
                let name = name.unwrap_or_else(|| format!("window {window}"));
                self.collective(location, op, &name, now, &mut put)
            }
            What::Message => {
                self.messages += 1;
                Ok(())
            }
            What::Enter(_) | What::Leave(_) | What::Other => Ok(()),
        }
    }

    /// The end of the archive: what was never completed.
    pub(super) fn end<E>(
        &mut self,
        mut put: impl FnMut(&line::Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut open: Vec<_> = std::mem::take(&mut self.transfers).into_iter().collect();
        open.sort_by_key(|(key, _)| *key);
        for ((location, window, _), transfers) in open {
            for transfer in transfers {
                self.unfinished += 1;
                self.transferred(location, window, transfer, transfer.begin, &mut put)?;
            }
        }
        Ok(())
    }

    fn transferred<E>(
        &mut self,
        location: u64,
        window: u32,
        transfer: Transfer,
        end: u64,
        put: &mut impl FnMut(&line::Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let op = if transfer.write { Op::Write } else { Op::Read };
        let Some(mut record) = self.record(location, op, (transfer.begin, end)) else {
            return Ok(());
        };
        if !self.target(&mut record, window, transfer.target) {
            self.unknown_targets += 1;
            return Ok(());
        }
        record.bytes = transfer.bytes;
        record.atomic = transfer.atomic;
        put(&record)
    }

    fn lock<E>(
        &mut self,
        lock: Lock,
        what: Locking,
        now: u64,
        put: &mut impl FnMut(&line::Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (location, window, target, _) = lock;
        let (op, begin) = match what {
            Locking::Request => {
                self.requests.insert(lock, now);
                return Ok(());
            }
            Locking::Acquire => {
                self.held.insert(lock);
                (Op::Acquire, self.requests.remove(&lock).unwrap_or(now))
            }
            Locking::Release => {
                if !self.held.remove(&lock) {
                    // Of a shared lock, or of one that was taken before the recording began.
                    self.without_lock += 1;
                    return Ok(());
                }
                (Op::Release, now)
            }
        };
        let Some(mut record) = self.record(location, op, (begin, now)) else {
            return Ok(());
        };
        if !self.target(&mut record, window, target) {
            self.unknown_targets += 1;
            return Ok(());
        }
        record.wait_ns = record.dur_ns;
        put(&record)
    }

    fn collective<E>(
        &mut self,
        location: u64,
        op: u8,
        name: &str,
        now: u64,
        put: &mut impl FnMut(&line::Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let begin = self.collectives.remove(&location).unwrap_or(now);
        if op != ids::BARRIER {
            self.collective_operations += 1;
            return Ok(());
        }
        let Some(mut record) = self.record(location, Op::Barrier, (begin, now)) else {
            return Ok(());
        };
        record.barrier = Some(name.into());
        record.wait_ns = record.dur_ns;
        put(&record)
    }

    /// A record of the process of a location.
    fn record(&self, location: u64, op: Op, (begin, end): (u64, u64)) -> Option<line::Record<'_>> {
        let process = self.defined.process_of(location)?;
        let names = self.processes.get(&process)?;
        Some(line::Record {
            t_ns: begin,
            dur_ns: end.saturating_sub(begin),
            wait_ns: 0,
            service_ns: 0,
            op,
            var: None,
            object: None,
            barrier: None,
            barrier_group: None,
            ap: names.ap.as_str().into(),
            mp: None,
            owner: None,
            origin: None,
            optimized: false,
            in_process: false,
            atomic: false,
            first: false,
            own_clock: false,
            ahead: false,
            posted: false,
            count: 1,
            bytes: 0,
            version: 0,
            range: None,
            side: Side::Requester,
            sampled: false,
            failed: false,
            waiting: false,
            pending: false,
        })
    }

    /// Says what a record is of; false if there is no such rank.
    fn target<'r>(&'r self, record: &mut line::Record<'r>, window: u32, rank: u32) -> bool {
        let window = self.windows.get(&window);
        let Some(window) = window.filter(|w| (rank as usize) < w.ranks.len()) else {
            return false;
        };
        record.var = Some(window.name.as_str().into());
        record.object = Some(rank);
        true
    }

    /// Accesses that were left out, or are not known as they were.
    pub(super) fn lacking(&self) -> Vec<String> {
        counted(&[
            (
                self.shared_locks,
                "shared locks were left out: sections are exclusive here",
            ),
            (
                self.without_lock,
                "releases of locks that were shared, or taken before the recording, were left out",
            ),
            (
                self.unknown_targets,
                "operations on all ranks, or on such as the window does not have, were left out",
            ),
            (
                self.unfinished,
                "operations have no completion, and count as if they took no time",
            ),
        ])
    }

    /// What was left out because it does not access shared memory.
    pub(super) fn others(&self) -> Vec<String> {
        counted(&[
            (self.messages, "messages, which do not access shared memory"),
            (
                self.collective_operations,
                "collective operations that are not barriers",
            ),
        ])
    }
}

/// Those of which there are any.
fn counted(all: &[(u64, &str)]) -> Vec<String> {
    let some = all.iter().filter(|(count, _)| *count > 0);
    some.map(|(count, what)| format!("{count} {what}"))
        .collect()
}

/// A name that is one: without control characters, and not too long.
fn plain(name: &str) -> String {
    let mut plain: String = name
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    // Room for what makes it unique.
    let mut end = plain.len().min(MAX_NAME_BYTES - 32);
    while !plain.is_char_boundary(end) {
        end -= 1;
    }
    plain.truncate(end);
    plain.trim().to_owned()
}

/// A name that is not taken: `name`, or `otherwise` if that is empty.
fn unique(name: &str, otherwise: &str, taken: &mut HashSet<String>) -> String {
    let name = match plain(name) {
        empty if empty.is_empty() => otherwise.to_owned(),
        name => name,
    };
    let others = (2u64..).map(|n| format!("{name} #{n}"));
    let mut all = std::iter::once(name.clone()).chain(others);
    let free = all.find(|name| !taken.contains(name)).unwrap_or_default();
    taken.insert(free.clone());
    free
}

/// The path of the group that a node of the system tree is.
fn group_of(path: &[&str]) -> String {
    let name = |name: &&str| match plain(name).replace('/', "_") {
        empty if empty.is_empty() => "node".to_owned(),
        name => name,
    };
    let names: Vec<String> = path.iter().map(name).collect();
    let whole = format!("/{}", names.join("/"));
    match names.last() {
        None => "/all".to_owned(),
        Some(last) if whole.len() > MAX_NAME_BYTES => format!("/{last}"),
        Some(_) => whole,
    }
}
