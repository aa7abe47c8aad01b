//! Causes that show in many variables or in the order of accesses, with their cures; and good programs that look like
//! them.

use std::cell::RefCell;

use dosmos_analysis::Kind;
use dosmos_proto::CopyPolicy::{Invalidate, Update};
use dosmos_proto::VarId;
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::machine::Step::{self, Acquire, Await, Barrier, Compute, Read, Release, Stand, Write};
use super::parts::{Also, Part, Recipe, WHOLE, rounds, some};
use super::world::{ELEMENTS, World, object};

/// Everything is kept by one process: arrays of which each process works on its own and looks at one of another. Cured: kept
/// by the process that works on them.
pub(super) fn crowded(
    sick: bool,
    world: &mut World,
    recipe: &Recipe<'_>,
    random: &mut StdRng,
) -> Part {
    let n = world.size();
    let home = random.random_range(0..n);
    let each = random.random_range(1..=3_usize);
    let owners: Vec<usize> = (0..n * each)
        .map(|i| if sick { home } else { i % n })
        .collect();
    let one = random.random_bool(0.3);
    let variables: Vec<VarId> = match one {
        true => vec![world.declare(recipe.name, &owners, Invalidate)],
        false => (0..)
            .zip(&owners)
            .map(|(i, owner)| world.declare(&format!("{}{i}", recipe.name), &[*owner], Invalidate))
            .collect(),
    };
    let place = {
        let variables = variables.clone();
        move |i: usize| match one {
            true => object(variables[0], i),
            false => object(variables[i], 0),
        }
    };
    let rounds = rounds(recipe, 3.0 * world.speed.trip[1], random).min(12);
    let pause = 3.0 * world.speed.trip[2];
    Part::new(variables, (0..n).collect(), move |ap, _, _| {
        let mut steps = Vec::new();
        for i in (0..each).map(|k| k * n + ap) {
            steps.extend([Read(place(i), WHOLE), Write(place(i), WHOLE)].repeat(rounds));
            steps.push(Compute(pause));
        }
        steps.push(Read(place((ap + 1) % n), WHOLE));
        steps
    })
}

/// A table read, or an array of its own written, number by number. Cured: all at once.
pub(super) fn fine_grained(
    sick: bool,
    world: &mut World,
    recipe: &Recipe<'_>,
    random: &mut StdRng,
) -> Part {
    let groups = world.topology.groups().len();
    let few = (0..groups).map(|g| world.members(g)).take(4);
    let firsts: Vec<(usize, usize)> = few.map(|m| (m[0], m[1])).collect();
    let parts = random.random_range(24..=ELEMENTS);
    let form = random.random_range(0..3);
    let sweeps =
        recipe.base * random.random_range(0.5..2.0) / f64::from(parts) / world.speed.trip[0];
    let sweeps = (sweeps as usize).clamp(1, 20);
    let writers: Vec<usize> = firsts.iter().map(|p| p.0).collect();
    let readers: Vec<usize> = firsts.iter().map(|p| p.1).collect();
    // Each table is kept by who writes it; one of each group reads that of the group.
    let owners: Vec<usize> = match form {
        1 => writers
            .iter()
            .flat_map(|w| vec![*w; parts as usize])
            .collect(),
        _ => writers.clone(),
    };
    let v = world.declare(recipe.name, &owners, Update);
    let aps = match form {
        2 => writers.clone(),
        _ => readers.clone(),
    };
    Part::new(vec![v], aps, move |ap, _, _| {
        let range = |i: u32| (i, i + 1);
        let small = |step: fn(dosmos_proto::ObjectId, (u32, u32)) -> Step, o| -> Vec<Step> {
            match sick {
                true => (0..parts).map(|i| step(o, range(i))).collect::<Vec<_>>(),
                false => vec![step(o, (0, parts))],
            }
            .repeat(sweeps)
        };
        let (writes, reads) = (
            writers.iter().position(|w| *w == ap),
            readers.iter().position(|r| *r == ap),
        );
        match (form, writes, reads) {
            (1, Some(k), _) => vec![Write(object(v, k * parts as usize), WHOLE)],
            (1, _, Some(k)) => {
                let all = (0..parts as usize).map(|i| object(v, k * parts as usize + i));
                let all = all.take(if sick { parts as usize } else { 1 });
                let all = all.map(|o| Read(o, WHOLE)).collect::<Vec<_>>();
                all.repeat(sweeps)
            }
            (2, Some(k), _) => small(Write, object(v, k)),
            (_, Some(k), _) => vec![Write(object(v, k), WHOLE)],
            (2, _, Some(k)) => vec![Read(object(v, k), WHOLE)],
            (_, _, Some(k)) => small(Read, object(v, k)),
            _ => Vec::new(),
        }
    })
}

/// A barrier after every little step. Cured: one after many.
pub(super) fn barriers(
    sick: bool,
    world: &mut World,
    recipe: &Recipe<'_>,
    random: &mut StdRng,
) -> Part {
    let step = world.speed.trip[2] * random.random_range(0.2..0.8);
    let rounds = (recipe.base * random.random_range(1.0..2.0) / step / 2.0) as usize;
    Part::new(
        Vec::new(),
        (0..world.size()).collect(),
        move |_, _, _| match sick {
            true => [Compute(step), Barrier].repeat(rounds),
            false => vec![Compute(step * rounds as f64), Barrier],
        },
    )
}

/// Two processes that work in turn, each of which reads the other's flag until it is set. Cured: both work at the same
/// time, and look at the flag once.
pub(super) fn polling(
    sick: bool,
    world: &mut World,
    recipe: &Recipe<'_>,
    random: &mut StdRng,
) -> Part {
    let pair = some(&world.team(2, random), 2, random);
    let v = world.declare(recipe.name, &pair, Update);
    let [a, b] = [object(v, 0), object(v, 1)];
    let work = recipe.base * random.random_range(1.0..2.0);
    let turns = RefCell::new(vec![0_u64; world.size()]);
    let users = pair.clone();
    Part::new(vec![v], pair, move |ap, _, _| {
        let Some(rank) = users.iter().position(|u| *u == ap) else {
            return Vec::new();
        };
        let mut turns = turns.borrow_mut();
        turns[ap] += 1;
        let (own, other) = if rank == 0 { (a, b) } else { (b, a) };
        let look = match sick {
            true => Await(other, WHOLE, turns[ap]),
            false => Read(other, WHOLE),
        };
        let mut steps = vec![Compute(work), Acquire(own), Write(own, WHOLE), Release(own)];
        match rank {
            0 => steps.push(look),
            _ => steps.insert(0, look),
        }
        steps
    })
}

/// A table that few look at more often than its keeper changes it, each time under its lock. Cured: they read it.
pub(super) fn read_only_locking(
    sick: bool,
    world: &mut World,
    recipe: &Recipe<'_>,
    random: &mut StdRng,
) -> Part {
    let team = some(&world.team(3, random), 3, random);
    let v = world.declare(recipe.name, &team[..1], Invalidate);
    let table = object(v, 0);
    let looks = rounds(recipe, 3.0 * world.speed.trip[1], random);
    let keeper = team[0];
    let users = team.clone();
    let body = move |ap| {
        if ap == keeper {
            return vec![Acquire(table), Write(table, WHOLE), Release(table)];
        }
        match (users.contains(&ap), sick) {
            (false, _) => Vec::new(),
            (true, true) => [Acquire(table), Read(table, WHOLE), Release(table)].repeat(looks),
            (true, false) => [Read(table, WHOLE)].repeat(looks),
        }
    };
    let same = body.clone();
    let mut part = Part::new(vec![v], team.clone(), move |ap, _, _| body(ap));
    // Whoever looks finds that it changed once, so the other policy may be better, too.
    part.also = vec![Also {
        kind: Kind::PolicyMismatch,
        aps: team,
        cured: Box::new(move |ap, _, _| same(ap)),
    }];
    part
}

/// Processes that change objects together: 0 a counter, 1 one of them forgets the lock, 2 elements beside each other, which
/// overlap, 3 what some write and others read in turn. Cured: under a lock, apart, or with a barrier between.
pub(super) fn data_race(
    form: usize,
    sick: bool,
    world: &mut World,
    recipe: &Recipe<'_>,
    random: &mut StdRng,
) -> Part {
    let team = some(&world.team(3, random), random.random_range(2..=3), random);
    let v = world.declare(recipe.name, &team[..1], Invalidate);
    let shared = object(v, 0);
    let forgets = *team.last().unwrap_or(&0);
    let every = random.random_range(1..=4_usize);
    let users = team.clone();
    Part::new(vec![v], team, move |ap, iteration, _| {
        let Some(rank) = users.iter().position(|u| *u == ap) else {
            return Vec::new();
        };
        if form < 3 && iteration % every != 0 {
            return Vec::new();
        }
        let change = [Read(shared, WHOLE), Write(shared, WHOLE)];
        let locked = [&[Acquire(shared)][..], &change, &[Release(shared)]].concat();
        let first = 20 * rank as u32;
        match (form, sick) {
            (0, true) => change.to_vec(),
            (1, true) if ap == forgets => change.to_vec(),
            (0 | 1, _) => locked,
            (2, true) => vec![Write(shared, (first, first + 24))],
            (2, false) => vec![Write(shared, (first, first + 20))],
            // Whoever is first writes in one iteration what the others read in the next.
            (_, true) if rank == 0 => vec![Write(shared, WHOLE)],
            (_, true) => vec![Read(shared, WHOLE)],
            (_, false) if rank == 0 && iteration % 2 == 0 => vec![Write(shared, WHOLE)],
            (_, false) if rank > 0 && iteration % 2 == 1 => vec![Read(shared, WHOLE)],
            (_, false) => Vec::new(),
        }
    })
}

/// A process that is without a processor for a while in every iteration, or in some of them for long, or begins long after the
/// others; or two do. Cured: none.
pub(super) fn slow_process(
    sick: bool,
    world: &mut World,
    recipe: &Recipe<'_>,
    random: &mut StdRng,
) -> Part {
    let n = world.size();
    let few = random.random_range(1..=2.min(n / 3).max(1));
    let slow = some(&(0..n).collect::<Vec<_>>(), few, random);
    let stands = recipe.base * random.random_range(0.5..3.0);
    let every = [1, 1, 5, 0][random.random_range(0..4_usize)];
    let late = recipe.base * recipe.iterations as f64 * random.random_range(0.2..0.5);
    let whole = slow.iter().map(|ap| (*ap, late)).collect();
    let mut part = Part::new(Vec::new(), (0..n).collect(), move |ap, iteration, _| {
        let stand = sick && every > 0 && slow.contains(&ap) && iteration % every == 0;
        match stand {
            true => vec![Stand(stands * every as f64)],
            false => Vec::new(),
        }
    });
    if sick && every == 0 {
        part.late = whole;
    }
    part
}

/// Number of good programs that look like these.
pub(super) const ALIKE: usize = 5;

/// The `which`-th good program that looks like one of these.
pub(super) fn alike(
    which: usize,
    world: &mut World,
    recipe: &Recipe<'_>,
    random: &mut StdRng,
) -> Part {
    let n = world.size();
    let all: Vec<usize> = (0..n).collect();
    let trip = world.speed.trip;
    match which {
        // A table that all read evenly, again and again, and one keeps: nobody else should.
        0 => {
            let home = world.middle();
            let v = world.declare(recipe.name, &vec![home; n], Invalidate);
            Part::new(vec![v], all, move |ap, iteration, _| {
                let mut steps = match (ap == home, iteration % 7) {
                    (true, 0) => vec![Write(object(v, iteration % n), WHOLE)],
                    _ => Vec::new(),
                };
                for k in 0..3 {
                    let o = object(v, (ap + iteration * 5 + k * 3) % n);
                    steps.extend([Compute(4.0 * trip[2]), Read(o, WHOLE)]);
                }
                steps
            })
        }
        // Row by row, with work on each.
        1 => {
            let rows = random.random_range(8..24_usize);
            let owners: Vec<usize> = (0..n * rows).map(|i| i / rows).collect();
            let v = world.declare(recipe.name, &owners, Invalidate);
            let work = recipe.base / rows as f64 + 3.0 * trip[0];
            Part::new(vec![v], all, move |ap, _, _| {
                let neighbour = (ap + 1) % n;
                let own = (0..rows).map(|i| object(v, ap * rows + i));
                let mut steps: Vec<Step> = own
                    .flat_map(|o| [Read(o, WHOLE), Compute(work), Write(o, WHOLE)])
                    .collect();
                steps.push(Read(object(v, neighbour * rows), WHOLE));
                steps
            })
        }
        // A few edges of neighbours, one after the other.
        2 => {
            let v = world.declare(recipe.name, &all, Update);
            Part::new(vec![v], all, move |ap, _, _| {
                let others = (1..=3).map(|k| object(v, (ap + k) % n));
                let mut steps = vec![Write(object(v, ap), WHOLE)];
                steps.extend(others.map(|o| Read(o, WHOLE)));
                steps
            })
        }
        // Lookups in a table of the group, here and there.
        3 => {
            let groups = world.topology.groups().len();
            let size = 16;
            let teams: Vec<Vec<usize>> = (0..groups).map(|g| world.members(g)).collect();
            let owners: Vec<usize> = teams
                .iter()
                .flat_map(|team| (0..size).map(move |i| team[i % team.len()]))
                .collect();
            let v = world.declare(recipe.name, &owners, Update);
            Part::new(vec![v], all, move |ap, _, random| {
                let g = teams
                    .iter()
                    .position(|team| team.contains(&ap))
                    .unwrap_or(0);
                let mut places: Vec<usize> = (0..size).collect();
                places.shuffle(random);
                let looked = places.into_iter().take(12);
                looked
                    .map(|i| Read(object(v, g * size + i), WHOLE))
                    .collect()
            })
        }
        // A value that is read often and changes now and then.
        _ => {
            let groups = world.topology.groups().len();
            let homes: Vec<usize> = (0..groups).map(|g| world.members(g)[0]).collect();
            let teams: Vec<Vec<usize>> = (0..groups).map(|g| world.members(g)).collect();
            let v = world.declare(recipe.name, &homes, Update);
            let often = random.random_range(6..20_usize);
            Part::new(vec![v], all, move |ap, iteration, _| {
                let g = teams
                    .iter()
                    .position(|team| team.contains(&ap))
                    .unwrap_or(0);
                let o = object(v, g);
                let mut steps = [Read(o, (0, 1)), Compute(0.3 * trip[0])].repeat(often);
                if homes[g] == ap && iteration % 3 == 0 {
                    steps.push(Write(o, WHOLE));
                }
                steps
            })
        }
    }
}
