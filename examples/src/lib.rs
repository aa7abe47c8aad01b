//! Parallel programs over dosmos: real kernels, and one program for each pathology of sharing.
//!
//! Each is SPMD: [`run`] is what one application process does, all run the same, and they differ by
//! rank. Each checks its own result, and fails if it is wrong.
//!
//! | program | shows |
//! |---|---|
//! | [`is`] | buckets that migrate, then are read by all: integer sort |
//! | [`barnes`] | everyone reads what everyone moved: gravity |
//! | [`water`] | sums that migrate under many locks: molecular dynamics |
//! | [`spmv`] | a vector that all read: sparse matrix × vector |
//! | [`workpile`] | clients that fetch work from servers |
//! | [`fft`] | a matrix transposed: six-step Fourier transform |
//! | [`sor`] | a kernel with neighbours: bands of a matrix, edges exchanged, barriers |
//! | [`sphere`] | the same with three fields: the shallow water equations |
//! | [`lu`] | blocks written once, then read by a row and a column of processes: LU decomposition |
//! | [`radix`] | everyone reads a part of everyone's: radix sort |
//! | [`raytrace`] | work that is stolen; a scene that all read; a picture |
//! | [`edge`] | halos, and a global decision to go on or halt; a picture |
//! | [`groups`] | `bad-group`, `good-group`: an owner far from its readers, and near |
//! | [`ping_pong`] | `ping-pong`, `ping-pong-split`: one variable between two writers, and its cure |
//! | [`pathology`] | every kind of bad sharing that `dosmos check` names, and its cure |
//! | [`litmus`] | the consistency contract, tried out |
//! | [`suite`] | several programs in one cluster |
//! | [`random`] | anything in any order, counted |
//! | [`exclusive`] | sections on one variable and nothing else |
//! | [`latency`] | what each operation costs |
//! | [`kernels`] | what each costs while others compete: MAD, SAD, BAD |

mod app;
mod common;
mod counts;
mod error;
mod figures;
mod output;
mod picture;
mod program;

pub mod barnes;
pub mod edge;
pub mod exclusive;
pub mod fft;
pub mod groups;
pub mod is;
pub mod kernels;
pub mod latency;
pub mod litmus;
pub mod lu;
pub mod pathology;
pub mod ping_pong;
pub mod radix;
pub mod random;
pub mod raytrace;
pub mod sor;
pub mod sphere;
pub mod spmv;
pub mod suite;
mod tally;
pub mod water;
pub mod workpile;

pub use app::{App, alone, catalog, input, run, run_on};
pub use error::Error;
pub use figures::{Checksum, Figures};
pub use program::Input;
