//! Messages of the protocols: a byte says which, the rest is the message. What is read and written again is the same.

use std::fmt::Display;

use bytes::Bytes;
use dosmos_proto::wire as w;
use dosmos_proto::{
    ApId, ElementType, ErrorCode, Layout, Nanos, ObjectId, PhaseTimes, ProcessCounters, Refusal,
    Runs, Token, Topology, VarId, Variable, VariableSpec, clock::ClockEstimate, transport::Address,
};
use dosmos_trace::clock::ProcessClock;
use dosmos_trace::meta::{PrimaryMeta, SecondaryContent, SecondaryMeta};
use dosmos_trace::query::table::{RankQuery, Ranking, VariableTable};
use dosmos_trace::query::{
    Breakdown, Catalog, Completeness, EmpStatus, Filter, Histogram, HistogramQuery, History,
    HistoryQuery, MetaObjects, MetaQuery,
};
use dosmos_trace::selection::Selection;
use prost::Message;

use crate::samples;

/// By the first byte.
const KINDS: &[fn(&[u8])] = &[
    again::<w::Layout, Layout>,
    again::<w::VariableSpec, VariableSpec>,
    again::<w::Variable, Variable>,
    again::<w::Topology, Topology>,
    again::<w::PhaseTimes, PhaseTimes>,
    again::<w::ProcessCounters, ProcessCounters>,
    again::<w::ClockEstimate, ClockEstimate>,
    again::<w::Error, Refusal>,
    again::<w::Filter, Filter>,
    again::<w::Completeness, Completeness>,
    again::<w::Catalog, Catalog>,
    again::<w::ProcessClock, ProcessClock>,
    again::<w::HistogramRequest, HistogramQuery>,
    again::<w::Histogram, Histogram>,
    again::<w::HistoryRequest, HistoryQuery>,
    again::<w::History, History>,
    again::<w::Breakdown, Breakdown>,
    again::<w::Primary, PrimaryMeta>,
    again::<w::Secondary, SecondaryMeta>,
    again::<w::SecondaryContent, SecondaryContent>,
    again::<w::MetaRequest, MetaQuery>,
    again::<w::MetaObjects, MetaObjects>,
    again::<w::RankRequest, RankQuery>,
    again::<w::Ranking, Ranking>,
    again::<w::VariableTable, VariableTable>,
    again::<w::Status, EmpStatus>,
    again::<w::Selection, Selection>,
    runs,
    texts,
];

pub(crate) fn take(input: &[u8]) {
    if let Some((kind, message)) = input.split_first() {
        KINDS[usize::from(*kind) % KINDS.len()](message);
    }
}

/// Reads a message; if it means something, that is the same when written and read again.
fn again<W, T>(bytes: &[u8])
where
    W: Message + Default + From<T>,
    T: TryFrom<W, Error: Display>,
{
    let Ok(message) = W::decode(bytes) else {
        return;
    };
    let read = |message: W| match T::try_from(message) {
        Ok(value) => Some(W::from(value).encode_to_vec()),
        Err(why) => {
            assert!(!why.to_string().is_empty());
            None
        }
    };
    if let Some(written) = read(message) {
        let message = W::decode(&written[..]).unwrap();
        assert_eq!(read(message), Some(written));
    }
}

/// Runs of elements: lengths as in a write.
fn runs(bytes: &[u8]) {
    let Ok(write) = w::Write::decode(bytes) else {
        return;
    };
    if let Ok(runs) = Runs::from_wire(write.first, &write.lengths) {
        assert_eq!(runs.to_wire(), write.lengths);
    }
}

/// Addresses and tokens: short texts that others wrote.
fn texts(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(address) = text.parse::<Address>() {
        let said = address.to_string();
        assert_eq!(said.parse::<Address>().unwrap().to_string(), said);
    }
    let _ = text.parse::<Token>();
}

fn numbered(kind: usize, message: &impl Message) -> Vec<u8> {
    let mut bytes = vec![kind as u8];
    message.encode(&mut bytes).unwrap();
    bytes
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let spec: w::VariableSpec = samples::declaration("x").into();
    let variable: w::Variable = samples::variable().into();
    let topology: w::Topology = (*samples::topology()).clone().into();
    let layout: w::Layout = Layout::new(ElementType::U8, (3, 5), (3, 1)).unwrap().into();
    let refusal: w::Error = Refusal::new(ErrorCode::Invalid, "why").into();
    let times = PhaseTimes {
        ap: ApId(1),
        start: Nanos(5),
        wall: Nanos(9),
        ..PhaseTimes::default()
    };
    let content = Bytes::from_static(b"12345678");
    let object = ObjectId::new(VarId(0), 1).to_wire();
    let mut seeds = vec![
        numbered(0, &layout),
        numbered(1, &spec),
        numbered(2, &variable),
        numbered(3, &topology),
        numbered(4, &w::PhaseTimes::from(times)),
        numbered(7, &refusal),
        numbered(
            27,
            &w::Write {
                first: 1,
                lengths: vec![2, 1, 1],
                data: content,
                ..w::Write::default()
            },
        ),
        [vec![28], b"unix:/tmp/x.sock".to_vec()].concat(),
        [vec![28], b"127.0.0.1:4000".to_vec()].concat(),
        numbered(
            19,
            &w::SecondaryContent {
                object,
                reads: 3,
                ..w::SecondaryContent::default()
            },
        ),
    ];
    // Of the others the message that says nothing.
    seeds.extend((0..KINDS.len()).map(|kind| vec![kind as u8]));
    seeds
}
