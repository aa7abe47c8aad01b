//! Variables: what is asked for in a declaration, and what the directory made of it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{GroupId, Layout, Malformed, MpId, ObjectId, VarId, wire};

/// Longest name of a variable or barrier, in bytes.
pub const MAX_NAME_BYTES: usize = 200;

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
    Explicit(Vec<String>),
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Creator => f.write_str("creator"),
            Self::ByName => f.write_str("by name"),
            Self::RoundRobin(None) => f.write_str("round robin"),
            Self::RoundRobin(Some(group)) => write!(f, "round robin in {group}"),
            Self::Explicit(names) => write!(f, "at {}", names.join(", ")),
        }
    }
}

/// A declaration.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct VariableSpec {
    /// Unique in the cluster.
    pub name: String,
    /// Type, shape and split.
    pub layout: Layout,
    /// Owners.
    pub placement: Placement,
    /// What releases do to copies.
    pub policy: CopyPolicy,
    /// How processes take turns.
    #[serde(default)]
    pub lock: LockKind,
}

impl fmt::Display for VariableSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}, owner {}, {}",
            self.name, self.layout, self.placement, self.policy
        )?;
        match self.lock {
            LockKind::Queue => Ok(()),
            other => write!(f, ", {other} lock"),
        }
    }
}

/// A declared variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    /// Its number.
    pub id: VarId,
    /// Its declaration.
    pub spec: VariableSpec,
    /// Owner of each object; a shorter list repeats. Never empty.
    pub owners: Vec<MpId>,
    /// Group of the process that declared it first.
    pub group: GroupId,
}

impl Variable {
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

/// Checks a name of a variable or barrier: 1 to [`MAX_NAME_BYTES`] bytes, no control characters.
///
/// # Errors
/// If it is not so.
pub fn check_name(what: &'static str, name: &str) -> Result<(), Malformed> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return Err(Malformed::new(
            what,
            format!(
                "a name has 1 to {MAX_NAME_BYTES} bytes, this one {}",
                name.len()
            ),
        ));
    }
    if name.chars().any(char::is_control) {
        return Err(Malformed::new(
            what,
            format!("{name:?} has control characters"),
        ));
    }
    Ok(())
}

impl From<Placement> for wire::Placement {
    fn from(p: Placement) -> Self {
        use wire::placement as w;
        let rule = match p {
            Placement::Creator => w::Rule::Creator(w::Creator {}),
            Placement::ByName => w::Rule::ByName(w::ByName {}),
            Placement::RoundRobin(group) => w::Rule::RoundRobin(w::RoundRobin { group }),
            Placement::Explicit(memory_processes) => {
                w::Rule::Explicit(w::Explicit { memory_processes })
            }
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
            Rule::RoundRobin(r) => Self::RoundRobin(r.group),
            Rule::Explicit(e) if e.memory_processes.is_empty() => {
                return Err(Malformed::new(
                    "placement",
                    "an explicit list without a name",
                ));
            }
            Rule::Explicit(e) => Self::Explicit(e.memory_processes),
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

impl From<VariableSpec> for wire::VariableSpec {
    fn from(s: VariableSpec) -> Self {
        Self {
            name: s.name,
            layout: Some(s.layout.into()),
            placement: Some(s.placement.into()),
            policy: wire::CopyPolicy::from(s.policy).into(),
            lock: wire::LockKind::from(s.lock).into(),
        }
    }
}

impl TryFrom<wire::VariableSpec> for VariableSpec {
    type Error = Malformed;
    fn try_from(s: wire::VariableSpec) -> Result<Self, Malformed> {
        check_name("variable name", &s.name)?;
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
        Ok(Self {
            layout: s.layout.ok_or(Malformed::missing("layout"))?.try_into()?,
            placement: s
                .placement
                .ok_or(Malformed::missing("placement"))?
                .try_into()?,
            name: s.name,
            policy,
            lock,
        })
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
        if v.owners.is_empty() {
            return Err(Malformed::missing("variable owners"));
        }
        Ok(Self {
            id: VarId(v.id),
            spec: v
                .spec
                .ok_or(Malformed::missing("variable spec"))?
                .try_into()?,
            owners: v.owners.into_iter().map(MpId).collect(),
            group: GroupId(v.group),
        })
    }
}
