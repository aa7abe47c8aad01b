//! Between the types of this crate and the messages of the monitoring protocol. Everything that
//! comes in is checked; nothing is allocated by a length that a message merely claims.

mod breakdown;
mod columns;
mod meta;
mod query;
mod records;
mod status;
mod table;
#[cfg(test)]
mod tests;

pub use meta::{hand_over_from_wire, hand_over_to_wire};
pub use records::{decode, encode};
pub(crate) use records::{kind_from, kind_of};
