//! A streaming call on a connection of its own: gRPC over HTTP/2 as any other, read and written here.
//!
//! Sessions of application processes and links between memory processes are one call each, which lasts as long as its connection.
//! What serves calls of all kinds (streams that come and go, priorities, a task for the connection beside that of the call, a
//! body in frames in a stream) takes 10 to 15 µs of processor time for each message at each end. Here a message is put into its frame where it is
//! written, and taken from where it was read, by the one task that needs it.
//!
//! A client says so in its first settings ([`ONE_CALL`](frame::setting::ONE_CALL)), in which an end that does not know it ignores it: so the
//! client can call any gRPC server, and a [server](accept) here passes connections of all other clients on, untouched.
//!
//! Guarantees, as of the libraries: what is received and not taken is bounded by the window (16 MiB); the memory of a message grows
//! with what arrived of it; a connection on which nothing came for 5 s is pinged, and is over after 25 s without an answer; nothing that arrives
//! makes it panic.

mod accept;
mod fault;
mod fields;
mod frame;
mod io;
mod receiving;
mod sending;

pub use accept::{Call, First, Replayed, first};
pub use io::{Direct, GONE_AFTER, Pipe};
pub(crate) use io::{KEEP_ALIVE, PING_TIMEOUT};

/// The session of an application process, as a path.
pub const APPLICATION: &str = "/dosmos.v1.Memory/Application";
/// The link between two memory or link processes.
pub const PEER: &str = "/dosmos.v1.Memory/Peer";
