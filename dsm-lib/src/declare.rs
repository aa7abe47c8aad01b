//! Declaring variables: shape, split, owners, policy.

use std::marker::PhantomData;
use std::sync::Arc;

use dosmos_proto::wire::{ap_reply::Body as Reply, ap_request::Body as Request};
use dosmos_proto::{
    Cache, CopyPolicy, Layout, LockKind, Malformed, Placement, Variable as Declared, VariableSpec,
};

use crate::call::blocking;
use crate::element::Element;
use crate::member::Member;
use crate::operation::{Op, Operation, Target};
use crate::structs::{Shared, Structs};
use crate::variable::{Handle, Matrix, Variable, Vector};
use crate::{Call, Error, Result};

/// A variable about to be declared. Every process of the program may declare it, in the same words:
/// the first to come creates it (all elements zero), the others share it.
#[must_use = "nothing is declared until `declare`"]
pub struct Declaration<H> {
    member: Member,
    name: String,
    shape: (u64, u64),
    parts: (usize, usize),
    owners: Owners,
    policy: CopyPolicy,
    lock: LockKind,
    cache: Cache,
    replicas: u32,
    handle: PhantomData<fn() -> H>,
}

enum Owners {
    Placed(Placement),
    Named(Vec<String>),
    Ranks(Vec<usize>),
}

impl<H: Handle> Declaration<H> {
    pub(crate) fn new(member: &Member, name: &str, shape: (u64, u64)) -> Self {
        Self {
            member: member.clone(),
            name: name.to_owned(),
            shape,
            parts: (1, 1),
            owners: Owners::Placed(Placement::Creator),
            policy: CopyPolicy::default(),
            lock: LockKind::default(),
            cache: Cache::default(),
            replicas: 0,
            handle: PhantomData,
        }
    }

    fn placed(self, placement: Placement) -> Self {
        Self {
            owners: Owners::Placed(placement),
            ..self
        }
    }

    /// All objects belong to the memory process called `name`. Without a word about owners they
    /// belong to that of the process whose declaration comes first.
    pub fn owner(self, name: &str) -> Self {
        self.owners([name])
    }
    /// Object `i` belongs to the `i`-th of these memory processes; a shorter list repeats.
    pub fn owners<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
        let names = names.into_iter().map(Into::into).collect();
        Self {
            owners: Owners::Named(names),
            ..self
        }
    }
    /// All objects belong to a memory process chosen by a hash of the variable's name.
    pub fn owner_by_name(self) -> Self {
        self.placed(Placement::ByName)
    }
    /// Object `i` belongs to the `i`-th memory process of the cluster, round and round.
    pub fn owners_round_robin(self) -> Self {
        self.placed(Placement::RoundRobin(None))
    }
    /// Object `i` belongs to the `i`-th memory process of the group at `path`, round and round.
    pub fn owners_round_robin_in(self, path: &str) -> Self {
        self.placed(Placement::RoundRobin(Some(path.to_owned())))
    }
    /// Object `i` belongs to the memory process of the application process of rank `i`: each process
    /// has its part of the variable at hand.
    pub fn owner_per_rank(self) -> Self {
        let ranks = 0..self.member.place().size as usize;
        self.owner_ranks(ranks)
    }

    /// All objects belong to the memory process of the application process of rank `rank`.
    pub fn owner_rank(self, rank: usize) -> Self {
        self.owner_ranks([rank])
    }
    /// Object `i` belongs to the memory process of the application process of the `i`-th of these ranks; a
    /// shorter list repeats.
    pub fn owner_ranks(self, ranks: impl IntoIterator<Item = usize>) -> Self {
        Self {
            owners: Owners::Ranks(ranks.into_iter().collect()),
            ..self
        }
    }

    /// What a release does to the copies of an object; they are invalidated by default.
    pub fn policy(self, policy: CopyPolicy) -> Self {
        Self { policy, ..self }
    }

    /// How processes take turns on an object; at the owner's queue by default. The other kinds are slower
    /// under contention and promise less (see [`LockKind`]); they are there to be compared.
    pub fn lock(self, lock: LockKind) -> Self {
        Self { lock, ..self }
    }

    /// How near objects may come to the program. With [`Cache::Ap`], the default,
    /// a read of a valid copy sends nothing, what this process alone uses it reads and changes in place
    /// ([`Object::edit`](crate::Object::edit)), and what others release is seen when this process next synchronises (acquires,
    /// passes a barrier), and within 5 ms. With [`Cache::Mp`] every access is a message, which the monitor shows one by one, and what
    /// others release is seen at once by whoever reads again and again.
    pub fn cache(self, cache: Cache) -> Self {
        Self { cache, ..self }
    }

    /// Keeps what is released at this many other memory processes of the owner's group as well, 0 to 2; at none by
    /// default. A release, and a write outside sections, returns when they have it; if the owner is lost, another
    /// process of the group serves the objects as they were released last. They are not kept in application processes, whatever
    /// [`cache`](Self::cache) says.
    pub fn replicas(self, replicas: u32) -> Self {
        Self { replicas, ..self }
    }

    /// Declares the variable.
    ///
    /// # Errors
    /// [`Error::Declaration`] if it makes no sense;
    /// [`Error::Refused`] with [`ErrorCode::DeclarationConflict`](crate::ErrorCode::DeclarationConflict)
    /// if it has been declared in other words, or if an owner does not exist.
    pub fn declare(self) -> Result<H> {
        blocking(|| self.declare_async())
    }
    /// See [`declare`](Self::declare).
    pub fn declare_async(self) -> Call<H> {
        match self.spec() {
            Err(why) => Call::failed(Error::declaration(&self.name, why)),
            Ok(spec) => {
                let operation = Op::Declare.on(&Target::named(&self.name));
                variable_call(&self.member, operation, Request::Declare(spec.into()))
            }
        }
    }

    fn spec(&self) -> Result<VariableSpec, Malformed> {
        let part = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let parts = (part(self.parts.0), part(self.parts.1));
        let layout = Layout::new(H::Element::TYPE, self.shape, parts)?;
        VariableSpec::new(&*self.name, layout)?
            .with_placement(self.placement()?)
            .with_policy(self.policy)
            .with_lock(self.lock)
            .with_cache(self.cache)
            .with_replicas(self.replicas)
    }

    fn placement(&self) -> Result<Placement, Malformed> {
        match &self.owners {
            Owners::Placed(placement) => Ok(placement.clone()),
            Owners::Named(names) => Placement::explicit(names.iter().cloned()),
            Owners::Ranks(ranks) => Placement::explicit(names(&self.member.place().homes, ranks)?),
        }
    }
}

/// The memory processes of the application processes of these ranks.
fn names(homes: &[Arc<str>], ranks: &[usize]) -> Result<Vec<String>, Malformed> {
    let name = |rank: &usize| match homes.get(*rank) {
        Some(name) => Ok(name.to_string()),
        None => Err(Malformed::new(
            "placement",
            format!(
                "there is no application process of rank {rank}; there are {}",
                homes.len()
            ),
        )),
    };
    ranks.iter().map(name).collect()
}

impl<T: Element> Declaration<Vector<T>> {
    /// Splits the vector into `parts` objects of equal length (but for one element).
    pub fn split(self, parts: usize) -> Self {
        Self {
            parts: (1, parts),
            ..self
        }
    }
}

impl<T: Shared + 'static> Declaration<Structs<T>> {
    /// Splits the structs into `parts` objects of equal length (but for one struct).
    pub fn split(self, parts: usize) -> Self {
        Self {
            parts: (parts, 1),
            ..self
        }
    }
}

impl<T: Element> Declaration<Matrix<T>> {
    /// Splits the matrix into `parts` bands of rows.
    pub fn split_rows(self, parts: usize) -> Self {
        self.split_blocks(parts, 1)
    }
    /// Splits the matrix into `parts` bands of columns.
    pub fn split_columns(self, parts: usize) -> Self {
        self.split_blocks(1, parts)
    }
    /// Splits the matrix into `row_parts × column_parts` blocks.
    pub fn split_blocks(self, row_parts: usize, column_parts: usize) -> Self {
        Self {
            parts: (row_parts, column_parts),
            ..self
        }
    }
}

/// A request that is answered with a variable.
pub(crate) fn variable_call<H: Handle>(
    member: &Member,
    operation: Operation,
    body: Request,
) -> Call<H> {
    let session = member.clone();
    member.client().call_checked(
        operation,
        body,
        member.deadline(),
        move |operation, reply| {
            let nonsense = |e: Malformed| Error::protocol(operation, e.to_string());
            let Reply::Variable(variable) = reply else {
                return Err(nonsense(Malformed::new("reply", "not a variable")));
            };
            let variable = Declared::try_from(variable).map_err(nonsense)?;
            H::of(Variable::new(session, variable)?)
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_become_the_memory_processes_that_serve_them() {
        let homes = ["a", "b", "b"].map(Arc::from);
        assert_eq!(names(&homes, &[0, 2, 0]).unwrap(), ["a", "b", "a"]);
        let error = names(&homes, &[0, 3]).unwrap_err().to_string();
        assert!(error.contains("rank 3; there are 3"), "{error}");
    }
}
