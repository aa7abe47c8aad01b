//! The program of the README: `dosmos up -c FILE -- ./sum`.

#![allow(clippy::print_stdout)] // a program may print

use dsm_lib::{Dsm, Vector};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dsm = Dsm::from_env()?; // started by `dosmos up`
    let sums = dsm.vector("sums", dsm.size()).split(dsm.size());
    let sums: Vector<f64> = sums.owner_per_rank().declare()?; // each sum where it is written
    let done = dsm.scalar::<i64>("done").declare()?;

    let mine = (0..1_000_000)
        .skip(dsm.rank())
        .step_by(dsm.size())
        .map(|i| 1.0 / (1.0 + i as f64))
        .sum::<f64>();
    sums.object(dsm.rank())?.write(&[mine])?;
    done.fetch_add(1)?;
    dsm.barrier()?; // everything before it is visible after it

    if dsm.rank() == 0 {
        let mut total = 0.0;
        for i in 0..dsm.size() {
            total += sums.object(i)?.read()?[0];
        }
        println!("{} processes, sum {total}", done.read()?);
    }
    dsm.close()?;
    Ok(())
}
