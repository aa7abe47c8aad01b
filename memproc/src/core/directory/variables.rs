//! The variables known here. Every role may look at them; they are learnt in one place.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use dosmos_proto::{
    ErrorCode, Incarnation, MpId, ObjectId, Refusal, VarId, Variable, VariableSpec,
};
use rustc_hash::FxHashMap;

use super::place::{Place, seat_of};
use super::placement::{home_of, share};
use crate::core::cluster::Cluster;
use crate::core::effects::Effect;
use crate::core::incarnations::started_again;
use crate::core::messages::{Announced, Item, KnownNames, Output};
use crate::core::replica::seat::Seat;
use crate::core::replica::seats::Seats;
use crate::core::settings::{ALL_VARIABLES, VariableOverride};

use super::declared::Declared;

/// An answer about names is not much larger than this.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// Most objects one memory process owns.
const MAX_OWNED: u64 = 1 << 24;

#[derive(Debug)]
struct Known {
    variable: Arc<Variable>,
    /// Which starts of its owners know it, once its home said that all do. An owner may know a variable
    /// before the others do.
    owners: Option<FxHashMap<MpId, Incarnation>>,
    /// An earlier start of this process knew it: the objects owned here are lost.
    lost_here: bool,
    /// Its home or the holder of a seat told of it, to have it served or kept here.
    told: bool,
}

impl Known {
    fn announced(&self) -> Option<Announced> {
        let mut owners: Vec<(MpId, Incarnation)> = self
            .owners
            .as_ref()?
            .iter()
            .map(|(mp, i)| (*mp, *i))
            .collect();
        owners.sort_unstable_by_key(|(mp, _)| *mp);
        Some(Announced {
            variable: Arc::clone(&self.variable),
            owners,
        })
    }
}

/// Variables known here.
#[derive(Debug)]
pub(crate) struct Variables {
    known: FxHashMap<VarId, Known>,
    by_name: BTreeMap<String, VarId>,
    overrides: Vec<VariableOverride>,
    owned: u64,
    declared: Declared,
    seats: Seats,
}

impl Variables {
    pub(crate) fn new(overrides: Vec<VariableOverride>, own: Incarnation) -> Self {
        Self {
            known: FxHashMap::default(),
            by_name: BTreeMap::new(),
            overrides,
            owned: 0,
            declared: Declared::default(),
            seats: Seats::new(own),
        }
    }

    /// Who serves the variables with replicas.
    pub(crate) fn seats(&self) -> &Seats {
        &self.seats
    }

    /// The same, for the engine to change.
    pub(crate) fn seats_mut(&mut self) -> &mut Seats {
        &mut self.seats
    }

    /// The seat of an object, if it is known and has one.
    pub(crate) fn seat_of(&self, object: ObjectId) -> Option<Seat> {
        seat_of(&self.known.get(&object.var)?.variable, object.index)
    }

    /// The variables whose objects of a seat this process, which holds it, can serve, in order.
    pub(crate) fn of_seat(&self, cluster: &Cluster, seat: Seat) -> Vec<Arc<Variable>> {
        let all = self.by_name.values().filter_map(|id| self.known.get(id));
        let of = |v: &&Arc<Variable>| {
            v.spec().replicas() == seat.replicas && v.owners().contains(&seat.mp)
        };
        all.filter(|known| !self.is_lost_with_all(cluster, known, seat))
            .map(|known| &known.variable)
            .filter(of)
            .cloned()
            .collect()
    }

    /// The variable called `name`, if it is known, and whether all its owners know it.
    pub(crate) fn named(&self, name: &str) -> Option<(&Arc<Variable>, bool)> {
        let known = self.known.get(self.by_name.get(name)?)?;
        Some((&known.variable, known.owners.is_some()))
    }

    /// The variable called `name`, if all its owners are known to know it.
    pub(crate) fn announced(&self, name: &str) -> Option<Announced> {
        self.known.get(self.by_name.get(name)?)?.announced()
    }

    /// What is known here of names with this home, in order, after one of them, as much as fits in a message.
    pub(crate) fn of_home(&self, cluster: &Cluster, home: MpId, after: &str) -> KnownNames {
        let mut names = KnownNames::default();
        let mut bytes = 0;
        let later = (Bound::Excluded(after), Bound::Unbounded);
        for (name, id) in self.by_name.range::<str, _>(later) {
            let Some(known) = self
                .known
                .get(id)
                .filter(|_| home_of(cluster, name) == Ok(home))
            else {
                continue;
            };
            if bytes > MAX_ANSWER_BYTES {
                names.more = true;
                break;
            }
            bytes += known.variable.footprint();
            match known.announced() {
                Some(announced) => names.announced.push(announced),
                None => names.told.push(Arc::clone(&known.variable)),
            }
        }
        names
    }

    /// Which start of an owner holds its objects of a variable, if the variable was announced.
    pub(crate) fn incarnation_of(&self, variable: VarId, owner: MpId) -> Option<Incarnation> {
        let owners = self.known.get(&variable)?.owners.as_ref()?;
        owners.get(&owner).copied()
    }

    /// Which start of its owner holds an object, if that is known.
    pub(crate) fn start_of_owner(&self, place: &Place) -> Option<Incarnation> {
        let decided = place.seat.and_then(|seat| self.seats.holder(seat).2);
        decided.or_else(|| self.incarnation_of(place.object.var, place.owner))
    }

    /// Number of objects owned here.
    pub(crate) fn owned(&self) -> u64 {
        self.owned
    }

    /// Where an object is; refused if there is none.
    pub(crate) fn place(&self, cluster: &Cluster, object: ObjectId) -> Result<Place<'_>, Refusal> {
        match self.known.get(&object.var) {
            Some(known) => {
                let place = Place::new(&known.variable, object, &self.seats)?;
                if let Some(seat) = place.seat.filter(|seat| self.seats.is_lost(*seat)) {
                    return Err(lost_with_all(cluster, &place, seat));
                }
                if place.owner != cluster.me {
                    return Ok(place);
                }
                match place.seat {
                    None if known.lost_here => Err(started_again(cluster, cluster.me)),
                    Some(seat) if self.is_lost_with_all(cluster, known, seat) => {
                        Err(lost_with_all(cluster, &place, seat))
                    }
                    _ => Ok(place),
                }
            }
            None => Err(Refusal::new(
                ErrorCode::UnknownVariable,
                format!(
                    "{} is not known at {}; declare or open the variable first",
                    object.var,
                    cluster.mp_name(cluster.me)
                ),
            )),
        }
    }

    /// Its seat, if an object that this process would serve was lost with all that kept it.
    pub(crate) fn lost_seat(&self, cluster: &Cluster, object: ObjectId) -> Option<Seat> {
        let known = self.known.get(&object.var)?;
        let seat = seat_of(&known.variable, object.index)?;
        let lost = self.seats.is_lost(seat) || self.is_lost_with_all(cluster, known, seat);
        lost.then_some(seat)
    }

    /// Whether the objects of a variable with replicas were lost with all that kept them. Who serves them was there when it was
    /// made, or caught up with somebody who was: then this process was told of it. Of what it has only heard as everybody can,
    /// an earlier start may have been told, of this process and of all others that kept it.
    fn is_lost_with_all(&self, cluster: &Cluster, known: &Known, seat: Seat) -> bool {
        !known.told && self.seats.serves_after_a_start(cluster, seat)
    }

    /// Name of an object, for a message: `grid[3]`.
    pub(crate) fn object_name(&self, object: ObjectId) -> String {
        match self.known.get(&object.var) {
            Some(known) => format!("{}[{}]", known.variable.spec().name(), object.index),
            None => object.to_string(),
        }
    }

    /// A declaration as this cluster's configuration wants it.
    pub(crate) fn overridden(&self, mut spec: VariableSpec) -> VariableSpec {
        let name = spec.name().to_owned();
        // What is said of the variable itself comes last.
        let of_all = self.overrides.iter().filter(|o| o.name == ALL_VARIABLES);
        let named = self.overrides.iter().filter(|o| o.name == name);
        for o in of_all.chain(named) {
            if let Some(policy) = o.policy {
                spec = spec.with_policy(policy);
            }
            if let Some(placement) = &o.placement {
                spec = spec.with_placement(placement.clone());
            }
            if let Some(lock) = o.lock {
                spec = spec.with_lock(lock);
            }
            if let Some(cache) = o.cache {
                spec = spec.with_cache(cache);
            }
            if let Some(replicas) = o.replicas {
                // The configuration was checked.
                spec = spec.clone().with_replicas(replicas).unwrap_or(spec);
            }
        }
        spec
    }

    /// Learns of a variable. Its home announced it with the starts of its `owners`, or only tells these.
    pub(crate) fn learn(
        &mut self,
        cluster: &Cluster,
        own: Incarnation,
        variable: &Arc<Variable>,
        owners: Option<&[(MpId, Incarnation)]>,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        let owners: Option<FxHashMap<MpId, Incarnation>> =
            owners.map(|list| list.iter().copied().collect());
        let lost = |owners: &FxHashMap<MpId, Incarnation>| {
            owners.get(&cluster.me).is_some_and(|i| *i != own)
        };
        let told = owners.is_none();
        if let Some(known) = self.known.get_mut(&variable.id()) {
            if known.variable == *variable {
                known.told |= told;
                known.owners = owners.or(known.owners.take());
                return Ok(());
            }
            return Err(Refusal::new(
                ErrorCode::Invalid,
                format!(
                    "{} is {} already, it cannot be {}; restart the whole cluster",
                    variable.id(),
                    known.variable.spec().name(),
                    variable.spec().name()
                ),
            ));
        }
        if let Some(other) = self.by_name.get(variable.spec().name()) {
            return Err(Refusal::new(
                ErrorCode::ProcessLost,
                format!(
                    "{} is {other} already, which its home does not know: the home was started again; start the program again",
                    variable.spec().name()
                ),
            ));
        }
        let owned = self.check_new(cluster, variable)?;
        self.declared.add(cluster, variable)?;
        self.owned = owned;
        self.by_name
            .insert(variable.spec().name().to_owned(), variable.id());
        let known = Known {
            variable: Arc::clone(variable),
            lost_here: owners.as_ref().is_some_and(lost),
            owners,
            told,
        };
        self.known.insert(variable.id(), known);
        self.use_seats(variable, effects);
        let item = Item::Variable(Arc::clone(variable));
        effects.push(Effect::Output(Output::Trace(item)));
        Ok(())
    }

    /// The objects of a new variable may have seats.
    fn use_seats(&mut self, variable: &Variable, effects: &mut Vec<Effect>) {
        let count = (variable.owners().len() as u32).min(variable.spec().layout().objects());
        for seat in (0..count).filter_map(|index| seat_of(variable, index)) {
            self.seats.use_seat(seat);
            effects.push(Effect::SeatInUse { seat });
        }
    }

    /// The number of objects owned here with a new variable, if it makes sense.
    fn check_new(&self, cluster: &Cluster, variable: &Variable) -> Result<u64, Refusal> {
        let name = variable.spec().name();
        let owns = |mp| cluster.topology.mp(mp).is_some_and(|mp| !mp.link);
        if let Some(odd) = variable.owners().iter().find(|o| !owns(**o)) {
            let why = format!("{odd} cannot own objects of {name}");
            return Err(Refusal::new(ErrorCode::Invalid, why));
        }
        let owned = self.owned + share(variable, cluster.me);
        if owned > MAX_OWNED {
            return Err(Refusal::new(
                ErrorCode::Limit,
                format!(
                    "{} would own {owned} objects with {name}, more than {MAX_OWNED}; use fewer parts or more memory processes",
                    cluster.mp_name(cluster.me)
                ),
            ));
        }
        Ok(owned)
    }
}

/// What is said of an object with replicas when nobody of its group kept it.
pub(crate) fn lost_with_all(cluster: &Cluster, place: &Place, seat: Seat) -> Refusal {
    let why = format!(
        "{} is lost: all memory processes that kept it for {} were started again; start the program again",
        place.name(),
        cluster.mp_name(seat.mp)
    );
    Refusal::new(ErrorCode::ProcessLost, why)
}

/// Two declarations of one name that differ.
pub(crate) fn conflict(first: &VariableSpec, second: &VariableSpec) -> Refusal {
    Refusal::new(
        ErrorCode::DeclarationConflict,
        format!(
            "declared as `{first}` before and as `{second}` now; make both the same or choose another name"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::testing::topology;
    use dosmos_proto::{ElementType, GroupId, Layout};

    /// Known to mp0 of three, with a link process.
    struct Known {
        cluster: Cluster,
        variables: Variables,
    }

    impl Known {
        fn new() -> Self {
            let cluster = Cluster::new(topology(&["/a", "/b"], 2, 0), MpId(0));
            let variables = Variables::new(Vec::new(), Incarnation::new(1, 0));
            Self { cluster, variables }
        }

        fn learn(
            &mut self,
            (id, name): (u32, &str),
            objects: u32,
            owners: &[u32],
        ) -> Result<(), ErrorCode> {
            let layout = Layout::new(ElementType::U8, (1, objects.into()), (1, objects)).unwrap();
            let spec = VariableSpec::new(name, layout).unwrap();
            let owners = owners.iter().map(|mp| MpId(*mp)).collect();
            let variable = Variable::new(VarId(id), spec, owners, GroupId(0)).unwrap();
            let own = Incarnation::new(1, 0);
            let learnt = self.variables.learn(
                &self.cluster,
                own,
                &Arc::new(variable),
                Some(&[(MpId(0), own)]),
                &mut Vec::new(),
            );
            learnt.map_err(|refusal| refusal.code)
        }
    }

    #[test]
    fn objects_owned_here_are_counted_and_bounded() {
        let mut known = Known::new();
        let half = MAX_OWNED as u32 / 2;
        assert_eq!(known.variables.owned(), 0);
        assert_eq!(known.learn((1, "a"), half, &[0]), Ok(()));
        assert_eq!(known.variables.owned(), u64::from(half));
        // Of twice as many, one of two owners owns half.
        assert_eq!(known.learn((2, "b"), half * 2, &[0, 1]), Ok(()));
        assert_eq!(known.variables.owned(), MAX_OWNED);
        assert_eq!(known.learn((3, "c"), 1, &[0]), Err(ErrorCode::Limit));
        assert_eq!(known.learn((4, "d"), 1, &[1]), Ok(()));
        assert_eq!(known.learn((5, "e"), 1, &[4]), Err(ErrorCode::Invalid));
        assert_eq!(known.variables.owned(), MAX_OWNED);
        assert!(known.variables.named("e").is_none());
    }

    #[test]
    fn an_answer_about_names_ends_soon_after_it_is_large_enough() {
        let mut known = Known::new();
        let mut names: Vec<String> = (0..40).map(|i| format!("v{i:02}")).collect();
        let owners: Vec<u32> = (0..40_000).map(|i| i * 7 % 2).collect();
        for (id, name) in (1..).zip(&names) {
            known.learn((id, name), 40_000, &owners).unwrap();
        }
        let home = |name: &String| home_of(&known.cluster, name).unwrap();
        let first = home(&names[0]);
        names.retain(|name| home(name) == first);
        let all = || names.iter().filter_map(|name| known.variables.named(name));
        let sizes: Vec<usize> = all().map(|(v, _)| v.footprint()).collect();
        let answer = known.variables.of_home(&known.cluster, first, "");
        assert!(answer.more);
        let count = answer.announced.len();
        let bytes = |count: usize| sizes[..count].iter().sum::<usize>();
        assert!(bytes(count) > MAX_ANSWER_BYTES && bytes(count - 1) <= MAX_ANSWER_BYTES);
        // It goes on after the last name, up to the end.
        let mut got = Vec::new();
        let mut after = String::new();
        loop {
            let answer = known.variables.of_home(&known.cluster, first, &after);
            let heard = answer.announced.iter();
            got.extend(heard.map(|a| a.variable.spec().name().to_owned()));
            after = got.last().cloned().unwrap_or_default();
            if !answer.more {
                break;
            }
        }
        assert_eq!(got, names);
    }
}
