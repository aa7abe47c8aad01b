//! Locks other than the owner's queue, made of shared words beside the variable (docs/design/protocol.md#lock-kinds).
//!
//! `spin`: one word per object at the object's owner, holding the rank of the holder. `mcs` (Mellor-Crummey
//! and Scott, 1991): one word per object for the tail of the queue, and a node per process and object at the
//! process's own memory process: who waits asks its own node only, and the holder writes into the next
//! process's node directly. The words are ordinary variables, `NAME#lock` and `NAME#nodes`, so the traffic
//! that a lock kind causes shows in the trace.
//!
//! Guarantee, for both: mutual exclusion, and what the last holder wrote is visible to the next. Not given,
//! unlike by the owner's queue: a section is not seen as a whole by those who read without the lock, and a
//! process that dies with the lock keeps it.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use dosmos_proto::{ErrorCode, LockKind, Variable as Declared};

use crate::variable::Vector;
use crate::{Dsm, Error, Object, Result};

/// Nobody, in words that hold ranks; others are rank + 1.
const NOBODY: u64 = 0;

// State of a node.
const FREE: u64 = 0;
const WAITING: u64 = 1;
const GRANTED: u64 = 2;
/// Its process gave up; whoever hands over to it passes it by.
const GIVEN_UP: u64 = 3;

/// The lock words of a variable.
pub(crate) struct Lock {
    dsm: Dsm,
    kind: LockKind,
    variable: Arc<str>,
    owners: Vec<Arc<str>>,
    objects: usize,
    words: OnceLock<Words>,
}

struct Words {
    /// Holder (spin) or tail of the queue (mcs), by object.
    lock: Vector<u64>,
    /// Of mcs: for each rank, for each object, the next in the queue and the state of the node.
    nodes: Option<Vector<u64>>,
}

impl Lock {
    /// None for the owner's queue, which needs no words.
    pub(crate) fn of(dsm: &Dsm, declared: &Declared) -> Option<Arc<Self>> {
        let kind = declared.spec().lock();
        (kind != LockKind::Queue).then(|| {
            let owners = declared.owners().iter();
            Arc::new(Self {
                dsm: dsm.clone(),
                kind,
                variable: declared.spec().name().into(),
                owners: owners.map(|&o| dsm.memory_process_name(o)).collect(),
                objects: declared.spec().layout().objects() as usize,
                words: OnceLock::new(),
            })
        })
    }

    pub(crate) fn kind(&self) -> LockKind {
        self.kind
    }

    /// Every process declares them in the same words, so whoever comes first makes them.
    fn words(&self) -> Result<&Words> {
        if let Some(words) = self.words.get() {
            return Ok(words);
        }
        let lock = self
            .dsm
            .vector(&format!("{}#lock", self.variable), self.objects)
            .split(self.objects)
            .owners(self.owners.iter().map(ToString::to_string))
            .declare()?;
        let nodes = match self.kind {
            LockKind::Mcs => {
                let all = 2 * self.objects * self.dsm.size();
                let nodes = self.dsm.vector(&format!("{}#nodes", self.variable), all);
                Some(nodes.split(self.dsm.size()).owner_per_rank().declare()?)
            }
            _ => None,
        };
        Ok(self.words.get_or_init(|| Words { lock, nodes }))
    }

    /// Blocks until this process has object `index`.
    pub(crate) fn acquire(&self, index: usize, deadline: Duration) -> Result<()> {
        let words = self.words()?;
        let patience = Patience {
            until: Instant::now() + deadline,
            deadline,
            what: format!("acquire of {}[{index}]", self.variable),
        };
        match &words.nodes {
            None => self.spin(&words.lock.object(index)?, &patience),
            Some(nodes) => self.queue(&words.lock.object(index)?, nodes, index, &patience),
        }
    }

    /// Publishes what was written and lets the next process in.
    pub(crate) fn release(&self, index: usize) -> Result<()> {
        let words = self.words()?;
        self.dsm.publish()?;
        match &words.nodes {
            None => {
                words.lock.object(index)?.set(0, NOBODY)?;
                self.dsm.publish() // those who wait look at copies of the word
            }
            Some(nodes) => self.hand_over(&words.lock.object(index)?, nodes, index),
        }
    }

    fn me(&self) -> u64 {
        self.dsm.rank() as u64 + 1
    }

    fn held(&self, patience: &Patience, how: &str) -> Error {
        Error::Refused {
            what: patience.what.clone(),
            code: ErrorCode::AlreadyHeld,
            message: format!("{} {how}", self.dsm.name()),
        }
    }

    fn spin(&self, word: &Object<u64>, patience: &Patience) -> Result<()> {
        loop {
            // The test, on a copy where there is one; then the test and set, at the owner.
            let mut holder = word.get(0)?;
            if holder == NOBODY {
                let attempt = word.compare_exchange(0, NOBODY, self.me())?;
                if attempt.stored {
                    return Ok(());
                }
                holder = attempt.previous;
            }
            if holder == self.me() {
                return Err(self.held(patience, "already holds it; release it first"));
            }
            patience.check(|| format!("the process of rank {} holds it", holder - 1))?;
        }
    }

    fn queue(
        &self,
        tail: &Object<u64>,
        nodes: &Vector<u64>,
        index: usize,
        patience: &Patience,
    ) -> Result<()> {
        let node = Node::of(nodes, self.me(), index)?;
        if node.state()? != FREE {
            let how =
                "holds it already, or is still in its queue from an acquire whose time was over";
            return Err(self.held(patience, how));
        }
        node.prepare()?;
        let mut before = NOBODY;
        loop {
            let swap = tail.compare_exchange(0, before, self.me())?;
            if swap.stored {
                break;
            }
            before = swap.previous;
        }
        if before == NOBODY {
            return Ok(());
        }
        Node::of(nodes, before, index)?.set_next(self.me())?;
        while node.state()? != GRANTED {
            let late =
                patience.check(|| format!("it came behind the process of rank {}", before - 1));
            if let Err(late) = late {
                // Unless it was granted this moment.
                return if node.change(WAITING, GIVEN_UP)? {
                    Err(late)
                } else {
                    Ok(())
                };
            }
        }
        Ok(())
    }

    fn hand_over(&self, tail: &Object<u64>, nodes: &Vector<u64>, index: usize) -> Result<()> {
        let mut rank = self.me();
        loop {
            let node = Node::of(nodes, rank, index)?;
            let mut next = node.next()?;
            if next == NOBODY {
                if tail.compare_exchange(0, rank, NOBODY)?.stored {
                    return node.set_state(FREE);
                }
                // Somebody has joined the queue and is about to say so.
                while next == NOBODY {
                    std::thread::yield_now();
                    next = node.next()?;
                }
            }
            let taken = Node::of(nodes, next, index)?.change(WAITING, GRANTED)?;
            node.set_state(FREE)?;
            if taken {
                return Ok(());
            }
            rank = next;
        }
    }
}

/// How long a process waits for a lock.
struct Patience {
    until: Instant,
    deadline: Duration,
    what: String,
}

impl Patience {
    fn check(&self, why: impl FnOnce() -> String) -> Result<()> {
        if Instant::now() < self.until {
            std::thread::yield_now();
            return Ok(());
        }
        Err(Error::Deadline {
            what: self.what.clone(),
            after: self.deadline,
            why: why(),
        })
    }
}

/// One process's place in the queue of one object.
struct Node {
    object: Object<u64>,
    /// Position of `next`; the state follows.
    at: usize,
}

impl Node {
    fn of(nodes: &Vector<u64>, rank: u64, index: usize) -> Result<Self> {
        Ok(Self {
            object: nodes.object(rank as usize - 1)?,
            at: 2 * index,
        })
    }

    /// Reads past any copy: what another process just wrote must be seen.
    fn fresh(&self, at: usize) -> Result<u64> {
        if self.object.is_local() {
            return self.object.get(at);
        }
        Ok(self.object.compare_exchange(at, NOBODY, NOBODY)?.previous)
    }

    fn next(&self) -> Result<u64> {
        self.fresh(self.at)
    }
    fn state(&self) -> Result<u64> {
        self.fresh(self.at + 1)
    }
    fn prepare(&self) -> Result<()> {
        self.object.write_at(self.at, &[NOBODY, WAITING])
    }
    fn set_next(&self, rank: u64) -> Result<()> {
        self.object.set(self.at, rank)
    }
    fn set_state(&self, state: u64) -> Result<()> {
        self.object.set(self.at + 1, state)
    }
    fn change(&self, from: u64, to: u64) -> Result<bool> {
        Ok(self.object.compare_exchange(self.at + 1, from, to)?.stored)
    }
}

impl std::fmt::Debug for Lock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Lock({} of {})", self.kind, self.variable)
    }
}
