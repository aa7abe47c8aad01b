//! What a rule sees beside its own state.

use crate::found::Found;
use crate::order::Order;

/// What is ordered before the next steps, and what was found so far.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) order: Order,
    pub(crate) found: Found,
}
