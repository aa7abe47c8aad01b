//! Batches of records as an event manager gets them: what it accepts is folded into meta-objects, and comes back from a chunk.

use dosmos_proto::wire::ingest_request::Body;
use dosmos_proto::{EmpId, MpId, Variable, wire};
use dosmos_trace::chunk::{Chunk, MOST_RECORDS};
use dosmos_trace::meta::{MetaState, SecondaryContent};
use dosmos_trace::query::{Completeness, MetaQuery};
use dosmos_trace::selection::Selection;
use prost::Message;

use crate::samples;

pub(crate) fn take(input: &[u8]) {
    let Ok(request) = wire::IngestRequest::decode(input) else {
        return;
    };
    let Some(Body::Batch(batch)) = request.body else {
        return;
    };
    let topology = samples::topology();
    let mut metas = MetaState::new((*topology).clone(), EmpId(0));
    for variable in batch.variables {
        if let Ok(variable) = Variable::try_from(variable) {
            metas.declare(&variable);
        }
    }
    let _ = batch.selection.map(Selection::try_from);
    let Ok(records) = dosmos_trace::wire::decode(&batch.records.unwrap_or_default()) else {
        return;
    };
    for record in &records {
        metas.apply(record);
    }
    for hand_over in &batch.hand_overs {
        let (_, hand_over) = dosmos_trace::wire::hand_over_from_wire(hand_over, MpId(0));
        if let Some((to, content)) = metas.hand_over(&hand_over) {
            // As the other end would get it.
            let content = wire::SecondaryContent::from(content);
            metas.receive(to, &SecondaryContent::from(content));
        }
    }
    let _ = metas.query(&MetaQuery::default(), Completeness::default());
    let _ = metas.sums(None);
    for records in records.chunks(MOST_RECORDS) {
        let bytes = dosmos_trace::chunk::encode(records);
        assert_eq!(Chunk::open(&bytes).unwrap().records().unwrap(), records);
    }
}

/// A batch with one of everything.
pub(crate) fn batch() -> wire::IngestRequest {
    let batch = wire::Batch {
        sequence: 1,
        records: Some(dosmos_trace::wire::encode(&samples::records(20))),
        variables: vec![samples::variable().into()],
        barriers: vec![wire::BarrierName::default()],
        hand_overs: vec![wire::HandOver::default()],
        selection: Some(Selection::default().into()),
        counters: Some(wire::ProcessCounters::default()),
        times: vec![wire::PhaseTimes::default()],
        ..wire::Batch::default()
    };
    wire::IngestRequest {
        body: Some(Body::Batch(batch)),
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    vec![batch().encode_to_vec()]
}
