//! What this process holds of one object, as a state machine: what it keeps, when that is void, and how
//! often it was read. Messages are taken in the order of the session's stream.

/// Reads served from a copy and not reported yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hits {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    /// Of the copy last read.
    pub(crate) version: u64,
}

/// What is held of one object. `C` is its content.
#[derive(Debug)]
pub(crate) struct Held<C> {
    content: Option<C>,
    version: u64,
    /// Replies to requests before this one are not kept: what they bring may lack a write of ours.
    valid_from: u64,
    hits: Hits,
}

impl<C> Default for Held<C> {
    fn default() -> Self {
        Self {
            content: None,
            version: 0,
            valid_from: 0,
            hits: Hits::default(),
        }
    }
}

impl<C> Held<C> {
    /// The content and its version, if it is valid.
    pub(crate) fn get(&self) -> Option<(&C, u64)> {
        Some((self.content.as_ref()?, self.version))
    }

    /// As [`get`](Self::get), for a read of this size, which is counted; and whether it is the first since
    /// the last [`take_hits`](Self::take_hits).
    #[inline]
    pub(crate) fn read(&mut self, bytes: u64) -> Option<(&C, u64, bool)> {
        let content = self.content.as_ref()?;
        let first = self.hits.count == 0;
        self.hits.count += 1;
        self.hits.bytes += bytes;
        self.hits.version = self.version;
        Some((content, self.version, first))
    }

    /// The reads since the last time, if there were any.
    pub(crate) fn take_hits(&mut self) -> Option<Hits> {
        let hits = std::mem::take(&mut self.hits);
        (hits.count > 0).then_some(hits)
    }

    /// The reply to `request` brought content that may be kept.
    pub(crate) fn keep(&mut self, request: u64, content: C, version: u64) {
        if request >= self.valid_from {
            self.content = Some(content);
            self.version = version;
        }
    }

    /// This process writes, in the request `request`.
    pub(crate) fn wrote(&mut self, request: u64) {
        self.content = None;
        self.valid_from = request;
    }

    /// The memory process says that the content is out of date, or the session is over.
    pub(crate) fn invalidate(&mut self) {
        self.content = None;
    }

    /// The owner says that its content has this version now and told of no change: what is held is of that
    /// version too.
    pub(crate) fn confirm(&mut self, version: u64) {
        self.version = self.version.max(version);
    }
}
