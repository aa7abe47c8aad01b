//! Chunks one by one: for whoever decodes only some columns of them, in an order and on threads of its own.

use std::sync::Arc;

use super::index::ChunkRef;
use super::view::StoreView;
use crate::chunk::{Chunk, ChunkError, Summary};
use crate::query::Filter;

/// A chunk that stands in a store: what it holds is known, its columns are not read yet.
#[derive(Clone, Debug)]
pub struct StoredChunk(Arc<ChunkRef>);

impl StoredChunk {
    /// What it holds.
    pub fn summary(&self) -> &Summary {
        &self.0.summary
    }

    /// Its size as encoded, in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.place.bytes.into()
    }
}

impl StoreView {
    /// The chunks that may hold a record that `filter` matches, in the order of the log.
    pub fn chunks(&self, filter: &Filter) -> Vec<StoredChunk> {
        let chunks = self.candidates(filter).into_iter();
        chunks.map(StoredChunk).collect()
    }

    /// Reads a chunk and decodes what of it is needed. One that cannot be read is noted ([`StoreView::completeness`] then
    /// says so) and gives nothing, as does one that retention has removed since.
    pub fn decode<T>(
        &self,
        chunk: &StoredChunk,
        decode: impl FnOnce(&Chunk<'_>) -> Result<T, ChunkError>,
    ) -> Option<T> {
        let mut decoded = None;
        self.read_chunk(&chunk.0, |bytes| {
            decoded = Some(decode(&Chunk::open(bytes)?)?);
            Ok(())
        });
        decoded
    }
}
