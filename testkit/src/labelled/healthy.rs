//! Parts of programs with nothing wrong: what good programs do with shared variables.

use dosmos_analysis::Kind;
use dosmos_proto::CopyPolicy::{Invalidate, Update};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::machine::Step::{self, Acquire, Compute, Read, Release, Write};
use super::parts::{Also, Part, Recipe};
use super::world::{ELEMENTS, World, object};

const WHOLE: (u32, u32) = (0, ELEMENTS);

/// Number of healthy parts there are.
pub(super) const KINDS: usize = 4;

/// The `which`-th healthy part.
pub(super) fn healthy(which: usize, world: &mut World, recipe: &Recipe<'_>) -> Part {
    let random = &mut StdRng::seed_from_u64(recipe.seed);
    match which {
        0 => stencil(world, recipe),
        1 => migratory(world, recipe),
        2 => read_mostly(world, recipe, random),
        _ => producer_consumer(world, recipe, random),
    }
}

/// One band of a matrix per process, edges exchanged with the neighbours once an iteration.
fn stencil(world: &mut World, recipe: &Recipe<'_>) -> Part {
    let n = world.size();
    let owners: Vec<usize> = (0..n).collect();
    let bands = world.declare(&format!("{}.bands", recipe.name), &owners, Invalidate);
    let edges = world.declare(&format!("{}.edges", recipe.name), &owners, Update);
    let aps = owners;
    Part::new(vec![bands, edges], aps, move |ap, _, _| {
        let mut steps = vec![Read(object(bands, ap), WHOLE)];
        for neighbour in [ap.checked_sub(1), Some(ap + 1).filter(|a| *a < n)] {
            steps.extend(neighbour.map(|a| Read(object(edges, a), WHOLE)));
        }
        steps.extend([
            Write(object(bands, ap), WHOLE),
            Write(object(edges, ap), WHOLE),
        ]);
        steps
    })
}

/// A record that everybody updates now and then under a lock that is nearly always free.
fn migratory(world: &mut World, recipe: &Recipe<'_>) -> Part {
    let n = world.size();
    let owner = world.middle();
    let v = world.declare(recipe.name, &[owner], Invalidate);
    let base = recipe.base;
    Part::new(vec![v], (0..n).collect(), move |ap, iteration, random| {
        // A few of them in each iteration, not at the same time.
        if (ap + iteration) % n >= 2 {
            return Vec::new();
        }
        let o = object(v, 0);
        let before = base * random.random_range(0.0..0.5);
        vec![
            Compute(before),
            Acquire(o),
            Read(o, WHOLE),
            Write(o, WHOLE),
            Release(o),
        ]
    })
}

/// A table a group, read by all of it all the time and written once in a while.
fn read_mostly(world: &mut World, recipe: &Recipe<'_>, random: &mut StdRng) -> Part {
    let groups = world.topology.groups().len();
    let homes: Vec<usize> = (0..groups).map(|g| world.members(g)[0]).collect();
    let group_of: Vec<usize> = (0..world.size())
        .map(|ap| world.topology.memory_processes()[ap].group.index())
        .collect();
    let v = world.declare(recipe.name, &homes, Invalidate);
    let reads = random.random_range(5..30_usize);
    let every = random.random_range(5..20_usize);
    let think = recipe.base / reads as f64 / 2.0;
    let aps = (0..world.size()).collect();
    Part::new(vec![v], aps, move |ap, iteration, _| {
        let o = object(v, group_of[ap]);
        let mut steps = Vec::new();
        if homes[group_of[ap]] == ap && iteration % every == 0 {
            steps.extend([Acquire(o), Write(o, WHOLE), Release(o)]);
        }
        for _ in 0..reads {
            steps.extend([Compute(think), Read(o, WHOLE)]);
        }
        steps
    })
}

/// A slot that one process of a group fills and another empties, with work on both sides.
fn producer_consumer(world: &mut World, recipe: &Recipe<'_>, random: &mut StdRng) -> Part {
    let g = random.random_range(0..world.topology.groups().len());
    let members = world.members(g);
    let (from, to) = (members[0], members[1]);
    let v = world.declare(recipe.name, &[from], Update);
    let o = object(v, 0);
    let items = random.random_range(1..=3_usize);
    let work = recipe.base / items as f64 / 2.0;
    let body = move |ap, emptied: &[Step]| {
        let item = match ap {
            ap if ap == from => vec![Compute(work), Acquire(o), Write(o, WHOLE), Release(o)],
            ap if ap == to => [&[Compute(work)], emptied].concat(),
            _ => return Vec::new(),
        };
        item.repeat(items)
    };
    let mut part = Part::new(vec![v], vec![from, to], move |ap, _, _| {
        body(ap, &[Acquire(o), Read(o, WHOLE), Release(o)])
    });
    // Who empties a slot only reads it, and could without the lock.
    part.also = vec![Also {
        kind: Kind::ReadOnlyLocking,
        aps: vec![to],
        cured: Box::new(move |ap, _, _| body(ap, &[Read(o, WHOLE)])),
    }];
    part
}
