//! `dosmos node` under a launcher: this process is a rank, and what it does follows from the rule in the cluster file.
//!
//! ```text
//! environment   rank, number of ranks, host          (what the launcher says)
//! point         where rank 0 is                      (a file in the run directory, or host:port)
//! attend        the stream to rank 0                 (announcement, reports; orders)
//! coordinator   at rank 0: meeting behind gRPC       (meeting: who is there, who does what next)
//! duty          what a rank does: serve, or run the program
//! whole_host    one rank stands for its host, and starts the ranks there
//! ```
//!
//! Guarantees: no rank begins before all are there; one that is missing or there twice is named; all end when the program has
//! ended, in the order in which no record is lost; how each application process ended is in every store of the run.

mod attend;
mod coordinator;
mod duty;
pub(crate) mod environment;
mod meeting;
mod point;
mod rank;
mod whole_host;
mod wire;

pub(crate) use rank::run;
pub(crate) use whole_host::run as run_whole_host;
