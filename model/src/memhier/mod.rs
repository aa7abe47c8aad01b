//! Memory hierarchies of machines and clusters: how long an instruction takes, and what to buy.
//!
//! Times are seconds, sizes bytes (`unit_bytes` changes the unit of the locality law), speeds
//! instructions per second. A reference that misses everything below level i reaches it; the chance
//! of that is the tail of the program's stack distances at the size below. Levels are shared, and a
//! shared level queues.
//!
//! | symbol | field | meaning |
//! |---|---|---|
//! | α, β | `alpha`, `beta` | locality: tail t(x) = (1 + q x/β)^−(α−1) on q processors |
//! | γ | `gamma` | share of instructions that reference memory |
//! | n, N | `n`, `N` | processors of a machine, machines |
//! | S | `hz` | instructions per second of a processor |
//! | p_i | `p` | share of references that reach level i |
//! | τ_i | `cycles` | time of level i without queueing |
//! | Λ_i τ_i | `util_others` | utilisation of level i by the *other* processors |
//! | T | `T` | mean time of a reference, barrier term included |
//! | E(Instr) | `E` | time per instruction of the whole machine, (1/S + γT)/(nN) |
//! | h | `h` | fraction of its full rate at which a processor issues references |
//!
//! | module | question |
//! |---|---|
//! | [`locality`] | how often is a store of x bytes missed? |
//! | [`machine`] | what is the machine? Built in: networks, programs and configurations of the paper |
//! | [`time`] | how long does an instruction take, with what assumption on queueing? |
//! | [`choice`] | which cluster is fastest for a budget, which upgrade for a budget increase? |
//! | [`stack`] | stack distances of an address trace |
//! | [`fit`] | α and β of a trace |
//!
//! Guarantees: where the open queueing formula has no steady state the answer is *saturated*, never
//! the plausible number that the formula goes on to give.
//!
//! Source: Du, Zhang, *The Impact of Memory Hierarchies on Cluster Computing* (IPPS/SPDP 1999);
//! equation numbers are that paper's. The rows for clusters are this project's derivation in the same
//! style, as the paper defers to a report for them.

pub mod choice;
pub mod fit;
pub mod locality;
pub mod machine;
pub mod stack;
pub mod time;

pub use choice::{ChoiceInput, ChoiceOutput, Configuration, choose};
pub use fit::{FitInput, FitOutput, fit, fit_trace};
pub use locality::Locality;
pub use machine::{Cycles, Machine, Named, Network, Program, Sharing};
pub use stack::{StackDistances, stack_distances};
pub use time::{Estimate, Estimates, Level, Mode, PerLevel, estimate, estimates};
