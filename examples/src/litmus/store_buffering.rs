//! Store buffering: two processes write one variable each, in a section, and then read the other's.
//!
//! Forbidden: both read the old value.
//! * With reads in sections: rule 6, the program has no race and sees a sequentially consistent memory.
//! * With reads without: rule 2, whichever release returned first is seen by the read that the other
//!   begins after its own has returned.
//!
//! What each found is told by writes outside sections, to be seen after the next barrier (rules 5
//! and 6).

use super::trial::{Seen, Trial, count};
use crate::error::Result;
use crate::program::needs;

pub(super) fn run(trial: &Trial<'_>) -> Result<Seen> {
    let dsm = trial.dsm;
    needs(dsm, "litmus", 2)?;
    let (mine, theirs) = (dsm.rank(), dsm.rank() ^ 1);
    let x = trial.one_each("sb.x")?;
    let found = trial.one_each("sb.found")?;
    let mut seen = Seen::new();
    for round in 1..=trial.rounds {
        dsm.barrier()?;
        // The last of an odd number of processes has no partner.
        if theirs < dsm.size() {
            let write = || trial.publish(&x.object(mine)?, round);
            let read = || {
                let other = x.object(theirs)?;
                match round % 2 {
                    0 => trial.read_synchronised(&other),
                    _ => Ok(other.get(0)?),
                }
            };
            let value = if trial.sloppy {
                let early = read()?;
                write()?;
                early
            } else {
                write()?;
                read()?
            };
            // Told with the round, so that a stale word is noticed.
            found.set(mine, 2 * round + u64::from(value == round))?;
        }
        dsm.barrier()?;
        if theirs < dsm.size() {
            let (i, they) = (found.get(mine)?, found.get(theirs)?);
            for word in [i, they] {
                if word / 2 != round {
                    return Err(trial.forbidden(format!(
                        "after the barrier of round {round} a word of round {} was read (rules 5, 6)",
                        word / 2
                    )));
                }
            }
            match (i % 2, they % 2) {
                (0, 0) => {
                    return Err(trial.forbidden(format!(
                        "in round {round} both read the value before the other's release (rule {})",
                        if round % 2 == 0 { 6 } else { 2 }
                    )));
                }
                (1, 1) => count(&mut seen, "both new"),
                _ => count(&mut seen, "one new"),
            }
        }
    }
    dsm.barrier()?;
    Ok(seen)
}
