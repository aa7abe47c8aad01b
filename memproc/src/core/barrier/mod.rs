//! Barriers: of all application processes or of a group with its sub-groups, by name.
//!
//! Each memory process waits for all its own participants, then says so once to the coordinator (the
//! lowest of the participants' memory processes), which opens the barrier for all when the last said
//! so. Generations count up at each opening or failure, in step everywhere; a message of an older one
//! is void. A participant that left fails the barrier for everyone.

pub(crate) mod group;
mod role;

pub(crate) use role::{Barriers, Gone};
