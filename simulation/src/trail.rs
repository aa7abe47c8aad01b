//! What happened in a run: a hash of all of it, by which two runs are compared, and the last of it in words.

use std::collections::VecDeque;
use std::hash::Hasher;

use twox_hash::XxHash64;

/// How many of the last events are told of a run that failed.
const TOLD: usize = 200;

/// What happened so far.
pub(crate) struct Trail {
    hash: XxHash64,
    events: u64,
    /// Words cost time: only a run that is repeated has them.
    in_words: bool,
    last: VecDeque<String>,
}

impl Trail {
    pub(crate) fn new(in_words: bool) -> Self {
        Self {
            hash: XxHash64::with_seed(0),
            events: 0,
            in_words,
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
        if !self.in_words {
            return;
        }
        if self.last.len() == TOLD {
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
