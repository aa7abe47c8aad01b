//! The session as the program sees it: who am I, who else is there, variables, barriers, the end.

use std::sync::Arc;
use std::time::Duration;

use dosmos_proto::wire::{self, ap_reply::Body as Reply, ap_request::Body as Request};
use dosmos_proto::{Malformed, PROTOCOL};

use crate::barrier::{self, UNNAMED};
use crate::call::blocking;
use crate::client::Client;
use crate::counts::Counts;
use crate::element::Element;
use crate::lock;
use crate::member::Member;
use crate::operation::{Op, Target};
use crate::place::Place;
use crate::structs::{Shared, Structs};
use crate::{Call, Declaration, Handle, Matrix, MemoryProcess, Result, Scalar, Settings, Vector};

/// A session with a memory process: this program's place in the cluster.
///
/// Clones share the session. It ends with [`close`](Self::close), or when the last clone and the last
/// handle made from one are dropped; sections still open are lost then, not released.
///
/// One thread carries the session; operations may be called from any number of threads. To the
/// cluster they are all one application process: a lock that one thread holds is held by all of them, and acquiring it in
/// another is refused ([`ErrorCode::AlreadyHeld`](crate::ErrorCode::AlreadyHeld)). Threads that take turns on one object put a mutex of the program
/// around their sections; sections of different objects need none.
#[derive(Clone)]
pub struct Dsm {
    member: Member,
}

impl Dsm {
    /// Joins the cluster that `dosmos up` has started this program in.
    ///
    /// # Errors
    /// [`Error::Environment`](crate::Error::Environment) if it has not;
    /// [`Error::NotConnected`](crate::Error::NotConnected) if the memory process does not answer;
    /// [`Error::Refused`](crate::Error::Refused) if it does not know this program or knows it already.
    pub fn from_env() -> Result<Self> {
        Self::connect(Settings::from_env()?)
    }

    /// Joins a cluster.
    ///
    /// # Errors
    /// As [`from_env`](Self::from_env).
    pub fn connect(settings: Settings) -> Result<Self> {
        let client = Client::start(settings.clone())?;
        let (joined, welcome) = hello(settings, client);
        Ok(joined(welcome.wait()?))
    }

    /// See [`connect`](Self::connect).
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_async(settings: Settings) -> Result<Self> {
        let client = Client::start(settings.clone())?;
        let (joined, welcome) = hello(settings, client);
        Ok(joined(welcome.await?))
    }

    /// As [`connect`](Self::connect), by a session that a host carries.
    #[cfg(feature = "simulation")]
    pub(crate) fn hosted(settings: &Settings, client: Client) -> Result<Self> {
        let (joined, welcome) = hello(settings.clone(), client);
        Ok(joined(welcome.wait()?))
    }

    fn place(&self) -> &Place {
        self.member.place()
    }

    /// Position of this application process among all, from 0.
    pub fn rank(&self) -> usize {
        self.place().rank as usize
    }
    /// Number of application processes.
    pub fn size(&self) -> usize {
        self.place().size as usize
    }
    /// Name of this application process.
    pub fn name(&self) -> &str {
        &self.place().name
    }
    /// Path of its group: `/ocean/north`.
    pub fn group(&self) -> &str {
        &self.place().group
    }
    /// Position of this application process among those of its group (with sub-groups), from 0.
    pub fn group_rank(&self) -> usize {
        self.place().group_rank as usize
    }
    /// Number of application processes of its group (with sub-groups).
    pub fn group_size(&self) -> usize {
        self.place().group_size as usize
    }
    /// Name of the memory process that serves this application process.
    pub fn memory_process(&self) -> &str {
        &self.place().memory_process
    }
    /// The memory processes that can own objects, in the order of the cluster file.
    pub fn memory_processes(&self) -> &[MemoryProcess] {
        &self.place().owners
    }
    /// Names of the memory processes of the application processes, by rank.
    pub fn homes(&self) -> &[Arc<str>] {
        &self.place().homes
    }

    /// The same session, with another deadline for operations on it and on handles made from it.
    #[must_use]
    pub fn with_deadline(&self, deadline: Duration) -> Self {
        Self {
            member: self.member.with_deadline(deadline),
        }
    }
    /// The deadline of operations.
    pub fn deadline(&self) -> Duration {
        self.member.deadline()
    }

    /// A scalar variable, to declare or, if another process has done so with the same words, to share.
    pub fn scalar<T: Element>(&self, name: &str) -> Declaration<Scalar<T>> {
        Declaration::new(&self.member, name, (1, 1))
    }
    /// A vector of `length` elements; see [`scalar`](Self::scalar).
    pub fn vector<T: Element>(&self, name: &str, length: usize) -> Declaration<Vector<T>> {
        Declaration::new(&self.member, name, (1, length as u64))
    }
    /// A matrix of `rows × columns` elements; see [`scalar`](Self::scalar).
    pub fn matrix<T: Element>(
        &self,
        name: &str,
        rows: usize,
        columns: usize,
    ) -> Declaration<Matrix<T>> {
        Declaration::new(&self.member, name, (rows as u64, columns as u64))
    }

    /// A variable of `length` structs (`#[derive(Shared)]`), of which the length of one is part of the shape; see
    /// [`scalar`](Self::scalar).
    pub fn structs<T: Shared + 'static>(
        &self,
        name: &str,
        length: usize,
    ) -> Declaration<Structs<T>> {
        Declaration::new(&self.member, name, (length as u64, T::BYTES as u64))
    }

    /// Opens a variable that has been declared: `let grid: Matrix<f64> = dsm.open("grid")?;`. As a
    /// [`Variable<T>`](crate::Variable) it may have any shape.
    ///
    /// # Errors
    /// [`Error::Refused`](crate::Error::Refused) with
    /// [`ErrorCode::UnknownVariable`](crate::ErrorCode::UnknownVariable),
    /// [`Error::WrongType`](crate::Error::WrongType), [`Error::WrongShape`](crate::Error::WrongShape).
    pub fn open<H: Handle>(&self, name: &str) -> Result<H> {
        blocking(|| self.open_async(name))
    }
    /// See [`open`](Self::open).
    pub fn open_async<H: Handle>(&self, name: &str) -> Call<H> {
        let target = Target::named(name);
        let body = Request::Open(name.to_owned());
        crate::declare::variable_call(&self.member, Op::Open.on(&target), body)
    }

    /// Waits until all application processes have come to this barrier. What any of them wrote before
    /// it, all of them see after it.
    ///
    /// # Errors
    /// [`Error::Refused`](crate::Error::Refused) with
    /// [`ErrorCode::ProcessLost`](crate::ErrorCode::ProcessLost) if one of them has left;
    /// [`Error::Deadline`](crate::Error::Deadline).
    pub fn barrier(&self) -> Result<()> {
        barrier::pass(self.size(), || self.barrier_async())
    }
    /// See [`barrier`](Self::barrier).
    pub fn barrier_async(&self) -> Call<()> {
        barrier::arrive(self.member.client(), self.deadline(), "", UNNAMED)
    }
    /// As [`barrier`](Self::barrier), with a name: barriers of different names are different.
    ///
    /// # Errors
    /// As [`barrier`](Self::barrier).
    pub fn barrier_named(&self, name: &str) -> Result<()> {
        blocking(|| self.barrier_named_async(name))
    }
    /// See [`barrier_named`](Self::barrier_named).
    pub fn barrier_named_async(&self, name: &str) -> Call<()> {
        barrier::arrive(self.member.client(), self.deadline(), "", name)
    }
    /// As [`barrier`](Self::barrier), of this process's own group with its sub-groups.
    ///
    /// # Errors
    /// As [`barrier`](Self::barrier).
    pub fn group_barrier(&self) -> Result<()> {
        barrier::pass(self.group_size(), || self.group_barrier_async())
    }
    /// See [`group_barrier`](Self::group_barrier).
    pub fn group_barrier_async(&self) -> Call<()> {
        barrier::arrive(self.member.client(), self.deadline(), self.group(), UNNAMED)
    }
    /// As [`barrier`](Self::barrier), of the group at `path` with its sub-groups, of which this process
    /// must be one: `/ocean`.
    ///
    /// # Errors
    /// As [`barrier`](Self::barrier); refused if there is no such group or this process is not of it.
    pub fn barrier_of(&self, path: &str) -> Result<()> {
        blocking(|| self.barrier_of_async(path, UNNAMED))
    }
    /// As [`barrier_of`](Self::barrier_of), with a name.
    pub fn barrier_of_async(&self, path: &str, name: &str) -> Call<()> {
        barrier::arrive(self.member.client(), self.deadline(), path, name)
    }

    /// Makes what this process wrote outside sections visible to all, as its next release or barrier would;
    /// returns when it is. Nothing to publish costs one round trip to the memory process.
    ///
    /// # Errors
    /// [`Error::Refused`](crate::Error::Refused) if an owner cannot be reached;
    /// [`Error::Deadline`](crate::Error::Deadline).
    pub fn publish(&self) -> Result<()> {
        self.publish_async().wait()
    }
    /// See [`publish`](Self::publish).
    pub fn publish_async(&self) -> Call<()> {
        self.member.publish()
    }

    /// The operations of this process so far, by object. An operation is counted when it is over. One that nobody waits for (a
    /// [posted](crate::Call::post) one, a barrier of a process that is alone) is counted at the latest by the next
    /// [`publish`](Self::publish).
    pub fn counts(&self) -> Counts {
        self.member.client().counts()
    }

    /// Ends the session, for all clones and handles; sections still open are lost.
    ///
    /// # Errors
    /// If the memory process does not take leave; the session is over all the same.
    pub fn close(self) -> Result<()> {
        blocking(|| self.member.client().bye())
    }
    /// See [`close`](Self::close).
    pub fn close_async(self) -> Call<()> {
        self.member.client().bye()
    }
}

/// Asks a memory process for a place in the cluster; with what makes a session of that.
fn hello(settings: Settings, client: Client) -> (impl FnOnce(Place) -> Dsm, Call<Place>) {
    let name = settings.ap;
    let deadline = settings.deadline;
    let timeout = settings.connect_timeout + deadline;
    let body = Request::Hello(wire::ApHello {
        name: name.clone(),
        protocol: PROTOCOL,
        ..wire::ApHello::default()
    });
    let operation = Op::Hello.on(client.me());
    let call = client.call(operation, body, timeout, |_, reply| match reply {
        Reply::Welcome(welcome) => Place::new(name, welcome),
        _ => Err(Malformed::new("reply", "not a welcome")),
    });
    let joined = move |place| Dsm {
        member: Member::new(client, place, deadline, lock::of),
    };
    (joined, call)
}

impl std::fmt::Debug for Dsm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dsm({} of {})", self.name(), self.group())
    }
}
