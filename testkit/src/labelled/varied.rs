//! One pathology among many processes, in a part of a run, or in bursts: how much of the run has it must not decide
//! whether it is found.

use dosmos_analysis::Kind;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::causes;
use super::generate::{also, alternation, catalog, names, saved, scripts, shorter};
use super::healthy;
use super::machine::{Machine, Outcome};
use super::parts::{Also, Body, Part, Recipe};
use super::pathology::pathology;
use super::trace::{Label, Labelled};
use super::world::World;

/// The kinds that are varied.
pub const VARIED: [Kind; 12] = [
    Kind::Bottleneck,
    Kind::PingPong,
    Kind::FalseSharing,
    Kind::Imbalance,
    Kind::NoSharing,
    Kind::PolicyMismatch,
    Kind::MisplacedOwner,
    Kind::CrowdedOwner,
    Kind::FineGrained,
    Kind::BarrierOverhead,
    Kind::Polling,
    Kind::ReadOnlyLocking,
];

/// Where a pathology is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variation {
    /// Which; none: nothing is wrong.
    pub kind: Option<Kind>,
    /// Application processes of the run; the pathology concerns few of them.
    pub processes: usize,
    /// Equal parts of the run, each of which has it.
    pub bursts: usize,
    /// Fraction of each such part before it begins.
    pub begins: f64,
    /// Fraction of each such part for which it lasts.
    pub lasts: f64,
}

impl Variation {
    /// Where it is follows from the seed: all the time or in 20 or 30 % of it, somewhere, at once or in eight bursts.
    pub fn of_seed(kind: impl Into<Option<Kind>>, seed: u64, processes: usize) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let lasts = [1.0, 0.3, 0.2][random.random_range(0..3_usize)];
        Self {
            kind: kind.into(),
            processes,
            bursts: [1, 1, 8][random.random_range(0..3_usize)],
            begins: random.random_range(0.0..=1.0 - lasts),
            lasts,
        }
    }

    fn is_active(&self, iteration: usize, of: usize) -> bool {
        let part = of as f64 / self.bursts.max(1) as f64;
        let at = (iteration as f64 % part) / part;
        self.begins <= at && at < self.begins + self.lasts
    }
}

/// Iterations of every program.
const ITERATIONS: usize = 240;

/// The trace of this seed.
pub fn varied(seed: u64, variation: Variation) -> Labelled {
    let plan = Plan::new(seed, variation);
    let (world, part, fine, ill) = plan.run(true, None);
    let mut trace = Labelled {
        seed,
        trips: world.speed.trip,
        catalog: catalog(&world, &ill),
        records: Vec::new(),
        times: ill.times.clone(),
        planted: Vec::new(),
        slight: Vec::new(),
    };
    if let (Some(kind), Some(part)) = (variation.kind, &part) {
        let (label, matters) = plan.label(kind, &world, part, &ill);
        let list = match matters {
            true => &mut trace.planted,
            false => &mut trace.slight,
        };
        list.push(label);
    }
    let parts: Vec<&Part> = part.iter().chain(&fine).collect();
    let also = also(&world, &parts, &ill, |kind| plan.run(true, Some(kind)).3);
    trace.slight.extend(also);
    trace.records = ill.records;
    trace
}

struct Plan {
    seed: u64,
    variation: Variation,
    world: World,
    base: f64,
    barriers: bool,
    healthy: Vec<usize>,
}

impl Plan {
    fn new(seed: u64, variation: Variation) -> Self {
        let random = &mut StdRng::seed_from_u64(seed);
        let groups = random
            .random_range(1..=3_usize)
            .min(variation.processes / 4);
        let mut sizes = vec![variation.processes / groups.max(1); groups.max(1)];
        sizes[0] += variation.processes % groups.max(1);
        let world = World::of(&sizes, random);
        let mut healthy: Vec<usize> = (0..healthy::KINDS + causes::ALIKE).collect();
        healthy.shuffle(random);
        healthy.truncate(random.random_range(0..=1));
        Self {
            seed,
            variation,
            base: world.speed.trip[2] * random.random_range(15.0..40.0),
            // A process that neither accesses nor waits is none that anybody knows of.
            barriers: random.random_bool(0.6)
                || matches!(variation.kind, Some(Kind::Imbalance | Kind::SlowProcess))
                || healthy.is_empty(),
            healthy,
            world,
        }
    }

    fn recipe<'a>(&self, name: &'a str, part: u64) -> Recipe<'a> {
        Recipe {
            name,
            seed: self.seed.wrapping_mul(1_000).wrapping_add(part),
            base: self.base,
            iterations: ITERATIONS,
            alone: false,
            crowd: false,
        }
    }

    /// The program with its pathology, or with the cure of that; without what there also is of a kind.
    fn run(&self, sick: bool, also: Option<Kind>) -> (World, Option<Part>, Vec<Part>, Outcome) {
        let mut world = self.world.without(also);
        let mut part = self.variation.kind.map(|kind| {
            let name = kind.to_string();
            let recipe = self.recipe(&name, kind as u64);
            self.at_times(pathology(kind, sick, &mut world, &recipe))
        });
        let mut fine: Vec<Part> = self
            .healthy
            .iter()
            .map(|&i| {
                let name = format!("healthy{i}");
                let recipe = self.recipe(&name, 100 + i as u64);
                match i.checked_sub(healthy::KINDS) {
                    None => healthy::healthy(i, &mut world, &recipe),
                    Some(i) => {
                        let random = &mut StdRng::seed_from_u64(recipe.seed);
                        causes::alike(i, &mut world, &recipe, random)
                    }
                }
            })
            .collect();
        if let Some(kind) = also {
            for part in part.iter_mut().chain(&mut fine) {
                part.cure_also(kind, &mut world);
            }
        }
        let all: Vec<&Part> = part.iter().chain(&fine).collect();
        let shape = (ITERATIONS, self.barriers);
        let scripts = scripts(&world, &all, self.base, shape, self.seed);
        let (topology, variables) = (&world.topology, &world.variables);
        let outcome = Machine::new(topology, variables, world.speed, scripts, self.seed).run();
        (world, part, fine, outcome)
    }

    /// What the part does, in the iterations that have it only.
    fn at_times(&self, part: Part) -> Part {
        let Part {
            variables,
            aps,
            body,
            load,
            late,
            also,
        } = part;
        let variation = self.variation;
        let active = move |iteration| variation.is_active(iteration, ITERATIONS);
        let at_times = |body: Body| -> Body {
            Box::new(move |ap, iteration, random| match active(iteration) {
                true => body(ap, iteration, random),
                false => Vec::new(),
            })
        };
        let mut gated = Part::new(variables, aps, |_, _, _| Vec::new());
        gated.body = at_times(body);
        let also = also.into_iter();
        gated.also = also
            .map(|also| Also {
                cured: at_times(also.cured),
                ..also
            })
            .collect();
        gated.late = late;
        gated.load = load.map(|load| -> Box<dyn Fn(usize, usize) -> f64> {
            Box::new(move |ap, iteration| match active(iteration) {
                true => load(ap, iteration),
                false => 1.0,
            })
        });
        gated
    }

    /// What the cure would save, and whether that is worth a word: of the time of those whom it concerns. What happens at
    /// a time counts in the part of the run that has it.
    fn label(&self, kind: Kind, world: &World, part: &Part, ill: &Outcome) -> (Label, bool) {
        let (.., well) = self.run(false, None);
        let all: Vec<usize> = (0..world.size()).collect();
        let gain = (saved(ill, &well, &part.aps), saved(ill, &well, &all));
        let least = match kind {
            Kind::Bottleneck => 0.25 * self.variation.lasts,
            // Both wait as long as before, at the barrier.
            Kind::Polling => f64::NEG_INFINITY,
            Kind::BarrierOverhead => 0.3 * self.variation.lasts,
            Kind::SlowProcess => 0.15 * self.variation.lasts,
            Kind::PingPong | Kind::FalseSharing | Kind::Imbalance => 0.15 * self.variation.lasts,
            // Of what is the same all the time, less than that of the whole run is not worth a word.
            _ => 0.12,
        };
        // A change of the cluster file is for the run.
        let of_the_run = match kind {
            Kind::PolicyMismatch | Kind::MisplacedOwner | Kind::CrowdedOwner => 0.03,
            _ => f64::NEG_INFINITY,
        };
        let in_turns = kind != Kind::PingPong || alternation(ill, &part.variables) >= 0.5;
        let matters = gain.0 >= least && shorter(ill, &well) >= of_the_run && in_turns;
        let label = Label {
            kind,
            variables: names(world, &part.variables),
            gain,
        };
        (label, matters)
    }
}
