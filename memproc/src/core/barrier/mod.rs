//! Barriers: of all application processes or of a group with its sub-groups, by name.
//!
//! Each memory process waits for all its own participants, then says so once to the coordinator (the
//! lowest of the participants' memory processes), which opens the barrier for all when the last said
//! so. Generations count up at each opening or failure, in step everywhere; a message of an older one
//! is void. A participant that left fails the barrier for everyone.
//!
//! Where there are only two memory processes, the coordinator also tells the other one when all of its own wait, and each opens
//! the barrier for its own when it knows that of both (docs/design/consistency.md#barriers).
//!
//! An arrival counts while its application process waits. If it stops waiting (its timeout is over, it
//! cancels), the arrival is withdrawn, also from the coordinator, which answers with who is missing. The barrier may have
//! opened just before: then the others have passed, and the next call waits for the next opening.

mod gone;
pub(crate) mod group;
mod late;
mod role;

pub(crate) use gone::Gone;
pub(crate) use role::Barriers;
