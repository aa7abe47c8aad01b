//! Programs in which locks and barriers order all accesses that conflict, and the same with a lock or a barrier forgotten.

use dosmos_analysis::Kind;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::causes::data_race;
use super::generate::{catalog, scripts};
use super::healthy;
use super::machine::Machine;
use super::parts::{Part, Recipe};
use super::trace::{Label, Labelled};
use super::world::World;

/// Parts of good programs whose accesses are ordered, or read what was released.
const ORDERED: [usize; 3] = [1, 2, 3];

/// The trace of this seed: with a race (`sick`), or with the same part cured.
pub fn racing(seed: u64, sick: bool) -> Labelled {
    let random = &mut StdRng::seed_from_u64(seed);
    let mut world = World::new(random);
    let base = world.speed.trip[2] * random.random_range(5.0..30.0);
    let recipe = |name, part: u64| Recipe {
        name,
        seed: seed.wrapping_mul(1_000).wrapping_add(part),
        base,
        iterations: random_iterations(seed),
        crowd: false,
        alone: false,
    };
    let (form, barriers) = (random.random_range(0..4_usize), random.random_bool(0.5));
    // What a barrier orders needs one.
    let barriers = barriers || form == 3;
    let mut parts: Vec<usize> = ORDERED.to_vec();
    parts.shuffle(random);
    parts.truncate(random.random_range(0..=2));
    let part = data_race(form, sick, &mut world, &recipe("data-race", 1), random);
    let mut all: Vec<Part> = Vec::new();
    let names: Vec<String> = parts.iter().map(|i| format!("ordered{i}")).collect();
    for (i, name) in parts.iter().zip(&names) {
        let recipe = recipe(name, 100 + *i as u64);
        all.push(healthy::healthy(*i, &mut world, &recipe));
    }
    let variables = part.variables.clone();
    all.push(part);
    let all: Vec<&Part> = all.iter().collect();
    let shape = (random_iterations(seed), barriers);
    let scripts = scripts(&world, &all, base, shape, seed);
    let machine = Machine::new(
        &world.topology,
        &world.variables,
        world.speed,
        scripts,
        seed,
    );
    let mut outcome = machine.run();
    for record in &mut outcome.records {
        record.bytes = 8 * u64::from(record.range.1 - record.range.0).max(1);
    }
    let names = variables.iter().filter_map(|id| {
        let known = world.variables.iter().find(|v| v.id() == *id)?;
        Some(known.spec().name().to_owned())
    });
    let label = Label {
        kind: Kind::DataRace,
        variables: names.collect(),
        gain: (0.0, 0.0),
    };
    Labelled {
        seed,
        trips: world.speed.trip,
        catalog: catalog(&world, &outcome),
        records: outcome.records,
        times: outcome.times,
        planted: if sick { vec![label] } else { Vec::new() },
        slight: Vec::new(),
    }
}

fn random_iterations(seed: u64) -> usize {
    20 + (seed % 30) as usize
}
