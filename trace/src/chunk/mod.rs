//! Chunks: up to [`MOST_RECORDS`] records as compressed columns, and a summary of each.
//!
//! Layout, little-endian: magic `DSC4`, number of records (u32), number of columns (u8), then for each
//! column its length in bytes (u32) and CRC32; the CRC32 of all that; then the columns, in the order of
//! [`Column::ALL`]. A reader decodes only the columns it needs, checks only those, and never allocates by
//! a length the chunk merely claims.
//!
//! Five ways of storing a column (`bits.rs`, `split.rs` and `symbols.rs` have the bytes):
//! * few different values (kind, object, application process): the values, and each record's number of its own;
//! * start: the first, then differences;
//! * times (duration, wait, service): in order of the records' kind, since like operations take like
//!   times, and those that cannot wait never do. Of a duration, what is left without the longer of
//!   wait and service;
//! * what hardly changes for one object or process (`mp`, `peer`, bytes, version, range): differences to the
//!   record before of the same object (and operation) or process;
//! * counts: one less than how many accesses a record stands for, which is nearly always none.

mod bits;
mod block;
mod decode;
mod encode;
mod layout;
mod split;
mod squeeze;
mod summary;
mod symbols;
#[cfg(test)]
mod tests;
mod varint;

pub use decode::Chunk;
pub use encode::{Encoded, Encoder, encode};
pub use layout::{ChunkError, Column, Kind, MOST_RECORDS};
pub use summary::{Summary, Tally};
pub use symbols::Symbols;
