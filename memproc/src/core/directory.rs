//! The directory of variables: a cache of those known here, and the home of those whose name hashes
//! to this process.
//!
//! A name has one home in the cluster, which alone numbers it and decides its owners; so two
//! declarations of one name meet there, and the second is the same variable or a conflict. A variable
//! is announced only when every owner knows it.

use std::collections::BTreeMap;
use std::sync::Arc;

use dosmos_proto::{
    ErrorCode, GroupId, MpId, Nanos, Placement, Refusal, VarId, Variable, VariableSpec,
};

use super::calls::Kind;
use super::cluster::{Cluster, list};
use super::hash::{FastMap, stable};
use super::input::{Answer, Ask, Item, Output};
use super::owner::Asker;
use super::{Core, Cx, VariableOverride};

/// Variables a home can number; above it are the homes' numbers.
const COUNTER_BITS: u32 = 20;
/// Barriers have the top bit set, so homes have the 11 bits between.
const MAX_HOMES: usize = 1 << (31 - COUNTER_BITS);
/// Most objects one memory process owns.
const MAX_OWNED: u64 = 1 << 24;

/// A name this process is the home of.
#[derive(Debug)]
struct Entry {
    variable: Arc<Variable>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Owners are being told.
    Creating {
        left: usize,
        failed: Option<Refusal>,
        askers: Vec<Asker>,
    },
    /// An owner could not be told; the next declaration tries again.
    Incomplete,
    Ready,
}

/// Variables known here.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    known: FastMap<VarId, Arc<Variable>>,
    by_name: BTreeMap<String, VarId>,
    home: BTreeMap<String, Entry>,
    counter: u32,
    owned: u64,
}
impl Directory {
    pub(crate) fn variable(&self, id: VarId) -> Option<&Arc<Variable>> {
        self.known.get(&id)
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Arc<Variable>> {
        self.known.get(self.by_name.get(name)?)
    }

    /// Number of objects owned here.
    pub(crate) fn owned(&self) -> u64 {
        self.owned
    }
}

/// The home of a name.
pub(crate) fn home_of(cluster: &Cluster, name: &str) -> Result<MpId, Refusal> {
    let owners = cluster.owners();
    if owners.is_empty() || owners.len() > MAX_HOMES {
        return Err(Refusal::new(
            ErrorCode::Limit,
            format!(
                "a cluster has 1 to {MAX_HOMES} memory processes, this one {}",
                owners.len()
            ),
        ));
    }
    Ok(owners[stable(name.as_bytes()) as usize % owners.len()])
}

/// The owners a placement means.
fn place(
    cluster: &Cluster,
    spec: &VariableSpec,
    creator: MpId,
) -> Result<(Vec<MpId>, GroupId), Refusal> {
    let t = &cluster.topology;
    let invalid = |why: String| {
        Refusal::new(
            ErrorCode::Invalid,
            format!("variable {}: {why}", spec.name()),
        )
    };
    let known = || {
        let owners = cluster.owners().iter().filter_map(|m| t.mp(*m));
        list(owners.map(|m| m.name.as_str()))
    };
    let creator = t
        .mp(creator)
        .filter(|mp| !mp.link)
        .map(|mp| (creator, mp.group))
        .ok_or_else(|| invalid(format!("{creator} cannot own objects")))?;
    let owners = match spec.placement() {
        Placement::Creator => vec![creator.0],
        Placement::ByName => {
            let owners = cluster.owners();
            vec![owners[stable(spec.name().as_bytes()) as usize % owners.len()]]
        }
        Placement::RoundRobin(None) => cluster.owners().to_vec(),
        Placement::RoundRobin(Some(path)) => {
            let group = t.find_group(path).ok_or_else(|| {
                let groups = list(t.groups().iter().map(|g| g.path.as_str()));
                invalid(format!("there is no group {path}; there are {groups}"))
            })?;
            let owners: Vec<MpId> = t.owners_in(Some(group)).collect();
            if owners.is_empty() {
                return Err(invalid(format!("group {path} has no memory process")));
            }
            owners
        }
        Placement::Explicit(names) => names
            .as_slice()
            .iter()
            .map(|name| match t.find_mp(name) {
                Some(mp) if !t.mp(mp).is_some_and(|m| m.link) => Ok(mp),
                Some(_) => Err(invalid(format!(
                    "{name} is a link process and owns nothing; name one of {}",
                    known()
                ))),
                None => Err(invalid(format!(
                    "there is no memory process {name}; there are {}",
                    known()
                ))),
            })
            .collect::<Result<_, _>>()?,
    };
    let mut owners = owners;
    owners.truncate(spec.layout().objects() as usize);
    Ok((owners, creator.1))
}

/// How many objects of a variable `mp` owns.
fn share(variable: &Variable, mp: MpId) -> u64 {
    let objects = u64::from(variable.spec().layout().objects());
    let cycle = variable.owners().len() as u64;
    (0u64..)
        .zip(variable.owners())
        .filter(|(i, owner)| **owner == mp && *i < objects)
        .map(|(i, _)| (objects - i).div_ceil(cycle))
        .sum()
}

impl Core {
    /// The declaration as this cluster's configuration wants it.
    pub(super) fn overridden(&self, mut spec: VariableSpec) -> VariableSpec {
        let named = |o: &&VariableOverride| o.name == spec.name();
        let overrides: Vec<_> = self.settings.overrides.iter().filter(named).collect();
        for o in overrides {
            if let Some(policy) = o.policy {
                spec = spec.with_policy(policy);
            }
            if let Some(placement) = &o.placement {
                spec = spec.with_placement(placement.clone());
            }
            if let Some(lock) = o.lock {
                spec = spec.with_lock(lock);
            }
        }
        spec
    }

    /// Learns of a variable: the cache, the count of owned objects, the recorder's dictionary.
    pub(super) fn learn(&mut self, cx: &mut Cx, variable: &Arc<Variable>) -> Result<(), Refusal> {
        let name = variable.spec().name();
        let invalid = |why: String| Err(Refusal::new(ErrorCode::Invalid, why));
        match self.directory.variable(variable.id()) {
            Some(known) if known == variable => return Ok(()),
            Some(known) => {
                return invalid(format!(
                    "{} is {} already, it cannot be {name}; restart the whole cluster",
                    variable.id(),
                    known.spec().name()
                ));
            }
            None => {}
        }
        let t = &self.cluster.topology;
        if let Some(odd) = variable
            .owners()
            .iter()
            .find(|o| t.mp(**o).is_none_or(|mp| mp.link))
        {
            return invalid(format!("{odd} cannot own objects of {name}"));
        }
        let owned = self.directory.owned + share(variable, self.cluster.me);
        if owned > MAX_OWNED {
            return Err(Refusal::new(
                ErrorCode::Limit,
                format!(
                    "{} would own {owned} objects with {name}, more than {MAX_OWNED}; use fewer parts or more memory processes",
                    self.cluster.mp_name(self.cluster.me)
                ),
            ));
        }
        self.directory.owned = owned;
        self.directory
            .by_name
            .insert(name.to_owned(), variable.id());
        self.directory
            .known
            .insert(variable.id(), Arc::clone(variable));
        cx.out
            .push(Output::Trace(Item::Variable(Arc::clone(variable))));
        Ok(())
    }

    /// At the home: a declaration.
    pub(super) fn home_declare(
        &mut self,
        cx: &mut Cx,
        asker: Asker,
        spec: &VariableSpec,
        creator: MpId,
    ) {
        if let Some(entry) = self.directory.home.get_mut(spec.name()) {
            if entry.variable.spec() != spec {
                let refusal = conflict(entry.variable.spec(), spec);
                return self.answer(cx, asker, Answer::Refused(refusal), Nanos::ZERO);
            }
            match &mut entry.state {
                State::Ready => {
                    let variable = Arc::clone(&entry.variable);
                    return self.answer(cx, asker, Answer::Variable(variable), Nanos::ZERO);
                }
                State::Creating { askers, .. } => return askers.push(asker),
                State::Incomplete => {}
            }
        } else {
            match self.number(spec, creator) {
                Ok(variable) => {
                    let entry = Entry {
                        variable: Arc::new(variable),
                        state: State::Incomplete,
                    };
                    self.directory.home.insert(spec.name().to_owned(), entry);
                }
                Err(refusal) => {
                    return self.answer(cx, asker, Answer::Refused(refusal), Nanos::ZERO);
                }
            }
        }
        self.create(cx, spec.name(), asker);
    }

    fn number(&mut self, spec: &VariableSpec, creator: MpId) -> Result<Variable, Refusal> {
        let (owners, group) = place(&self.cluster, spec, creator)?;
        let position = self
            .cluster
            .owners()
            .iter()
            .position(|m| *m == self.cluster.me)
            .unwrap_or_default() as u32;
        if self.directory.counter >> COUNTER_BITS != 0 {
            return Err(Refusal::new(
                ErrorCode::Limit,
                format!(
                    "{} is the home of {} variables already; use arrays instead of many scalars",
                    self.cluster.mp_name(self.cluster.me),
                    self.directory.counter
                ),
            ));
        }
        let id = VarId(position << COUNTER_BITS | self.directory.counter);
        self.directory.counter += 1;
        Ok(Variable::new(id, spec.clone(), owners, group)?)
    }

    /// At the home: tells every owner of a variable.
    fn create(&mut self, cx: &mut Cx, name: &str, asker: Asker) {
        let Some(entry) = self.directory.home.get_mut(name) else {
            return;
        };
        let variable = Arc::clone(&entry.variable);
        let mut owners = variable.owners().to_vec();
        owners.sort_unstable();
        owners.dedup();
        entry.state = State::Creating {
            left: owners.len(),
            failed: None,
            askers: vec![asker],
        };
        for owner in owners {
            if owner == self.cluster.me {
                let learnt = self.learn(cx, &variable);
                self.created(cx, name, learnt);
            } else if let Err(refusal) = self.peers.reach(&self.cluster, owner) {
                self.created(cx, name, Err(refusal));
            } else {
                let call = self.calls.open(owner, Kind::Create(name.to_owned()));
                self.ask(cx, owner, call, Ask::Create(Arc::clone(&variable)));
            }
        }
    }

    /// At the home: an owner knows the variable, or cannot.
    pub(super) fn created(&mut self, cx: &mut Cx, name: &str, result: Result<(), Refusal>) {
        let Some(entry) = self.directory.home.get_mut(name) else {
            return;
        };
        let State::Creating {
            left,
            failed,
            askers,
        } = &mut entry.state
        else {
            return;
        };
        *left -= 1;
        if let Err(refusal) = result {
            failed.get_or_insert(refusal);
        }
        if *left > 0 {
            return;
        }
        let (failed, askers) = (failed.take(), std::mem::take(askers));
        entry.state = match failed {
            Some(_) => State::Incomplete,
            None => State::Ready,
        };
        let variable = Arc::clone(&entry.variable);
        for asker in askers {
            let answer = match &failed {
                Some(refusal) => Answer::Refused(refusal.clone()),
                None => Answer::Variable(Arc::clone(&variable)),
            };
            self.answer(cx, asker, answer, Nanos::ZERO);
        }
    }

    /// At the home: a look-up by name. One under way is waited for.
    pub(super) fn home_open(&mut self, cx: &mut Cx, asker: Asker, name: &str) {
        let answer = match self.directory.home.get_mut(name) {
            Some(entry) => match &mut entry.state {
                State::Ready => Answer::Variable(Arc::clone(&entry.variable)),
                State::Creating { askers, .. } => return askers.push(asker),
                State::Incomplete => {
                    return self.create(cx, name, asker);
                }
            },
            None => Answer::Refused(Refusal::new(
                ErrorCode::UnknownVariable,
                format!("no variable {name:?} has been declared; check the name or declare it"),
            )),
        };
        self.answer(cx, asker, answer, Nanos::ZERO);
    }
}

/// Two declarations of one name that differ.
pub(super) fn conflict(first: &VariableSpec, second: &VariableSpec) -> Refusal {
    Refusal::new(
        ErrorCode::DeclarationConflict,
        format!(
            "declared as `{first}` before and as `{second}` now; make both the same or choose another name"
        ),
    )
}
