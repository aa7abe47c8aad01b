//! Builds a profile from records, one pass, in order of their start.

use std::collections::BTreeMap;

use dosmos_proto::{Nanos, ObjectId};
use dosmos_trace::query::{Catalog, TimeRange};
use dosmos_trace::record::{Op, Record, Side};

use super::{Costs, ObjectProfile, Phases, Profile};

/// Gathers what the detectors need. Feed it every record of the window (owners' records, failed
/// operations and waiting notices too), in order of start.
#[derive(Clone, Debug)]
pub struct ProfileBuilder {
    profile: Profile,
    seen: Option<(Nanos, Nanos)>,
}

impl ProfileBuilder {
    /// An empty profile of a run with these names and processes.
    pub fn new(catalog: Catalog) -> Self {
        Self {
            profile: Profile {
                window: TimeRange::ALL,
                catalog,
                objects: BTreeMap::new(),
                barriers: BTreeMap::new(),
                aps: BTreeMap::new(),
                costs: Costs::default(),
            },
            seen: None,
        }
    }

    /// Takes one record into account.
    pub fn add(&mut self, record: &Record) {
        if record.flags.waiting {
            self.object(record.object).wait_begins(record);
        } else if record.flags.failed {
            if record.op == Op::Acquire && record.side == Side::Requester {
                self.object(record.object).wait_fails(record);
            }
        } else if record.side == Side::Requester {
            self.access(record);
        }
    }

    fn access(&mut self, record: &Record) {
        let end = record.end();
        self.seen = Some(match self.seen {
            Some((from, to)) => (from.min(record.start), to.max(end)),
            None => (record.start, end),
        });
        let own = self.profile.aps.entry(record.ap).or_default();
        own.counts.count(record.op);
        own.time += record.duration;
        own.wait += record.wait;
        if record.op == Op::Barrier {
            let topology = &self.profile.catalog.topology;
            let barriers = &self.profile.catalog.barriers;
            let group = barriers
                .iter()
                .find(|b| b.id == record.object.var)
                .and_then(|b| b.group);
            let members = topology.aps_in(group).count();
            let phases: &mut Phases = self.profile.barriers.entry(record.object.var).or_default();
            phases.passed(record, members);
            return;
        }
        let undelayed = record.duration - record.wait;
        self.profile
            .costs
            .add(record.op, record.origin, undelayed.0);
        self.object(record.object).access(record);
    }

    fn object(&mut self, id: ObjectId) -> &mut ObjectProfile {
        self.profile.objects.entry(id).or_default()
    }

    /// The profile, over `window` or over what the records cover.
    pub fn finish(mut self, window: Option<TimeRange>) -> Profile {
        let (from, to) = self.seen.unwrap_or_default();
        self.profile.window = window.unwrap_or(TimeRange { from, to });
        for object in self.profile.objects.values_mut() {
            object.finish();
        }
        self.profile
    }
}
