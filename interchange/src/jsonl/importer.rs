//! A store in the making: what each line of a file adds to it.

use std::io;
use std::path::Path;

use chrono::DateTime;
use dosmos_proto::{EmpId, Nanos};
use dosmos_trace::meta::HandOver;
use dosmos_trace::query::Completeness;
use dosmos_trace::run::RunId;
use dosmos_trace::store::{self, Commit, Event, Identity, StoreError, StoreWriter};
use serde::Deserialize;
use tempfile::TempDir;

use super::dictionary::{Dictionary, beyond, later};
use super::error::BadLine;
use super::{ImportError, line};

/// Records in a commit: several full chunks.
const COMMIT: usize = 8 * dosmos_trace::chunk::MOST_RECORDS;
/// Types of lines that are not records.
const NO_RECORDS: [&str; 8] = [
    "run",
    "group",
    "mp",
    "ap",
    "variable",
    "barrier",
    "hand_over",
    "completeness",
];
/// What begins a record's line as this project writes it.
const RECORD: &[u8] = br#"{"type":"record","#;

/// What is wrong, before it is known where.
pub(crate) enum Trouble {
    Line(BadLine),
    Store(StoreError),
    Io(io::Error),
}

impl Trouble {
    pub(crate) fn at(self, line: u64) -> ImportError {
        match self {
            Self::Line(why) => ImportError::Line { line, why },
            Self::Store(e) => ImportError::Store(e),
            Self::Io(e) => ImportError::Io(e),
        }
    }
}

impl From<BadLine> for Trouble {
    fn from(why: BadLine) -> Self {
        Self::Line(why)
    }
}
impl From<String> for Trouble {
    fn from(why: String) -> Self {
        Self::Line(why.into())
    }
}
impl From<&str> for Trouble {
    fn from(why: &str) -> Self {
        why.to_owned().into()
    }
}
impl From<StoreError> for Trouble {
    fn from(e: StoreError) -> Self {
        Self::Store(e)
    }
}
impl From<io::Error> for Trouble {
    fn from(e: io::Error) -> Self {
        Self::Io(e)
    }
}

/// Lines that were left out.
#[derive(Clone, Debug, Default)]
pub(super) struct Skipped {
    /// How many.
    pub(super) lines: u64,
    /// What was wrong with the first.
    pub(super) first: Option<String>,
}

/// A store in the making.
pub(crate) struct Importer {
    /// Declared before the directory, so that it is closed before that is removed.
    writer: Option<StoreWriter>,
    workshop: TempDir,
    dictionary: Dictionary,
    run: Option<store::Imported>,
    commit: Commit,
    /// Records taken.
    pub(crate) records: u64,
    skipped: Skipped,
}

impl Importer {
    /// A store that is made beside `dir`, its place.
    pub(crate) fn beside(dir: &Path) -> Result<Self, ImportError> {
        if dir.exists() && !std::fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none())
        {
            return Err(ImportError::Exists(dir.to_owned()));
        }
        let parent = match dir.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        std::fs::create_dir_all(parent)?;
        let workshop = tempfile::Builder::new()
            .prefix(".dosmos-import-")
            .tempdir_in(parent)?;
        Ok(Self::new(workshop))
    }

    pub(super) fn new(workshop: TempDir) -> Self {
        Self {
            writer: None,
            workshop,
            dictionary: Dictionary::default(),
            run: None,
            commit: Commit::default(),
            records: 0,
            skipped: Skipped::default(),
        }
    }

    /// What has been left out.
    pub(super) fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// Leaves a line out. It counts as a record, whatever it begins like: a damaged line may have been several.
    pub(super) fn skip(&mut self, number: u64, why: &BadLine) {
        self.skipped.lines += 1;
        if self.skipped.first.is_none() {
            self.skipped.first = Some(format!("line {number}: {why}"));
        }
    }

    /// Takes a line; one that is refused changes nothing that is written.
    pub(crate) fn line(&mut self, line: &[u8]) -> Result<(), Trouble> {
        if line.is_empty() {
            return Ok(());
        }
        if line.starts_with(RECORD) {
            return self.record(&parse(line)?);
        }
        let tag: line::Tag<'_> = parse(line)?;
        match &*tag.kind.0 {
            "record" => self.record(&parse(line)?),
            "run" => self.run(&parse(line)?),
            _ if self.run.is_none() => Err("the first line is to be of type run".into()),
            "group" => {
                let group: line::Group<'_> = parse(line)?;
                self.dictionary.group(&group.path.0)?;
                Ok(())
            }
            "mp" => Ok(self.dictionary.mp(&parse(line)?)?),
            "ap" => Ok(self.dictionary.ap(&parse(line)?)?),
            "variable" => {
                let variable = self.dictionary.variable(&parse(line)?)?;
                self.event(Event::Variable(variable));
                Ok(())
            }
            "barrier" => {
                let barrier: line::Barrier<'_> = parse(line)?;
                let group = barrier.group.as_ref().map(|g| &*g.0);
                let (_, new) = self.dictionary.barrier(&barrier.name.0, group)?;
                if let Some(new) = new {
                    self.event(Event::Barrier(new));
                }
                Ok(())
            }
            "hand_over" => self.hand_over(&parse(line)?),
            "completeness" => self.completeness(parse(line)?),
            other => {
                let known = NO_RECORDS.join(", ");
                Err(format!("type {other:?} is none of record, {known}").into())
            }
        }
    }

    fn run(&mut self, line: &line::Run<'_>) -> Result<(), Trouble> {
        if self.run.is_some() {
            return Err("a second line of type run; a file holds one run".into());
        }
        let start = match &line.start {
            Some(text) => instant(&text.0)?,
            None => Nanos::ZERO,
        };
        let end = line
            .end_ns
            .map(|end| later(start, end).ok_or_else(|| beyond("end_ns")));
        let end = end.transpose()?;
        self.dictionary.topology.name = line.name.0.clone().into_owned();
        self.run = Some(store::Imported {
            start,
            end,
            owner_records: line.owner_records,
            lacking: Completeness::default(),
        });
        Ok(())
    }

    /// Takes a record.
    pub(crate) fn record(&mut self, line: &line::Record<'_>) -> Result<(), Trouble> {
        let Some(run) = &self.run else {
            return Err("the first line is to be of type run".into());
        };
        let (record, barrier) = self.dictionary.record(line, run.start)?;
        if let Some(barrier) = barrier {
            self.event(Event::Barrier(barrier));
        }
        self.commit.records.push(record);
        self.records += 1;
        // From here on there are no more processes.
        self.dictionary.closed = true;
        if self.commit.records.len() >= COMMIT {
            self.write()?;
        }
        Ok(())
    }

    fn hand_over(&mut self, line: &line::HandOver<'_>) -> Result<(), Trouble> {
        let hand_over = HandOver {
            object: self.dictionary.object(&line.var.0, line.object)?,
            copy_at: self.dictionary.find_mp(&line.mp.0)?,
            primary_emp: EmpId(0),
            dropped: line.dropped,
        };
        self.event(Event::HandOver(hand_over));
        if self.commit.events.len() >= COMMIT {
            self.write()?;
        }
        Ok(())
    }

    fn completeness(&mut self, lacking: Completeness) -> Result<(), Trouble> {
        let sampling = lacking.sampling;
        if !(0.0..=1.0).contains(&sampling) {
            return Err(format!("sampling {sampling} is not between 0 and 1").into());
        }
        if let Some(run) = &mut self.run {
            run.lacking = Completeness {
                // The others are in this store.
                recorded: lacking.dropped + lacking.removed + lacking.damaged,
                extra_accesses: lacking.extra_lost,
                ..lacking
            };
        }
        Ok(())
    }

    fn event(&mut self, event: Event) {
        let before = self.commit.records.len() as u32;
        self.commit.events.push((before, event));
    }

    /// Puts what has been gathered into the store.
    fn write(&mut self) -> Result<(), Trouble> {
        if self.writer.is_none() {
            let topology = self.dictionary.close()?;
            let identity = Identity {
                run: RunId::random()?,
                event_manager: topology.emp_name(EmpId(0)),
                emp: EmpId(0),
                topology,
            };
            // A new store holds nothing to be recovered.
            let (writer, _) = StoreWriter::open(&self.workshop.path().join("store"), &identity)?;
            self.writer = Some(writer);
            let clocks = self.dictionary.clocks().map(|clock| Event::Clock {
                mp: clock.mp,
                incarnation: 0,
                correction: clock.correction(),
            });
            self.commit.events.splice(0..0, clocks.map(|e| (0, e)));
        }
        if let Some(writer) = &mut self.writer {
            writer.commit(&self.commit)?;
        }
        self.commit.records.clear();
        self.commit.events.clear();
        Ok(())
    }

    /// Closes the store and puts it where it belongs.
    pub(crate) fn finish(mut self, dir: &Path) -> Result<(), Trouble> {
        let Some(mut run) = self.run.take() else {
            return Err("there is no line of type run: this is not a trace".into());
        };
        if let Some(first) = &self.skipped.first {
            let lost = self.skipped.lines;
            run.lacking.recorded += lost;
            run.lacking.dropped += lost;
            let note = format!("{lost} bad lines of the imported file were skipped; {first}");
            run.lacking.notes.push(note);
        }
        self.event(Event::Imported(run));
        self.write()?;
        if let Some(writer) = self.writer.take() {
            writer.close()?;
        }
        std::fs::rename(self.workshop.path().join("store"), dir)?;
        Ok(())
    }
}

/// Reads one line, whatever it is to be.
fn parse<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Result<T, BadLine> {
    serde_json::from_slice(line).map_err(BadLine::Json)
}

fn instant(text: &str) -> Result<Nanos, BadLine> {
    let time = DateTime::parse_from_rfc3339(text).map_err(|source| BadLine::Time {
        text: text.to_owned(),
        source,
    })?;
    let nanos = time.timestamp_nanos_opt();
    let nanos = nanos.and_then(|n| u64::try_from(n).ok());
    let nanos = nanos.ok_or_else(|| format!("start {text:?} is before 1970 or after 2262"));
    Ok(Nanos(nanos?))
}
