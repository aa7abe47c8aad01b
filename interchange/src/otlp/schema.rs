//! Messages of OTLP as its JSON encoding writes them: identifiers in hexadecimal digits, 64-bit integers as text, enumerations as
//! numbers (<https://github.com/open-telemetry/opentelemetry-proto>). What dosmos does not write is left out.

use std::borrow::Cow;

use dosmos_proto::Nanos;
use dosmos_trace::run::RunId;
use serde::{Serialize, Serializer};

/// The name of the service that what is about a whole run is of.
pub const SERVICE: &str = "dosmos";

/// Spans: one line of a file.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TracesData {
    /// By resource.
    pub resource_spans: Vec<ResourceSpans>,
}

/// Spans of a resource.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSpans {
    /// What they are of.
    pub resource: Resource,
    /// By what made them.
    pub scope_spans: Vec<ScopeSpans>,
}

/// Spans that one program made.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScopeSpans {
    /// What made them.
    pub scope: Scope,
    /// The spans.
    pub spans: Vec<Span>,
}

/// Log records: one line of a file.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogsData {
    /// By resource.
    pub resource_logs: Vec<ResourceLogs>,
}

/// Log records of a resource.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceLogs {
    /// What they are of.
    pub resource: Resource,
    /// By what made them.
    pub scope_logs: Vec<ScopeLogs>,
}

/// Log records that one program made.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScopeLogs {
    /// What made them.
    pub scope: Scope,
    /// The records.
    pub log_records: Vec<LogRecord>,
}

/// What spans and log records are of.
#[derive(Clone, Debug, Serialize)]
pub struct Resource {
    /// What is known of it.
    pub attributes: Vec<KeyValue>,
}

impl Resource {
    /// The process or program `service` in a run of the cluster `cluster`.
    pub fn of(service: &str, cluster: &str, run: Option<RunId>) -> Self {
        let mut attributes = vec![
            KeyValue::text("service.name", service),
            KeyValue::text("service.namespace", cluster),
        ];
        attributes.extend(run.map(|run| KeyValue::text("dosmos.run", run.to_string())));
        Self { attributes }
    }
}

/// What made spans or log records.
#[derive(Clone, Debug, Serialize)]
pub struct Scope {
    /// Its name.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
}

impl Scope {
    /// This program.
    pub fn dosmos() -> Self {
        Self {
            name: SERVICE,
            version: env!("CARGO_PKG_VERSION"),
        }
    }
}

/// Something that took a time.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Span {
    /// The trace that it is in.
    pub trace_id: TraceId,
    /// Which it is.
    pub span_id: SpanId,
    /// The one that it came of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_span_id: Option<SpanId>,
    /// What was done, the same for all that do the same.
    pub name: String,
    /// Inside a program, or between two.
    pub kind: SpanKind,
    /// When it began.
    #[serde(rename = "startTimeUnixNano")]
    pub start: UnixNano,
    /// When it ended.
    #[serde(rename = "endTimeUnixNano")]
    pub end: UnixNano,
    /// What else is known of it.
    pub attributes: Vec<KeyValue>,
    /// What happened meanwhile.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<SpanEvent>,
    /// What it has to do with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Link>,
    /// How it ended, if not well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
}

/// Where a span is, between programs.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum SpanKind {
    /// Inside a program.
    Internal = 1,
}

impl Serialize for SpanKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(*self as u8)
    }
}

/// Something that happened during a span.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SpanEvent {
    /// When.
    #[serde(rename = "timeUnixNano")]
    pub time: UnixNano,
    /// What.
    pub name: String,
    /// What else is known of it.
    pub attributes: Vec<KeyValue>,
}

/// That a span has to do with another, perhaps of another trace.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Link {
    /// The trace of that.
    pub trace_id: TraceId,
    /// Which it is.
    pub span_id: SpanId,
    /// In which way.
    pub attributes: Vec<KeyValue>,
}

/// How an operation ended.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    /// In a word.
    pub code: StatusCode,
    /// In a sentence.
    pub message: &'static str,
}

/// How an operation ended, in a word.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum StatusCode {
    /// Not as it should.
    Error = 2,
}

impl Serialize for StatusCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(*self as u8)
    }
}

/// Something to know.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogRecord {
    /// When it began.
    #[serde(rename = "timeUnixNano")]
    pub time: UnixNano,
    /// When it was known.
    #[serde(rename = "observedTimeUnixNano")]
    pub observed: UnixNano,
    /// How bad it is.
    pub severity_number: Severity,
    /// The same in a word of the program that says it.
    pub severity_text: &'static str,
    /// What kind of record it is.
    pub event_name: &'static str,
    /// What there is to know.
    pub body: AnyValue,
    /// What else is known of it.
    pub attributes: Vec<KeyValue>,
}

/// How bad something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Severity {
    /// Worth knowing.
    Info = 9,
    /// Worth looking at.
    Warn = 13,
    /// Worth a change.
    Error = 17,
}

impl Serialize for Severity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(*self as u8)
    }
}

/// An attribute.
#[derive(Clone, Debug, Serialize)]
pub struct KeyValue {
    /// Its name.
    pub key: Cow<'static, str>,
    /// Its value.
    pub value: AnyValue,
}

impl KeyValue {
    /// Any attribute.
    pub fn new(key: impl Into<Cow<'static, str>>, value: AnyValue) -> Self {
        let key = key.into();
        Self { key, value }
    }

    /// One that is text.
    pub fn text(key: &'static str, value: impl Into<String>) -> Self {
        Self::new(key, AnyValue::Text(value.into()))
    }

    /// One that is a number.
    pub fn number(key: &'static str, value: u64) -> Self {
        Self::new(key, AnyValue::number(value))
    }

    /// One that holds.
    pub fn holds(key: &'static str) -> Self {
        Self::new(key, AnyValue::Bool(true))
    }
}

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum AnyValue {
    /// Text.
    #[serde(rename = "stringValue")]
    Text(String),
    /// Whether something holds.
    #[serde(rename = "boolValue")]
    Bool(bool),
    /// A whole number.
    #[serde(rename = "intValue", serialize_with = "as_text")]
    Int(i64),
    /// Any number that is finite.
    #[serde(rename = "doubleValue")]
    Double(f64),
    /// Several.
    #[serde(rename = "arrayValue")]
    Array(ArrayValue),
}

/// Values in an order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ArrayValue {
    values: Vec<AnyValue>,
}

impl AnyValue {
    /// A whole number; the largest that there is in place of a larger one.
    pub fn number(value: u64) -> Self {
        Self::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }

    /// Values in an order.
    pub fn array(values: impl IntoIterator<Item = Self>) -> Self {
        let values = values.into_iter().collect();
        Self::Array(ArrayValue { values })
    }

    /// A value of JSON; none of null. What has parts is their text.
    pub fn of_json(value: &serde_json::Value) -> Option<Self> {
        use serde_json::Value;
        Some(match value {
            Value::Null => return None,
            Value::Bool(b) => Self::Bool(*b),
            Value::Number(n) => match (n.as_i64(), n.as_f64()) {
                (Some(whole), _) => Self::Int(whole),
                (None, Some(n)) => Self::Double(n),
                (None, None) => return None,
            },
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(values) => Self::array(values.iter().filter_map(Self::of_json)),
            Value::Object(_) => Self::Text(value.to_string()),
        })
    }
}

/// Nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnixNano(pub Nanos);

impl Serialize for UnixNano {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        as_text(&self.0.0, serializer)
    }
}

/// The mapping of 64-bit integers.
fn as_text<S: Serializer>(number: &impl std::fmt::Display, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(number)
}

/// Which trace: 32 hexadecimal digits, not all zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TraceId(u128);

impl TraceId {
    pub(super) fn new([high, low]: [u64; 2]) -> Self {
        Self((u128::from(high) << 64 | u128::from(low)).max(1))
    }
}

impl Serialize for TraceId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:032x}", self.0))
    }
}

/// Which span: 16 hexadecimal digits, not all zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanId(u64);

impl SpanId {
    pub(super) fn new(number: u64) -> Self {
        Self(number.max(1))
    }

    pub(super) fn number(self) -> u64 {
        self.0
    }
}

impl Serialize for SpanId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:016x}", self.0))
    }
}
