//! `pathology`: every kind of bad sharing that `dosmos check` names, and with `--healthy` the same program cured.
//!
//! Work that has nothing to do with sharing is done asleep: it takes its time whatever the machine is busy with, so
//! that four processes show on two processors what they would on four. `bad-group` and `ping-pong` are those of
//! [`crate::groups`] and [`crate::ping_pong`].

use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use dsm_lib::{Cache, CopyPolicy, Dsm, ErrorCode, Vector};

use crate::error::{Error, Result};
use crate::program::{Program, needs, parse, patient, wrong};
use crate::{groups, ping_pong};

/// The arguments.
#[derive(Args, Debug, Clone)]
pub struct Pathology {
    /// What to do wrong.
    #[arg(long, value_enum)]
    kind: Kind,
    /// Do it right instead.
    #[arg(long)]
    healthy: bool,
    /// Rounds.
    #[arg(long, default_value_t = 100)]
    rounds: usize,
    /// Deadlock: milliseconds until the first process gives up.
    #[arg(long, default_value_t = 2000)]
    deadline: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Bottleneck,
    PingPong,
    NoSharing,
    PolicyMismatch,
    FalseSharing,
    BadGroup,
    MisplacedOwner,
    Imbalance,
    Deadlock,
    CrowdedOwner,
    FineGrained,
    BarrierOverhead,
    Polling,
    ReadOnlyLocking,
    DataRace,
    SlowProcess,
}

impl Program for Pathology {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        needs(dsm, "pathology", 2)?;
        match self.kind {
            Kind::BadGroup => return self.show::<groups::Bad, groups::Good>(dsm),
            Kind::PingPong => return self.show::<ping_pong::Shared, ping_pong::Split>(dsm),
            Kind::Bottleneck => self.bottleneck(dsm)?,
            Kind::NoSharing => self.no_sharing(dsm)?,
            Kind::PolicyMismatch => self.policy_mismatch(dsm)?,
            Kind::FalseSharing => self.false_sharing(dsm)?,
            Kind::MisplacedOwner => self.misplaced_owner(dsm)?,
            Kind::Imbalance => self.imbalance(dsm)?,
            Kind::Deadlock => self.deadlock(dsm)?,
            Kind::CrowdedOwner => self.crowded_owner(dsm)?,
            Kind::FineGrained => self.fine_grained(dsm)?,
            Kind::BarrierOverhead => self.barrier_overhead(dsm)?,
            Kind::Polling => self.polling(dsm)?,
            Kind::ReadOnlyLocking => self.read_only_locking(dsm)?,
            Kind::DataRace => self.data_race(dsm)?,
            Kind::SlowProcess => self.slow_process(dsm)?,
        }
        patient(dsm).barrier()?;
        Ok(String::new())
    }
}

/// Work without sharing.
fn work(micros: u64) {
    std::thread::sleep(Duration::from_micros(micros));
}

/// Work on a processor, as much as there is of one in this time.
fn compute(micros: u64) {
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_micros(micros) {
        std::hint::spin_loop();
    }
}

impl Pathology {
    /// What another program shows, or its cure.
    fn show<Bad: Program, Cured: Program>(&self, dsm: &Dsm) -> Result<String> {
        let rounds = ["--rounds".to_owned(), self.rounds.to_string()];
        match self.healthy {
            true => parse::<Cured>("pathology", "", &rounds)?.run(dsm),
            false => parse::<Bad>("pathology", "", &rounds)?.run(dsm),
        }
    }

    /// All count under one lock, and work while they have it; cured: one lock per process.
    fn bottleneck(&self, dsm: &Dsm) -> Result<()> {
        let locks = if self.healthy { dsm.size() } else { 1 };
        let counter = dsm.vector::<u64>("counter", dsm.size());
        let counter = counter
            .split(locks)
            .owner_per_rank()
            .cache(Cache::Mp)
            .declare()?;
        patient(dsm).barrier()?;
        let mine = counter.object(dsm.rank() % locks)?;
        for _ in 0..self.rounds {
            let mut section = mine.acquire()?;
            let now = section.get(0)?;
            work(1000);
            section.set(0, now + 1)?;
            section.release()?;
        }
        patient(dsm).barrier()?;
        let mut sum = 0;
        for object in counter.objects() {
            sum += object.get(0)?;
        }
        let expected = (self.rounds * dsm.size()) as u64;
        self.check(dsm, sum, expected)
    }

    /// Process 0 keeps what it alone needs in a shared variable, which lies with process 1; cured: in its own memory.
    fn no_sharing(&self, dsm: &Dsm) -> Result<()> {
        let scratch = dsm.vector::<u64>("scratch", 64);
        let scratch = scratch.owner(&home(dsm, 1)?).cache(Cache::Mp).declare()?;
        patient(dsm).barrier()?;
        let mut own = vec![0; 64];
        for i in 0..self.rounds {
            if dsm.rank() == 0 && !self.healthy {
                let object = scratch.object(0)?;
                object.set(i % 64, i as u64)?;
                object.get((i + 1) % 64)?;
                object.get(i % 64)?;
            }
            own[i % 64] = i as u64;
            work(50);
        }
        Ok(())
    }

    /// What process 0 writes, process 1 reads, every version of it, and fetches it; cured: it is told.
    fn policy_mismatch(&self, dsm: &Dsm) -> Result<()> {
        const ROWS: usize = 16;
        /// They are read in an order that no single call has.
        const STRIDE: usize = 7;
        let policy = match self.healthy {
            true => CopyPolicy::Update,
            false => CopyPolicy::Invalidate,
        };
        let rows = dsm.vector::<u64>("rows", ROWS * 8).split(ROWS);
        let rows = rows
            .owner(&home(dsm, 0)?)
            .policy(policy)
            .cache(Cache::Mp)
            .declare()?;
        let patient = patient(dsm);
        for round in 0..self.rounds as u64 {
            if dsm.rank() == 0 {
                for row in rows.objects() {
                    row.write(&[round + 1; 8])?;
                }
            }
            patient.barrier()?;
            if dsm.rank() == 1 {
                for i in 0..ROWS {
                    let row = rows.object(STRIDE * i % ROWS)?;
                    self.check(dsm, row.read()?[0], round + 1)?;
                }
            }
            patient.barrier()?;
        }
        Ok(())
    }

    /// Processes 0 and 1 each count in an element of their own of one object; cured: in an object of their own.
    fn false_sharing(&self, dsm: &Dsm) -> Result<()> {
        let counts: Vector<u64> = dsm
            .vector("counts", 2)
            .split(if self.healthy { 2 } else { 1 })
            .owners(
                [home(dsm, 0)?, home(dsm, 1)?]
                    .into_iter()
                    .take(if self.healthy { 2 } else { 1 }),
            )
            .cache(Cache::Mp)
            .declare()?;
        patient(dsm).barrier()?;
        let me = dsm.rank();
        if me < 2 {
            let (object, at) = match self.healthy {
                true => (counts.object(me)?, 0),
                false => (counts.object(0)?, me),
            };
            for _ in 0..self.rounds {
                let mut section = object.acquire()?;
                let now = section.get(at)?;
                section.set(at, now + 1)?;
                section.release()?;
                work(50);
            }
            self.check(dsm, object.get(at)?, self.rounds as u64)?;
        }
        Ok(())
    }

    /// Process 0 works on an array that lies with process 1, who looks at it now and then; cured: it lies with 0.
    fn misplaced_owner(&self, dsm: &Dsm) -> Result<()> {
        /// Rounds from one look to the next.
        const LOOK: usize = 50;
        let patient = patient(dsm);
        let owner = home(dsm, usize::from(!self.healthy))?;
        let array = dsm
            .vector::<u64>("array", 64)
            .owner(&owner)
            .cache(Cache::Mp)
            .declare()?;
        patient.barrier()?;
        let object = array.object(0)?;
        for i in 0..self.rounds {
            if dsm.rank() == 0 {
                object.set(i % 64, i as u64)?;
                object.get(i % 64)?;
            }
            work(50);
            if i % LOOK == 0 {
                patient.barrier()?;
                if dsm.rank() == 1 {
                    object.get(i % 64)?;
                }
                patient.barrier()?;
            }
        }
        Ok(())
    }

    /// Between barriers process 0 works four times as long as the others; cured: as long as they. Long, so that what a
    /// busy machine adds is little.
    fn imbalance(&self, dsm: &Dsm) -> Result<()> {
        let patient = patient(dsm);
        for _ in 0..self.rounds {
            work(match (self.healthy, dsm.rank()) {
                (true, _) => 40_000,
                (false, 0) => 80_000,
                (false, _) => 20_000,
            });
            patient.barrier()?;
        }
        Ok(())
    }

    /// Two processes take two locks, each its own first; cured: both take the first one first. Process 0 gives
    /// up at its deadline, so that the program ends.
    fn deadlock(&self, dsm: &Dsm) -> Result<()> {
        let locks = dsm
            .vector::<u64>("locks", 2)
            .split(2)
            .cache(Cache::Mp)
            .declare()?;
        patient(dsm).barrier()?;
        let me = dsm.rank();
        if me > 1 {
            return match self.healthy {
                true => Ok(()),
                false => Ok(patient(dsm).barrier()?),
            };
        }
        let order = if self.healthy { [0, 1] } else { [me, 1 - me] };
        let deadline = Duration::from_millis(self.deadline * if me == 0 { 1 } else { 10 });
        let [first, second] = [locks.object(order[0])?, locks.object(order[1])?];
        let one = first.with_deadline(deadline).acquire()?;
        if !self.healthy {
            // Until both have one.
            patient(dsm).barrier()?;
        }
        match second.with_deadline(deadline).acquire() {
            Ok(two) => two.release()?,
            Err(e) if e.code() == Some(ErrorCode::Deadline) && !self.healthy => 0,
            Err(e) => return Err(e.into()),
        };
        one.release()?;
        Ok(())
    }

    /// Each process works on four variables of its own, which all lie with process 0; cured: with the process itself.
    fn crowded_owner(&self, dsm: &Dsm) -> Result<()> {
        const EACH: usize = 4;
        let mut mine = Vec::new();
        for rank in 0..dsm.size() {
            let owner = home(dsm, if self.healthy { rank } else { 0 })?;
            for i in 0..EACH {
                let part = dsm.vector::<u64>(&format!("part-{rank}-{i}"), 8);
                let part = part.owner(&owner).cache(Cache::Mp).declare()?;
                if rank == dsm.rank() {
                    mine.push(part.object(0)?);
                }
            }
        }
        patient(dsm).barrier()?;
        for round in 0..self.rounds as u64 {
            for part in &mine {
                part.set(0, round)?;
                self.check(dsm, part.get(0)?, round)?;
            }
            work(50);
        }
        Ok(())
    }

    /// Process 1 fills a table of process 0 element by element; cured: at once.
    fn fine_grained(&self, dsm: &Dsm) -> Result<()> {
        const ELEMENTS: usize = 64;
        let table = dsm.vector::<u64>("table", ELEMENTS);
        let table = table.owner(&home(dsm, 0)?).cache(Cache::Mp).declare()?;
        let object = table.object(0)?;
        let patient = patient(dsm);
        for round in 0..self.rounds as u64 {
            if dsm.rank() == 1 {
                if self.healthy {
                    object.write(&[round; ELEMENTS])?;
                } else {
                    for i in 0..ELEMENTS {
                        object.set(i, round)?;
                    }
                }
            }
            patient.barrier()?;
            if dsm.rank() == 0 {
                let sum = object.read()?.iter().sum();
                self.check(dsm, sum, round * ELEMENTS as u64)?;
            }
            patient.barrier()?;
        }
        Ok(())
    }

    /// A barrier after each little piece of work; cured: after 32 of them.
    fn barrier_overhead(&self, dsm: &Dsm) -> Result<()> {
        let pieces = if self.healthy { 32 } else { 1 };
        let patient = patient(dsm);
        for round in 0..self.rounds {
            work(20);
            if round % pieces == 0 {
                patient.barrier()?;
            }
        }
        Ok(())
    }

    /// The last process reads again and again, from another group where there is one, until process 0 has written the next
    /// number; cured: it waits at a barrier.
    fn polling(&self, dsm: &Dsm) -> Result<()> {
        let next = dsm.vector::<u64>("next", 1);
        let object = next
            .owner(&home(dsm, 0)?)
            .cache(Cache::Mp)
            .declare()?
            .object(0)?;
        let patient = patient(dsm);
        for round in 1..=self.rounds as u64 {
            if dsm.rank() == 0 {
                work(2000);
                let mut section = object.acquire()?;
                section.set(0, round)?;
                section.release()?;
            }
            if self.healthy {
                patient.barrier()?;
            }
            if dsm.rank() + 1 == dsm.size() {
                while object.get(0)? < round {}
            }
            if !self.healthy {
                // Nobody writes the next number before this one was seen.
                patient.barrier()?;
            }
        }
        patient.barrier()?;
        Ok(())
    }

    /// All look at a table again and again that process 0 changes now and then, and acquire it for that; cured: they read it.
    fn read_only_locking(&self, dsm: &Dsm) -> Result<()> {
        const LENGTH: usize = 64;
        /// Looks per change.
        const LOOKS: usize = 50;
        let table = dsm.vector::<u64>("table", LENGTH);
        let table = table
            .owner(&home(dsm, 0)?)
            .cache(Cache::Mp)
            .declare()?
            .object(0)?;
        patient(dsm).barrier()?;
        for round in 0..self.rounds {
            if dsm.rank() == 0 {
                if round % LOOKS == 0 {
                    let mut section = table.acquire()?;
                    section.write(&[round as u64; LENGTH])?;
                    section.release()?;
                }
            } else if self.healthy {
                self.is_whole(dsm, &table.read()?)?;
            } else {
                let section = table.acquire()?;
                self.is_whole(dsm, &section.read()?)?;
                section.release()?;
            }
            work(100);
        }
        Ok(())
    }

    /// All count in one element, and none acquires it: what one counts, another overwrites; cured: under its lock.
    fn data_race(&self, dsm: &Dsm) -> Result<()> {
        let counter = dsm.vector::<u64>("counter", 1);
        let counter = counter
            .owner(&home(dsm, 0)?)
            .cache(Cache::Mp)
            .declare()?
            .object(0)?;
        patient(dsm).barrier()?;
        for _ in 0..self.rounds {
            if self.healthy {
                let mut section = counter.acquire()?;
                let now = section.get(0)?;
                section.set(0, now + 1)?;
                section.release()?;
            } else {
                let now = counter.get(0)?;
                counter.set(0, now + 1)?;
            }
            work(50);
        }
        if self.healthy {
            patient(dsm).barrier()?;
            self.check(dsm, counter.get(0)?, (self.rounds * dsm.size()) as u64)?;
        }
        Ok(())
    }

    /// All compute as long, but process 0 stands still in between, as if something else had its processor; cured: it does not.
    fn slow_process(&self, dsm: &Dsm) -> Result<()> {
        let patient = patient(dsm);
        for _ in 0..self.rounds {
            compute(5000);
            if dsm.rank() == 0 && !self.healthy {
                work(30_000);
            }
            patient.barrier()?;
        }
        Ok(())
    }

    /// Whether a table is that of one change.
    fn is_whole(&self, dsm: &Dsm, table: &[u64]) -> Result<()> {
        let other = table.iter().find(|element| **element != table[0]);
        self.check(dsm, *other.unwrap_or(&table[0]), table[0])
    }

    fn check(&self, dsm: &Dsm, found: u64, expected: u64) -> Result<()> {
        if found == expected {
            return Ok(());
        }
        let what = format!("{:?}: {expected} was written, {found} read", self.kind);
        Err(wrong(dsm, "pathology", what))
    }
}

/// The memory process of the process with this rank.
fn home(dsm: &Dsm, rank: usize) -> Result<String> {
    let home = dsm.homes().get(rank).map(ToString::to_string);
    home.ok_or_else(|| Error::Usage(format!("there is no rank {rank}")))
}
