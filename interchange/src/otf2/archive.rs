//! An archive that is read: what it is, and what it defines.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use super::error::Otf2Error;
use super::ids::{self, definition, group};
use super::take::{Records, Take};

/// Least and greatest length of a chunk that the format allows.
const CHUNKS: std::ops::RangeInclusive<u64> = (256 << 10)..=(16 << 20);

/// What times count from, and how fast.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    /// Ticks per second.
    pub(super) resolution: u64,
    /// The first tick.
    pub(super) offset: u64,
    /// Unix time of the first tick, in nanoseconds; 0 or the greatest number if it is not known.
    pub(super) unix: u64,
}

impl Clock {
    /// Nanoseconds since the first tick.
    pub(super) fn nanos(&self, tick: u64) -> u64 {
        let ticks = u128::from(tick.saturating_sub(self.offset));
        let nanos = ticks * 1_000_000_000 / u128::from(self.resolution.max(1));
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }
}

/// A process: its name and the node it is below.
#[derive(Clone, Debug)]
pub(super) struct Process {
    name: u32,
    pub(super) node: u32,
    pub(super) kind: u8,
}

/// A timeline.
#[derive(Clone, Debug)]
pub(super) struct Location {
    pub(super) process: u32,
    pub(super) events: u64,
}

/// Members of a group: locations, or ranks among the locations of the paradigm.
#[derive(Clone, Debug)]
struct Group {
    kind: u8,
    paradigm: u8,
    flags: u32,
    members: Vec<u64>,
}

/// What an archive defines.
#[derive(Debug, Default)]
pub(super) struct Defined {
    strings: HashMap<u32, String>,
    attributes: HashMap<u32, u32>,
    nodes: HashMap<u32, (u32, u32)>,
    pub(super) processes: BTreeMap<u32, Process>,
    pub(super) locations: BTreeMap<u64, Location>,
    regions: HashMap<u32, u32>,
    groups: HashMap<u32, Group>,
    communicators: HashMap<u32, (u32, u32)>,
    windows: BTreeMap<u32, (u32, u32)>,
}

/// An archive.
#[derive(Debug)]
pub(super) struct Archive {
    /// The anchor file.
    pub(super) path: PathBuf,
    pub(super) description: String,
    properties: HashMap<String, String>,
    pub(super) clock: Clock,
    pub(super) defined: Defined,
    chunk_of_events: u64,
    chunk_of_definitions: u64,
}

impl Archive {
    /// Opens the archive at `path`: an anchor file, or a directory with one.
    pub(super) fn open(path: &Path) -> Result<Self, Otf2Error> {
        let path = anchor_of(path)?;
        let mut take = Take::open(&path)?;
        if take.header().is_err() || take.text().ok().as_deref() != Some("OTF2") {
            return Err(Otf2Error::NoArchive(path));
        }
        let (format, _) = (take.byte()?, take.byte()?);
        take.skip(3)?; // The version of the library.
        let (chunk_of_events, chunk_of_definitions) = (take.whole_u64()?, take.whole_u64()?);
        let sound = CHUNKS.contains(&chunk_of_events) && CHUNKS.contains(&chunk_of_definitions);
        if !sound {
            return Err(take.bad(format!(
                "chunks of {chunk_of_events} and {chunk_of_definitions} bytes; they have 256 KiB to 16 MiB"
            )));
        }
        let what = |what| Otf2Error::Unsupported {
            path: path.clone(),
            what,
        };
        if take.byte()? != ids::FILES {
            return Err(what("an archive in a SIONlib container"));
        }
        if take.byte()? != ids::NOT_COMPRESSED {
            return Err(what("an archive compressed by zlib"));
        }
        let (_locations, definitions) = (take.whole_u64()?, take.whole_u64()?);
        let (_machine, _creator, description) = (take.text()?, take.text()?, take.text()?);
        let mut properties = HashMap::new();
        if format > 1 {
            for _ in 0..take.whole_u32()? {
                properties.insert(take.text()?, take.text()?);
            }
        }
        let mut archive = Self {
            path,
            description,
            properties,
            clock: Clock {
                resolution: 1_000_000_000,
                offset: 0,
                unix: 0,
            },
            defined: Defined::default(),
            chunk_of_events,
            chunk_of_definitions,
        };
        archive.define(definitions)?;
        if archive.property(ids::ABOUT).is_some() {
            // Times count from the start of the run, which need not be when something happened first.
            archive.clock.offset = 0;
        }
        Ok(archive)
    }

    pub(super) fn property(&self, name: &str) -> Option<&str> {
        self.properties.get(name).map(String::as_str)
    }

    /// Reads the definitions and compares their number with what the anchor file says.
    fn define(&mut self, expected: u64) -> Result<(), Otf2Error> {
        let path = self.path.with_extension("def");
        let mut records = Records::open(&path, self.chunk_of_definitions)?;
        let mut found = 0u64;
        while let Some(id) = records.next()? {
            found += 1;
            records.within(|take, end| {
                if id == definition::CLOCK {
                    self.clock = Clock {
                        resolution: take.u64()?,
                        offset: take.u64()?,
                        // The length of the trace, and since OTF2 3 its begin.
                        unix: match (take.u64()?, take.position() < end) {
                            (_, true) => take.u64()?,
                            _ => 0,
                        },
                    };
                    return Ok(());
                }
                self.defined.read(id, take, end)
            })?;
        }
        if found != expected {
            let why = format!("{found} definitions, where the archive says {expected}");
            return Err(records.take.bad(why));
        }
        Ok(())
    }

    /// The directory of the events.
    fn place(&self) -> PathBuf {
        self.path.with_extension("")
    }

    /// The events of a location.
    pub(super) fn events_of(&self, location: u64) -> Result<Records, Otf2Error> {
        Records::open(
            &self.place().join(format!("{location}.evt")),
            self.chunk_of_events,
        )
    }

    /// The definitions of a location: how its numbers and times become those of the archive. None if it has no such file.
    pub(super) fn definitions_of(&self, location: u64) -> Result<Option<Records>, Otf2Error> {
        let path = self.place().join(format!("{location}.def"));
        if !path.exists() {
            return Ok(None);
        }
        Records::open(&path, self.chunk_of_definitions).map(Some)
    }
}

impl Defined {
    /// Reads a definition, if it is of a kind that is needed.
    fn read(&mut self, id: u8, take: &mut Take, end: u64) -> Result<(), Otf2Error> {
        match id {
            definition::STRING => {
                self.strings.insert(take.u32()?, take.text()?);
            }
            definition::ATTRIBUTE => {
                self.attributes.insert(take.u32()?, take.u32()?);
            }
            definition::TREE_NODE => {
                let (number, name, _class) = (take.u32()?, take.u32()?, take.u32()?);
                self.nodes.insert(number, (name, take.u32()?));
            }
            definition::LOCATION_GROUP => {
                let (number, name, kind) = (take.u32()?, take.u32()?, take.byte()?);
                let node = take.u32()?;
                self.processes.insert(number, Process { name, node, kind });
            }
            definition::LOCATION => {
                let (number, _name, _kind) = (take.u64()?, take.u32()?, take.byte()?);
                let events = take.u64()?;
                let process = take.u32()?;
                self.locations.insert(number, Location { process, events });
            }
            definition::REGION => {
                self.regions.insert(take.u32()?, take.u32()?);
            }
            definition::GROUP => {
                let (number, _name, old) = (take.u32()?, take.u32()?, take.byte()?);
                let mut members = Vec::new();
                for _ in 0..take.u32()? {
                    if take.position() >= end {
                        return Err(take.bad("a group has fewer members than it says"));
                    }
                    members.push(take.u64()?);
                }
                let of_mpi = |kind| (kind, ids::MPI, 0);
                let (kind, paradigm, flags) = match take.position() < end {
                    true => (take.byte()?, take.byte()?, take.u32()?),
                    false => match old {
                        group::OLD_MPI_GROUP => of_mpi(group::COMM_GROUP),
                        group::OLD_MPI_SELF => of_mpi(group::COMM_SELF),
                        group::OLD_MPI_LOCATIONS => of_mpi(group::COMM_LOCATIONS),
                        other => (other, 0, 0),
                    },
                };
                let group = Group {
                    kind,
                    paradigm,
                    flags,
                    members,
                };
                self.groups.insert(number, group);
            }
            definition::COMM => {
                let (number, name) = (take.u32()?, take.u32()?);
                self.communicators.insert(number, (name, take.u32()?));
            }
            definition::RMA_WIN => {
                let (number, name) = (take.u32()?, take.u32()?);
                self.windows.insert(number, (name, take.u32()?));
            }
            _ => {}
        }
        Ok(())
    }

    /// The text of a number; empty if there is none.
    pub(super) fn text(&self, string: u32) -> &str {
        self.strings.get(&string).map_or("", String::as_str)
    }

    fn name(&self, names: &HashMap<u32, u32>, number: u32) -> Option<&str> {
        names.get(&number).map(|&name| self.text(name))
    }

    pub(super) fn region(&self, number: u32) -> Option<&str> {
        self.name(&self.regions, number)
    }

    /// Numbers and names of the attributes.
    pub(super) fn attributes(&self) -> impl Iterator<Item = (u32, &str)> {
        self.attributes
            .iter()
            .map(|(&n, &name)| (n, self.text(name)))
    }

    pub(super) fn process(&self, number: u32) -> &str {
        self.processes
            .get(&number)
            .map_or("", |p| self.text(p.name))
    }

    /// The process of a location.
    pub(super) fn process_of(&self, location: u64) -> Option<u32> {
        self.locations.get(&location).map(|l| l.process)
    }

    /// Names of the nodes from the root to this one.
    pub(super) fn path(&self, node: u32) -> Vec<&str> {
        let mut path = Vec::new();
        let mut at = node;
        // A tree has no more levels than nodes, even if it is none.
        for _ in 0..=self.nodes.len() {
            let Some(&(name, parent)) = self.nodes.get(&at) else {
                break;
            };
            path.push(self.text(name));
            at = parent;
        }
        path.reverse();
        path
    }

    /// Numbers, names and communicators of the windows.
    pub(super) fn windows(&self) -> impl Iterator<Item = (u32, &str, u32)> {
        let all = self.windows.iter();
        all.map(|(&number, &(name, communicator))| (number, self.text(name), communicator))
    }

    pub(super) fn communicator(&self, number: u32) -> Option<&str> {
        let (name, _) = self.communicators.get(&number)?;
        Some(self.text(*name))
    }

    /// The locations of a communicator, by rank.
    pub(super) fn members(&self, communicator: u32) -> Vec<u64> {
        let group = self.communicators.get(&communicator);
        let Some(group) = group.and_then(|(_, group)| self.groups.get(group)) else {
            return Vec::new();
        };
        let by_location = matches!(group.kind, group::LOCATIONS | group::COMM_LOCATIONS);
        if by_location || group.flags & group::GLOBAL_MEMBERS != 0 {
            return group.members.clone();
        }
        let of_paradigm =
            |g: &&Group| g.kind == group::COMM_LOCATIONS && g.paradigm == group.paradigm;
        let Some(ranks) = self.groups.values().find(of_paradigm) else {
            return Vec::new();
        };
        let location = |rank: &u64| ranks.members.get(*rank as usize).copied();
        group.members.iter().filter_map(location).collect()
    }
}

/// The anchor file that `path` is, or the only one that it has.
fn anchor_of(path: &Path) -> Result<PathBuf, Otf2Error> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let entries = std::fs::read_dir(path).map_err(Otf2Error::read(path))?;
    let mut anchors: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "otf2"))
        .collect();
    match (anchors.pop(), anchors.is_empty()) {
        (Some(one), true) => Ok(one),
        _ => Err(Otf2Error::NoArchive(path.to_owned())),
    }
}
