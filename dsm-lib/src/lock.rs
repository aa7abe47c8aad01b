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
use std::time::Duration;

use dosmos_proto::{Cache, ErrorCode, LockKind, Nanos, Variable as Declared};

use crate::declare::Declaration;
use crate::lock_words::LockWords;
use crate::member::Member;
use crate::variable::Vector;
use crate::{Error, Object, Result};

/// Nobody, in words that hold ranks; others are rank + 1.
const NOBODY: u64 = 0;

// State of a node.
const FREE: u64 = 0;
const WAITING: u64 = 1;
const GRANTED: u64 = 2;
/// Its process gave up; whoever hands over to it passes it by.
const GIVEN_UP: u64 = 3;

/// The lock words of a variable.
struct Lock {
    member: Member,
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

/// The lock of a variable; none for the owner's queue, which needs no words.
pub(crate) fn of(member: &Member, declared: &Declared) -> Option<Arc<dyn LockWords>> {
    let kind = declared.spec().lock();
    (kind != LockKind::Queue).then(|| {
        let owners = declared.owners().iter();
        let lock = Lock {
            member: member.clone(),
            kind,
            variable: declared.spec().name().into(),
            owners: owners.map(|&o| member.place().name_of(o)).collect(),
            objects: declared.spec().layout().objects() as usize,
            words: OnceLock::new(),
        };
        Arc::new(lock) as Arc<dyn LockWords>
    })
}

impl LockWords for Lock {
    fn kind(&self) -> LockKind {
        self.kind
    }

    fn acquire(&self, index: usize, deadline: Duration) -> Result<()> {
        let words = self.words()?;
        let timeout = self.timeout("acquire", index, deadline);
        match &words.nodes {
            None => self.spin(&words.lock.object(index)?, &timeout),
            Some(nodes) => self.queue(&words.lock.object(index)?, nodes, index, &timeout),
        }
    }

    fn release(&self, index: usize, deadline: Duration) -> Result<()> {
        let words = self.words()?;
        let timeout = self.timeout("release", index, deadline);
        self.member.publish().wait()?;
        let word = words.lock.object(index)?;
        match &words.nodes {
            None => {
                // Only if it is this process's: a release that is repeated must not free another's lock.
                word.compare_exchange(0, self.me(), NOBODY)?;
                self.member.publish().wait() // those who wait look at copies of the word
            }
            Some(nodes) => self.hand_over(&word, nodes, index, &timeout),
        }
    }
}

impl Lock {
    /// Every process declares them in the same words, so whoever comes first makes them.
    fn words(&self) -> Result<&Words> {
        if let Some(words) = self.words.get() {
            return Ok(words);
        }
        let vector = |name: &str, length: usize| {
            let name = format!("{}#{name}", self.variable);
            Declaration::<Vector<u64>>::new(&self.member, &name, (1, length as u64))
        };
        let lock = vector("lock", self.objects)
            .split(self.objects)
            .owners(self.owners.iter().map(ToString::to_string))
            .cache(Cache::Mp) // who waits must see changes at once
            .declare()?;
        let nodes = match self.kind {
            LockKind::Mcs => {
                let size = self.member.place().size as usize;
                let nodes = vector("nodes", 2 * self.objects * size);
                let nodes = nodes.split(size).owner_per_rank();
                Some(nodes.cache(Cache::Mp).declare()?)
            }
            _ => None,
        };
        Ok(self.words.get_or_init(|| Words { lock, nodes }))
    }

    fn timeout(&self, of: &str, index: usize, after: Duration) -> Timeout<'_> {
        Timeout {
            member: &self.member,
            until: self.member.client().shared().now() + after.into(),
            after,
            what: format!("{of} of {}[{index}]", self.variable),
        }
    }

    fn me(&self) -> u64 {
        u64::from(self.member.place().rank) + 1
    }

    fn held(&self, timeout: &Timeout<'_>, how: &str) -> Error {
        Error::Refused {
            what: timeout.what.clone(),
            code: ErrorCode::AlreadyHeld,
            message: format!(
                "{} {how}; threads of one process that take turns on an object need a mutex of the program around \
                 their sections",
                self.member.place().name
            ),
        }
    }

    fn spin(&self, word: &Object<u64>, timeout: &Timeout<'_>) -> Result<()> {
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
                return Err(self.held(timeout, "already holds it; release it first"));
            }
            timeout.check(|| format!("the process of rank {} holds it", holder - 1))?;
        }
    }

    fn queue(
        &self,
        tail: &Object<u64>,
        nodes: &Vector<u64>,
        index: usize,
        timeout: &Timeout<'_>,
    ) -> Result<()> {
        let node = Node::of(nodes, self.me(), index)?;
        // In one step: another thread of this process may be here, too.
        if !node.change(FREE, WAITING)? {
            let how =
                "holds it already, or is still in its queue from an acquire whose time was over";
            return Err(self.held(timeout, how));
        }
        node.set_next(NOBODY)?;
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
                timeout.check(|| format!("it came behind the process of rank {}", before - 1));
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

    fn hand_over(
        &self,
        tail: &Object<u64>,
        nodes: &Vector<u64>,
        index: usize,
        timeout: &Timeout<'_>,
    ) -> Result<()> {
        let mut rank = self.me();
        loop {
            let node = Node::of(nodes, rank, index)?;
            let mut next = node.next()?;
            if next == NOBODY {
                if tail.compare_exchange(0, rank, NOBODY)?.stored {
                    return node.set_state(FREE);
                }
                // Somebody has joined the queue and is about to say so, unless it has ended since.
                while next == NOBODY {
                    timeout.check(|| {
                        let who = "a process that joined its queue";
                        format!("{who} did not say that it is the next; it has probably ended")
                    })?;
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
struct Timeout<'a> {
    member: &'a Member,
    until: Nanos,
    after: Duration,
    what: String,
}

impl Timeout<'_> {
    fn check(&self, why: impl FnOnce() -> String) -> Result<()> {
        if self.member.client().shared().now() < self.until {
            std::thread::yield_now();
            return Ok(());
        }
        Err(Error::Deadline {
            what: self.what.clone(),
            after: self.after,
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
