//! What a detector hands over: a finding, and what decides whether it stands.

use std::collections::BTreeSet;

use dosmos_proto::{ApId, ObjectId};

use crate::cure::{Cure, GainFrom};
use crate::finding::{Finding, Kind};
use crate::profile::Profile;
use crate::thresholds::Thresholds;

/// A finding, before it is known whether another one explains it or what was not recorded could.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) finding: Finding,
    /// The objects it is about; empty: none in particular.
    pub(super) objects: BTreeSet<ObjectId>,
    /// The application processes it is about.
    pub(super) aps: BTreeSet<ApId>,
    /// Records its figures come from.
    pub(super) records: u64,
    /// Severity below which it would not have been made.
    pub(super) floor: f64,
    /// A ratio it rests on, and the threshold of that: what records that are lacking could overturn.
    pub(super) ratio: Option<(f64, f64)>,
    /// Why its figures cannot be right: records that must exist are lacking, though nobody said so.
    pub(super) lacking: Option<String>,
    /// It holds in a part of the run only.
    pub(super) in_part: bool,
    /// What it explains.
    pub(super) explained: Vec<Candidate>,
}

impl Candidate {
    /// About these objects, based on this many records.
    pub(super) fn new(
        finding: Finding,
        objects: impl IntoIterator<Item = ObjectId>,
        records: u64,
        floor: f64,
    ) -> Self {
        Self {
            finding,
            objects: objects.into_iter().collect(),
            aps: BTreeSet::new(),
            records,
            floor,
            ratio: None,
            lacking: None,
            in_part: false,
            explained: Vec::new(),
        }
    }

    /// Says what following the advice changes, where kind, objects and processes say it all.
    pub(super) fn tell_the_cure(&mut self) {
        let finding = &mut self.finding;
        finding.gain_from = finding.predicted_gain.map(|_| GainFrom::Costs);
        if finding.cure.is_some() {
            return;
        }
        let objects = || self.objects.clone();
        finding.cure = match finding.kind {
            Kind::NoSharing => Some(Cure::Private(objects())),
            Kind::Bottleneck | Kind::FalseSharing | Kind::PingPong => Some(Cure::Split(objects())),
            Kind::Polling => Some(Cure::Wait(objects())),
            Kind::Imbalance => Some(Cure::Balance(self.aps.clone())),
            // These say it themselves.
            Kind::BadGroup | Kind::MisplacedOwner | Kind::CrowdedOwner => None,
            Kind::PolicyMismatch | Kind::FineGrained | Kind::BarrierOverhead => None,
            Kind::ReadOnlyLocking => None,
            // It says it itself, or no replay knows what would be.
            Kind::SlowProcess => None,
            // What the program computes may be wrong, however long it takes.
            Kind::DataRace => None,
            // Who waits in a circle waits for ever.
            Kind::Deadlock => None,
        };
    }
}

/// The severity from which on a loss is told that is the same all the time: `negligible_loss` of the time of all, or
/// `their_loss` of the time of the processes that it concerns, whichever is less.
pub(super) fn least_severity(profile: &Profile, t: &Thresholds, processes: usize) -> f64 {
    t.negligible_loss.min(their_loss(profile, t, processes))
}

/// The same of a loss whose cure is a change of the cluster file: `patch_gain` of the time of all. Who changes the file for
/// less does so for nothing: where a replay tells the gain, less is not advised either.
pub(super) fn least_patched(profile: &Profile, t: &Thresholds, processes: usize) -> f64 {
    t.patch_gain.min(their_loss(profile, t, processes))
}

fn their_loss(profile: &Profile, t: &Thresholds, processes: usize) -> f64 {
    t.their_loss * processes as f64 / profile.active().max(1) as f64
}

/// A finding about one object, over the time it was used.
pub(super) fn about(profile: &Profile, kind: Kind, object: ObjectId) -> Finding {
    let mut finding = Finding::new(kind, profile.window);
    finding.variable = Some(profile.catalog.name_of(object.var));
    finding.object = Some(object.index);
    if let Some((from, to)) = profile.objects.get(&object).and_then(|o| o.used) {
        finding.from_ns = from.0;
        finding.to_ns = to.0;
    }
    finding
}
