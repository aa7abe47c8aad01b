//! Reading an archive into a store.

use std::ops::ControlFlow;
use std::path::Path;

use dosmos_trace::query::Completeness;

use super::archive::Archive;
use super::error::Otf2Error;
use super::ids::ABOUT;
use super::merge::Merged;
use super::own::Own;
use super::rma::Rma;
use crate::jsonl::line::Line;
use crate::jsonl::{ImportError, Importer, Trouble};

/// Events between two calls of the progress function.
const PROGRESS_EVERY: u64 = 1 << 14;

/// How far an import is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Importing {
    /// Events read.
    pub events: u64,
    /// Events in the archive.
    pub of: u64,
    /// Records made of them.
    pub records: u64,
}

/// What was imported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Events read.
    pub events: u64,
    /// Records made of them.
    pub records: u64,
    /// What was left out, and what is not known.
    pub notes: Vec<String>,
}

/// Makes the store `dir` of the archive at `path` (its file `….otf2`, or the directory with one). It is made beside `dir` and gets
/// its name when it is complete. `progress` is called now and then and may break off. Memory grows with the processes and variables, not
/// with the events.
///
/// # Errors
/// If there is no archive, it is damaged or nothing in it accesses shared memory, `dir` exists (and is not an empty directory), or the
/// system says no.
pub fn import(
    path: &Path,
    dir: &Path,
    mut progress: impl FnMut(Importing) -> ControlFlow<()>,
) -> Result<Imported, Otf2Error> {
    let archive = Archive::open(path)?;
    let mut importer = Importer::beside(dir)?;
    let mut events = Merged::of(&archive)?;
    let mut at = Importing {
        of: archive.defined.locations.values().map(|l| l.events).sum(),
        ..Importing::default()
    };
    let wrong = |trouble: Trouble| match trouble {
        Trouble::Line(why) => Otf2Error::Meaning {
            path: archive.path.clone(),
            why,
        },
        other => other.at(0).into(),
    };
    let mut step = |records: u64| {
        at.events += 1;
        at.records = records;
        match at.events.is_multiple_of(PROGRESS_EVERY) && progress(at).is_break() {
            true => Err(Otf2Error::from(ImportError::Stopped)),
            false => Ok(()),
        }
    };
    let notes = if let Some(about) = archive.property(ABOUT) {
        for line in about.lines() {
            importer.line(line.as_bytes()).map_err(wrong)?;
        }
        let mut own = Own::new(&archive.defined);
        while let Some((location, event)) = events.next()? {
            let record = own.take(location, &event);
            if let Some(record) = record.map_err(|why| wrong(why.into()))? {
                importer.record(&record).map_err(wrong)?;
            }
            step(importer.records)?;
        }
        let mut notes = Vec::new();
        if own.served > 0 {
            notes.push(format!(
                "{} records of owners were left out; what they say is derived from what processes did",
                own.served
            ));
        }
        if own.open() > 0 {
            notes.push(format!(
                "{} operations have no end and were left out",
                own.open()
            ));
        }
        notes
    } else {
        let mut rma = Rma::new(&archive);
        for line in rma.declarations(&archive) {
            put_line(&mut importer, &line).map_err(wrong)?;
        }
        while let Some((location, event)) = events.next()? {
            rma.take(location, &event, |record| importer.record(record))
                .map_err(wrong)?;
            step(importer.records)?;
        }
        rma.end(|record| importer.record(record)).map_err(wrong)?;
        if importer.records == 0 {
            return Err(Otf2Error::NothingShared {
                path: archive.path.clone(),
                others: match rma.others().join("; ") {
                    none if none.is_empty() => none,
                    others => format!("; {others}"),
                },
            });
        }
        let lacking = rma.lacking();
        let notes = [lacking.clone(), rma.others()].concat();
        let lacking = Completeness {
            notes: lacking,
            ..Completeness::default()
        };
        put_line(&mut importer, &Line::Completeness(lacking)).map_err(wrong)?;
        notes
    };
    let records = importer.records;
    importer.finish(dir).map_err(wrong)?;
    let _ = progress(Importing { records, ..at });
    Ok(Imported {
        events: at.events,
        records,
        notes,
    })
}

/// Takes a line of the JSONL format.
fn put_line(importer: &mut Importer, line: &Line<'_>) -> Result<(), Trouble> {
    let text = serde_json::to_vec(line).map_err(|e| Trouble::Io(e.into()))?;
    importer.line(&text)
}
