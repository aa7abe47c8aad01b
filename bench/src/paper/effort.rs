//! How much the experiments measure.

/// How much to measure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Effort {
    /// Runs over which medians are taken.
    pub(super) runs: usize,
    /// A smoke test: very short runs.
    pub(super) quick: bool,
}
