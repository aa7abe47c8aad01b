//! The bookkeeping of one session with a memory process: which requests are under way, until when,
//! and what has been done. No I/O, no clock: requests, replies and the time come in, messages and
//! completions go out.
//!
//! Guarantees: every request submitted is completed exactly once — by its reply, by its deadline, or
//! by the end of the session; a grant nobody waits for any more is given back, so that no lock is
//! held by nobody.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use dosmos_proto::wire::{self, ap_reply::Body as Reply, ap_request::Body as Request};
use dosmos_proto::{Nanos, ObjectId, Refusal};

use crate::Error;
use crate::cache::Served;
use crate::counts::{Counts, Tally};
use crate::operation::{Op, Operation, Target};

/// A request that is over. `ticket` is what the submitter left to be told by; none if nobody waits.
#[derive(Debug)]
pub(crate) struct Completion<K> {
    pub(crate) ticket: Option<K>,
    pub(crate) operation: Operation,
    pub(crate) outcome: Result<Reply, Error>,
    /// Another memory process had to be asked.
    pub(crate) remote: bool,
}

/// What to do about a reply.
#[derive(Debug)]
pub(crate) enum Received<K> {
    Complete(Completion<K>),
    /// Send this: a lock was granted that nobody waits for any more.
    GiveBack(wire::ApRequest),
    Nothing,
}

/// How a session ended.
#[derive(Debug, Clone)]
pub(crate) enum End {
    /// This program said bye.
    Closed,
    /// The memory process was never reached.
    NotConnected { ap: String, why: String },
    /// The connection broke.
    Lost(String),
}

#[derive(Debug)]
enum State {
    Open,
    /// Bye is said; nothing new is accepted.
    Closing,
    Over(End),
}

struct Pending<K> {
    operation: Operation,
    deadline: Duration,
    expires: Nanos,
    ticket: Option<K>,
    /// It publishes the writes and releases up to this number of them.
    publishes: Option<u64>,
    /// Writes of its section that it carries.
    writes: u64,
}

/// One session. `K` is how a submitter is told of the end of its request.
pub(crate) struct Session<K> {
    state: State,
    next_id: u64,
    grace: Duration,
    pending: HashMap<u64, Pending<K>>,
    expiries: BTreeSet<(Nanos, u64)>,
    /// Acquires given up here that the memory process may still grant.
    overdue: HashMap<u64, (Operation, Duration)>,
    /// What the memory process said of the session as a whole, if anything.
    last_words: Option<String>,
    tally: Tally,
    /// Writes and releases submitted, and how many of them are published for certain.
    written: u64,
    published: u64,
}

impl<K> Session<K> {
    /// A session that waits `grace` longer than a request's deadline for any answer.
    pub(crate) fn new(grace: Duration) -> Self {
        Self {
            state: State::Open,
            next_id: 1,
            grace,
            pending: HashMap::new(),
            expiries: BTreeSet::new(),
            overdue: HashMap::new(),
            last_words: None,
            tally: Tally::default(),
            written: 0,
            published: 0,
        }
    }

    /// Registers a request; returns the message to send, or why there is no use in sending one.
    pub(crate) fn submit(
        &mut self,
        now: Nanos,
        operation: Operation,
        body: Request,
        deadline: Duration,
        ticket: Option<K>,
    ) -> Result<wire::ApRequest, Box<Completion<K>>> {
        let closed = match &self.state {
            State::Open => None,
            State::Closing => Some(End::Closed),
            State::Over(end) => Some(end.clone()),
        };
        if let Some(end) = closed {
            self.tally.count(&operation, false);
            return Err(Box::new(Completion {
                ticket,
                outcome: Err(ended(&end, &operation)),
                operation,
                remote: false,
            }));
        }
        if operation.op == Op::Bye {
            self.state = State::Closing;
        }
        let id = self.next_id;
        self.next_id += 1;
        let expires = now + deadline.into() + self.grace.into();
        self.expiries.insert((expires, id));
        if matches!(operation.op, Op::Write | Op::Atomic | Op::Release) {
            self.written += 1;
        }
        let publishes = matches!(operation.op, Op::Release | Op::Barrier | Op::Publish);
        let pending = Pending {
            operation,
            deadline,
            expires,
            ticket,
            publishes: publishes.then_some(self.written),
            writes: writes_with(&body),
        };
        self.pending.insert(id, pending);
        Ok(wire::ApRequest {
            id,
            timeout_ms: Some(
                u32::try_from(deadline.as_millis())
                    .unwrap_or(u32::MAX)
                    .max(1),
            ),
            body: Some(body),
            ..wire::ApRequest::default()
        })
    }

    /// A reply arrived.
    pub(crate) fn receive(&mut self, now: Nanos, reply: wire::ApReply) -> Received<K> {
        let Some(pending) = self.pending.remove(&reply.id) else {
            return self.receive_unexpected(now, reply);
        };
        self.expiries.remove(&(pending.expires, reply.id));
        let operation = pending.operation;
        let outcome = match reply.body {
            None => Err(Error::protocol(&operation, "it is empty")),
            Some(Reply::Error(e)) => Err(Error::refused(
                &operation,
                pending.deadline,
                Refusal::from(e),
            )),
            Some(body) => Ok(body),
        };
        self.tally.count(&operation, outcome.is_ok());
        if outcome.is_ok() {
            self.tally
                .count_section(&operation.target, 0, pending.writes);
        }
        if let Some(published) = pending.publishes.filter(|_| outcome.is_ok()) {
            self.published = self.published.max(published);
        }
        if operation.op == Op::Bye {
            self.state = State::Over(End::Closed);
        }
        Received::Complete(Completion {
            ticket: pending.ticket,
            operation,
            outcome,
            remote: reply.remote,
        })
    }

    /// A reply to no request under way: too late, about the session as a whole, or nonsense.
    fn receive_unexpected(&mut self, now: Nanos, reply: wire::ApReply) -> Received<K> {
        let late = self.overdue.remove(&reply.id);
        match (reply.body, late) {
            (Some(Reply::Granted(grant)), Some((operation, deadline))) => {
                match self.give_back(now, &operation, grant.epoch, deadline) {
                    Some(request) => Received::GiveBack(request),
                    None => Received::Nothing,
                }
            }
            (Some(Reply::Error(e)), None) => {
                self.last_words = Some(e.message);
                Received::Nothing
            }
            _ => Received::Nothing,
        }
    }

    /// Releases what `acquire` was granted in the section `epoch`, because nobody waits for it.
    pub(crate) fn give_back(
        &mut self,
        now: Nanos,
        acquire: &Operation,
        epoch: u64,
        deadline: Duration,
    ) -> Option<wire::ApRequest> {
        let object = acquire.target.object?.to_wire();
        let body = Request::Access(wire::ObjectAccess {
            object,
            kind: Some(wire::object_access::Kind::Release(wire::Release {
                epoch: Some(epoch),
                write: None,
            })),
        });
        let operation = Op::Release.on(&acquire.target);
        // If the session is over, so is the section.
        self.submit(now, operation, body, deadline, None).ok()
    }

    /// Takes back a request that waits for other processes: its submitter does not wait any more. The
    /// memory process ends it as if its time were over, unless it is done already; the reply to it is
    /// treated as any other.
    pub(crate) fn cancel(&mut self, id: u64) -> Option<wire::ApRequest> {
        let pending = self.pending.get(&id)?;
        if !matches!(pending.operation.op, Op::Acquire | Op::Barrier) {
            return None;
        }
        self.next_id += 1;
        Some(wire::ApRequest {
            id: self.next_id - 1,
            body: Some(Request::Cancel(wire::Cancel { id })),
            ..wire::ApRequest::default()
        })
    }

    /// The object that a request under way is about.
    pub(crate) fn object_of(&self, id: u64) -> Option<ObjectId> {
        self.pending.get(&id)?.operation.target.object
    }

    /// What was served in this process.
    pub(crate) fn count_local(&mut self, target: &Target, served: &Served) {
        self.tally.count_local(target, served);
    }

    /// Reads that a section served.
    pub(crate) fn count_section(&mut self, target: &Target, reads: u64) {
        self.tally.count_section(target, reads, 0);
    }

    /// Whether all that this process wrote by messages, and all that it released so, is published.
    pub(crate) fn is_published(&self) -> bool {
        self.published == self.written
    }

    /// A message that gets no reply, for what travels beside requests; none if nothing can be sent.
    pub(crate) fn report(&mut self) -> Option<wire::ApRequest> {
        matches!(self.state, State::Open).then(|| {
            self.next_id += 1;
            wire::ApRequest {
                id: self.next_id - 1,
                body: Some(Request::Report(wire::Report::default())),
                ..wire::ApRequest::default()
            }
        })
    }

    /// When [`expire`](Self::expire) has something to do, unless requests come in before.
    pub(crate) fn next_expiry(&self) -> Option<Nanos> {
        self.expiries.first().map(|(at, _)| *at)
    }

    /// Gives up the requests whose time is over.
    pub(crate) fn expire(&mut self, now: Nanos) -> Vec<Completion<K>> {
        let mut over = Vec::new();
        while let Some((_, id)) = self.expiries.first().copied().filter(|(at, _)| *at <= now) {
            self.expiries.pop_first();
            let Some(pending) = self.pending.remove(&id) else {
                continue;
            };
            let operation = pending.operation;
            match operation.op {
                Op::Acquire => {
                    let late = (operation.clone(), pending.deadline);
                    self.overdue.insert(id, late);
                }
                // Said as well as it can be: the connection goes with this process.
                Op::Bye => self.state = State::Over(End::Closed),
                _ => {}
            }
            self.tally.count(&operation, false);
            over.push(Completion {
                ticket: pending.ticket,
                outcome: Err(Error::Deadline {
                    what: operation.to_string(),
                    after: pending.deadline,
                    why: "the memory process did not answer".into(),
                }),
                operation,
                remote: false,
            });
        }
        over
    }

    /// The session is over: completes all that is under way, in the order of submission.
    pub(crate) fn end(&mut self, end: End) -> Vec<Completion<K>> {
        let end = match (&self.state, end, self.last_words.take()) {
            (State::Closing, ..) => End::Closed,
            (State::Over(first), ..) => first.clone(),
            (State::Open, End::Lost(_), Some(words)) => End::Lost(words),
            (State::Open, end, _) => end,
        };
        self.state = State::Over(end.clone());
        self.expiries.clear();
        self.overdue.clear();
        let mut all: Vec<(u64, Pending<K>)> = self.pending.drain().collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        all.into_iter()
            .map(|(_, pending)| {
                self.tally.count(&pending.operation, false);
                Completion {
                    ticket: pending.ticket,
                    outcome: Err(ended(&end, &pending.operation)),
                    operation: pending.operation,
                    remote: false,
                }
            })
            .collect()
    }

    /// Nothing more will come of this session.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.state, State::Over(_))
    }

    /// What was done so far.
    pub(crate) fn counts(&self) -> Counts {
        self.tally.counts()
    }
}

/// How many writes of its section a release carries.
fn writes_with(body: &Request) -> u64 {
    use wire::object_access::Kind;
    match body {
        Request::Access(access) => match &access.kind {
            Some(Kind::Release(release)) => {
                let write = release.write.as_ref();
                write.map_or(0, |write| write.accesses.unwrap_or(1).into())
            }
            _ => 0,
        },
        _ => 0,
    }
}

fn ended(end: &End, operation: &Operation) -> Error {
    let what = operation.to_string();
    match end.clone() {
        End::Closed => Error::Closed { what },
        End::Lost(why) => Error::Lost { what, why },
        End::NotConnected { ap, why } => Error::NotConnected { ap, why },
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
