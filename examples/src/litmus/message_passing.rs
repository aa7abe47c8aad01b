//! Message passing: process 0 writes data, releases, writes a flag, releases; the others look at the
//! flag, then at the data.
//!
//! Forbidden:
//! * the flag, read in a section, says round k, and the data, read after it without a section, is of a
//!   round before k: rule 4, a read sees every write released before the reader's last acquire;
//! * the same with a flag read without a section: rule 2, the data's release had returned before the
//!   flag was written, so all others see it;
//! * data of two rounds in one read: rule 4, never a mixture.
//!
//! Permitted: data newer than the flag.

use super::trial::{Seen, Trial, count};
use crate::error::Result;
use crate::program::{needs, patient};

pub(super) fn run(trial: &Trial<'_>) -> Result<Seen> {
    needs(trial.dsm, "litmus", 2)?;
    let data = trial.wide("mp.data", 0)?;
    let last = trial.dsm.size() - 1;
    let flag = trial.one_each("mp.flag")?.object(last)?;
    let rounds = trial.rounds;
    trial.dsm.barrier()?;
    let mut seen = Seen::new();
    if trial.dsm.rank() == 0 {
        for round in 1..=rounds {
            trial.publish(&data, round)?;
            trial.publish(&flag, round)?;
        }
        seen.insert("written", rounds);
    } else {
        let mut racy = trial.dsm.rank().is_multiple_of(2);
        loop {
            racy = !racy;
            let (told, rule) = match racy {
                true => (flag.get(0)?, 2),
                false => (trial.read_synchronised(&flag)?, 4),
            };
            let found = trial.read_whole(&data)?;
            if found < told {
                return Err(trial.forbidden(format!(
                    "the flag said round {told}, the data was of round {found} (rule {rule}, {} flag)",
                    if racy { "racy" } else { "acquired" }
                )));
            }
            let newer = if found > told {
                "newer data"
            } else {
                "data of the flag"
            };
            count(&mut seen, newer);
            if told == rounds {
                break;
            }
        }
    }
    // None leaves before all are done: a process that leaves would fail the others' barriers.
    patient(trial.dsm).barrier()?;
    Ok(seen)
}
