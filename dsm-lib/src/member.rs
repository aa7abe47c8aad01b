//! This program as a member of the cluster: its session, its place, and the deadline of its operations.

use std::sync::Arc;
use std::time::Duration;

use dosmos_proto::wire::{self, ap_reply::Body as Reply, ap_request::Body as Request};
use dosmos_proto::{Malformed, Variable};

use crate::call::Call;
use crate::client::Client;
use crate::lock_words::LockWords;
use crate::operation::{Op, Target};
use crate::place::Place;

/// Makes the lock of a variable; none for the owner's queue, which needs no words.
pub(crate) type MakeLock = fn(&Member, &Variable) -> Option<Arc<dyn LockWords>>;

/// What handles are made from.
#[derive(Clone)]
pub(crate) struct Member {
    client: Arc<Client>,
    place: Arc<Place>,
    deadline: Duration,
    make_lock: MakeLock,
}

impl Member {
    pub(crate) fn new(
        client: Client,
        place: Place,
        deadline: Duration,
        make_lock: MakeLock,
    ) -> Self {
        Self {
            client: Arc::new(client),
            place: Arc::new(place),
            deadline,
            make_lock,
        }
    }

    /// What its requests are sent through.
    pub(crate) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Where this program stands in the cluster.
    pub(crate) fn place(&self) -> &Place {
        &self.place
    }

    /// The deadline of operations.
    pub(crate) fn deadline(&self) -> Duration {
        self.deadline
    }

    /// The same, with another deadline.
    pub(crate) fn with_deadline(&self, deadline: Duration) -> Self {
        Self {
            deadline,
            ..self.clone()
        }
    }

    /// The lock of a variable, if it is not the owner's queue.
    pub(crate) fn lock_of(&self, variable: &Variable) -> Option<Arc<dyn LockWords>> {
        (self.make_lock)(self, variable)
    }

    /// Makes what this process wrote outside sections visible to all.
    pub(crate) fn publish(&self) -> Call<()> {
        let operation = Op::Publish.on(&Target::named(&self.place.name));
        let body = Request::Publish(wire::Publish {});
        self.client
            .call(operation, body, self.deadline, |_, reply| match reply {
                Reply::Published(_) => Ok(()),
                _ => Err(Malformed::new("reply", "not the end of publishing")),
            })
    }
}
