//! Asking whoever serves an object with replicas now.

use dosmos_proto::{ApId, Nanos, Refusal};

use super::pending::{Operation, Pending, repeated_call};
use crate::core::context::Context;
use crate::core::directory::place::Place;
use crate::core::lease::RETRY;
use crate::core::messages::PeerRequest;

/// Whether an access has a chance. One to an object with replicas waits until somebody serves it.
pub(super) fn check_served(cx: &Context, place: &Place) -> Result<(), Refusal> {
    match place.seat {
        Some(_) => Ok(()),
        None => cx.check_reachable(place.owner),
    }
}

/// Asks whoever serves the object, if that can be reached; else it waits.
pub(super) fn ask(cx: &mut Context, pending: &mut Pending, number: u64, ap: ApId) {
    let overdue = pending.get(number).is_some_and(Operation::is_overdue);
    let Some(again) = pending.again.get_mut(&number) else {
        return;
    };
    if overdue {
        // It was taken back.
        again.waits = Some(Nanos::MAX);
        return;
    }
    let Ok(place) = cx.variables.place(cx.cluster, again.access.object) else {
        return;
    };
    let to = place.owner;
    if cx.check_reachable(to).is_err() {
        again.waits = Some(cx.now + RETRY);
        return;
    }
    again.waits = None;
    again.repeated = again.repeated.wrapping_add(1);
    let call = repeated_call(number, again.repeated);
    let request = PeerRequest::Access {
        access: again.access.clone(),
        ap,
        // Nobody keeps a copy of what it owns.
        want_copy: again.want_copy && to != cx.me(),
    };
    let incarnation = (to != cx.me()).then(|| cx.variables.start_of_owner(&place));
    pending.redirect(number, to);
    cx.request_of(to, incarnation.flatten(), call, request);
}
