//! Connections between processes: streams, in order each, delayed at random, which a cut stops or ends.

use std::collections::BTreeMap;

use dosmos_proto::wire::{
    ApReply, ApRequest, ExchangeReply, ExchangeRequest, IngestReply, IngestRequest, PeerMessage,
    peer_message,
};

/// Least time between two messages of one connection, in ns: to handle one takes that long, so any clock tells them apart.
pub(crate) const APART: u64 = 100;

/// A process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pid {
    /// An application process.
    Ap(usize),
    /// A second one of the same name.
    Intruder(usize),
    /// A memory or link process.
    Mp(usize),
    /// An event manager.
    Emp(usize),
}

/// What travels.
#[derive(Clone, Debug)]
pub(crate) enum Message {
    /// Somebody dials.
    Open,
    /// The other end is gone, or was never there.
    Closed,
    Request(Box<ApRequest>),
    Reply(Box<ApReply>),
    Peer(Box<PeerMessage>),
    Ingest(Box<IngestRequest>),
    IngestReply(Box<IngestReply>),
    Exchange(Box<ExchangeRequest>),
    ExchangeReply(Box<ExchangeReply>),
}

/// What a message keeps up that does nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Upkeep {
    /// The way of records to the event manager.
    Records,
    /// The lease of a copy.
    Lease,
}

impl Message {
    /// Adds its bytes.
    pub(crate) fn encode(&self, to: &mut Vec<u8>) {
        use prost::Message as _;
        // Into a vector everything fits.
        let _ = match self {
            Self::Open => {
                to.push(1);
                Ok(())
            }
            Self::Closed => {
                to.push(2);
                Ok(())
            }
            Self::Request(m) => m.encode(to),
            Self::Reply(m) => m.encode(to),
            Self::Peer(m) => m.encode(to),
            Self::Ingest(m) => m.encode(to),
            Self::IngestReply(m) => m.encode(to),
            Self::Exchange(m) => m.encode(to),
            Self::ExchangeReply(m) => m.encode(to),
        };
    }

    /// What it keeps up, if that is all it does: whoever gets it is as idle as before.
    pub(crate) fn upkeep(&self) -> Option<Upkeep> {
        use peer_message::Body;
        match self {
            Self::IngestReply(_) => Some(Upkeep::Records),
            Self::Peer(m) => {
                matches!(m.body, Some(Body::Renew(_) | Body::Renewed(_))).then_some(Upkeep::Lease)
            }
            _ => None,
        }
    }

    /// What it is, in a few words.
    pub(crate) fn words(&self) -> String {
        let text = match self {
            Self::Open => "dials".to_owned(),
            Self::Closed => "is gone".to_owned(),
            Self::Request(m) => format!("{} {:?}", m.id, m.body),
            Self::Reply(m) => format!("{} {:?}", m.id, m.body),
            Self::Peer(m) => format!(
                "{} for {}: {:?} {:?}",
                m.source, m.destination, m.call, m.body
            ),
            Self::Ingest(m) => format!("{:?}", m.body),
            Self::IngestReply(m) => format!("{:?}", m.body),
            Self::Exchange(m) => format!("{:?}", m.body),
            Self::ExchangeReply(m) => format!("{:?}", m.body),
        };
        text.chars().take(220).collect()
    }
}

/// Number of a connection.
pub(crate) type ConnId = usize;

#[derive(Clone, Copy, Debug)]
struct End {
    pid: Pid,
    open: bool,
    /// When the last message to it arrives.
    last: u64,
    /// What was under way to it since this time was lost with who sent it.
    lost_from: u64,
}

/// A connection; its first end dialled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conn {
    ends: [End; 2],
}

impl Conn {
    pub(crate) fn pid(&self, end: usize) -> Pid {
        self.ends[end].pid
    }

    pub(crate) fn is_open(&self, end: usize) -> bool {
        self.ends[end].open
    }

    /// Whether what arrives at an end now was lost with who sent it.
    pub(crate) fn has_lost(&self, end: usize, now: u64) -> bool {
        now > self.ends[end].lost_from
    }
}

/// All connections, and what is cut.
#[derive(Debug, Default)]
pub(crate) struct Network {
    conns: BTreeMap<ConnId, Conn>,
    next: ConnId,
    /// Directions in which nothing arrives until a time.
    blocked: BTreeMap<(Pid, Pid), u64>,
}

impl Network {
    /// A connection that `from` opens to `to`, which may not take it.
    pub(crate) fn dial(&mut self, from: Pid, to: Pid) -> ConnId {
        let end = |pid, open| End {
            pid,
            open,
            last: 0,
            lost_from: u64::MAX,
        };
        let conn = Conn {
            ends: [end(from, true), end(to, false)],
        };
        self.next += 1;
        self.conns.insert(self.next, conn);
        self.next
    }

    pub(crate) fn conn(&self, id: ConnId) -> Option<&Conn> {
        self.conns.get(&id)
    }

    /// The dialled end takes it.
    pub(crate) fn accept(&mut self, id: ConnId) {
        if let Some(conn) = self.conns.get_mut(&id) {
            conn.ends[1].open = true;
        }
    }

    /// One end is closed; whether it was open.
    pub(crate) fn close(&mut self, id: ConnId, end: usize) -> bool {
        let Some(conn) = self.conns.get_mut(&id) else {
            return false;
        };
        std::mem::replace(&mut conn.ends[end].open, false)
    }

    /// Forgets connections of which no end is open and nothing is under way.
    pub(crate) fn forget(&mut self, id: ConnId, now: u64) {
        let over = |c: &Conn| c.ends.iter().all(|e| !e.open && e.last <= now);
        if self.conns.get(&id).is_some_and(over) {
            self.conns.remove(&id);
        }
    }

    /// The open ends of a process.
    pub(crate) fn open_ends(&self, pid: Pid) -> Vec<(ConnId, usize)> {
        let ends = self.conns.iter().flat_map(|(id, c)| {
            let its = (0..2).filter(|e| c.ends[*e].pid == pid && c.ends[*e].open);
            its.map(|e| (*id, e)).collect::<Vec<_>>()
        });
        ends.collect()
    }

    /// The open connections between two processes, with the end of the first.
    pub(crate) fn between(&self, a: Pid, b: Pid) -> Vec<(ConnId, usize)> {
        let mut all = self.open_ends(a);
        all.retain(|(id, end)| self.conns[id].ends[1 - end].pid == b);
        all
    }

    /// When a message that is sent now, after a delay, arrives at an end.
    pub(crate) fn arrival(&mut self, id: ConnId, to: usize, now: u64, delay: u64) -> Option<u64> {
        let conn = self.conns.get_mut(&id)?;
        let pair = (conn.ends[1 - to].pid, conn.ends[to].pid);
        let mut at = now + delay;
        if let Some(until) = self.blocked.get(&pair) {
            at = at.max(until + delay);
        }
        let end = &mut conn.ends[to];
        end.last = at.max(end.last + APART);
        Some(end.last)
    }

    /// A process is about to be lost with its machine: of what it sent, what would arrive after this time does not.
    pub(crate) fn lose_from(&mut self, pid: Pid, from: u64) {
        for (id, end) in self.open_ends(pid) {
            if let Some(conn) = self.conns.get_mut(&id) {
                conn.ends[1 - end].lost_from = from;
            }
        }
    }

    /// Nothing that is sent from now on arrives until then.
    pub(crate) fn block(&mut self, from: Pid, to: Pid, until: u64) {
        let known = self.blocked.entry((from, to)).or_default();
        *known = (*known).max(until);
    }

    /// What is sent from now on arrives.
    pub(crate) fn unblock(&mut self) {
        self.blocked.clear();
    }

    /// Whether something that one of them sends now arrives only later.
    pub(crate) fn is_blocked(&self, a: Pid, b: Pid, now: u64) -> bool {
        let blocked = |pair| self.blocked.get(&pair).is_some_and(|until| *until > now);
        blocked((a, b)) || blocked((b, a))
    }
}
