//! Replicas: the released state of an object at other memory processes of its owner's group, and who serves
//! the objects when their owner is lost (docs/design/consistency.md#replicas).
//!
//! The objects that one memory process owns, of the variables with one number of replicas, are a
//! [`Seat`](seat::Seat): they are served and kept together. Who serves a seat, its *holder*, and who else
//! keeps it, its *members*, is a [`Config`](seat::Config). Each is decided by a majority of the memory and
//! link processes of the group, under a term that is higher than every earlier one.
//!
//! | file | what |
//! |---|---|
//! | `role` | the role: messages, time, lost processes; what it asks of the others |
//! | `holder` | what the holder of a seat does: leads, ships released states, has others catch up |
//! | `ballot` | what is asked and answered, and what is to be kept |
//! | `seat`, `seats` | what a seat is; what every role may know of all of them |
//! | `voter` | state of one vote of the majority: promises, what it accepted, whom it follows |
//! | `election` | state of decisions that this process is asking for |
//! | `succession` | what a new holder does before it serves: all who keep the seat have the same states |
//! | `merge` | state of that |
//! | `leader` | state of seats that this process holds: who was heard, what is on its way to whom |
//! | `store` | released states kept here |

pub(crate) mod ballot;
pub(crate) mod election;
mod holder;
pub(crate) mod leader;
mod merge;
mod role;
pub mod seat;
pub(crate) mod seats;
pub(crate) mod store;
mod succession;
#[cfg(test)]
mod testing;
pub(crate) mod voter;

pub(crate) use role::Replicas;
