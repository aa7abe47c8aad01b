//! Mutual exclusion under contention: all processes add one to a counter that is not atomic, each time
//! in a section.
//!
//! Forbidden: a lost increment, or an epoch that is not one higher for each grant: rule 1.

use super::trial::{Seen, Trial};
use crate::error::Result;
use crate::program::patient;
use dsm_lib::LockKind;

pub(super) fn run(trial: &Trial<'_>) -> Result<Seen> {
    let dsm = trial.dsm;
    let counter = dsm
        .scalar::<u64>("mutex")
        .policy(trial.policy)
        .lock(trial.lock)
        .cache(trial.cache)
        .declare()?;
    dsm.barrier()?;
    // Grants so far are increments so far, but for a constant: nothing else takes this lock.
    let mut offset = None;
    for _ in 0..trial.rounds {
        if trial.sloppy {
            counter.write(counter.read()? + 1)?;
            continue;
        }
        let mut section = counter.acquire()?;
        let (now, epoch) = (section.read()?, section.epoch());
        section.write(now + 1)?;
        section.release()?;
        if trial.lock != LockKind::Queue {
            continue; // no epochs
        }
        let is = epoch.wrapping_sub(now);
        let was = *offset.get_or_insert(is);
        if is != was {
            return Err(trial.forbidden(format!(
                "the counter was {now} in epoch {epoch}, which should differ by {was} (rule 1)"
            )));
        }
    }
    patient(dsm).barrier()?;
    let expected = trial.rounds * dsm.size() as u64;
    let sum = counter.read()?;
    if sum != expected {
        return Err(trial.forbidden(format!("{expected} increments gave {sum} (rule 1)")));
    }
    Ok(Seen::from([("increments", trial.rounds)]))
}
