//! Numbers without a pattern, the same from the same seed.

/// A small generator (xorshift), for tests that do not need property testing.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Different numbers for different seeds.
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// The next number, below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
