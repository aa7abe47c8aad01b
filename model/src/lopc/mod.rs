//! LoPC: the cost of contention in blocking request/reply programs.
//!
//! A program is P threads, one per node, each repeating *compute for W, send a request, wait for the
//! reply*. Requests and replies interrupt (or, with a protocol processor, run beside) the compute
//! thread of the node they reach, for S_o each, first come first served; a message is S_l under way.
//! The network is not contended, the handlers are. Times are in any one unit.
//!
//! | symbol | field | meaning |
//! |---|---|---|
//! | P | `P` | nodes |
//! | W | `W` | mean local work between requests |
//! | S_o | `So` | mean handler time, for requests and replies alike |
//! | S_l | `Sl` | mean one-way network latency |
//! | C² | `C2` | squared coefficient of variation of handler time: 0 constant, 1 exponential |
//! | V | `V` | mean visits of a thread's request to each node |
//! | R | `R` | mean length of one compute/request cycle |
//! | R_w, R_q, R_y | `Rw`, `Rq`, `Ry` | residence of compute, response of a request, of a reply handler |
//! | Q_q, Q_y, U_q, U_y | `Qq`, … | mean queue length and utilisation of a node, by handler kind |
//! | X | `X` | throughput in cycles per time |
//!
//! Source: Frank, Agarwal, Vernon, *LoPC: Modeling Contention in Parallel Algorithms* (PPoPP 1997);
//! equation numbers are that paper's. Which module serves which question:
//! [`homogeneous`] all-to-any patterns; [`variants`] the same with a sharper arrival theorem;
//! [`client_server`] work piles; [`general`] any visit matrix; [`general_variants`] the sharper forms
//! of it; [`spmv`] the worked example.

pub mod client_server;
pub mod general;
pub mod general_variants;
pub mod homogeneous;
mod kappa;
mod solver;
pub mod spmv;
pub mod variants;

pub use client_server::{ClientServerInput, ClientServerOptimum, ClientServerOutput};
pub use general::{GeneralInput, GeneralOutput};
pub use homogeneous::{HomogeneousInput, HomogeneousOutput};
pub use solver::SolveStats;
pub use spmv::{SpmvInput, SpmvOutput};
