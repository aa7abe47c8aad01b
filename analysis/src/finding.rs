//! A finding: what is wrong, with what, since when, how much it costs, and what to do.

use std::fmt;

use dosmos_trace::query::TimeRange;
use serde::{Deserialize, Serialize};

use crate::cure::{Cure, GainFrom};

/// The kinds of findings. Definitions: the detector of the same name; of data races, `verify/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // each is defined by its detector
pub enum Kind {
    Bottleneck,
    PingPong,
    NoSharing,
    PolicyMismatch,
    FalseSharing,
    BadGroup,
    MisplacedOwner,
    Imbalance,
    Deadlock,
    CrowdedOwner,
    FineGrained,
    BarrierOverhead,
    Polling,
    ReadOnlyLocking,
    DataRace,
    SlowProcess,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 16] = [
        Self::Bottleneck,
        Self::PingPong,
        Self::NoSharing,
        Self::PolicyMismatch,
        Self::FalseSharing,
        Self::BadGroup,
        Self::MisplacedOwner,
        Self::Imbalance,
        Self::Deadlock,
        Self::CrowdedOwner,
        Self::FineGrained,
        Self::BarrierOverhead,
        Self::Polling,
        Self::ReadOnlyLocking,
        Self::DataRace,
        Self::SlowProcess,
    ];

    /// Its identifier, as in every table and file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bottleneck => "bottleneck",
            Self::PingPong => "ping-pong",
            Self::NoSharing => "no-sharing",
            Self::PolicyMismatch => "policy-mismatch",
            Self::FalseSharing => "false-sharing",
            Self::BadGroup => "bad-group",
            Self::MisplacedOwner => "misplaced-owner",
            Self::Imbalance => "imbalance",
            Self::Deadlock => "deadlock",
            Self::CrowdedOwner => "crowded-owner",
            Self::FineGrained => "fine-grained",
            Self::BarrierOverhead => "barrier-overhead",
            Self::Polling => "polling",
            Self::ReadOnlyLocking => "read-only-locking",
            Self::DataRace => "data-race",
            Self::SlowProcess => "slow-process",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A word that is not a kind of finding.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a kind of finding; write one of {known}", known = Kind::ALL.map(Kind::name).join(", "))]
pub struct UnknownKind(pub String);

impl std::str::FromStr for Kind {
    type Err = UnknownKind;
    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|k| k.name() == text);
        found.ok_or_else(|| UnknownKind(text.to_owned()))
    }
}

/// How much a finding costs, in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Less than 5 % of the process time.
    Low,
    /// 5 % or more.
    Medium,
    /// 20 % or more.
    High,
}

impl Level {
    /// All of them, the worst first.
    pub const ALL: [Self; 3] = [Self::High, Self::Medium, Self::Low];

    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// A finding that what was not recorded could explain, and so is not made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Withheld {
    /// What it would have been.
    pub kind: Kind,
    /// What it would have been about.
    pub target: String,
    /// What is missing.
    pub why: String,
}

/// What would be a finding, but following its advice does not make the run faster in a replay.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Dismissed {
    /// What it would have been.
    pub kind: Kind,
    /// What it would have been about.
    pub target: String,
    /// Fraction of the run time that its advice saves in the replay; below 0: costs.
    pub gain: f64,
}

/// Whether data races were looked for, and what that left open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RaceSearch {
    /// They were; otherwise nobody knows.
    pub looked: bool,
    /// What the records do not decide.
    pub undecided: Vec<String>,
}

/// One finding. Serialized as the schema of `dosmos check --format json`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// What is wrong.
    pub kind: Kind,
    /// Name of the variable it is about.
    pub variable: Option<String>,
    /// Index of the object, if it is about one.
    pub object: Option<u32>,
    /// Names of the application processes involved.
    pub aps: Vec<String>,
    /// Paths of the groups involved.
    pub groups: Vec<String>,
    /// First instant, nanoseconds of cluster time.
    pub from_ns: u64,
    /// Last instant, nanoseconds of cluster time.
    pub to_ns: u64,
    /// Fraction of total process time lost, 0 to 1; less where records are lacking (see [`crate::detect`]).
    pub severity: f64,
    /// That as process time, nanoseconds.
    pub lost_ns: u64,
    /// Fraction of the accesses that were recorded, 0 to 1.
    pub completeness: f64,
    /// Fraction of the run time that following the advice would save; none if not predicted.
    pub predicted_gain: Option<f64>,
    /// The least and the most that it may be, where a replay says so.
    pub gain_range: Option<[f64; 2]>,
    /// What that was predicted from; none if it was not.
    pub gain_from: Option<GainFrom>,
    /// The advice, for a model; none if no model knows it.
    #[serde(skip)]
    pub cure: Option<Cure>,
    /// What to change, in words.
    pub advice: String,
    /// What to change in the cluster file, all of it ([`Self::patch_in_short`] to show it); none if it is to be changed in the
    /// program.
    pub patch: Option<String>,
    /// The numbers behind it (`records`: how many records they come from); under `symptoms`, what else it
    /// explains.
    pub evidence: serde_json::Map<String, serde_json::Value>,
    /// The findings that this one explains: those whose cure a replay finds better are told too.
    #[serde(skip)]
    pub explained: Vec<Finding>,
}

impl Finding {
    /// A finding of `kind` over `range`; the rest is filled in by its detector.
    pub fn new(kind: Kind, range: TimeRange) -> Self {
        Self {
            kind,
            variable: None,
            object: None,
            aps: Vec::new(),
            groups: Vec::new(),
            from_ns: range.from.0,
            to_ns: range.to.0,
            severity: 0.0,
            lost_ns: 0,
            completeness: 1.0,
            predicted_gain: None,
            gain_range: None,
            gain_from: None,
            cure: None,
            advice: String::new(),
            patch: None,
            evidence: serde_json::Map::new(),
            explained: Vec::new(),
        }
    }

    /// Adds a number or text to the evidence.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<serde_json::Value>) -> Self {
        self.evidence.insert(key.to_owned(), value.into());
        self
    }

    /// How much it costs, in words. A data race costs no time, but what the program computes may be wrong.
    pub fn level(&self) -> Level {
        match self.severity {
            _ if self.kind == Kind::DataRace => Level::High,
            s if s >= 0.2 => Level::High,
            s if s >= 0.05 => Level::Medium,
            _ => Level::Low,
        }
    }

    /// The patch as people read it: of a long list of owners only the first.
    pub fn patch_in_short(&self) -> Option<String> {
        self.patch.as_deref().map(crate::patch::in_short)
    }

    /// `variable[object]`, as people write it; of what is about no variable the processes or groups.
    pub fn target(&self) -> String {
        match (&self.variable, self.object) {
            (Some(v), Some(i)) => format!("{v}[{i}]"),
            (Some(v), None) => v.clone(),
            (None, _) if self.kind == Kind::SlowProcess => self.aps.join(", "),
            (None, _) if self.groups.is_empty() => "the program".to_owned(),
            (None, _) => self.groups.join(", "),
        }
    }
}
