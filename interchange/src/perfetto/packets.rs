//! Writing packets: timelines, events, and the strings they share.

use std::collections::HashMap;
use std::hash::Hash;
use std::io::{self, Write};

use prost::Message;

use super::schema::{
    AnnotationValue, ClockReading, ClockSnapshot, DebugAnnotation, EventType, InternedData,
    InternedName, InternedText, TracePacket, TrackDescriptor, TrackEvent,
};

/// All events are of one sequence.
const SEQUENCE: u32 = 1;
/// What is missing is in a sequence of its own, so that its mark takes nothing from the other.
pub(super) const MARKS: u32 = 2;
const CLEARED: u32 = 1;
const NEEDED: u32 = 2;
/// Field 1 of a trace, with a length.
const PACKET: u8 = 1 << 3 | 2;

/// Categories of events; their number is the place, from 1.
#[derive(Clone, Copy, Debug)]
pub(super) enum Category {
    Access = 1,
    Wait = 2,
    Section = 3,
    Served = 4,
}
const CATEGORIES: [&str; 4] = ["access", "wait", "section", "served"];

/// Names of annotations; their number is the place, from 1.
const ANNOTATIONS: [&str; 11] = [
    "bytes",
    "version",
    "owner",
    "origin",
    "optimized",
    "failed",
    "wait_ns",
    "service_ns",
    "pending",
    "open",
    "sampled",
];

/// What is said of a slice.
#[derive(Debug, Default)]
pub(super) struct Details {
    pub(super) annotations: Vec<DebugAnnotation>,
    pub(super) begins: Option<u64>,
    pub(super) ends: Option<u64>,
}

impl Details {
    /// Adds an annotation; `name` is one of [`ANNOTATIONS`].
    pub(super) fn add(&mut self, name: &str, value: AnnotationValue) {
        let at = ANNOTATIONS.iter().position(|n| *n == name);
        self.annotations.push(DebugAnnotation {
            name_iid: at.map(|at| at as u64 + 1),
            value: Some(value),
        });
    }

    pub(super) fn number(&mut self, name: &str, value: u64) {
        self.add(name, AnnotationValue::Uint(value));
    }

    /// Only if it holds.
    pub(super) fn flag(&mut self, name: &str, holds: bool) {
        if holds {
            self.add(name, AnnotationValue::Bool(true));
        }
    }
}

/// Writes packets. `K` tells names of events apart.
#[derive(Debug)]
pub(super) struct Packets<W, K> {
    out: W,
    buffer: Vec<u8>,
    names: HashMap<K, u64>,
    texts: HashMap<String, u64>,
    /// What the next packet has to say first.
    unsaid: InternedData,
    tracks: u64,
}

impl<W: Write, K: Hash + Eq> Packets<W, K> {
    pub(super) fn new(out: W) -> Self {
        Self {
            out,
            buffer: Vec::new(),
            names: HashMap::new(),
            texts: HashMap::new(),
            unsaid: InternedData::default(),
            tracks: 0,
        }
    }

    /// The first packets: how time stamps relate to the wall clock (nanoseconds since 1970 at 0).
    pub(super) fn begin(&mut self, wall_clock: u64) -> io::Result<()> {
        let named = |names: &[&str]| {
            let one = |(i, name): (usize, &&str)| InternedName {
                iid: Some(i as u64 + 1),
                name: Some((*name).to_owned()),
            };
            names.iter().enumerate().map(one).collect()
        };
        let reading = |clock, timestamp| ClockReading {
            clock_id: Some(clock),
            timestamp: Some(timestamp),
        };
        const WALL: u32 = 1;
        const STAMPS: u32 = 6;
        self.packet(&TracePacket {
            timestamp: Some(0),
            clock_snapshot: Some(ClockSnapshot {
                clocks: vec![reading(STAMPS, 0), reading(WALL, wall_clock)],
                primary_trace_clock: Some(STAMPS),
            }),
            trusted_packet_sequence_id: Some(SEQUENCE),
            ..TracePacket::default()
        })?;
        self.packet(&TracePacket {
            interned_data: Some(InternedData {
                event_categories: named(&CATEGORIES),
                debug_annotation_names: named(&ANNOTATIONS),
                ..InternedData::default()
            }),
            sequence_flags: Some(CLEARED),
            trusted_packet_sequence_id: Some(SEQUENCE),
            ..TracePacket::default()
        })
    }

    pub(super) fn packet(&mut self, packet: &TracePacket) -> io::Result<()> {
        self.buffer.clear();
        self.buffer.push(PACKET);
        // Cannot fail: a vector grows.
        packet.encode_length_delimited(&mut self.buffer)?;
        self.out.write_all(&self.buffer)
    }

    /// Makes a timeline; its number.
    pub(super) fn track(&mut self, mut track: TrackDescriptor) -> io::Result<u64> {
        self.tracks += 1;
        track.uuid = Some(self.tracks);
        self.packet(&TracePacket {
            track_descriptor: Some(track),
            trusted_packet_sequence_id: Some(SEQUENCE),
            ..TracePacket::default()
        })?;
        Ok(self.tracks)
    }

    /// The number of an event's name.
    pub(super) fn name(&mut self, key: K, text: impl FnOnce() -> String) -> u64 {
        let next = self.names.len() as u64 + 1;
        *self.names.entry(key).or_insert_with(|| {
            self.unsaid.event_names.push(InternedName {
                iid: Some(next),
                name: Some(text()),
            });
            next
        })
    }

    /// A text, as the value of an annotation.
    pub(super) fn text(&mut self, text: &str) -> AnnotationValue {
        let iid = match self.texts.get(text) {
            Some(&iid) => iid,
            None => {
                let iid = self.texts.len() as u64 + 1;
                self.texts.insert(text.to_owned(), iid);
                let values = &mut self.unsaid.debug_annotation_string_values;
                values.push(InternedText {
                    iid: Some(iid),
                    str: Some(text.into()),
                });
                iid
            }
        };
        AnnotationValue::StringIid(iid)
    }

    /// A slice begins.
    pub(super) fn slice_begins(
        &mut self,
        at: u64,
        track: u64,
        category: Category,
        name: u64,
        details: Details,
    ) -> io::Result<()> {
        self.event(
            at,
            TrackEvent {
                track_uuid: Some(track),
                r#type: Some(EventType::SliceBegin.into()),
                category_iids: vec![category as u64],
                name_iid: Some(name),
                flow_ids: details.begins.into_iter().collect(),
                terminating_flow_ids: details.ends.into_iter().collect(),
                debug_annotations: details.annotations,
                ..TrackEvent::default()
            },
        )
    }

    /// The last slice begun on that timeline ends.
    pub(super) fn slice_ends(&mut self, at: u64, track: u64) -> io::Result<()> {
        self.event(
            at,
            TrackEvent {
                track_uuid: Some(track),
                r#type: Some(EventType::SliceEnd.into()),
                ..TrackEvent::default()
            },
        )
    }

    /// A counter has a new value.
    pub(super) fn counter(&mut self, at: u64, track: u64, value: f64) -> io::Result<()> {
        self.event(
            at,
            TrackEvent {
                track_uuid: Some(track),
                r#type: Some(EventType::Counter.into()),
                double_counter_value: Some(value),
                ..TrackEvent::default()
            },
        )
    }

    fn event(&mut self, at: u64, event: TrackEvent) -> io::Result<()> {
        let unsaid = std::mem::take(&mut self.unsaid);
        let packet = TracePacket {
            timestamp: Some(at),
            track_event: Some(event),
            interned_data: (unsaid != InternedData::default()).then_some(unsaid),
            sequence_flags: Some(NEEDED),
            trusted_packet_sequence_id: Some(SEQUENCE),
            ..TracePacket::default()
        };
        self.packet(&packet)
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
