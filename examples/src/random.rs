//! A random program: operations of all kinds on variables of all types, shapes, splits, placements and
//! policies, by a seed.
//!
//! What it computes means nothing, but for the totals: every fetch-add is counted, and must be found.
//! What it did is counted by the library and written down with `--counts`, to hold against meta-objects
//! and stored records.

use clap::Args;
use dsm_lib::{CopyPolicy, Dsm, Element, Handle, Object, Variable, Vector};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::error::Result;
use crate::program::{Program, wrong};

/// Barriers during the run, at the same places for all.
const PHASES: usize = 8;

/// The arguments of the program.
#[derive(Args, Debug, Clone)]
pub struct Random {
    /// Seed; together with the cluster it fixes what each process does.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Operations of each process (a section with what is done in it is one).
    #[arg(long, default_value_t = 1000)]
    operations: usize,
}

impl Program for Random {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        let variables = declare(dsm)?;
        let totals = dsm
            .vector::<u64>("random.totals", 4)
            .split(4)
            .owners_round_robin()
            .declare()?;
        let mut dice = StdRng::seed_from_u64(self.seed ^ (dsm.rank() as u64) << 32);
        let mut added = 0;
        for phase in 0..PHASES {
            dsm.barrier()?;
            let until = self.operations * (phase + 1) / PHASES;
            for _ in self.operations * phase / PHASES..until {
                if dice.random_ratio(1, 10) {
                    added += add(&totals, &mut dice)?;
                } else {
                    let which = dice.random_range(0..variables.len());
                    variables[which].act(&mut dice)?;
                }
            }
        }
        check_totals(dsm, &totals, added)?;
        let done = dsm.counts().total();
        Ok(format!(
            "random: {} did {} reads, {} writes, {} acquires, {} releases (seed {})",
            dsm.name(),
            done.reads,
            done.writes,
            done.acquires,
            done.releases,
            self.seed
        ))
    }
}

fn declare(dsm: &Dsm) -> Result<Vec<Box<dyn Playground>>> {
    let (n, update) = (dsm.size(), CopyPolicy::Update);
    Ok(vec![
        open(&dsm.scalar::<bool>("random.bool").policy(update).declare()?),
        open(
            &dsm.vector::<u8>("random.bytes", 100)
                .split(3)
                .owners_round_robin()
                .declare()?,
        ),
        open(
            &dsm.matrix::<i32>("random.i32", 6, 8)
                .split_columns(2)
                .owner_by_name()
                .declare()?,
        ),
        open(&dsm.scalar::<i64>("random.i64").declare()?),
        open(
            &dsm.vector::<u32>("random.u32", 4 * n)
                .split(n)
                .owner_per_rank()
                .policy(update)
                .declare()?,
        ),
        open(
            &dsm.matrix::<u64>("random.u64", 9, 7)
                .split_blocks(2, 2)
                .owners_round_robin()
                .declare()?,
        ),
        open(
            &dsm.vector::<f32>("random.f32", 33)
                .split(2)
                .owners_round_robin()
                .policy(update)
                .declare()?,
        ),
        open(
            &dsm.matrix::<f64>("random.f64", 2 * n, 16)
                .split_rows(n)
                .owner_per_rank()
                .policy(update)
                .declare()?,
        ),
    ])
}

/// A variable to play with, whatever its type.
trait Playground {
    fn act(&self, dice: &mut StdRng) -> Result<()>;
}

fn open<H>(handle: &H) -> Box<dyn Playground>
where
    H: Handle + std::ops::Deref<Target = Variable<H::Element>>,
    H::Element: Arbitrary,
{
    Box::new((**handle).clone())
}

/// A type with random values.
trait Arbitrary: Element {
    fn any(dice: &mut StdRng) -> Self;
}

macro_rules! arbitrary {
    ($($t:ty),*) => {$(
        impl Arbitrary for $t {
            fn any(dice: &mut StdRng) -> Self {
                dice.random()
            }
        }
    )*};
}
arbitrary!(bool, u8, i32, i64, u32, u64, f32, f64);

impl<T: Arbitrary> Playground for Variable<T> {
    fn act(&self, dice: &mut StdRng) -> Result<()> {
        let object = self.object(dice.random_range(0..self.object_count()))?;
        match dice.random_range(0..10) {
            0..5 => read(&object, dice),
            5..8 => {
                let (first, values) = some(&object, dice);
                Ok(object.write_at(first, &values)?)
            }
            8 => {
                let at = dice.random_range(0..object.len());
                object.compare_exchange(at, T::default(), T::any(dice))?;
                Ok(())
            }
            _ => section(&object, dice),
        }
    }
}

fn read<T: Arbitrary>(object: &Object<T>, dice: &mut StdRng) -> Result<()> {
    if dice.random() {
        // Whatever a reader reads is an access as any other.
        let mut reader = object.reader();
        reader.read()?;
        reader.get(0)?;
        object.read()?;
    } else {
        let first = dice.random_range(0..object.len());
        object.read_range(first..dice.random_range(first..object.len()) + 1)?;
    }
    Ok(())
}

/// Holds one object at a time, so that there is no deadlock.
fn section<T: Arbitrary>(object: &Object<T>, dice: &mut StdRng) -> Result<()> {
    let mut section = object.acquire()?;
    for _ in 0..dice.random_range(0..4) {
        match dice.random_range(0..3) {
            0 => drop(section.read()?),
            1 => {
                let (first, values) = some(object, dice);
                section.write_at(first, &values)?;
            }
            _ => {
                let at = dice.random_range(0..object.len());
                section.compare_exchange(at, T::default(), T::any(dice))?;
            }
        }
    }
    section.release()?;
    Ok(())
}

/// Values for a random part of an object.
fn some<T: Arbitrary>(object: &Object<T>, dice: &mut StdRng) -> (usize, Vec<T>) {
    let first = dice.random_range(0..object.len());
    let end = dice.random_range(first..object.len()) + 1;
    (first, (first..end).map(|_| T::any(dice)).collect())
}

fn add(totals: &Vector<u64>, dice: &mut StdRng) -> Result<u64> {
    let amount = dice.random_range(1..100);
    totals.fetch_add(dice.random_range(0..totals.len()), amount)?;
    Ok(amount)
}

/// Nothing added was lost.
fn check_totals(dsm: &Dsm, totals: &Vector<u64>, added: u64) -> Result<()> {
    let sum = dsm.scalar::<u64>("random.sum").owner_by_name().declare()?;
    sum.fetch_add(added)?;
    dsm.barrier()?;
    let expected = sum.read()?;
    let mut found = 0;
    for object in totals.objects() {
        found += object.get(0)?;
    }
    if found != expected {
        let what = format!("fetch-adds of {expected} in all left {found}");
        return Err(wrong(dsm, "random", what));
    }
    Ok(())
}
