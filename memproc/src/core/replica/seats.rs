//! What is known of all seats: every role may look, the engine alone changes it.

use std::collections::BTreeMap;

use dosmos_proto::{Incarnation, MpId, Nanos};

use super::seat::{Config, MAX_VOTERS, Seat};
use crate::core::cluster::Cluster;

/// What this process is to a seat, for somebody who accesses its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It serves it, and may for this long without asking again.
    Serves(Nanos),
    /// It is the holder, but cannot say now that nobody else is.
    Unsure,
    /// Somebody else is the holder.
    Elsewhere,
}

#[derive(Debug)]
struct Known {
    config: Config,
    /// Until when no other holder can be decided on.
    lease: Nanos,
    /// There is nobody who has to catch up first.
    settled: bool,
}

/// All seats of variables that are known here.
#[derive(Debug)]
pub(crate) struct Seats {
    known: BTreeMap<Seat, Known>,
    /// This start of this process was there before anything was decided: it is what the placement makes it.
    initial: bool,
    own: Incarnation,
}

impl Seats {
    /// As a process begins.
    pub(crate) fn new(own: Incarnation) -> Self {
        Self {
            known: BTreeMap::new(),
            initial: own.start() <= 1,
            own,
        }
    }

    /// Whether this process, which is not its first start, serves a seat, unless nobody can say now.
    pub(crate) fn serves_after_a_start(&self, cluster: &Cluster, seat: Seat) -> bool {
        let config = self.config(seat);
        let serves = config.holder() == cluster.me && self.is_member(cluster, &config, self.own);
        serves && self.own.start() > 1
    }

    /// There is a variable with objects of this seat.
    pub(crate) fn use_seat(&mut self, seat: Seat) {
        self.known.entry(seat).or_insert_with(|| Known {
            config: Config::initial(seat),
            lease: Nanos::ZERO,
            settled: true,
        });
    }

    /// The whole group was started again.
    pub(crate) fn begin_anew(&mut self) {
        self.initial = true;
    }

    /// Whether the whole group was started again, this process included, before anything was decided.
    pub(crate) fn has_begun_anew(&self) -> bool {
        self.initial && self.own.start() > 1
    }

    /// Whether it was decided that nobody keeps a seat any more.
    pub(crate) fn is_lost(&self, seat: Seat) -> bool {
        self.known.get(&seat).is_some_and(|k| k.config.is_lost())
    }

    /// Learns of a decision; gives the one before if this is later.
    pub(crate) fn install(&mut self, config: &Config) -> Option<Config> {
        self.use_seat(config.seat);
        let known = self.known.get_mut(&config.seat)?;
        if config.term <= known.config.term {
            return None;
        }
        if !known.config.is_held_as_by(config) {
            (known.lease, known.settled) = (Nanos::ZERO, false);
        }
        Some(std::mem::replace(&mut known.config, config.clone()))
    }

    /// This process holds a seat, and until then nobody else does.
    pub(crate) fn lease(&mut self, seat: Seat, until: Nanos, settled: bool) {
        if let Some(known) = self.known.get_mut(&seat) {
            (known.lease, known.settled) = (until, settled);
        }
    }

    /// The last decision about a seat.
    pub(crate) fn config(&self, seat: Seat) -> Config {
        let known = self.known.get(&seat);
        known.map_or_else(|| Config::initial(seat), |k| k.config.clone())
    }

    /// Which term a seat is in, who serves it, and which start of that, if it was decided.
    pub(crate) fn holder(&self, seat: Seat) -> (u64, MpId, Option<Incarnation>) {
        let config = self.known.get(&seat).map(|k| &k.config);
        let first = config.and_then(|c| Some((c.term, c.members.first()?)));
        first.map_or((0, seat.mp, None), |(term, (mp, i))| (term, *mp, Some(*i)))
    }

    /// Seats of variables that are known here, in order.
    pub(crate) fn all(&self) -> Vec<Seat> {
        self.known.keys().copied().collect()
    }

    /// Whether this start of this process is a member by this decision.
    pub(crate) fn is_member(&self, cluster: &Cluster, config: &Config, own: Incarnation) -> bool {
        match config.term {
            0 => self.initial && placed(cluster, config.seat).contains(&cluster.me),
            _ => config.names(cluster.me, own),
        }
    }

    /// What this process is to a seat.
    pub(crate) fn standing(
        &self,
        cluster: &Cluster,
        own: Incarnation,
        (seat, now): (Seat, Nanos),
    ) -> Standing {
        let Some(known) = self.known.get(&seat) else {
            return Standing::Elsewhere;
        };
        let config = &known.config;
        if config.holder() != cluster.me || !self.is_member(cluster, config, own) {
            return Standing::Elsewhere;
        }
        match known.settled && now < known.lease {
            true => Standing::Serves(known.lease - now),
            false => Standing::Unsure,
        }
    }
}

/// The processes whose majority decides about the seats of a group: its memory and link processes, in order.
pub(crate) fn voters(cluster: &Cluster, mp: MpId) -> Vec<MpId> {
    let group = cluster.group_of(mp);
    let all = (0u32..).zip(cluster.topology.memory_processes());
    let here = all.filter(|(_, p)| p.group == group);
    here.map(|(i, _)| MpId(i)).collect()
}

/// The memory processes of a group that can keep objects, in order.
pub(crate) fn keepers(cluster: &Cluster, mp: MpId) -> Vec<MpId> {
    let link = |mp: &MpId| cluster.topology.mp(*mp).is_some_and(|p| p.link);
    let voters = voters(cluster, mp).into_iter();
    voters.filter(|mp| !link(mp)).collect()
}

/// Who keeps a seat by the placement: its memory process, and as many as there are replicas behind it.
pub(crate) fn placed(cluster: &Cluster, seat: Seat) -> Vec<MpId> {
    let keepers = keepers(cluster, seat.mp);
    let at = keepers.iter().position(|mp| *mp == seat.mp).unwrap_or(0);
    let order = keepers.iter().cycle().skip(at);
    let count = (seat.replicas as usize + 1).min(keepers.len());
    order.take(count).copied().collect()
}

/// Why a group cannot have variables with this many replicas, if it cannot.
pub(crate) fn too_few(cluster: &Cluster, seat: Seat) -> Option<String> {
    let keepers = keepers(cluster, seat.mp).len();
    let group = cluster.topology.group_name(cluster.group_of(seat.mp));
    let (name, replicas) = (cluster.mp_name(seat.mp), seat.replicas);
    if keepers <= replicas as usize {
        return Some(format!(
            "{replicas} replicas need {} memory processes in group {group} of its owner {name}, which has {keepers}; add [[mp]] or ask for fewer",
            replicas + 1
        ));
    }
    let voters = voters(cluster, seat.mp).len();
    (voters > MAX_VOTERS).then(|| {
        format!(
            "group {group} has {voters} processes; replicas work in groups of at most {MAX_VOTERS}"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::replica::testing::{FIRST, SEAT, SECOND, START, TICK, decision};
    use crate::core::test_topology;

    const TERM: u64 = 1 << 10;

    /// Of a group of this size, as the first sees it.
    fn cluster(processes: u32) -> Cluster {
        Cluster::new(test_topology(&["/a"], processes, 0), MpId(0))
    }

    #[test]
    fn one_that_was_started_again_serves_what_was_decided_for_that_start() {
        let (me, other) = (MpId(0), MpId(1));
        let held = [(me, SECOND), (other, FIRST)];
        let kept = [(other, FIRST), (me, SECOND)];
        let before = [(me, FIRST), (other, FIRST)];
        for (own, members, serves) in [
            (SECOND, held, true),
            (SECOND, kept, false),
            (SECOND, before, false),
            (FIRST, before, false),
        ] {
            let mut seats = Seats::new(own);
            seats.install(&Config {
                members: members.to_vec(),
                ..decision(TERM, &[])
            });
            let does = seats.serves_after_a_start(&cluster(2), SEAT);
            assert_eq!(does, serves, "{own} of {members:?}");
        }
    }

    #[test]
    fn a_seat_is_served_within_its_lease() {
        let mut seats = Seats::new(FIRST);
        let standing = |seats: &Seats, now| seats.standing(&cluster(2), FIRST, (SEAT, now));
        assert_eq!(standing(&seats, START), Standing::Elsewhere);
        seats.install(&decision(TERM, &[0, 1]));
        assert_eq!(standing(&seats, START), Standing::Unsure);
        seats.lease(SEAT, START, true);
        assert_eq!(standing(&seats, START - TICK), Standing::Serves(TICK));
        assert_eq!(standing(&seats, START), Standing::Unsure);
        // The same holder with another member behind it.
        seats.install(&decision(TERM + 1, &[0]));
        assert_eq!(standing(&seats, START - TICK), Standing::Serves(TICK));
        seats.install(&decision(TERM + 2, &[1]));
        assert_eq!(standing(&seats, START - TICK), Standing::Elsewhere);
        seats.install(&decision(TERM + 3, &[0]));
        assert_eq!(standing(&seats, START - TICK), Standing::Unsure);
    }

    #[test]
    fn a_group_has_as_many_voters_as_terms_can_name() {
        let most = MAX_VOTERS as u32;
        assert_eq!(too_few(&cluster(most), SEAT), None);
        let why = too_few(&cluster(most + 1), SEAT).unwrap();
        assert!(why.contains("1025 processes"), "{why}");
    }
}
