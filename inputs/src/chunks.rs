//! Chunks whose checksums hold: every column alone, and all of them, are values or an error.

use dosmos_trace::chunk::{Chunk, encode};

use crate::{samples, seal};

pub(crate) fn take(input: &[u8]) {
    let mut bytes = input.to_vec();
    seal::chunk(&mut bytes);
    let Ok(chunk) = Chunk::open(&bytes) else {
        return;
    };
    chunk.verify().unwrap();
    let _ = (chunk.starts(), chunk.aps(), chunk.counts());
    if let (Ok(kinds), Ok(objects)) = (chunk.kinds(), chunk.objects()) {
        let _ = chunk.versions(&objects);
        let _ = chunk.waits_and_durations(&kinds);
        let _ = chunk.each_wait(&kinds, |_| true, |_, _| {});
    }
    if let Ok(records) = chunk.records() {
        assert_eq!(records.len(), chunk.len());
        let again = encode(&records);
        assert_eq!(Chunk::open(&again).unwrap().records().unwrap(), records);
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let sizes = [1, 10, 130, 1_000];
    let chunks = sizes.map(|n| encode(&samples::records(n)));
    chunks.into_iter().collect()
}
