//! The owner: serves reads, writes, locks and releases of the objects this process owns, for other
//! memory processes and for its own application processes alike.
//!
//! | file | what |
//! |---|---|
//! | `role` | the owner: accesses |
//! | `publish` | the owner: releases, flushes, and locks that end without a release |
//! | `delegation` | objects in the hands of an application process, and their recall |
//! | `object`, `lock`, `acks`, `delegations` | its state: contents and copies, sections, acknowledgements, objects given away |

mod accessor;
mod acks;
mod delegation;
mod delegations;
mod lock;
mod object;
mod publish;
mod role;

pub(crate) use role::Owner;
