//! The owner: serves reads, writes, locks and releases of the objects this process owns, for other
//! memory processes and for its own application processes alike.
//!
//! | file | what |
//! |---|---|
//! | `role` | the owner: accesses |
//! | `publish` | the owner: releases, flushes, and locks that end without a release |
//! | `delegation` | objects in the hands of an application process, and their recall |
//! | `replicated` | objects with replicas: who may be served, and what waits until others keep what was released |
//! | `objects`, `object`, `lock` | its state: contents and copies, sections |
//! | `unpublished`, `acks`, `delegations`, `shipping` | its state: what copies are not told of, acknowledgements, objects given away |

mod accessor;
mod acks;
mod delegation;
mod delegations;
mod lock;
mod object;
mod objects;
mod publish;
mod replicated;
mod role;
mod shipping;
mod unpublished;

pub(crate) use role::Owner;
