//! Bytes shortened by how frequent each is: zstd at its fastest level, which for single bytes without repetition
//! means its Huffman coder.
//!
//! What comes back has exactly the length asked for, whatever the compressed bytes claim.

use std::cell::RefCell;

/// Level of the compression: higher ones gain nothing on single bytes.
const LEVEL: i32 = 1;

thread_local! {
    /// Kept, since making one costs more than using it.
    static DECOMPRESSOR: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Compresses; keeps its memory from one use to the next.
#[derive(Default)]
pub(super) struct Squeezer {
    compressor: Option<zstd::bulk::Compressor<'static>>,
    squeezed: Vec<u8>,
}

impl Squeezer {
    /// `bytes`, compressed; none if the system has no memory for that.
    pub(super) fn squeeze(&mut self, bytes: &[u8]) -> Option<&[u8]> {
        if self.compressor.is_none() {
            self.compressor = zstd::bulk::Compressor::new(LEVEL).ok();
        }
        self.squeezed.clear();
        self.squeezed
            .reserve(zstd::zstd_safe::compress_bound(bytes.len()));
        let compressor = self.compressor.as_mut()?;
        compressor
            .compress_to_buffer(bytes, &mut self.squeezed)
            .ok()?;
        Some(&self.squeezed)
    }
}

/// What was compressed, if it has exactly `length` bytes.
pub(super) fn restore(bytes: &[u8], length: usize) -> Option<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|kept| {
        if kept.is_none() {
            *kept = zstd::bulk::Decompressor::new().ok();
        }
        let plain = kept.as_mut()?.decompress(bytes, length).ok()?;
        (plain.len() == length).then_some(plain)
    })
}

/// Bytes that the best code for single symbols would need, from how often each occurs.
pub(super) fn entropy_bytes(counts: &[u32]) -> f64 {
    let all: f64 = counts.iter().map(|n| f64::from(*n)).sum();
    let used = counts.iter().filter(|n| **n > 0).map(|n| f64::from(*n));
    used.map(|n| n * (all / n).log2()).sum::<f64>() / 8.0
}
