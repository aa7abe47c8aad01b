//! From a seed to a labelled trace: which parts the program has, which of them are sick, and what their cures would
//! save.

use std::collections::{BTreeSet, VecDeque};

use dosmos_analysis::Kind;
use dosmos_proto::VarId;
use dosmos_trace::query::{BarrierName, Catalog, Completeness, TimeRange};
use dosmos_trace::record::Record;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};

use super::healthy;
use super::machine::{self, BARRIER, Machine, Outcome, Step};
use super::parts::{Part, Recipe};
use super::pathology::pathology;
use super::trace::{Label, Labelled};
use super::world::World;

/// The trace of this seed.
pub fn generate(seed: u64) -> Labelled {
    let plan = Plan::new(seed);
    let whole = plan.run(&plan.sick);
    // Where nobody ends nothing can be compared.
    let mut ending = plan.sick.clone();
    let ended = match ending.remove(&Kind::Deadlock) {
        true => &plan.run(&ending),
        false => &whole,
    };
    let (world, _, outcome) = &whole;
    let mut trace = Labelled {
        seed,
        trips: world.speed.trip,
        catalog: catalog(world, outcome),
        records: Vec::new(),
        times: outcome.times.clone(),
        planted: Vec::new(),
        slight: Vec::new(),
    };
    for &kind in &plan.sick {
        let (label, matters) = match kind {
            Kind::Deadlock => plan.label(kind, &plan.sick, &whole),
            _ => plan.label(kind, &ending, ended),
        };
        let list = if matters {
            &mut trace.planted
        } else {
            &mut trace.slight
        };
        list.push(label);
    }
    trace.slight.extend(plan.also(&ending, ended));
    trace.records = whole.2.records;
    trace
}

/// The kinds that are planted here, in the order that seeds depend on; others vary more ([`super::varied`]).
const PLANTED: [Kind; 9] = [
    Kind::Bottleneck,
    Kind::PingPong,
    Kind::NoSharing,
    Kind::PolicyMismatch,
    Kind::FalseSharing,
    Kind::BadGroup,
    Kind::MisplacedOwner,
    Kind::Imbalance,
    Kind::Deadlock,
];

/// What nobody planted is there if its cure saves this fraction of the time of those whom it costs time.
const OF_THEIR_TIME: f64 = 0.05;

/// Or this fraction of the run: a change of less is noise.
const OF_THE_RUN: f64 = 0.01;

/// The parts of a program, and what those that are not healthy are there for.
type Parts = Vec<(Option<Kind>, Part)>;

/// A program that ran, and how.
type Ran = (World, Parts, Outcome);

/// What a trace is made of; everything follows from the seed.
struct Plan {
    seed: u64,
    world: World,
    base: f64,
    iterations: usize,
    barriers: bool,
    sick: BTreeSet<Kind>,
    cured: Vec<Kind>,
    healthy: Vec<usize>,
}

impl Plan {
    fn new(seed: u64) -> Self {
        let random = &mut StdRng::seed_from_u64(seed);
        let world = World::new(random);
        let mut kinds = PLANTED.to_vec();
        kinds.retain(|k| *k != Kind::BadGroup || world.topology.groups().len() > 1);
        kinds.shuffle(random);
        let sick = [0, 0, 1, 1, 1, 1, 2, 2, 2, 3][random.random_range(0..10)];
        let mut parts: Vec<usize> = (0..healthy::KINDS).collect();
        parts.shuffle(random);
        parts.truncate(random.random_range(0..=2));
        let cured = random.random_range(0..=2);
        Self {
            seed,
            base: world.speed.trip[2] * random.random_range(15.0..80.0),
            iterations: random.random_range(30..100),
            barriers: random.random_bool(0.7) || kinds[..sick].contains(&Kind::Imbalance),
            cured: kinds[sick..].iter().copied().take(cured).collect(),
            sick: kinds[..sick].iter().copied().collect(),
            healthy: parts,
            world,
        }
    }

    /// Builds the program with these of its pathologies and runs it.
    fn run(&self, sick: &BTreeSet<Kind>) -> Ran {
        self.run_without(sick, None)
    }

    /// The same without what there also is of this kind.
    fn run_without(&self, sick: &BTreeSet<Kind>, also: Option<Kind>) -> Ran {
        let mut world = self.world.without(also);
        let kinds = self.sick.iter().chain(&self.cured);
        let mut parts: Parts = kinds
            .map(|&kind| {
                // No detector looks at names; they tell readers which part is meant.
                let name = kind.to_string();
                let recipe = self.recipe(&name, kind as u64);
                let part = pathology(kind, sick.contains(&kind), &mut world, &recipe);
                (Some(kind), part)
            })
            .collect();
        for &i in &self.healthy {
            let name = format!("healthy{i}");
            let recipe = self.recipe(&name, 100 + i as u64);
            parts.push((None, healthy::healthy(i, &mut world, &recipe)));
        }
        if let Some(kind) = also {
            for (_, part) in &mut parts {
                part.cure_also(kind, &mut world);
            }
        }
        let all: Vec<&Part> = parts.iter().map(|(_, p)| p).collect();
        let shape = (self.iterations, self.barriers);
        let scripts = scripts(&world, &all, self.base, shape, self.seed);
        let (topology, variables) = (&world.topology, &world.variables);
        let outcome = Machine::new(topology, variables, world.speed, scripts, self.seed).run();
        (world, parts, outcome)
    }

    fn recipe<'a>(&self, name: &'a str, part: u64) -> Recipe<'a> {
        Recipe {
            name,
            seed: self.seed.wrapping_mul(1_000).wrapping_add(part),
            base: self.base,
            iterations: self.iterations,
            crowd: true,
            alone: self.sick.len() + self.cured.len() + self.healthy.len() == 1,
        }
    }

    /// What parts have that they are not there for, where its cure would save something: it is not planted, and who says so is
    /// right. With these pathologies the program ran so.
    fn also(&self, sick: &BTreeSet<Kind>, (world, parts, ill): &Ran) -> Vec<Label> {
        let parts: Vec<&Part> = parts.iter().map(|(_, part)| part).collect();
        also(world, &parts, ill, |kind| {
            self.run_without(sick, Some(kind)).2
        })
    }

    /// What curing `kind` alone would save, and whether that is worth a word. With these pathologies the program ran so.
    fn label(&self, kind: Kind, sick: &BTreeSet<Kind>, (world, parts, ill): &Ran) -> (Label, bool) {
        let mut without = sick.clone();
        without.remove(&kind);
        let (_, _, well) = self.run(&without);
        let part = parts.iter().find(|(k, _)| *k == Some(kind)).map(|(_, p)| p);
        let aps: Vec<usize> = part.map_or(Vec::new(), |p| p.aps.clone());
        let all: Vec<usize> = (0..world.size()).collect();
        let variables: Vec<VarId> = part.map_or(Vec::new(), |p| p.variables.clone());
        let gain = (saved(ill, &well, &aps), saved(ill, &well, &all));
        let matters = match kind {
            Kind::Deadlock => ill.finished.contains(&None),
            // A resource in use nearly all the time.
            Kind::Bottleneck => gain.1 >= 0.08 && use_of(ill, &variables) >= 0.9,
            Kind::Imbalance => gain.1 >= 0.08,
            // Turns that mostly alternate.
            Kind::PingPong => gain.0 >= 0.10 && alternation(ill, &variables) >= 0.5,
            Kind::FalseSharing => gain.0 >= 0.10,
            Kind::NoSharing => gain.1 >= 0.03,
            // A change of the cluster file is for the run.
            _ => gain.1 >= 0.03 && shorter(ill, &well) >= 0.03,
        };
        let label = Label {
            kind,
            variables: names(world, &variables),
            gain,
        };
        (label, matters)
    }
}

/// Names of these variables.
pub(super) fn names(world: &World, variables: &[VarId]) -> Vec<String> {
    let of = world.variables.iter();
    let of = of.filter(|v| variables.contains(&v.id()));
    of.map(|v| v.spec().name().to_owned()).collect()
}

/// Labels of what nobody planted: what these parts have that they are not there for, and interruptions of processes, where their
/// cure saves something by a run `without` the kind.
pub(super) fn also(
    world: &World,
    parts: &[&Part],
    ill: &Outcome,
    without: impl Fn(Kind) -> Outcome,
) -> Vec<Label> {
    let all: Vec<usize> = (0..world.size()).collect();
    let each = parts
        .iter()
        .flat_map(|part| part.also.iter().map(move |also| (part, also)));
    let parts = each.map(|(part, also)| {
        let variables = names(world, &part.variables);
        (also.kind, variables, also.aps.clone())
    });
    let interrupted = [(Kind::SlowProcess, Vec::new(), all.clone())];
    let labels = parts
        .chain(interrupted)
        .filter_map(|(kind, variables, aps)| {
            let well = without(kind);
            let gain = (saved(ill, &well, &aps), saved(ill, &well, &all));
            let there = gain.0 >= OF_THEIR_TIME || shorter(ill, &well) >= OF_THE_RUN;
            there.then_some(Label {
                kind,
                variables,
                gain,
            })
        });
    labels.collect()
}

/// What each process does: in every iteration all parts, and the rest of its computing. All compute equally
/// long, unless a part says otherwise.
pub(super) fn scripts(
    world: &World,
    parts: &[&Part],
    base: f64,
    (iterations, barriers): (usize, bool),
    seed: u64,
) -> Vec<VecDeque<Step>> {
    let mut scripts = vec![VecDeque::new(); world.size()];
    let mut random = StdRng::seed_from_u64(seed ^ 0x5eed);
    for iteration in 0..iterations {
        let steps: Vec<Vec<Step>> = (0..world.size())
            .map(|ap| {
                let each = parts.iter();
                each.flat_map(|p| (p.body)(ap, iteration, &mut random))
                    .collect()
            })
            .collect();
        let computing = |steps: &Vec<Step>| -> f64 {
            let times = steps.iter().map(|s| match s {
                Step::Compute(time) => *time,
                _ => 0.0,
            });
            times.sum()
        };
        let most = steps.iter().map(computing).fold(0.0, f64::max);
        for (ap, steps) in steps.into_iter().enumerate() {
            let loads = parts.iter().filter_map(|p| p.load.as_ref());
            let load: f64 = loads.map(|load| load(ap, iteration)).product();
            let rest = (base + most) * load - computing(&steps);
            scripts[ap].push_back(Step::Compute(rest.max(0.0)));
            scripts[ap].extend(steps);
            scripts[ap].extend(barriers.then_some(Step::Barrier));
        }
    }
    for (ap, time) in parts.iter().flat_map(|part| &part.late) {
        scripts[*ap].push_front(Step::Late(*time));
    }
    scripts
}

/// Fraction that the run is shorter for `well`.
pub(super) fn shorter(ill: &Outcome, well: &Outcome) -> f64 {
    let end = |outcome: &Outcome| {
        let ends = outcome.finished.iter();
        let ends = ends.map(|end| end.map_or(f64::INFINITY, |end| (end - machine::START) as f64));
        ends.fold(0.0, f64::max)
    };
    1.0 - end(well) / end(ill).max(1.0)
}

/// Fraction of the time of these processes that `well` takes less than `ill`.
pub(super) fn saved(ill: &Outcome, well: &Outcome, aps: &[usize]) -> f64 {
    let time = |outcome: &Outcome| -> f64 {
        let ends = aps.iter().map(|&ap| outcome.finished[ap]);
        let ends =
            ends.map(|end| end.map_or(f64::INFINITY, |end| end as f64 - machine::START as f64));
        ends.sum()
    };
    1.0 - time(well) / time(ill).max(1.0)
}

/// Fraction of the run for which the busiest object of these variables was held.
fn use_of(outcome: &Outcome, variables: &[VarId]) -> f64 {
    let held = outcome.held.iter();
    let of = held.filter(|(id, _)| variables.contains(&id.var));
    of.map(|(_, held)| *held as f64 / outcome.length.max(1) as f64)
        .fold(0.0, f64::max)
}

/// Fraction of the turns at objects of these variables that followed another process's.
pub(super) fn alternation(outcome: &Outcome, variables: &[VarId]) -> f64 {
    let turns = outcome.turns.iter();
    let of = turns.filter(|(id, _)| variables.contains(&id.var));
    let (turns, changes) = of.fold((0, 0), |s, (_, t)| (s.0 + t.0, s.1 + t.1));
    changes as f64 / f64::max(turns as f64, 1.0)
}

pub(super) fn catalog(world: &World, outcome: &Outcome) -> Catalog {
    let starts = outcome.records.iter().map(|r| r.start);
    let ends = outcome.records.iter().map(Record::end);
    Catalog {
        clocks: Vec::new(),
        run: None,
        event_managers: vec!["emp0".into()],
        topology: world.topology.clone(),
        variables: world.variables.clone(),
        barriers: vec![BarrierName {
            id: BARRIER,
            group: None,
            name: String::new(),
        }],
        extent: starts
            .min()
            .zip(ends.max())
            .map(|(from, to)| TimeRange { from, to }),
        records: outcome.records.len() as u64,
        completeness: Completeness {
            recorded: outcome.records.len() as u64,
            ..Completeness::default()
        },
        live: false,
    }
}
