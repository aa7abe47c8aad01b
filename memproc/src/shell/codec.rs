//! The ingest stream with batches encoded beforehand: a batch is encoded once, kept in that form
//! until it is acknowledged, and sent as often as it takes.

use bytes::{BufMut, Bytes};
use dosmos_proto::wire::IngestReply;
use prost::Message;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// Encoded requests out, replies in.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Encoded;

impl Codec for Encoded {
    type Encode = Bytes;
    type Decode = IngestReply;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }
    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Encoded {
    type Item = Bytes;
    type Error = Status;
    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for Encoded {
    type Item = IngestReply;
    type Error = Status;
    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<IngestReply>, Status> {
        IngestReply::decode(buffer)
            .map(Some)
            .map_err(|e| Status::invalid_argument(format!("malformed reply: {e}")))
    }
}
