//! The lines, as they are written and read.

use std::borrow::Cow;

use dosmos_proto::{Cache, CopyPolicy, ElementType, LockKind};
use dosmos_trace::query::Completeness;
use dosmos_trace::record::{Op, Origin, Side};
use serde::{Deserialize, Serialize};

/// A name: borrowed from the line where it has no escapes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

impl<'a> From<Cow<'a, str>> for Text<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self(text)
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(text.into())
    }
}

/// A line to be written.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Line<'a> {
    Run(Run<'a>),
    Group(Group<'a>),
    Mp(Mp<'a>),
    Ap(Ap<'a>),
    Variable(Box<Variable<'a>>),
    Barrier(Barrier<'a>),
    Record(Record<'a>),
    HandOver(HandOver<'a>),
    Completeness(Completeness),
}

/// What kind of line it is.
#[derive(Debug, Deserialize)]
pub(crate) struct Tag<'a> {
    #[serde(rename = "type", borrow)]
    pub(crate) kind: Text<'a>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Run<'a> {
    #[serde(borrow)]
    pub(crate) name: Text<'a>,
    /// RFC 3339; absent: the Unix epoch.
    pub(crate) start: Option<Text<'a>>,
    pub(crate) end_ns: Option<u64>,
    /// The owners' records are there too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) owner_records: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Group<'a> {
    #[serde(borrow)]
    pub(crate) path: Text<'a>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Mp<'a> {
    #[serde(borrow)]
    pub(crate) name: Text<'a>,
    pub(crate) group: Text<'a>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) link: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) clock: Option<Clock<'a>>,
}

/// How the times of a memory process's records were corrected.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Clock<'a> {
    /// The event manager to whose clock.
    #[serde(borrow)]
    pub(crate) event_manager: Option<Text<'a>>,
    /// Added to its clock at last.
    #[serde(default)]
    pub(crate) offset_ns: i64,
    /// Growth of that, per second.
    #[serde(default)]
    pub(crate) drift_ppb: i64,
    /// The most that a time is off; null: nothing is known of its clock.
    pub(crate) error_ns: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ap<'a> {
    #[serde(borrow)]
    pub(crate) name: Text<'a>,
    pub(crate) mp: Text<'a>,
    pub(crate) group: Option<Text<'a>>,
}

/// One owner, or one per object.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Owner<'a> {
    One(#[serde(borrow)] Text<'a>),
    Each(Vec<Text<'a>>),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Variable<'a> {
    #[serde(borrow)]
    pub(crate) name: Text<'a>,
    pub(crate) objects: Option<u32>,
    pub(crate) owner: Owner<'a>,
    pub(crate) group: Option<Text<'a>>,
    /// Of the whole variable.
    pub(crate) bytes: Option<u64>,
    #[serde(default)]
    pub(crate) policy: CopyPolicy,
    #[serde(default, skip_serializing_if = "is_queue")]
    pub(crate) lock: LockKind,
    #[serde(default)]
    pub(crate) cache: Cache,
    #[serde(default, skip_serializing_if = "is_none")]
    pub(crate) replicas: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) layout: Option<Layout>,
}

/// Shape and split of a variable, which `objects` and `bytes` tell only in part.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Layout {
    pub(crate) element: ElementType,
    pub(crate) rows: u64,
    pub(crate) columns: u64,
    pub(crate) row_parts: u32,
    pub(crate) column_parts: u32,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Barrier<'a> {
    #[serde(borrow)]
    pub(crate) name: Text<'a>,
    pub(crate) group: Option<Text<'a>>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record<'a> {
    pub(crate) t_ns: u64,
    #[serde(default)]
    pub(crate) dur_ns: u64,
    #[serde(default)]
    pub(crate) wait_ns: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) service_ns: u64,
    pub(crate) op: Op,
    #[serde(borrow)]
    pub(crate) var: Option<Text<'a>>,
    pub(crate) object: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) barrier: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) barrier_group: Option<Text<'a>>,
    pub(crate) ap: Text<'a>,
    pub(crate) mp: Option<Text<'a>>,
    pub(crate) owner: Option<Text<'a>>,
    pub(crate) origin: Option<Origin>,
    #[serde(default)]
    pub(crate) optimized: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) in_process: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) atomic: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) first: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) own_clock: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) ahead: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) posted: bool,
    /// Accesses that the record stands for.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub(crate) count: u32,
    #[serde(default)]
    pub(crate) bytes: u64,
    #[serde(default)]
    pub(crate) version: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) range: Option<(u32, u32)>,
    #[serde(default, skip_serializing_if = "is_requester")]
    pub(crate) side: Side,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) sampled: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) failed: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) waiting: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) pending: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct HandOver<'a> {
    #[serde(borrow)]
    pub(crate) var: Text<'a>,
    #[serde(default)]
    pub(crate) object: u32,
    pub(crate) mp: Text<'a>,
    #[serde(default)]
    pub(crate) dropped: bool,
}

// Signatures as serde wants them.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(b: &bool) -> bool {
    !*b
}
fn one() -> u32 {
    1
}
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_one(n: &u32) -> bool {
    *n == 1
}
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(n: &u64) -> bool {
    *n == 0
}
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_requester(side: &Side) -> bool {
    *side == Side::Requester
}
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_none(replicas: &u32) -> bool {
    *replicas == 0
}

fn is_queue(lock: &LockKind) -> bool {
    *lock == LockKind::Queue
}
