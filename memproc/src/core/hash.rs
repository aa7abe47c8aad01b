//! Hash maps for small keys from inside the cluster (numbers of objects, calls, processes).
//!
//! A multiply-and-fold hash: several times faster than the standard one on such keys, and the same in
//! every run, so that a simulated cluster repeats exactly. Keys are checked against the dictionary
//! before they enter a map, so nobody outside chooses them.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map with the fast hash.
pub(crate) type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<Fold>>;

/// The hasher: each word is mixed in by a 64×64→128-bit product whose halves are folded.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fold(u64);

/// Odd, without pattern: the fraction of the golden ratio.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

impl Fold {
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ MULTIPLIER) * u128::from(MULTIPLIER);
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }
}

impl Hasher for Fold {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }
    fn write_u8(&mut self, n: u8) {
        self.mix(n.into());
    }
    fn write_u32(&mut self, n: u32) {
        self.mix(n.into());
    }
    fn write_u64(&mut self, n: u64) {
        self.mix(n);
    }
    fn write_usize(&mut self, n: usize) {
        self.mix(n as u64);
    }
}

/// A hash of a text that is the same in every process: chooses homes and numbers of barriers.
pub(crate) fn stable(text: &[u8]) -> u64 {
    let mut hasher = Fold::default();
    hasher.write(text);
    hasher.write_usize(text.len());
    hasher.finish()
}
