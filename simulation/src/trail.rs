//! What happened in a run: a hash of all of it, by which two runs are compared, and the last of it in words.

use std::collections::VecDeque;
use std::hash::Hasher;

use twox_hash::XxHash64;

/// What happened so far.
pub(crate) struct Trail {
    hash: XxHash64,
    events: u64,
    /// How many of the last events are kept in words. Words cost time: only a run that is repeated has them.
    told: usize,
    last: VecDeque<String>,
}

impl Trail {
    pub(crate) fn new(told: usize) -> Self {
        Self {
            hash: XxHash64::with_seed(0),
            events: 0,
            told,
            last: VecDeque::new(),
        }
    }

    /// Something happened: at what time, and its content.
    pub(crate) fn add(&mut self, now: u64, content: &[u8]) {
        self.events += 1;
        self.hash.write_u64(now);
        self.hash.write(content);
    }

    /// The same in words.
    pub(crate) fn say(&mut self, now: u64, words: impl FnOnce() -> String) {
        if self.told == 0 {
            return;
        }
        if self.last.len() == self.told {
            self.last.pop_front();
        }
        let line = format!("{:>14.6} ms  {}", now as f64 / 1e6, words());
        self.last.push_back(line);
    }

    pub(crate) fn hash(&self) -> u64 {
        self.hash.finish()
    }

    pub(crate) fn events(&self) -> u64 {
        self.events
    }

    pub(crate) fn last(&self) -> String {
        let lines: Vec<&str> = self.last.iter().map(String::as_str).collect();
        lines.join("\n")
    }
}
