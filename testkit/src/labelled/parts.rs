//! Parts of programs: each pathology of sharing as programmers make it, with its cure. `sick` decides which
//! of the two a part is; everything else about them, chance included, is the same.
//!
//! What makes a part sick is said here in terms of what the program does, never of what a detector computes.

use dosmos_analysis::Kind;
use dosmos_proto::CopyPolicy::{Invalidate, Update};
use dosmos_proto::VarId;
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

use super::machine::Step::{self, Acquire, Compute, Read, Release, Write};
use super::world::{ELEMENTS, World, object};

/// All elements of an object.
pub(super) const WHOLE: (u32, u32) = (0, ELEMENTS);

/// What a process does in one iteration for this part.
pub(super) type Body = Box<dyn Fn(usize, usize, &mut StdRng) -> Vec<Step>>;

/// A part of a program.
pub(super) struct Part {
    /// The variables it is about.
    pub(super) variables: Vec<VarId>,
    /// The processes it concerns.
    pub(super) aps: Vec<usize>,
    pub(super) body: Body,
    /// Factors on the computing of each process by iteration.
    pub(super) load: Option<Box<dyn Fn(usize, usize) -> f64>>,
    /// Processes that begin later, by nanoseconds.
    pub(super) late: Vec<(usize, f64)>,
    /// What else a finding may rightly be about, though the part is not there for it.
    pub(super) also: Vec<Also>,
}

/// Something that costs time in a part which is there for something else, and what would be done without it; whatever else is
/// wrong stays.
pub(super) struct Also {
    pub(super) kind: Kind,
    /// Whom it costs time.
    pub(super) aps: Vec<usize>,
    pub(super) cured: Body,
}

impl Part {
    pub(super) fn new(
        variables: Vec<VarId>,
        aps: Vec<usize>,
        body: impl Fn(usize, usize, &mut StdRng) -> Vec<Step> + 'static,
    ) -> Self {
        Self {
            variables,
            aps,
            body: Box::new(body),
            load: None,
            late: Vec::new(),
            also: Vec::new(),
        }
    }

    /// What it also has of this kind is cured: of a policy, by the other one.
    pub(super) fn cure_also(&mut self, kind: Kind, world: &mut World) {
        let at = self.also.iter().position(|also| also.kind == kind);
        if let Some(at) = at {
            self.body = self.also.swap_remove(at).cured;
            if kind == Kind::PolicyMismatch {
                world.change_policy(&self.variables);
            }
        }
    }
}

/// What parts are built from: names, a seed, how long an iteration computes (nanoseconds), how many there are.
pub(super) struct Recipe<'a> {
    pub(super) name: &'a str,
    pub(super) seed: u64,
    pub(super) base: f64,
    pub(super) iterations: usize,
    /// There is no other part: processes may change places without leaving those of other parts.
    pub(super) alone: bool,
    /// A crowd may want the same: otherwise at most four do, however many processes there are.
    pub(super) crowd: bool,
}

/// This many of the processes, in any order.
pub(super) fn some(of: &[usize], n: usize, random: &mut StdRng) -> Vec<usize> {
    let mut all = of.to_vec();
    all.shuffle(random);
    all.truncate(n);
    all
}

/// A number of rounds of `cost` nanoseconds that together take a part of the base time.
pub(super) fn rounds(recipe: &Recipe<'_>, cost: f64, random: &mut StdRng) -> usize {
    let time = recipe.base * random.random_range(0.5..2.0);
    ((time / cost) as usize).clamp(3, 60)
}

/// One lock that everybody needs, and most of the work done under it. Cured: one lock per process.
pub(super) fn bottleneck(
    sick: bool,
    world: &mut World,
    recipe: &Recipe<'_>,
    random: &mut StdRng,
) -> Part {
    // A team of one group, or everybody.
    let all: Vec<usize> = (0..world.size()).collect();
    let everybody = random.random_bool(0.5) && recipe.crowd || world.size() < 4;
    let mut aps = if everybody {
        all
    } else {
        world.team(4, random)
    };
    if !recipe.crowd {
        aps.truncate(4);
    }
    let section = world.speed.trip[1] * random.random_range(1.0..8.0);
    let think = section * random.random_range(0.0..0.8);
    // With all of them at it, several times as long as the rest of an iteration.
    let rounds = rounds(recipe, (section + think) / 4.0, random).min(40);
    let home = if everybody { world.middle() } else { aps[0] };
    let owners = if sick { vec![home] } else { aps.clone() };
    let v = world.declare(recipe.name, &owners, Invalidate);
    let users = aps.clone();
    Part::new(vec![v], aps, move |ap, _, _| {
        let Some(rank) = users.iter().position(|u| *u == ap) else {
            return Vec::new();
        };
        let o = object(v, if sick { 0 } else { rank });
        let round = [
            Compute(think),
            Acquire(o),
            Read(o, WHOLE),
            Compute(section),
            Write(o, WHOLE),
            Release(o),
        ];
        round.repeat(rounds)
    })
}

/// Two processes that add to one total in turn, each addition its own section. Cured: one total per process.
pub(super) fn ping_pong(
    sick: bool,
    world: &mut World,
    recipe: &Recipe<'_>,
    random: &mut StdRng,
) -> Part {
    let aps = some(&world.team(2, random), 2, random);
    let think = world.speed.trip[0] * random.random_range(0.0..2.0);
    let rounds = rounds(recipe, 4.0 * world.speed.trip[1], random);
    let owners = if sick { &aps[..1] } else { &aps[..] };
    let v = world.declare(recipe.name, owners, Invalidate);
    let users = aps.clone();
    Part::new(vec![v], aps, move |ap, _, _| {
        let Some(rank) = users.iter().position(|u| *u == ap) else {
            return Vec::new();
        };
        let o = object(v, if sick { 0 } else { rank });
        let round = [
            Compute(think),
            Acquire(o),
            Read(o, (0, 1)),
            Write(o, (0, 1)),
            Release(o),
        ];
        round.repeat(rounds)
    })
}

/// A work array of one process, declared shared. Cured: an ordinary array.
pub(super) fn no_sharing(
    sick: bool,
    world: &mut World,
    recipe: &Recipe<'_>,
    random: &mut StdRng,
) -> Part {
    let team = some(&world.team(2, random), 2, random);
    let ap = team[0];
    let owner = team[random.random_range(0..2)];
    let far = if owner == ap { 0 } else { 1 };
    let rounds = rounds(recipe, world.speed.trip[far], random) * if far == 0 { 4 } else { 1 };
    let v = world.declare(recipe.name, &[owner], Invalidate);
    Part::new(vec![v], vec![ap], move |who, _, random| {
        if who != ap || !sick {
            return Vec::new();
        }
        let access = |random: &mut StdRng| match random.random_bool(0.5) {
            true => Read(object(v, 0), WHOLE),
            false => Write(object(v, 0), WHOLE),
        };
        (0..rounds).map(|_| access(random)).collect()
    })
}

/// A table that one process of a group writes in every iteration, row by row, and the others read. Sick: they read
/// every version of every row, and fetch it (invalidate); or they read a version in many, and are told of each
/// (update). Cured: the other policy.
pub(super) fn policy(
    sick: bool,
    world: &mut World,
    recipe: &Recipe<'_>,
    random: &mut StdRng,
) -> Part {
    let team = world.team(3, random);
    let n = random.random_range(3..=team.len().min(5));
    let aps = some(&team, n, random);
    let every = match random.random_bool(0.5) {
        true => 1,
        false => random.random_range(8..20),
    };
    let (right, wrong) = match every {
        1 => (Update, Invalidate),
        _ => (Invalidate, Update),
    };
    let rows = rounds(recipe, world.speed.trip[1], random);
    let owner = vec![aps[0]; rows];
    let v = world.declare(recipe.name, &owner, if sick { wrong } else { right });
    let reads = random.random_range(1..=2);
    let (writer, users) = (aps[0], aps.clone());
    // Where nothing else is looked for, with work on each: otherwise all could be read at once.
    let work: Vec<Step> = match recipe.crowd {
        true => Vec::new(),
        false => vec![Compute(3.0 * world.speed.trip[1])],
    };
    let body = move |ap, iteration, reads: usize, read_rows: usize| {
        let all = (0..rows).map(|row| object(v, row));
        match (ap == writer, users.contains(&ap)) {
            (true, _) => all
                .flat_map(|o| [Acquire(o), Write(o, WHOLE), Release(o)])
                .collect(),
            (_, true) if iteration % every == 0 => {
                let row = |o| [[Read(o, WHOLE)].repeat(reads), work.clone()].concat();
                all.take(read_rows).flat_map(row).collect()
            }
            _ => Vec::new(),
        }
    };
    let at_once = body.clone();
    let mut part = Part::new(vec![v], aps.clone(), move |ap, iteration, _| {
        body(ap, iteration, reads, rows)
    });
    // The rows one by one.
    part.also = vec![Also {
        kind: Kind::FineGrained,
        aps,
        cured: Box::new(move |ap, iteration, _| at_once(ap, iteration, 1, 1)),
    }];
    part
}

/// Counters of several processes that lie in one object. Cured: an object each, owned near.
pub(super) fn false_sharing(
    sick: bool,
    world: &mut World,
    recipe: &Recipe<'_>,
    random: &mut StdRng,
) -> Part {
    let n = random.random_range(2..=4);
    let aps = some(&world.team(n, random), n, random);
    let locked = random.random_bool(0.5);
    let width = random.random_range(1..=8_u32);
    let rounds = rounds(recipe, 2.0 * world.speed.trip[1], random);
    let think = world.speed.trip[0] * random.random_range(0.0..2.0);
    let owners = if sick { &aps[..1] } else { &aps[..] };
    let v = world.declare(recipe.name, owners, Invalidate);
    let users = aps.clone();
    Part::new(vec![v], aps, move |ap, _, _| {
        let Some(rank) = users.iter().position(|u| *u == ap) else {
            return Vec::new();
        };
        let o = object(v, if sick { 0 } else { rank });
        let first = if sick { rank as u32 * width } else { 0 };
        let own = (first, first + width);
        let update = [Compute(think), Read(o, own), Write(o, own)];
        let section = [Acquire(o), Release(o)];
        let mut steps = Vec::new();
        for _ in 0..rounds {
            steps.extend(locked.then_some(section[0]));
            steps.extend(update);
            steps.extend(locked.then_some(section[1]));
        }
        steps
    })
}

/// A table for each of several teams. Sick: a table is kept in another group than its team, or (if there is nothing
/// else that keeps them there) two members of teams sit in each other's group. Cured: everybody with his team, the tables too.
pub(super) fn bad_group(
    sick: bool,
    world: &mut World,
    recipe: &Recipe<'_>,
    random: &mut StdRng,
) -> Part {
    let groups = world.topology.groups().len();
    let mut teams: Vec<Vec<usize>> = (0..groups).map(|g| world.members(g)).collect();
    let mut homes: Vec<usize> = teams.iter().map(|t| t[0]).collect();
    let swapped = recipe.alone && random.random_bool(0.7);
    let (a, b) = (random.random_range(1..3), random.random_range(1..3));
    if sick && swapped {
        let (left, right) = teams.split_at_mut(1);
        std::mem::swap(&mut left[0][a], &mut right[0][b]);
    } else if sick {
        homes.rotate_left(1);
    }
    let v = world.declare(recipe.name, &homes, Invalidate);
    let reads = rounds(recipe, world.speed.trip[2], random).max(8);
    let think = world.speed.trip[0];
    let aps = (0..world.size()).collect();
    Part::new(vec![v], aps, move |ap, _, _| {
        let Some(g) = teams.iter().position(|t| t.contains(&ap)) else {
            return Vec::new();
        };
        let o = object(v, g);
        let mut steps = [Compute(think), Read(o, WHOLE)].repeat(reads);
        if teams[g][0] == ap {
            steps.extend([Acquire(o), Write(o, WHOLE), Release(o)]);
        }
        steps
    })
}

/// Arrays each worked on by one process and looked at by another. Sick: they lie with the latter. Cured: with
/// the former.
pub(super) fn misplaced(
    sick: bool,
    world: &mut World,
    recipe: &Recipe<'_>,
    random: &mut StdRng,
) -> Part {
    let g = random.random_range(0..world.topology.groups().len());
    let pair = some(&world.members(g), 2, random);
    let (worker, reader) = (pair[0], pair[1]);
    let objects = random.random_range(1..=3_usize);
    let owner = if sick { reader } else { worker };
    let v = world.declare(recipe.name, &vec![owner; objects], Invalidate);
    let rounds = rounds(recipe, 2.0 * world.speed.trip[1], random) * 2;
    Part::new(vec![v], pair, move |ap, _, _| {
        let all = (0..objects).map(|i| object(v, i));
        match ap {
            ap if ap == worker => {
                let work = (0..rounds).flat_map(|i| {
                    let o = object(v, i % objects);
                    [Read(o, WHOLE), Write(o, WHOLE)]
                });
                work.collect()
            }
            ap if ap == reader => all.map(|o| Read(o, WHOLE)).collect(),
            _ => Vec::new(),
        }
    })
}

/// Work shared out unevenly: one process has too much, or half of them, or each in turn. Cured: evenly.
pub(super) fn imbalance(sick: bool, world: &mut World, random: &mut StdRng) -> Part {
    let n = world.size();
    let (form, heavy) = (random.random_range(0..3), random.random_range(0..n));
    let factor = random.random_range(2.0..5.0);
    let half = some(&(0..n).collect::<Vec<_>>(), n / 2, random);
    let mut part = Part::new(Vec::new(), (0..n).collect(), |_, _, _| Vec::new());
    part.load = Some(Box::new(move |ap, iteration| {
        let has_more = match form {
            0 => ap == heavy,
            1 => half.contains(&ap),
            _ => iteration % n == ap,
        };
        let share = if form == 1 { half.len() } else { 1 } as f64 / n as f64;
        let mean = 1.0 + (factor - 1.0) * share;
        match (sick, has_more) {
            (true, true) => factor,
            (true, false) => 1.0,
            (false, _) => mean,
        }
    }));
    part
}

/// Pairs of locks, one of a process and one of its neighbour, always in order of their number. Sick: once, some of them
/// take their own first and then the neighbour's, all at the same time. Cured: in order every time.
pub(super) fn deadlock(
    sick: bool,
    world: &mut World,
    recipe: &Recipe<'_>,
    random: &mut StdRng,
) -> Part {
    let n = random.random_range(2..=3);
    let aps = some(&world.team(n, random), n, random);
    let v = world.declare(recipe.name, &aps, Invalidate);
    let fatal = random.random_range(recipe.iterations / 3..recipe.iterations);
    let long = 30.0 * world.speed.trip[2] + 0.5 * recipe.base;
    let users = aps.clone();
    Part::new(vec![v], aps, move |ap, iteration, _| {
        let Some(rank) = users.iter().position(|u| *u == ap) else {
            return Vec::new();
        };
        let (own, next) = (rank, (rank + 1) % users.len());
        let (first, second) = match sick && iteration == fatal {
            true => (own, next),
            false => (own.min(next), own.max(next)),
        };
        let [a, b] = [first, second].map(|i| object(v, i));
        let pause = if iteration == fatal { long } else { 0.0 };
        vec![
            Acquire(a),
            Compute(pause),
            Acquire(b),
            Write(b, WHOLE),
            Release(b),
            Release(a),
        ]
    })
}
