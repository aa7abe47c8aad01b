//! Leaving the terminal, which may end what it shows: then it is asked about first.

/// Whether the user wants to leave.
#[derive(Clone, Debug, Default)]
pub struct Leaving {
    /// What leaving ends as long as the run goes on.
    ends: Option<String>,
    asked: bool,
    done: bool,
}

impl Leaving {
    /// From now on leaving ends this, if anything.
    pub fn ends(&mut self, what: Option<String>) {
        (self.ends, self.asked) = (what, false);
    }

    /// Whether leaving would end something.
    pub fn would_end(&self) -> bool {
        self.ends.is_some()
    }

    /// The user has left.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// What leaving would end, while that is being asked.
    pub fn asks(&self) -> Option<&str> {
        self.ends.as_deref().filter(|_| self.asked)
    }

    /// The user wants to leave, and is asked if that ends something.
    pub(super) fn wants(&mut self) {
        match self.ends {
            Some(_) => self.asked = true,
            None => self.done = true,
        }
    }

    /// Leaves, whatever that ends.
    pub(super) fn at_once(&mut self) {
        self.done = true;
    }

    /// The answer, if something was asked. Whether it was.
    pub(super) fn answer(&mut self, yes: bool) -> bool {
        let asked = std::mem::take(&mut self.asked);
        self.done |= asked && yes;
        asked
    }
}
