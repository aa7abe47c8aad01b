//! The part of a program that has a pathology, by kind.

use dosmos_analysis::Kind;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::causes;
use super::parts::{self, Part, Recipe};
use super::world::World;

/// The part with pathology `kind`, or with its cure.
pub(super) fn pathology(kind: Kind, sick: bool, world: &mut World, recipe: &Recipe<'_>) -> Part {
    let random = &mut StdRng::seed_from_u64(recipe.seed);
    match kind {
        Kind::Bottleneck => parts::bottleneck(sick, world, recipe, random),
        Kind::PingPong => parts::ping_pong(sick, world, recipe, random),
        Kind::NoSharing => parts::no_sharing(sick, world, recipe, random),
        Kind::PolicyMismatch => parts::policy(sick, world, recipe, random),
        Kind::FalseSharing => parts::false_sharing(sick, world, recipe, random),
        Kind::BadGroup => parts::bad_group(sick, world, recipe, random),
        Kind::MisplacedOwner => parts::misplaced(sick, world, recipe, random),
        Kind::Imbalance => parts::imbalance(sick, world, random),
        Kind::Deadlock => parts::deadlock(sick, world, recipe, random),
        Kind::CrowdedOwner => causes::crowded(sick, world, recipe, random),
        Kind::FineGrained => causes::fine_grained(sick, world, recipe, random),
        Kind::BarrierOverhead => causes::barriers(sick, world, recipe, random),
        Kind::Polling => causes::polling(sick, world, recipe, random),
        Kind::ReadOnlyLocking => causes::read_only_locking(sick, world, recipe, random),
        Kind::SlowProcess => causes::slow_process(sick, world, recipe, random),
        Kind::DataRace => causes::data_race(0, sick, world, recipe, random),
    }
}
