//! The wire contract between dosmos processes.
//!
//! * [`wire`]: the messages and gRPC services, generated from `proto/proto/dosmos/v1/*.proto`.
//! * the vocabulary those messages speak ([`ids`], [`incarnation`], [`layout`], [`variable`], [`topology`], [`phase`], [`runs`], [`error`]),
//!   validated on the way in: a value of one of these types is well formed. The conversion stands
//!   beside each type.
//! * [`blame`]: which process an error message blames.
//! * [`transport`]: how two processes get a connection (addresses, listening, dialling).
//! * [`direct`]: a streaming call on a connection of its own.
//! * [`access`], [`guard`]: what a process shows to another, and what each may call.
//! * [`unix`]: Unix sockets that wake their process only when they have to.
//! * [`watched`]: how a thread sees that a connection needs to be driven.
//! * [`delegation`]: when objects go to application processes.
//! * [`spin`]: how a process waits a moment before it sleeps.
//! * [`large`]: large messages around a connection, in memory that two processes of one host share.
//!
//! Invariant: generated types stop at the edge of each crate. This crate holds no behaviour of a DSM
//! or of a monitor.

pub mod access;
pub mod address_book;
pub mod blame;
pub mod clock;
mod connection;
pub mod counters;
pub mod delegation;
pub mod direct;
pub mod error;
pub mod guard;
pub mod ids;
pub mod incarnation;
pub mod large;
pub mod layout;
pub mod names;
pub mod owner_names;
pub mod phase;
pub mod runs;
mod same_host;
pub mod spin;
pub mod time;
pub mod token;
pub mod topology;
pub mod transport;
pub mod unix;
pub mod variable;
pub mod watched;
mod whole;
pub mod wire;
pub mod wire_owners;

pub use access::Access;
pub use address_book::AddressBook;
pub use counters::ProcessCounters;
pub use error::{ErrorCode, Malformed, Refusal};
pub use ids::{ApId, EmpId, GroupId, MpId, ObjectId, VarId};
pub use incarnation::Incarnation;
pub use large::LargeMessages;
pub use layout::{ElementType, Layout, MAX_OBJECT_BYTES, Region};
pub use owner_names::OwnerNames;
pub use phase::{Component, PhaseTimes, Spent};
pub use runs::Runs;
pub use time::Nanos;
pub use token::Token;
pub use topology::{GroupPath, Topology, TopologyBuilder};
pub use transport::{ConnectError, InvalidAddress};
pub use variable::{
    Cache, CopyPolicy, LockKind, MAX_DECLARED_BYTES, MAX_REPLICAS, Placement, Variable,
    VariableSpec,
};
pub use whole::MAX_MESSAGE_BYTES;

/// The compiled `.proto` files, for gRPC reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/descriptors.bin");

/// Version of the protocol. Two processes that disagree refuse each other in their first message.
pub const PROTOCOL: u32 = 10;
