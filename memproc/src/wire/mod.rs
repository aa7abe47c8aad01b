//! The only place where generated types become domain types and back.

mod access;
pub(crate) mod ap;
pub(crate) mod peer;
