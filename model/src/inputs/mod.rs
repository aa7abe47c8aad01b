//! From measurements and traces to what the models need, and to predictions.
//!
//! | module | contents |
//! |---|---|
//! | [`network`] | what messages cost on a machine |
//! | [`Builder`], [`Measured`] | a run: one pass over its records, and its execution-time breakdown |
//! | `phases` | the run as the DVSM model sees it |
//! | `contention` | the run as LoPC sees it |
//! | [`Placement`], [`Sharing`] | what a change may move, and what it may share otherwise |
//! | [`Change`] | a change of the run: technology, placement, sharing, number of processes |
//! | [`predict`] | the breakdown measured, modelled, and after a change |
//!
//! Which thing of this system stands for which thing of a model is said at the head of `phases` and
//! `contention`. Nothing here does I/O.

mod change;
mod contention;
mod measured;
pub mod network;
mod phases;
mod place;
pub mod predict;
mod sharing;
mod tally;

pub use change::Change;
pub use contention::{Contention, ContentionTimes};
pub use measured::{About, Builder, DelayModel, Measured};
pub use network::{Hop, MessageSample, NetworkRecord, network_of};
pub use place::Placement;
pub use predict::{Prediction, Times};
pub use sharing::Sharing;
