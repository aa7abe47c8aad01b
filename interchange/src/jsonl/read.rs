//! Reading the format into a store.

use std::io::{self, BufRead, Read};
use std::ops::ControlFlow;
use std::path::Path;

use super::error::ImportError;
use super::importer::Importer;

/// Longest line, in bytes: room for a variable with a list of a million owners.
const MOST_BYTES: u64 = 64 << 20;
/// Lines between two calls of the progress function.
const PROGRESS_EVERY: u64 = 1 << 14;

/// What to do with lines that are not as they should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BadLines {
    /// The first one ends the import.
    #[default]
    Refuse,
    /// They are left out, and count as records lost: every answer from the store says so.
    Skip,
}

/// How far an import is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Importing {
    /// Lines read.
    pub lines: u64,
    /// Bytes read.
    pub bytes: u64,
    /// Records among them.
    pub records: u64,
}

/// What was imported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Lines.
    pub lines: u64,
    /// Records among them.
    pub records: u64,
    /// Lines left out.
    pub skipped: u64,
    /// What was wrong with the first of those.
    pub first_skipped: Option<String>,
}

/// Makes the store `dir` of the lines of `input`. It is made beside `dir` and gets its name when it is
/// complete. `progress` is called now and then and may break off. Memory grows with the processes and
/// variables the file declares, not with its records.
///
/// # Errors
/// At the first line that is not as it should be (unless those are skipped), if `dir` exists (and is not
/// an empty directory), or the system says no.
pub fn import(
    mut input: impl BufRead,
    dir: &Path,
    bad_lines: BadLines,
    mut progress: impl FnMut(Importing) -> ControlFlow<()>,
) -> Result<Imported, ImportError> {
    let mut importer = Importer::beside(dir)?;
    let mut at = Importing::default();
    let mut line = Vec::new();
    loop {
        let (read, whole) = read_line(&mut input, &mut line)?;
        if read == 0 {
            break;
        }
        at.lines += 1;
        at.bytes += read;
        let taken = match whole {
            true => importer.line(line.trim_ascii()),
            false => Err(format!("it is longer than {MOST_BYTES} bytes").into()),
        };
        match taken.map_err(|e| e.at(at.lines)) {
            Err(ImportError::Line { line: number, why }) if bad_lines == BadLines::Skip => {
                importer.skip(number, &why);
            }
            taken => taken?,
        }
        at.records = importer.records;
        if at.lines.is_multiple_of(PROGRESS_EVERY) && progress(at).is_break() {
            return Err(ImportError::Stopped);
        }
    }
    let skipped = importer.skipped();
    let (count, first) = (skipped.lines, skipped.first.clone());
    importer.finish(dir).map_err(|e| e.at(at.lines + 1))?;
    let _ = progress(at);
    Ok(Imported {
        lines: at.lines,
        records: at.records,
        skipped: count,
        first_skipped: first,
    })
}

/// Reads a line; how many bytes were read, and whether that is all of it. Of a line that is too long
/// the beginning is kept, and the rest read past.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<(u64, bool)> {
    line.clear();
    let mut read = input.take(MOST_BYTES).read_until(b'\n', line)? as u64;
    if read < MOST_BYTES || line.last() == Some(&b'\n') {
        return Ok((read, true));
    }
    line.truncate(1 << 10);
    loop {
        let piece = input.fill_buf()?;
        let (length, ends) = match piece.iter().position(|&b| b == b'\n') {
            Some(at) => (at + 1, true),
            None => (piece.len(), piece.is_empty()),
        };
        input.consume(length);
        read += length as u64;
        if ends {
            return Ok((read, false));
        }
    }
}
