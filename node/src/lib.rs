//! What every long-lived process of a cluster (memory, link and event manager processes) does the same
//! way, so that there is one way to do it:
//!
//! * [`address`]: publish where a process listens, and withdraw that at its end.
//! * [`reconnect`]: the one loop that keeps a connection to another process, with [`backoff`].
//! * [`serving`]: a gRPC server that ends within a grace period; [`drain`]: waiting for work to finish.
//! * [`incarnation`]: the number of this start of a process, stored in the run directory.
//! * [`clock`]: what a process's clock lacks to cluster time; [`correction`]: the one correction of times by it.
//! * [`processor`]: processor time of this process or thread.
//! * [`metrics`]: figures for Prometheus.
//!
//! Invariant: nothing here knows what the processes do; the number of metric series does not grow with
//! variables, objects or application processes.

pub mod address;
pub mod backoff;
pub mod clock;
pub mod correction;
pub mod drain;
pub mod incarnation;
pub mod metrics;
mod places;
pub mod processor;
pub mod reconnect;
pub mod serving;
