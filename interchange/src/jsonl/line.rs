//! The lines, as they are written and read.

use std::borrow::Cow;

use dosmos_proto::{Cache, CopyPolicy, ElementType, LockKind};
use dosmos_trace::query::Completeness;
use dosmos_trace::record::{Op, Origin, Side};
use serde::{Deserialize, Serialize};

/// A name: borrowed from the line where it has no escapes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

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
pub(super) enum Line<'a> {
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
pub(super) struct Tag<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) kind: Text<'a>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Run<'a> {
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    /// RFC 3339; absent: the Unix epoch.
    pub(super) start: Option<Text<'a>>,
    pub(super) end_ns: Option<u64>,
    /// The owners' records are there too.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) owner_records: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Group<'a> {
    #[serde(borrow)]
    pub(super) path: Text<'a>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Mp<'a> {
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    pub(super) group: Text<'a>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) link: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) clock: Option<Clock<'a>>,
}

/// How the times of a memory process's records were corrected.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Clock<'a> {
    /// The event manager to whose clock.
    #[serde(borrow)]
    pub(super) event_manager: Option<Text<'a>>,
    /// Added to its clock at last.
    #[serde(default)]
    pub(super) offset_ns: i64,
    /// Growth of that, per second.
    #[serde(default)]
    pub(super) drift_ppb: i64,
    /// The most that a time is off; null: nothing is known of its clock.
    pub(super) error_ns: Option<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ap<'a> {
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    pub(super) mp: Text<'a>,
    pub(super) group: Option<Text<'a>>,
}

/// One owner, or one per object.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum Owner<'a> {
    One(#[serde(borrow)] Text<'a>),
    Each(Vec<Text<'a>>),
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Variable<'a> {
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    pub(super) objects: Option<u32>,
    pub(super) owner: Owner<'a>,
    pub(super) group: Option<Text<'a>>,
    /// Of the whole variable.
    pub(super) bytes: Option<u64>,
    #[serde(default)]
    pub(super) policy: CopyPolicy,
    #[serde(default, skip_serializing_if = "is_queue")]
    pub(super) lock: LockKind,
    #[serde(default)]
    pub(super) cache: Cache,
    #[serde(default, skip_serializing_if = "is_none")]
    pub(super) replicas: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) layout: Option<Layout>,
}

/// Shape and split of a variable, which `objects` and `bytes` tell only in part.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Layout {
    pub(super) element: ElementType,
    pub(super) rows: u64,
    pub(super) columns: u64,
    pub(super) row_parts: u32,
    pub(super) column_parts: u32,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Barrier<'a> {
    #[serde(borrow)]
    pub(super) name: Text<'a>,
    pub(super) group: Option<Text<'a>>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Record<'a> {
    pub(super) t_ns: u64,
    #[serde(default)]
    pub(super) dur_ns: u64,
    #[serde(default)]
    pub(super) wait_ns: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) service_ns: u64,
    pub(super) op: Op,
    #[serde(borrow)]
    pub(super) var: Option<Text<'a>>,
    pub(super) object: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) barrier: Option<Text<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) barrier_group: Option<Text<'a>>,
    pub(super) ap: Text<'a>,
    pub(super) mp: Option<Text<'a>>,
    pub(super) owner: Option<Text<'a>>,
    pub(super) origin: Option<Origin>,
    #[serde(default)]
    pub(super) optimized: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) in_process: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) atomic: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) first: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) own_clock: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) ahead: bool,
    /// Accesses that the record stands for.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub(super) count: u32,
    #[serde(default)]
    pub(super) bytes: u64,
    #[serde(default)]
    pub(super) version: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) range: Option<(u32, u32)>,
    #[serde(default, skip_serializing_if = "is_requester")]
    pub(super) side: Side,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) sampled: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) failed: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) waiting: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) pending: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct HandOver<'a> {
    #[serde(borrow)]
    pub(super) var: Text<'a>,
    #[serde(default)]
    pub(super) object: u32,
    pub(super) mp: Text<'a>,
    #[serde(default)]
    pub(super) dropped: bool,
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
