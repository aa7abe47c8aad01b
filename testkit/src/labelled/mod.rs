//! Labelled traces: programs with and without pathologies, simulated, to score the detectors by.
//!
//! A trace is a program of one to seven parts (`parts`, `healthy`) on a simulated cluster
//! (`machine`): rates, numbers of processes and groups, latencies, noise, clock errors and mixtures
//! vary with the seed. A pathology is *planted* by building its part sick instead of cured.
//!
//! **The label is what the cure gains.** The same program with that one part cured is run too: if
//! it takes clearly less time, the label is [`Labelled::planted`]; if the pathology is there and hardly
//! costs anything, it is [`Labelled::slight`] and counts neither way. So labels depend on what the program does and
//! on the simulated clock, not on how a detector defines or measures anything.
//!
//! [`generate`] mixes everything on few processes; [`varied`] puts one pathology at a time into a part of a run, among many
//! processes or in bursts. [`racing`] leaves out what orders accesses: these are labelled by what was left out.

mod causes;
mod generate;
mod healthy;
mod loss;
mod machine;
mod parts;
mod pathology;
mod racing;
mod score;
mod trace;
mod varied;
mod world;

pub use generate::generate;
pub use loss::Loss;
pub use racing::racing;
pub use score::{KindScore, Mistake, Score, score, score_by, score_with_times};
pub use trace::{Label, Labelled};
pub use varied::{VARIED, Variation, varied};
