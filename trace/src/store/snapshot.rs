//! What a log comes to, saved now and then, so that whoever opens the store does not read all of it again.
//!
//! One file, written whole or not at all: magic, CRC32, then the place in the log and the state. One that
//! cannot be read, or does not fit, counts as none: the log tells the same, as far as it still goes back.

use std::path::Path;

use dosmos_proto::EmpId;
use serde::{Deserialize, Serialize};

use super::disk;
use super::entry::{Event, Item};
use super::error::StoreError;
use super::manifest::Manifest;
use crate::meta::{MetaState, SecondaryContent};

const MAGIC: &[u8; 4] = b"DSS2";
const HEADER: usize = 8;

/// What the log up to some place comes to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    /// The meta-objects.
    pub metas: MetaState,
    /// What is due to other event managers, in order.
    pub due: Vec<(EmpId, SecondaryContent)>,
}

/// A place in the log: after this many records and events, of all that there ever were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Position {
    pub(super) records: u64,
    pub(super) events: u64,
}

impl Snapshot {
    /// Nothing yet, of whose trace the manifest is.
    pub(super) fn new(manifest: &Manifest) -> Self {
        let identity = &manifest.identity;
        Self {
            metas: MetaState::new(identity.topology.clone(), identity.emp),
            due: Vec::new(),
        }
    }

    /// Takes the next entry of the log into account.
    pub(super) fn take(&mut self, item: Item<'_>) {
        match item {
            Item::Record(record) => self.metas.apply(record),
            Item::Event(Event::HandOver(hand_over)) => {
                self.due.extend(self.metas.hand_over(hand_over));
            }
            Item::Event(Event::Received { from, content }) => {
                self.metas.receive(*from, content);
            }
            Item::Event(Event::Variable(variable)) => self.metas.declare(variable),
            Item::Event(
                Event::Barrier(_)
                | Event::Counters { .. }
                | Event::Selection { .. }
                | Event::Report { .. }
                | Event::Times(_)
                | Event::Imported(_)
                | Event::Clock { .. }
                | Event::Processor { .. },
            ) => {}
        }
    }

    /// Puts it beside the log files of this manifest's generation; on return it survives a crash.
    pub(super) fn write(
        &self,
        dir: &Path,
        manifest: &Manifest,
        at: Position,
    ) -> Result<(), StoreError> {
        let path = dir.join(file_name(manifest));
        let body = postcard::to_stdvec(&(at, self)).map_err(|e| StoreError::Damaged {
            path: path.clone(),
            why: format!("cannot encode the state: {e}"),
        })?;
        let mut bytes = Vec::with_capacity(HEADER + body.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&crc32fast::hash(&body).to_le_bytes());
        bytes.extend_from_slice(&body);
        disk::replace(dir, &file_name(manifest), &bytes)
    }

    /// The last one written, and up to where it goes.
    pub(super) fn read(
        dir: &Path,
        manifest: &Manifest,
    ) -> Result<Option<(Position, Self)>, StoreError> {
        let path = dir.join(file_name(manifest));
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(StoreError::io(path, e)),
        };
        let damaged = |why: &str| StoreError::Damaged {
            path: path.clone(),
            why: why.to_owned(),
        };
        let (header, body) = bytes
            .split_at_checked(HEADER)
            .ok_or_else(|| damaged("cut short"))?;
        if header[..4] != MAGIC[..] || header[4..] != crc32fast::hash(body).to_le_bytes() {
            return Err(damaged("its checksum does not hold"));
        }
        let (at, mut snapshot): (Position, Self) =
            postcard::from_bytes(body).map_err(|e| damaged(&e.to_string()))?;
        let identity = &manifest.identity;
        snapshot
            .metas
            .belongs_to(identity.topology.clone(), identity.emp);
        Ok(Some((at, snapshot)))
    }
}

/// The name of the file for this manifest's generation.
pub(super) fn file_name(manifest: &Manifest) -> String {
    name_of(manifest.generation)
}

fn name_of(generation: u32) -> String {
    match generation {
        0 => "state".to_owned(),
        generation => format!("g{generation}.state"),
    }
}

/// Whether a file of this name is the state of some generation.
pub(super) fn is_state(name: &str) -> bool {
    let generation = name
        .strip_suffix(".state")
        .and_then(|g| g.strip_prefix('g'));
    let generation = generation.map_or(Some(0), |digits| digits.parse().ok());
    generation.is_some_and(|generation| name_of(generation) == name)
}
