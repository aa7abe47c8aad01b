//! `ping-pong` and `ping-pong-split`: the program of figure 10 of the DOSMOS-Trace paper, and its cure.
//!
//! Two processes take turns at one variable: each acquires it, adds one, releases it, over and over,
//! and the lock, first come first served, goes from one to the other and back. In `ping-pong-split`
//! the variable is split in two objects, one each at its player's memory process, and nobody waits for
//! anybody. The other processes wait at a barrier.

use std::time::{Duration, Instant};

use clap::Args;
use dsm_lib::{Cache, Dsm, Object};

use crate::error::{Error, Result};
use crate::program::{Program, needs, patient, wrong};

/// The arguments of both programs.
#[derive(Args, Debug, Clone)]
struct Options {
    /// Turns of each player.
    #[arg(long, default_value_t = 500)]
    rounds: u64,
    /// Play until this much time is up, whatever the rounds.
    #[arg(long)]
    seconds: Option<f64>,
    /// Ranks of the two players.
    #[arg(long, num_args = 2, value_names = ["A", "B"], default_values_t = [0, 1])]
    players: Vec<usize>,
}

/// The arguments of `ping-pong`.
#[derive(Args, Debug, Clone)]
pub struct Shared {
    #[command(flatten)]
    options: Options,
}

/// The arguments of `ping-pong-split`.
#[derive(Args, Debug, Clone)]
pub struct Split {
    #[command(flatten)]
    options: Options,
}

impl Program for Shared {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        play(dsm, "ping-pong", &self.options, 1)
    }
}

impl Program for Split {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        play(dsm, "ping-pong-split", &self.options, 2)
    }
}

fn play(dsm: &Dsm, program: &'static str, options: &Options, objects: usize) -> Result<String> {
    needs(dsm, program, 2)?;
    let (a, b) = (options.players[0], options.players[1]);
    let home = |rank: usize| dsm.homes().get(rank).map(ToString::to_string);
    let (Some(of_a), Some(of_b), true) = (home(a), home(b), a != b) else {
        return Err(Error::Usage(format!(
            "{program}: --players {a} {b} must be two different ranks below {}",
            dsm.size()
        )));
    };
    let ball = dsm
        .vector::<u64>("ball", 2)
        .split(objects)
        .owners([of_a, of_b].into_iter().take(objects))
        .cache(Cache::Mp)
        .declare()?;
    let played = dsm.scalar::<u64>("played").cache(Cache::Mp).declare()?;
    let patient = patient(dsm);
    patient.barrier()?;
    let mut turns = 0;
    if let Some(me) = [a, b].iter().position(|rank| *rank == dsm.rank()) {
        turns = take_turns(options, &ball.object(me % objects)?)?;
        played.fetch_add(turns)?;
    }
    patient.barrier()?;
    // Each turn added one, and none was lost.
    let mut sum = 0;
    for object in ball.objects() {
        sum += object.read()?.iter().sum::<u64>();
    }
    let expected = played.read()?;
    if sum != expected {
        let what = format!("{expected} turns were taken, {sum} counted (rule 1: mutual exclusion)");
        return Err(wrong(dsm, program, what));
    }
    match turns {
        0 => Ok(String::new()),
        _ => Ok(format!("{program}: {} took {turns} turns", dsm.name())),
    }
}

fn take_turns(options: &Options, ball: &Object<u64>) -> Result<u64> {
    let start = Instant::now();
    let limit = options
        .seconds
        .map(|s| Duration::try_from_secs_f64(s).unwrap_or_default());
    let mut turns = 0;
    while match limit {
        Some(limit) => start.elapsed() < limit,
        None => turns < options.rounds,
    } {
        let mut section = ball.acquire()?;
        let now = section.get(0)?;
        section.set(0, now + 1)?;
        section.release()?;
        turns += 1;
    }
    Ok(turns)
}
