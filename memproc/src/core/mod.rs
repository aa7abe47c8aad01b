//! The memory process as a state machine: something happened in, things to do out.
//!
//! Invariant: nothing here awaits, reads a clock, draws a random number or touches the network; the
//! same inputs give the same outputs. So a whole cluster runs inside one test, message by message.
//!
//! Each role owns its state and sees the others only through effects, which the engine routes:
//!
//! ```text
//!  event                              role                 effects and outputs
//!  ─────────────────────────────────  ───────────────────  ─────────────────────────────────────────
//!  request of an application process  requester            reply · record · request to owner or home ·
//!                                                          arrival at a barrier · request taken back
//!  response to it                     requester            reply · record
//!  copy invalidated or updated        requester (copies)   acknowledgement · hand-over to the recorder
//!  access, flush                      owner                response · record · orders to copy holders
//!  what a delegation made of an object owner (delegation)   accesses that waited for it are served
//!  acknowledgement of a copy holder   owner (acks)         release or flush completes · next grant
//!  acquire or process abandoned       owner                next grant · record
//!  declaration, look-up, created      directory (home)     variable · request to each owner
//!  arrival, member's arrival, opening barriers             notice to coordinator or members · opened
//!  released state to be kept          replicas             requests to the members · owner goes on
//!  state to keep, question, decision  replicas             response · a seat changes hands, to every role
//!  link up or down, process lost      router               lost and regained processes, to every role
//!  application process left or back   failures             notices to those who may wait for it
//!  message for somebody else          router               forwarded
//!  message of a new start             engine               the process was lost, to every role
//!  tick, process lost                 directory (home)     names asked of others, after a start
//!  name whose home is lost            requester            look-up at all others
//!  tick                               requester            operations whose timeout is over complete ·
//!                                                          leases of copies renewed
//!  tick                               owner (acks)         releases that waited out a lease complete
//! ```
//!
//! | module | what |
//! |---|---|
//! | `messages` | what goes in and out; one [`Access`](messages::Access) from application process to owner |
//! | `engine` | [`Core`]: inputs to roles, effects to roles and outputs |
//! | `effects`, `context` | how roles reach each other; what they may look at |
//! | `requester` | requests of our application processes: sessions, copies, pending operations |
//! | `owner` | objects we own: contents, locks, acknowledgements of copies |
//! | `directory` | variables: names, numbers, owners; checks of objects and elements |
//! | `barrier` | barriers |
//! | `replica` | released states at other processes, and who serves them when their owner is lost |
//! | `router`, `cluster` | ways to other processes, and which are lost |
//! | `lease` | how long a copy may be read without its owner being heard |
//! | `incarnations` | which start of each process is the present one |
//! | `failures` | who hears of application processes that left |
//!
//! What application processes hold themselves is state of `requester::holders` (copies) and `owner::delegation`
//! (objects). Who owns an object is said in one place, `directory::place`: for what has replicas it asks
//! `replica::seats`.

mod barrier;
mod cluster;
mod context;
mod directory;
mod effects;
mod engine;
mod failures;
mod hash;
mod incarnations;
mod lease;
pub mod messages;
mod owner;
pub mod replica;
mod requester;
mod router;
mod settings;
#[cfg(test)]
#[allow(unreachable_pub)] // also used by the tests outside the crate
mod testing;

pub use engine::Core;
pub use requester::MAX_OUTSTANDING;
pub use settings::{ALL_VARIABLES, Counters, Settings, VariableOverride, Welcome};

#[cfg(test)]
pub(crate) use testing::topology as test_topology;
