//! Where answers come from: one event manager over the network, many sources as one, or memory.

mod causality;
mod fused;
mod gather;
mod memory;
mod merge;
//mod remote;

pub use causality::respect_sections;
pub use fused::Fused;
pub use gather::gather;
pub use memory::Memory;
//pub use remote::RemoteSource;
