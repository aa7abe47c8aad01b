//! The sample application of DOSMOS-Trace (docs/bibliography.md#dosmos-trace, section 8): exclusive writes and reads of one variable by all processes, and nothing
//! else unless asked for; the worst case for a monitor.

use std::time::{Duration, Instant};

use clap::Args;
use dsm_lib::{Cache, Dsm};
use serde_json::json;

use crate::error::Result;
use crate::program::{Program, patient, wrong};

/// The arguments of the program.
#[derive(Args, Debug, Clone)]
pub struct Exclusive {
    /// Rounds of acquire, write, release and read.
    #[arg(long, default_value_t = 1000)]
    rounds: u64,
    /// Microseconds of computing after each round.
    #[arg(long, default_value_t = 0)]
    compute: u64,
}

impl Program for Exclusive {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        let owner = dsm.homes().first().map_or("", |h| h);
        let variable = dsm
            .scalar::<u64>("exclusive")
            .owner(owner)
            .cache(Cache::Mp)
            .declare()?;
        dsm.barrier()?;
        let start = Instant::now();
        for _ in 0..self.rounds {
            let mut section = variable.acquire()?;
            let now = section.read()?;
            section.write(now + 1)?;
            section.release()?;
            compute(Duration::from_micros(self.compute));
        }
        patient(dsm).barrier()?;
        let seconds = start.elapsed().as_secs_f64();
        let (sum, expected) = (variable.read()?, self.rounds * dsm.size() as u64);
        if sum != expected {
            let what = format!("{expected} exclusive additions gave {sum} (rule 1)");
            return Err(wrong(dsm, "exclusive", what));
        }
        Ok(match dsm.rank() {
            0 => json!({ "seconds": seconds, "rounds": self.rounds }).to_string(),
            _ => String::new(),
        })
    }
}

/// Keeps the processor busy.
fn compute(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}
