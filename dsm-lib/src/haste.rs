//! Whether the reply to a request is in a hurry: whoever only posts a write does not wait for it.
//!
//! It is known late: a write that is sent with what follows it may be waited for by then, or never.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use dosmos_proto::wire::ApRequest;

const UNSENT: u8 = 0;
const SENT_WITHOUT: u8 = 1;
const WANTED: u8 = 2;

/// What the submitter of a request and its sender both see.
#[derive(Clone, Debug, Default)]
pub(crate) struct Haste(Arc<AtomicU8>);

impl Haste {
    /// The request is sent now: it says whether anybody waits for the reply.
    fn sent(&self) -> bool {
        let unsent =
            self.0
                .compare_exchange(UNSENT, SENT_WITHOUT, Ordering::AcqRel, Ordering::Acquire);
        unsent.is_ok()
    }

    /// Somebody waits for the reply from now on; none if somebody did before.
    pub(crate) fn want(&self) -> Option<Found> {
        match self.0.swap(WANTED, Ordering::AcqRel) {
            UNSENT => Some(Found::Unsent),
            SENT_WITHOUT => Some(Found::Sent),
            _ => None,
        }
    }
}

/// Where who begins to wait for a reply finds the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Not sent yet: it will say so.
    Unsent,
    /// Sent without: it has to be said in another message.
    Sent,
}

/// A request on its way out.
#[derive(Debug)]
pub(crate) struct Outbound {
    pub(crate) request: ApRequest,
    pub(crate) haste: Option<Haste>,
}

impl Outbound {
    /// The request as it is sent.
    pub(crate) fn take(mut self) -> ApRequest {
        self.request.no_hurry = self.haste.is_some_and(|haste| haste.sent());
        self.request
    }
}

impl From<ApRequest> for Outbound {
    fn from(request: ApRequest) -> Self {
        Self {
            request,
            haste: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_in_a_hurry_once_somebody_waits_for_it() {
        let outbound = || {
            let haste = Haste::default();
            let request = ApRequest::default();
            (
                haste.clone(),
                Outbound {
                    request,
                    haste: Some(haste),
                },
            )
        };
        let (haste, early) = outbound();
        assert_eq!(haste.want(), Some(Found::Unsent));
        assert!(!early.take().no_hurry);
        let (haste, late) = outbound();
        assert!(late.take().no_hurry);
        assert_eq!(haste.want(), Some(Found::Sent));
        assert_eq!(haste.want(), None);
        assert!(!Outbound::from(ApRequest::default()).take().no_hurry);
    }
}
