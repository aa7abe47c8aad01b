//! Where answers come from: one event manager over the network, many sources as one, or memory.

mod fused;
mod memory;
mod merge;
mod remote;
mod table;

pub use fused::Fused;
pub use memory::Memory;
pub use remote::RemoteSource;
