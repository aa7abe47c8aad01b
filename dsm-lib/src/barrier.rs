//! Barriers, by group and name.

use std::time::Duration;

use dosmos_proto::Malformed;
use dosmos_proto::wire::{self, ap_reply::Body as Reply, ap_request::Body as Request};

use crate::call::blocking;
use crate::client::Client;
use crate::operation::{Op, Target};
use crate::{Call, Result};

/// Name of the barriers of a program that does not name them.
pub(crate) const UNNAMED: &str = "barrier";

/// Arrives at barrier `name` of the group at a path, or of all; over when all have arrived.
pub(crate) fn arrive(client: &Client, deadline: Duration, group: &str, name: &str) -> Call<()> {
    let label = match group {
        "" => format!("{name:?} of all"),
        path => format!("{name:?} of {path}"),
    };
    let operation = Op::Barrier.on(&Target::named(&label));
    let body = Request::Barrier(wire::Barrier {
        group: None,
        group_path: group.to_owned(),
        name: name.to_owned(),
    });
    client.call(operation, body, deadline, |_, reply| match reply {
        Reply::Barrier(_) => Ok(()),
        _ => Err(Malformed::new("reply", "not the end of a barrier")),
    })
}

/// Waits at a barrier with this number of participants: a process that is alone need not wait.
pub(crate) fn pass(participants: usize, arrive: impl FnOnce() -> Call<()>) -> Result<()> {
    match participants {
        1 => arrive().post(),
        _ => blocking(arrive),
    }
}
