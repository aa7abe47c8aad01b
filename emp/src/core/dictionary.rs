//! Which declarations are known, and how much memory they take: an event manager keeps them as long as it runs.

use std::collections::HashSet;

use dosmos_proto::{MAX_DECLARED_BYTES, VarId, Variable};

/// Declarations that do not fit any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the declarations would take more than {MAX_DECLARED_BYTES} bytes here; use arrays instead of many variables, \
     and short lists of owners, which repeat"
)]
pub struct Full;

/// The declarations that were received, each counted once however many memory processes tell of it.
#[derive(Debug, Default)]
pub struct Dictionary {
    known: HashSet<VarId>,
    bytes: usize,
}

impl Dictionary {
    /// Whether these fit too.
    ///
    /// # Errors
    /// If they do not.
    pub fn check(&self, variables: &[Variable]) -> Result<(), Full> {
        let new = variables.iter().filter(|v| !self.known.contains(&v.id()));
        match self.bytes + new.map(Variable::footprint).sum::<usize>() {
            0..=MAX_DECLARED_BYTES => Ok(()),
            _ => Err(Full),
        }
    }

    /// Counts one that is kept.
    pub fn add(&mut self, variable: &Variable) {
        if self.known.insert(variable.id()) {
            self.bytes += variable.footprint();
        }
    }
}
