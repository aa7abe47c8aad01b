//! Variables: what is asked for in a declaration, and what the directory made of it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::names::check_name;
use crate::owner_names::{OwnerNames, check_owners};
use crate::{GroupId, Layout, Malformed, MpId, ObjectId, VarId, wire};

/// Longest path of a group in a declaration, in bytes.
const MAX_PATH_BYTES: usize = 4096;

/// Most memory that all declarations which a memory process or an event manager knows take together, in bytes.
pub const MAX_DECLARED_BYTES: usize = 64 << 20;
/// Most replicas of a variable.
pub const MAX_REPLICAS: u32 = 2;

/// What becomes of an object's copies when it is released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CopyPolicy {
    /// Copies are dropped; the next read fetches the object again.
    #[default]
    Invalidate,
    /// Copies receive the new content.
    Update,
}

impl fmt::Display for CopyPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Invalidate => "invalidate",
            Self::Update => "update",
        })
    }
}

/// How processes take turns on a variable's objects (docs/design/protocol.md#lock-kinds).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LockKind {
    /// First in, first out at the owner; what a section writes is seen as a whole at its release.
    #[default]
    Queue,
    /// Test-and-test-and-set: everyone polls a word at the owner. Not fair.
    Spin,
    /// The queue lock of Mellor-Crummey and Scott: each process waits for a flag at its own memory process,
    /// and the holder hands over to the next directly.
    Mcs,
}

impl LockKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Queue, Self::Spin, Self::Mcs];
}

impl std::str::FromStr for LockKind {
    type Err = Malformed;
    fn from_str(text: &str) -> Result<Self, Malformed> {
        let known = Self::ALL.into_iter().find(|k| k.to_string() == text);
        known.ok_or_else(|| {
            Malformed::new(
                "lock kind",
                format!("{text:?} is none; there are queue, spin and mcs"),
            )
        })
    }
}

impl fmt::Display for LockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queue => "queue",
            Self::Spin => "spin",
            Self::Mcs => "mcs",
        })
    }
}

/// Down to where copies of a variable's objects are kept for reading (docs/design/consistency.md#copies-in-application-processes).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cache {
    /// Memory processes: every read is a message.
    Mp,
    /// Application processes: a read of a valid copy sends nothing.
    #[default]
    Ap,
}

impl fmt::Display for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mp => "mp",
            Self::Ap => "ap",
        })
    }
}

/// Which memory process owns which object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Placement {
    /// The memory process of the application process that declared the variable first.
    #[default]
    Creator,
    /// A memory process chosen by a hash of the name.
    ByName,
    /// Object `i` at the `i`-th memory process, of the named group (with sub-groups) or of all.
    RoundRobin(Option<String>),
    /// The named memory processes, one per object; a shorter list repeats.
    Explicit(OwnerNames),
}

impl Placement {
    /// The named memory processes, one per object; a shorter list repeats.
    ///
    /// # Errors
    /// See [`OwnerNames`].
    pub fn explicit(names: impl IntoIterator<Item = impl Into<String>>) -> Result<Self, Malformed> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        Ok(Self::Explicit(names.try_into()?))
    }

    /// The memory processes of the group at `path`, round and round.
    ///
    /// # Errors
    /// If no group can have that path.
    pub fn round_robin_in(path: impl Into<String>) -> Result<Self, Malformed> {
        let path = path.into();
        if path.len() > MAX_PATH_BYTES {
            let why = format!(
                "the path of a group has at most {MAX_PATH_BYTES} bytes, this one {}",
                path.len()
            );
            return Err(Malformed::new("placement", why));
        }
        Ok(Self::RoundRobin(Some(path)))
    }

    /// What it takes in memory, in bytes.
    fn footprint(&self) -> usize {
        match self {
            Self::Creator | Self::ByName | Self::RoundRobin(None) => 0,
            Self::RoundRobin(Some(path)) => path.len(),
            Self::Explicit(names) => names.footprint(),
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Creator => f.write_str("creator"),
            Self::ByName => f.write_str("by name"),
            Self::RoundRobin(None) => f.write_str("round robin"),
            Self::RoundRobin(Some(group)) => write!(f, "round robin in {group}"),
            Self::Explicit(names) => write!(f, "at {}", names.as_slice().join(", ")),
        }
    }
}

/// A declaration. Its name is valid ([`check_name`]).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "UncheckedSpec")]
pub struct VariableSpec {
    name: String,
    layout: Layout,
    placement: Placement,
    policy: CopyPolicy,
    lock: LockKind,
    cache: Cache,
    replicas: u32,
}

impl VariableSpec {
    /// A declaration of the variable `name` with the default placement, copy policy and lock.
    ///
    /// # Errors
    /// If `name` is not a valid name.
    pub fn new(name: impl Into<String>, layout: Layout) -> Result<Self, Malformed> {
        let name = name.into();
        check_name("variable name", &name)?;
        Ok(Self {
            name,
            layout,
            placement: Placement::default(),
            policy: CopyPolicy::default(),
            lock: LockKind::default(),
            cache: Cache::default(),
            replicas: 0,
        })
    }

    /// The same with this placement.
    #[must_use]
    pub fn with_placement(self, placement: Placement) -> Self {
        Self { placement, ..self }
    }
    /// The same with this copy policy.
    #[must_use]
    pub fn with_policy(self, policy: CopyPolicy) -> Self {
        Self { policy, ..self }
    }
    /// The same with this kind of lock.
    #[must_use]
    pub fn with_lock(self, lock: LockKind) -> Self {
        Self { lock, ..self }
    }
    /// The same with copies down to here.
    #[must_use]
    pub fn with_cache(self, cache: Cache) -> Self {
        Self { cache, ..self }
    }
    /// The same with its released content at this many other memory processes.
    ///
    /// # Errors
    /// If they are more than [`MAX_REPLICAS`].
    pub fn with_replicas(self, replicas: u32) -> Result<Self, Malformed> {
        if replicas > MAX_REPLICAS {
            let why = format!("{replicas} replicas; there are 0 to {MAX_REPLICAS}");
            return Err(Malformed::new("replicas", why));
        }
        Ok(Self { replicas, ..self })
    }

    /// Unique in the cluster.
    pub fn name(&self) -> &str {
        &self.name
    }
    /// Type, shape and split.
    pub fn layout(&self) -> Layout {
        self.layout
    }
    /// Owners.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }
    /// What releases do to copies.
    pub fn policy(&self) -> CopyPolicy {
        self.policy
    }
    /// How processes take turns.
    pub fn lock(&self) -> LockKind {
        self.lock
    }
    /// Down to where copies are kept.
    pub fn cache(&self) -> Cache {
        self.cache
    }
    /// At how many other memory processes of the owner's group its released content is kept.
    pub fn replicas(&self) -> u32 {
        self.replicas
    }

    /// What it takes in memory, in bytes: whoever knows many declarations counts them ([`MAX_DECLARED_BYTES`]).
    pub fn footprint(&self) -> usize {
        size_of::<Self>() + self.name.len() + self.placement.footprint()
    }
}

/// A declaration as it was stored.
#[derive(Deserialize)]
struct UncheckedSpec {
    name: String,
    layout: Layout,
    placement: Placement,
    policy: CopyPolicy,
    lock: LockKind,
    cache: Cache,
    replicas: u32,
}

impl TryFrom<UncheckedSpec> for VariableSpec {
    type Error = Malformed;
    fn try_from(stored: UncheckedSpec) -> Result<Self, Malformed> {
        let UncheckedSpec {
            name,
            layout,
            placement,
            policy,
            lock,
            cache,
            replicas,
        } = stored;
        Self::new(name, layout)?
            .with_placement(placement)
            .with_policy(policy)
            .with_lock(lock)
            .with_cache(cache)
            .with_replicas(replicas)
    }
}

impl fmt::Display for VariableSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}, owner {}, {}",
            self.name, self.layout, self.placement, self.policy
        )?;
        match self.lock {
            LockKind::Queue => {}
            other => write!(f, ", {other} lock")?,
        }
        match self.cache {
            Cache::Ap => {}
            Cache::Mp => write!(f, ", cache {}", self.cache)?,
        }
        match self.replicas {
            0 => Ok(()),
            1 => f.write_str(", 1 replica"),
            n => write!(f, ", {n} replicas"),
        }
    }
}

/// A declared variable. It has at least one owner.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "UncheckedVariable")]
pub struct Variable {
    id: VarId,
    spec: VariableSpec,
    owners: Vec<MpId>,
    group: GroupId,
}

impl Variable {
    /// The variable `id` as declared by `spec`. `owners` are the owners of its objects (a shorter list
    /// repeats), `group` is the group of the process that declared it first.
    ///
    /// # Errors
    /// If there is no owner, or there are more than [`MAX_OWNERS`](crate::wire_owners::MAX_OWNERS).
    pub fn new(
        id: VarId,
        spec: VariableSpec,
        owners: Vec<MpId>,
        group: GroupId,
    ) -> Result<Self, Malformed> {
        check_owners(owners.len())?;
        Ok(Self {
            id,
            spec,
            owners,
            group,
        })
    }

    /// Its number.
    pub fn id(&self) -> VarId {
        self.id
    }
    /// Its declaration.
    pub fn spec(&self) -> &VariableSpec {
        &self.spec
    }
    /// Owner of each object; a shorter list repeats. Never empty.
    pub fn owners(&self) -> &[MpId] {
        &self.owners
    }
    /// Group of the process that declared it first.
    pub fn group(&self) -> GroupId {
        self.group
    }

    /// What it takes in memory, in bytes: see [`VariableSpec::footprint`].
    pub fn footprint(&self) -> usize {
        self.spec.footprint() + self.owners.len() * size_of::<MpId>()
    }

    /// The owner of object `index`.
    pub fn owner(&self, index: u32) -> MpId {
        self.owners[index as usize % self.owners.len()]
    }

    /// The identifiers of all objects.
    pub fn objects(&self) -> impl Iterator<Item = ObjectId> + use<> {
        let id = self.id;
        (0..self.spec.layout.objects()).map(move |i| ObjectId::new(id, i))
    }
}

/// A variable as it was stored.
#[derive(Deserialize)]
struct UncheckedVariable {
    id: VarId,
    spec: VariableSpec,
    owners: Vec<MpId>,
    group: GroupId,
}

impl TryFrom<UncheckedVariable> for Variable {
    type Error = Malformed;
    fn try_from(v: UncheckedVariable) -> Result<Self, Malformed> {
        Self::new(v.id, v.spec, v.owners, v.group)
    }
}

impl From<Placement> for wire::Placement {
    fn from(p: Placement) -> Self {
        use wire::placement as w;
        let rule = match p {
            Placement::Creator => w::Rule::Creator(w::Creator {}),
            Placement::ByName => w::Rule::ByName(w::ByName {}),
            Placement::RoundRobin(group) => w::Rule::RoundRobin(w::RoundRobin { group }),
            Placement::Explicit(names) => w::Rule::Explicit(names.into()),
        };
        Self { rule: Some(rule) }
    }
}

impl TryFrom<wire::Placement> for Placement {
    type Error = Malformed;
    fn try_from(p: wire::Placement) -> Result<Self, Malformed> {
        use wire::placement::Rule;
        Ok(match p.rule.ok_or(Malformed::missing("placement"))? {
            Rule::Creator(_) => Self::Creator,
            Rule::ByName(_) => Self::ByName,
            Rule::RoundRobin(r) => match r.group {
                Some(path) => Self::round_robin_in(path)?,
                None => Self::RoundRobin(None),
            },
            Rule::Explicit(names) => Self::Explicit(names.try_into()?),
        })
    }
}

impl From<CopyPolicy> for wire::CopyPolicy {
    fn from(p: CopyPolicy) -> Self {
        match p {
            CopyPolicy::Invalidate => Self::Invalidate,
            CopyPolicy::Update => Self::Update,
        }
    }
}

impl From<LockKind> for wire::LockKind {
    fn from(kind: LockKind) -> Self {
        match kind {
            LockKind::Queue => Self::Queue,
            LockKind::Spin => Self::Spin,
            LockKind::Mcs => Self::Mcs,
        }
    }
}

impl From<Cache> for wire::Cache {
    fn from(cache: Cache) -> Self {
        match cache {
            Cache::Mp => Self::MemoryProcess,
            Cache::Ap => Self::ApplicationProcess,
        }
    }
}

impl From<VariableSpec> for wire::VariableSpec {
    fn from(s: VariableSpec) -> Self {
        Self {
            name: s.name,
            layout: Some(s.layout.into()),
            placement: Some(s.placement.into()),
            policy: wire::CopyPolicy::from(s.policy).into(),
            lock: wire::LockKind::from(s.lock).into(),
            cache: wire::Cache::from(s.cache).into(),
            replicas: s.replicas,
        }
    }
}

impl TryFrom<wire::VariableSpec> for VariableSpec {
    type Error = Malformed;
    fn try_from(s: wire::VariableSpec) -> Result<Self, Malformed> {
        let policy = match s.policy() {
            wire::CopyPolicy::Invalidate => CopyPolicy::Invalidate,
            wire::CopyPolicy::Update => CopyPolicy::Update,
            wire::CopyPolicy::Unspecified => return Err(Malformed::missing("copy policy")),
        };
        let lock = match wire::LockKind::try_from(s.lock) {
            Ok(wire::LockKind::Queue) => LockKind::Queue,
            Ok(wire::LockKind::Spin) => LockKind::Spin,
            Ok(wire::LockKind::Mcs) => LockKind::Mcs,
            Err(_) => return Err(Malformed::new("lock kind", format!("{} is none", s.lock))),
        };
        let cache = match wire::Cache::try_from(s.cache) {
            Ok(wire::Cache::MemoryProcess) => Cache::Mp,
            Ok(wire::Cache::ApplicationProcess) => Cache::Ap,
            Err(_) => return Err(Malformed::new("cache", format!("{} is none", s.cache))),
        };
        let layout = s.layout.ok_or(Malformed::missing("layout"))?.try_into()?;
        let placement = s.placement.ok_or(Malformed::missing("placement"))?;
        Self::new(s.name, layout)?
            .with_placement(placement.try_into()?)
            .with_policy(policy)
            .with_lock(lock)
            .with_cache(cache)
            .with_replicas(s.replicas)
    }
}

impl From<Variable> for wire::Variable {
    fn from(v: Variable) -> Self {
        Self {
            id: v.id.0,
            spec: Some(v.spec.into()),
            owners: v.owners.into_iter().map(|m| m.0).collect(),
            group: v.group.0,
        }
    }
}

impl TryFrom<wire::Variable> for Variable {
    type Error = Malformed;
    fn try_from(v: wire::Variable) -> Result<Self, Malformed> {
        let spec = v.spec.ok_or(Malformed::missing("variable spec"))?;
        let owners = v.owners.into_iter().map(MpId).collect();
        Self::new(VarId(v.id), spec.try_into()?, owners, GroupId(v.group))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ElementType;
    use crate::names::MAX_NAME_BYTES;
    use crate::wire_owners::MAX_OWNERS;

    fn spec() -> VariableSpec {
        let layout = Layout::new(ElementType::F64, (4, 4), (2, 1)).unwrap();
        VariableSpec::new("m", layout).unwrap()
    }

    #[test]
    fn a_variable_survives_the_wire() {
        let spec = spec()
            .with_placement(Placement::explicit(["mp0", "mp1"]).unwrap())
            .with_policy(CopyPolicy::Update)
            .with_lock(LockKind::Mcs)
            .with_cache(Cache::Ap)
            .with_replicas(2)
            .unwrap();
        let variable = Variable::new(VarId(7), spec, vec![MpId(0), MpId(1)], GroupId(1)).unwrap();
        let back = Variable::try_from(wire::Variable::from(variable.clone())).unwrap();
        assert_eq!(back, variable);
        assert_eq!(back.objects().count(), 2);
        assert_eq!(back.owner(3), MpId(1));
    }

    #[test]
    fn what_is_not_valid_is_refused() {
        for name in ["", "a\tb", &"x".repeat(MAX_NAME_BYTES + 1)] {
            assert!(VariableSpec::new(name, spec().layout()).is_err(), "{name}");
            assert!(Placement::explicit([name]).is_err(), "{name}");
        }
        assert!(spec().with_replicas(MAX_REPLICAS + 1).is_err());
        let nobody = Variable::new(VarId(7), spec(), Vec::new(), GroupId(1));
        assert!(nobody.unwrap_err().to_string().contains("list of owners"));
        assert!(Placement::explicit([""; 0]).is_err());
        assert!(Placement::explicit(vec!["mp0"; MAX_OWNERS + 1]).is_err());
        assert!(Placement::round_robin_in("/a".repeat(MAX_PATH_BYTES)).is_err());
        let many = vec![MpId(0); MAX_OWNERS + 1];
        assert!(Variable::new(VarId(7), spec(), many, GroupId(1)).is_err());
    }
}
