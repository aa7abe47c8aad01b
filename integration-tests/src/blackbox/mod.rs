//! Whole clusters of real processes in which things go wrong, by a seed, judged by what they recorded.
//!
//! A seed determines what goes wrong and when; not what the system makes of it, so a run that failed may pass when it is
//! repeated.

mod cluster;
mod judge;
mod places;
mod plan;

pub use judge::Outcome;
pub use places::allowed;
pub use plan::{Fault, Plan, Process};

use cluster::Cluster;

use crate::Lab;

/// Carries a plan out in a directory of its own, with this binary.
///
/// # Errors
/// If the system refuses something that has nothing to do with dosmos.
pub fn carry_out(lab: &Lab, plan: &Plan) -> std::io::Result<Outcome> {
    let mut cluster = Cluster::start(lab.path(), lab.binary(), plan)?;
    cluster.suffer()?;
    cluster.end()?;
    Ok(judge::judge(lab, &cluster))
}
