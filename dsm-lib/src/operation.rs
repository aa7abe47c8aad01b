//! What an operation is about, for error messages and counts: "acquire of grid[2]".

use std::fmt;
use std::sync::Arc;

use dosmos_proto::ObjectId;

/// The kinds of requests a session makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Hello,
    Declare,
    Open,
    Read,
    Write,
    Atomic,
    Acquire,
    Release,
    Barrier,
    Publish,
    Bye,
}

/// An operation and what it is done to.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) op: Op,
    pub(crate) target: Target,
}

/// A variable, an object of one, a barrier or a process, by name.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) name: Arc<str>,
    pub(crate) object: Option<ObjectId>,
    /// It is its variable's only object, so that the name alone says which.
    pub(crate) only: bool,
}

impl Target {
    pub(crate) fn named(name: &str) -> Self {
        Self {
            name: name.into(),
            object: None,
            only: false,
        }
    }
}

impl Op {
    pub(crate) fn on(self, target: &Target) -> Operation {
        Operation {
            op: self,
            target: target.clone(),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.object {
            Some(object) if !self.only => write!(f, "{}[{}]", self.name, object.index),
            _ => f.write_str(&self.name),
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = match self.op {
            Op::Hello => "joining the cluster as",
            Op::Declare => "declaration of",
            Op::Open => "opening",
            Op::Read => "read of",
            Op::Write => "write of",
            Op::Atomic => "atomic operation on",
            Op::Acquire => "acquire of",
            Op::Release => "release of",
            Op::Barrier => "barrier",
            Op::Publish => "publishing the writes of",
            Op::Bye => "leaving the cluster as",
        };
        write!(f, "{verb} {}", self.target)
    }
}
