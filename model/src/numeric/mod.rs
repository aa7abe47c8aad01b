//! The little numerical analysis the models need: a bracketed root and a dense linear solve.

mod dense;
mod root;

pub(crate) use dense::{Matrix, solve_in_place};
pub(crate) use root::bracketed_root;
