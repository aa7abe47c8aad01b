//! The messages of Perfetto's trace format that are used here, under its field numbers
//! (`perfetto.protos`, published with its Python package, against which CI decodes what is written).

/// A whole trace.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Trace {
    /// Its pieces.
    #[prost(message, repeated, tag = "1")]
    pub packet: Vec<TracePacket>,
}

/// One piece of a trace.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TracePacket {
    /// When, in nanoseconds after the start of the run.
    #[prost(uint64, optional, tag = "8")]
    pub timestamp: Option<u64>,
    /// What happened.
    #[prost(message, optional, tag = "11")]
    pub track_event: Option<TrackEvent>,
    /// A timeline.
    #[prost(message, optional, tag = "60")]
    pub track_descriptor: Option<TrackDescriptor>,
    /// What time it was by several clocks.
    #[prost(message, optional, tag = "6")]
    pub clock_snapshot: Option<ClockSnapshot>,
    /// Strings that later packets name by number.
    #[prost(message, optional, tag = "12")]
    pub interned_data: Option<InternedData>,
    /// 1: forget what was interned; 2: it is needed.
    #[prost(uint32, optional, tag = "13")]
    pub sequence_flags: Option<u32>,
    /// Which sequence of packets it is of.
    #[prost(uint32, optional, tag = "10")]
    pub trusted_packet_sequence_id: Option<u32>,
    /// Not 0: packets before this one were lost.
    #[prost(uint32, optional, tag = "42")]
    pub previous_packet_dropped: Option<u32>,
}

/// What happened on a timeline.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackEvent {
    /// Which timeline.
    #[prost(uint64, optional, tag = "11")]
    pub track_uuid: Option<u64>,
    /// What kind of event.
    #[prost(enumeration = "EventType", optional, tag = "9")]
    pub r#type: Option<i32>,
    /// Numbers of its categories.
    #[prost(uint64, repeated, packed = "false", tag = "3")]
    pub category_iids: Vec<u64>,
    /// Number of its name.
    #[prost(uint64, optional, tag = "10")]
    pub name_iid: Option<u64>,
    /// Its name, where it has no number.
    #[prost(string, optional, tag = "23")]
    pub name: Option<String>,
    /// Value of a counter.
    #[prost(double, optional, tag = "44")]
    pub double_counter_value: Option<f64>,
    /// Arrows that begin or pass here.
    #[prost(fixed64, repeated, packed = "false", tag = "47")]
    pub flow_ids: Vec<u64>,
    /// Arrows that end here.
    #[prost(fixed64, repeated, packed = "false", tag = "48")]
    pub terminating_flow_ids: Vec<u64>,
    /// Anything else.
    #[prost(message, repeated, tag = "4")]
    pub debug_annotations: Vec<DebugAnnotation>,
}

/// Kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum EventType {
    /// Not said.
    Unspecified = 0,
    /// A slice begins.
    SliceBegin = 1,
    /// The last slice begun on that timeline ends.
    SliceEnd = 2,
    /// No length.
    Instant = 3,
    /// A counter has a new value.
    Counter = 4,
}

/// A name and a value.
#[derive(Clone, PartialEq, prost::Message)]
pub struct DebugAnnotation {
    /// Number of the name.
    #[prost(uint64, optional, tag = "1")]
    pub name_iid: Option<u64>,
    /// The value.
    #[prost(oneof = "AnnotationValue", tags = "2, 3, 5, 6, 17")]
    pub value: Option<AnnotationValue>,
}

/// The value of an annotation.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum AnnotationValue {
    /// Yes or no.
    #[prost(bool, tag = "2")]
    Bool(bool),
    /// A number.
    #[prost(uint64, tag = "3")]
    Uint(u64),
    /// A fraction.
    #[prost(double, tag = "5")]
    Double(f64),
    /// Text.
    #[prost(string, tag = "6")]
    String(String),
    /// Number of a text.
    #[prost(uint64, tag = "17")]
    StringIid(u64),
}

/// A timeline.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TrackDescriptor {
    /// Its number.
    #[prost(uint64, optional, tag = "1")]
    pub uuid: Option<u64>,
    /// The one it belongs to.
    #[prost(uint64, optional, tag = "5")]
    pub parent_uuid: Option<u64>,
    /// Its name.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    /// If it stands for a process.
    #[prost(message, optional, tag = "3")]
    pub process: Option<ProcessDescriptor>,
    /// If it is that of a counter.
    #[prost(message, optional, tag = "8")]
    pub counter: Option<CounterDescriptor>,
    /// 3: the timelines below it stand in the order of their ranks.
    #[prost(int32, optional, tag = "11")]
    pub child_ordering: Option<i32>,
    /// Its place among its siblings.
    #[prost(int32, optional, tag = "12")]
    pub sibling_order_rank: Option<i32>,
}

/// A process.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ProcessDescriptor {
    /// Its number.
    #[prost(int32, optional, tag = "1")]
    pub pid: Option<i32>,
    /// Its name.
    #[prost(string, optional, tag = "6")]
    pub process_name: Option<String>,
}

/// A counter.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CounterDescriptor {
    /// What it counts in.
    #[prost(string, optional, tag = "6")]
    pub unit_name: Option<String>,
}

/// What time it was by several clocks.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ClockSnapshot {
    /// The clocks.
    #[prost(message, repeated, tag = "1")]
    pub clocks: Vec<ClockReading>,
    /// The one that time stamps are of.
    #[prost(uint32, optional, tag = "2")]
    pub primary_trace_clock: Option<u32>,
}

/// A clock's time.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ClockReading {
    /// Which clock: 1 is the wall clock, 6 that of time stamps.
    #[prost(uint32, optional, tag = "1")]
    pub clock_id: Option<u32>,
    /// Nanoseconds.
    #[prost(uint64, optional, tag = "2")]
    pub timestamp: Option<u64>,
}

/// Strings and their numbers.
#[derive(Clone, PartialEq, prost::Message)]
pub struct InternedData {
    /// Categories.
    #[prost(message, repeated, tag = "1")]
    pub event_categories: Vec<InternedName>,
    /// Names of events.
    #[prost(message, repeated, tag = "2")]
    pub event_names: Vec<InternedName>,
    /// Names of annotations.
    #[prost(message, repeated, tag = "3")]
    pub debug_annotation_names: Vec<InternedName>,
    /// Values of annotations.
    #[prost(message, repeated, tag = "29")]
    pub debug_annotation_string_values: Vec<InternedText>,
}

/// A string and its number.
#[derive(Clone, PartialEq, prost::Message)]
pub struct InternedName {
    /// Its number.
    #[prost(uint64, optional, tag = "1")]
    pub iid: Option<u64>,
    /// The string.
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}

/// A string, as bytes, and its number.
#[derive(Clone, PartialEq, prost::Message)]
pub struct InternedText {
    /// Its number.
    #[prost(uint64, optional, tag = "1")]
    pub iid: Option<u64>,
    /// The string.
    #[prost(bytes = "vec", optional, tag = "2")]
    pub str: Option<Vec<u8>>,
}
