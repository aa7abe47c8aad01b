//! Independent reads of independent writes: process 0 writes x, process 1 writes y; process 2 reads x
//! then y, process 3 reads y then x.
//!
//! Forbidden, with reads in sections: process 2 sees x new and y old while process 3 sees y new and x
//! old — the two would see the writes in different orders, and a program without races sees a
//! sequentially consistent memory (rule 6).
//!
//! Permitted, and counted, with racy reads: while a release is under way it may have reached one
//! reader's copy and not yet another's.

use super::trial::{Seen, Trial, count};
use crate::error::Result;
use crate::program::needs;

pub(super) fn run(trial: &Trial<'_>) -> Result<Seen> {
    let dsm = trial.dsm;
    needs(dsm, "litmus", 4)?;
    let xy = trial.one_each("iriw.xy")?;
    let found = trial.one_each("iriw.found")?;
    let mut seen = Seen::new();
    for round in 1..=trial.rounds {
        let synchronised = round % 2 == 0;
        dsm.barrier()?;
        match dsm.rank() {
            writer @ (0 | 1) => trial.publish(&xy.object(writer)?, round)?,
            reader @ (2 | 3) => {
                let mut values = [0, 0];
                for which in [reader - 2, 3 - reader] {
                    let object = xy.object(which)?;
                    let value = match synchronised {
                        true => trial.read_synchronised(&object)?,
                        false => object.get(0)?,
                    };
                    values[which] = u64::from(value == round);
                }
                found.set(reader, 4 * round + 2 * values[0] + values[1])?;
            }
            _ => {}
        }
        dsm.barrier()?;
        if dsm.rank() == 0 {
            let (a, b) = (found.get(2)?, found.get(3)?);
            if a / 4 != round || b / 4 != round {
                return Err(trial.forbidden(format!(
                    "after the barrier of round {round} words of rounds {} and {} were read (rules 5, 6)",
                    a / 4,
                    b / 4
                )));
            }
            // As x y: process 2 saw 1 0, process 3 saw 0 1.
            match ((a % 4, b % 4) == (0b10, 0b01), synchronised) {
                (true, true) => {
                    return Err(trial.forbidden(format!(
                        "in round {round} two processes saw two writes in different orders (rule 6)"
                    )));
                }
                (true, false) => count(&mut seen, "different orders, racy"),
                (false, _) => count(&mut seen, "one order"),
            }
        }
    }
    dsm.barrier()?;
    Ok(seen)
}
