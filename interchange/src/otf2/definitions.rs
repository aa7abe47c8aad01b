//! What an archive defines: names by number, and what they are names of. Gathered during an export, written at its end.

use std::collections::HashMap;
use std::hash::Hash;
use std::io;
use std::path::Path;

use dosmos_trace::record::Op;

use super::chunks::{Chunks, OF_DEFINITIONS};
use super::ids::{self, definition, group, kind, role};
use super::put::Bytes;

/// What an event says beside its time and region. Numbers are their places in [`ATTRIBUTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attribute {
    Object,
    First,
    End,
    Bytes,
    Version,
    Count,
    Wait,
    Service,
    Origin,
    Owner,
    MemoryProcess,
    Requester,
    BarrierGroup,
    Duration,
    Optimized,
    Sampled,
    Failed,
    Waiting,
    Pending,
    InProcess,
    Atomic,
    FirstOfProcess,
    OwnClock,
    Ahead,
    Posted,
}

/// Name without prefix, type and description of each attribute.
pub(super) const ATTRIBUTES: [(Attribute, &str, u8, &str); 25] = {
    use Attribute as A;
    use kind::{LOCATION, STRING, UINT8, UINT32, UINT64};
    [
        (
            A::Object,
            "object",
            UINT32,
            "object of the variable, or generation of the barrier",
        ),
        (
            A::First,
            "first_element",
            UINT32,
            "first element read or written",
        ),
        (A::End, "end_element", UINT32, "element behind the last one"),
        (A::Bytes, "bytes", UINT64, "bytes read or written"),
        (
            A::Version,
            "version",
            UINT64,
            "number of releases of the object",
        ),
        (A::Count, "count", UINT32, "accesses that this stands for"),
        (A::Wait, "wait_ns", UINT64, "nanoseconds of waiting"),
        (
            A::Service,
            "service_ns",
            UINT64,
            "nanoseconds of being served at the owner",
        ),
        (
            A::Origin,
            "origin",
            STRING,
            "local, intra (of another memory process) or inter (of another group)",
        ),
        (
            A::Owner,
            "owner",
            LOCATION,
            "memory process that owns the object",
        ),
        (
            A::MemoryProcess,
            "memory_process",
            LOCATION,
            "memory process that was asked",
        ),
        (
            A::Requester,
            "requester",
            LOCATION,
            "application process that was served",
        ),
        (
            A::BarrierGroup,
            "barrier_group",
            STRING,
            "group of processes that meet",
        ),
        (
            A::Duration,
            "duration_ns",
            UINT64,
            "nanoseconds until the answer, where the region ends elsewhere",
        ),
        (A::Optimized, "optimized", UINT8, "a cached read"),
        (A::Sampled, "sampled", UINT8, "stands for several accesses"),
        (A::Failed, "failed", UINT8, "was refused"),
        (
            A::Waiting,
            "waiting",
            UINT8,
            "a notice that an acquire waits",
        ),
        (A::Pending, "pending", UINT8, "waited to the end of the run"),
        (
            A::InProcess,
            "in_process",
            UINT8,
            "served in the application process",
        ),
        (A::Atomic, "atomic", UINT8, "an atomic operation"),
        (
            A::FirstOfProcess,
            "first",
            UINT8,
            "the first access of its application process",
        ),
        (
            A::OwnClock,
            "own_clock",
            UINT8,
            "times are of the application process's clock",
        ),
        (
            A::Ahead,
            "ahead",
            UINT8,
            "fetched by the library ahead of accesses",
        ),
        (
            A::Posted,
            "posted",
            UINT8,
            "its process did not wait for the reply",
        ),
    ]
};

/// Numbers given out in order.
#[derive(Debug)]
struct Numbers<K>(HashMap<K, u32>);

impl<K> Default for Numbers<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Eq + Hash> Numbers<K> {
    /// The number of `key`, and whether it is a new one.
    fn of(&mut self, key: K) -> (u32, bool) {
        let next = self.0.len() as u32;
        let number = *self.0.entry(key).or_insert(next);
        (number, number == next)
    }
}

/// The order in which readers expect definitions: nothing before what it refers to.
const ORDER: [u8; 10] = [
    definition::STRING,
    definition::PARADIGM,
    definition::ATTRIBUTE,
    definition::REGION,
    definition::TREE_NODE,
    definition::LOCATION_GROUP,
    definition::LOCATION,
    definition::GROUP,
    definition::COMM,
    definition::RMA_WIN,
];

/// The definitions of an archive in the making.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    /// Each with its kind.
    records: Vec<(u8, Bytes)>,
    strings: Numbers<String>,
    regions: Numbers<(String, u8)>,
    windows: Numbers<String>,
    groups: u32,
    communicators: u32,
}

impl Definitions {
    fn define(&mut self, id: u8, content: impl FnOnce(&mut Bytes)) {
        let mut record = Bytes::default();
        record.record(id, content);
        self.records.push((id, record));
    }

    /// The number of a text.
    pub(super) fn string(&mut self, text: &str) -> u32 {
        let (number, new) = self.strings.of(text.to_owned());
        if new {
            self.define(definition::STRING, |b| {
                b.u32(number);
                b.text(text);
            });
        }
        number
    }

    /// What every archive has: attributes, and the paradigm's name.
    pub(super) fn begin(&mut self) {
        let name = self.string("dosmos");
        let processes = 0;
        self.define(definition::PARADIGM, |b| {
            b.byte(ids::SHMEM);
            b.u32(name);
            b.byte(processes);
        });
        for (number, (_, name, kind, description)) in (0..).zip(ATTRIBUTES) {
            let name = self.string(&format!("{}{name}", ids::PREFIX));
            let description = self.string(description);
            self.define(definition::ATTRIBUTE, |b| {
                b.u32(number);
                b.u32(name);
                b.byte(kind);
                b.u32(description);
            });
        }
    }

    /// The number of a region: an operation on something.
    pub(super) fn region(&mut self, name: &str, op: Op, atomic: bool) -> u32 {
        let role = match op {
            Op::Write if atomic => role::ATOMIC,
            Op::Read | Op::Write => role::RMA,
            Op::Acquire | Op::Release => role::CRITICAL,
            Op::Barrier => role::BARRIER,
        };
        let (number, new) = self.regions.of((name.to_owned(), role));
        if new {
            let name = self.string(name);
            let none = self.string("");
            self.define(definition::REGION, |b| {
                b.u32(number);
                b.u32(name);
                b.u32(none);
                b.byte(0); // What said the role and the paradigm in the first archives.
                b.u32(ids::NONE); // No source file, from line 0 to line 0.
                b.u32(0);
                b.u32(0);
                b.u32(name);
                b.byte(role);
                b.byte(ids::SHMEM);
                b.u32(0);
            });
        }
        number
    }

    /// A node of the tree of groups: number, name, what it is and its parent.
    pub(super) fn node(&mut self, number: u32, name: &str, class: &str, parent: Option<u32>) {
        let (name, class) = (self.string(name), self.string(class));
        self.define(definition::TREE_NODE, |b| {
            b.u32(number);
            b.u32(name);
            b.u32(class);
            b.u32(parent.unwrap_or(ids::NONE));
        });
    }

    /// A process below a node.
    pub(super) fn process(&mut self, number: u32, name: &str, node: u32) {
        let name = self.string(name);
        self.define(definition::LOCATION_GROUP, |b| {
            b.u32(number);
            b.u32(name);
            b.byte(ids::PROCESS);
            b.u32(node);
            b.u32(ids::NONE); // Nobody created it.
        });
    }

    /// A timeline of a process.
    pub(super) fn location(&mut self, number: u64, name: &str, events: u64, process: u32) {
        let name = self.string(name);
        self.define(definition::LOCATION, |b| {
            b.u64(number);
            b.u32(name);
            b.byte(ids::THREAD);
            b.u64(events);
            b.u32(process);
        });
    }

    fn members(
        &mut self,
        name: &str,
        kind: u8,
        members: impl ExactSizeIterator<Item = u64>,
    ) -> u32 {
        let number = self.groups;
        self.groups += 1;
        let name = self.string(name);
        self.define(definition::GROUP, |b| {
            b.u32(number);
            b.u32(name);
            b.byte(0); // No kind of the first archives.
            b.u32(members.len() as u32);
            members.for_each(|member| b.u64(member));
            b.byte(kind);
            b.byte(ids::SHMEM);
            b.u32(0);
        });
        number
    }

    /// The locations that have a rank, in the order of their ranks.
    pub(super) fn ranks(&mut self, locations: impl ExactSizeIterator<Item = u64>) {
        self.members("ranks", group::COMM_LOCATIONS, locations);
    }

    /// Those who take part in something, by rank; the number of their communicator.
    pub(super) fn communicator(
        &mut self,
        name: &str,
        ranks: impl ExactSizeIterator<Item = u64>,
    ) -> u32 {
        let group = self.members(name, group::COMM_GROUP, ranks);
        let number = self.communicators;
        self.communicators += 1;
        let name = self.string(name);
        self.define(definition::COMM, |b| {
            b.u32(number);
            b.u32(name);
            b.u32(group);
            b.u32(ids::NONE);
            b.u32(0);
        });
        number
    }

    /// The number of the window of that name; the communicator is asked for if it is new.
    pub(super) fn window(
        &mut self,
        name: &str,
        communicator: impl FnOnce(&mut Self) -> u32,
    ) -> u32 {
        let (number, new) = self.windows.of(name.to_owned());
        if new {
            let communicator = communicator(self);
            let name = self.string(name);
            self.define(definition::RMA_WIN, |b| {
                b.u32(number);
                b.u32(name);
                b.u32(communicator);
                b.u32(0);
            });
        }
        number
    }

    /// Writes them to `path`: first the clock, whose nanoseconds count from `start`, in Unix time; how many they are.
    pub(super) fn write(&self, path: &Path, start: u64, length: u64) -> io::Result<u64> {
        let mut file = Chunks::create(path, OF_DEFINITIONS)?;
        let mut clock = Bytes::default();
        clock.record(definition::CLOCK, |b| {
            b.u64(1_000_000_000);
            b.u64(0);
            b.u64(length);
            b.u64(start);
        });
        file.definition(&clock.0)?;
        for kind in ORDER {
            for (_, record) in self.records.iter().filter(|(k, _)| *k == kind) {
                file.definition(&record.0)?;
            }
        }
        file.finish()?;
        Ok(1 + self.records.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_stand_where_their_number_says() {
        for (i, (attribute, ..)) in ATTRIBUTES.iter().enumerate() {
            assert_eq!(*attribute as usize, i);
        }
    }
}
