//! The log file that is written: what was appended survives a loss of power, or is not there.

use std::path::Path;

use super::disk::DiskFile;
use super::error::StoreError;

/// The file that is written.
#[derive(Debug)]
pub(super) struct Log {
    file: DiskFile,
    number: u32,
    /// Where the last commit ends.
    length: u64,
    /// Something may stand behind that.
    torn: bool,
}

impl Log {
    /// Opens file `number`, named so, in which `length` bytes count.
    pub(super) fn open(
        dir: &Path,
        name: &str,
        number: u32,
        length: u64,
    ) -> Result<Self, StoreError> {
        let file = DiskFile::open(dir, name)?;
        let torn = file.len()? > length;
        Ok(Self {
            file,
            number,
            length,
            torn,
        })
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Where the next frame will stand.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Adds to the file; on return it survives a loss of power. After an error the file is as it was.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        if std::mem::replace(&mut self.torn, true) {
            // Durable, so that what is written now is never mixed with what stood there.
            self.file.truncate(self.length)?;
            self.file.sync()?;
        }
        let written = self.file.write_at(self.length, bytes);
        let outcome = written.and_then(|()| self.file.sync());
        match outcome {
            Ok(()) => {
                self.length += bytes.len() as u64;
                self.torn = false;
            }
            Err(_) => self.torn = self.file.truncate(self.length).is_err(),
        }
        outcome
    }
}
