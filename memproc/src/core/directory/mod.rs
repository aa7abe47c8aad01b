//! The directory of variables: those known here, and the home of those whose name hashes to this
//! process.

mod declared;
pub(crate) mod home;
pub(crate) mod place;
pub(crate) mod placement;
mod rebuild;
pub(crate) mod variables;
