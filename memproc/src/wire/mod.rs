//! The only place where generated types become domain types and back.

mod access;
pub mod ap;
pub mod peer;
mod seat;
