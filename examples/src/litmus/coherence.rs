//! Coherence: all processes add one to all elements of an object, in sections, and read it in between
//! without.
//!
//! Forbidden, of a read without a section:
//! * elements that differ: rule 4, never a mixture of two releases;
//! * a value before the reader's own last release: rules 2 and 4;
//! * a value, or a version, before one that the same process has read already: writes of one object
//!   have one order, and nobody sees it run backwards.

use super::trial::{Seen, Trial, count};
use crate::error::Result;
use crate::program::patient;

pub(super) fn run(trial: &Trial<'_>) -> Result<Seen> {
    let object = trial.wide("coherence", 0)?;
    trial.dsm.barrier()?;
    let mut seen = Seen::new();
    let (mut newest, mut newest_version) = (0, 0);
    for _ in 0..trial.rounds {
        let mut section = object.acquire()?;
        let now = section.get(0)?;
        if now < newest {
            return Err(trial.forbidden(format!(
                "the value in a section was {now} after {newest} had been read (rule 1)"
            )));
        }
        section.write(&vec![now + 1; object.len()])?;
        let inside = section.read()?;
        if inside.iter().any(|v| *v != now + 1) {
            return Err(trial.forbidden(format!(
                "in a section {} was written and {} read (rule 2)",
                now + 1,
                inside[0]
            )));
        }
        let released = section.release()?;
        newest = now + 1;
        newest_version = released.max(newest_version);
        for _ in 0..3 {
            let version = object.read()?.version();
            let value = trial.read_whole(&object)?;
            if value < newest {
                return Err(trial.forbidden(format!(
                    "a read gave {value} after {newest} had been released or read here (rules 2, 4)"
                )));
            }
            if version < newest_version {
                return Err(trial.forbidden(format!(
                    "a read gave version {version} after {newest_version} had been seen here (rule 4)"
                )));
            }
            count(&mut seen, if value == newest { "same" } else { "newer" });
            (newest, newest_version) = (value, version);
        }
    }
    patient(trial.dsm).barrier()?;
    // Every increment counted: they were exclusive (rule 1).
    let expected = trial.rounds * trial.dsm.size() as u64;
    let sum = trial.read_whole(&object)?;
    if sum != expected {
        return Err(trial.forbidden(format!("{expected} increments gave {sum} (rule 1)")));
    }
    Ok(seen)
}
