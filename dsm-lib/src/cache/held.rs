//! What this process holds of one object, as a state machine: a copy to read, or the object itself
//! (*delegated*, docs/design/consistency.md#exclusive-delegation); when that is void or asked for; and how
//! often it was accessed. Messages are taken in the order of the session's stream.

/// Accesses of one kind that were served here and not reported yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hits {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    /// Of the content last accessed.
    pub(crate) version: u64,
    /// The smallest range that holds all elements that were accessed.
    pub(crate) elements: Elements,
}

/// Elements `[first, end)` of an object; none if that is empty.
pub(crate) type Elements = (u32, u32);

/// The smallest range that holds both.
#[inline]
pub(crate) fn hull(a: Elements, b: Elements) -> Elements {
    match (a.0 < a.1, b.0 < b.1) {
        (true, true) => (a.0.min(b.0), a.1.max(b.1)),
        (true, false) => a,
        (false, _) => b,
    }
}

/// The elements that are in both, if there are any.
fn meet(a: Elements, b: Elements) -> Option<Elements> {
    let both = (a.0.max(b.0), a.1.min(b.1));
    (both.0 < both.1).then_some(both)
}

/// Sections that were held here and not reported yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sections {
    /// Begun and ended here.
    pub(crate) count: u64,
    /// The version that the first of them began with, and the one that the last made.
    pub(crate) versions: (u64, u64),
    /// Begun here and gone on with at the owner.
    pub(crate) handed_over: u64,
    /// Accesses in those that ended here.
    pub(crate) reads: Hits,
    pub(crate) writes: Hits,
}

/// What was served here and not reported yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Served {
    /// Outside sections.
    pub(crate) reads: Hits,
    pub(crate) writes: Hits,
    pub(crate) sections: Sections,
}

impl Served {
    fn is_nothing(&self) -> bool {
        let Self {
            reads,
            writes,
            sections,
        } = self;
        reads.count + writes.count + sections.count + sections.handed_over == 0
    }
}

/// A section of an object that is delegated to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entered {
    pub(crate) delegation: u64,
    pub(crate) epoch: u64,
    /// That it began with.
    pub(crate) version: u64,
}

/// What others want of an object that is delegated to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Elements `[first, end)`, now and whenever they changed and this process synchronises.
    Elements(u32, u32),
    /// The object.
    Everything,
}

/// All elements, however many there are.
const ALL: (u32, u32) = (0, u32::MAX);

/// What goes back to the owner of an object that is delegated to this process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Back<C> {
    pub(crate) delegation: u64,
    pub(crate) version: u64,
    pub(crate) made: Made<C>,
    /// Accesses served here in this delegation.
    pub(crate) served: u64,
    /// Number of the object's last section.
    pub(crate) epoch: u64,
    /// This process is in it.
    pub(crate) in_section: bool,
}

/// What this process made of the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Made<C> {
    /// It gives the object back, unchanged.
    Nothing,
    /// It gives the object back, with this content.
    All(C),
    /// It keeps the object; these elements of its content are for others to read. Ends beyond its length mean its length.
    Parts(C, Vec<(u32, u32)>),
}

impl<C> Back<C> {
    /// The answer about an object that this process does not have.
    pub(crate) fn nothing(delegation: u64) -> Self {
        Self {
            delegation,
            version: 0,
            made: Made::Nothing,
            served: 0,
            epoch: 0,
            in_section: false,
        }
    }
}

/// The answer to a recall.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer<C> {
    Now(Back<C>),
    /// When the content, which is being edited, is put back.
    Later,
}

/// An object that is delegated to this process.
#[derive(Debug)]
struct Delegation {
    number: u64,
    /// The content differs from what the owner has.
    changed: bool,
    /// It changed since the version was counted up.
    newer: bool,
    /// Elements that others read: published whenever this process synchronises. All of them, once a section changed the
    /// object: others see nothing of a section or all of it, also if this process ends. No two ranges meet.
    watched: Vec<Elements>,
    /// The smallest range that holds all of it that changed since the last publication.
    fresh: Elements,
    /// It may have changed since it was published.
    unpublished: bool,
    /// Asked for while the content was being edited.
    asked: Vec<Wanted>,
    served: u64,
    /// Number of the object's last section.
    epoch: u64,
    /// This process is in it.
    in_section: bool,
    /// Sections changed the object.
    sections: bool,
}

/// What is held of one object. `C` is its content.
#[derive(Debug)]
pub(crate) struct Held<C> {
    /// None also while the content of a delegated object is being edited.
    content: Option<C>,
    version: u64,
    /// Replies to requests before this one are not kept: what they bring may lack a write of ours.
    valid_from: u64,
    delegation: Option<Delegation>,
    served: Served,
}

impl<C> Default for Held<C> {
    fn default() -> Self {
        Self {
            content: None,
            version: 0,
            valid_from: 0,
            delegation: None,
            served: Served::default(),
        }
    }
}

impl<C: Clone> Held<C> {
    /// The content and its version, if it is valid.
    pub(crate) fn get(&self) -> Option<(&C, u64)> {
        Some((self.content.as_ref()?, self.version))
    }

    /// As [`get`](Self::get), for a read of these elements and this size, which is counted; and whether it is the first
    /// access since the last [`take_served`](Self::take_served).
    #[inline]
    pub(crate) fn read(&mut self, elements: Elements, bytes: u64) -> Option<(&C, u64, bool)> {
        let content = self.content.as_ref()?;
        let first = self.served.is_nothing();
        self.served.reads.add(Hits {
            count: 1,
            bytes,
            version: self.version,
            elements,
        });
        if let Some(d) = &mut self.delegation {
            d.served += 1;
        }
        Some((content, self.version, first))
    }

    /// Reads of the content that were done elsewhere; whether they are the first accesses since the last
    /// [`take_served`](Self::take_served).
    pub(crate) fn add_reads(&mut self, reads: Hits) -> bool {
        let first = self.served_nothing();
        self.served.reads.add(reads);
        first
    }

    /// Whether there was no access since the last [`take_served`](Self::take_served).
    pub(crate) fn served_nothing(&self) -> bool {
        self.served.is_nothing()
    }

    /// Of the content.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// Changes the content, if the object is delegated to this process; counts as a write of these elements and this size. What
    /// `change` gives, whether it is the first access since the last [`take_served`](Self::take_served), and
    /// whether there is something to publish that was not before.
    #[inline]
    pub(crate) fn change<R>(
        &mut self,
        elements: Elements,
        bytes: u64,
        change: impl FnOnce(&mut C) -> R,
    ) -> Option<(R, bool, bool)> {
        let d = self.delegation.as_mut()?;
        let content = self.content.as_mut()?;
        let result = change(content);
        let first = self.served.is_nothing();
        self.served.writes.add(Hits {
            count: 1,
            bytes,
            version: self.version,
            elements,
        });
        let publish = d.touch(elements, 1);
        Some((result, first, publish))
    }

    /// Whether the object is delegated to this process.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.delegation.is_some()
    }

    /// Begins a section, if the object is delegated to this process and not in use: with the content.
    pub(crate) fn begin_section(&mut self) -> Option<(&C, Entered)> {
        let d = self.delegation.as_mut().filter(|d| !d.in_section)?;
        let content = self.content.as_ref()?;
        self.version += u64::from(std::mem::take(&mut d.newer));
        d.epoch += 1;
        d.in_section = true;
        let entered = Entered {
            delegation: d.number,
            epoch: d.epoch,
            version: self.version,
        };
        Some((content, entered))
    }

    /// Ends a section, with its reads and writes, if it is still one of this process's own: `change` is
    /// what it wrote, within the elements of its writes. The version that this makes, whether it is the first access since the last
    /// [`take_served`](Self::take_served), and whether there is something to publish that was not before.
    pub(crate) fn end_section(
        &mut self,
        section: Entered,
        (reads, writes): (Hits, Hits),
        change: Option<impl FnOnce(&mut C)>,
    ) -> Option<(u64, bool, bool)> {
        let current =
            |d: &&mut Delegation| (d.number, d.epoch) == (section.delegation, section.epoch);
        let d = self.delegation.as_mut().filter(current)?;
        // Nobody edits what a section has.
        let content = self.content.as_mut()?;
        if !std::mem::take(&mut d.in_section) {
            return None;
        }
        let from = section.version;
        let mut publish = false;
        if let Some(change) = change {
            change(content);
            publish = d.touch(writes.elements, 0);
            d.newer = false;
            d.sections = true;
        }
        self.version += 1;
        d.served += 2 + reads.count + writes.count;
        let first = self.served.is_nothing();
        let sections = &mut self.served.sections;
        for (all, of_section) in [(&mut sections.reads, reads), (&mut sections.writes, writes)] {
            all.add(Hits {
                version: from,
                ..of_section
            });
        }
        if sections.count == 0 {
            sections.versions.0 = from;
        }
        sections.count += 1;
        sections.versions.1 = self.version;
        Some((self.version, first, publish))
    }

    /// Takes the content, which has this many elements, out to change it, if the object is delegated to this process and not in a section:
    /// with the number of the delegation, to [`put`](Self::put) it back. Counts as a write of all of it, and as a read unless the content
    /// has just been `read`; and whether they are the first accesses since the last
    /// [`take_served`](Self::take_served).
    pub(crate) fn take(&mut self, elements: u32, bytes: u64, read: bool) -> Option<(C, u64, bool)> {
        let d = self.delegation.as_mut().filter(|d| !d.in_section)?;
        let content = self.content.take()?;
        let first = self.served.is_nothing();
        let all = Hits {
            count: 1,
            bytes,
            version: self.version,
            elements: (0, elements),
        };
        if !read {
            self.served.reads.add(all);
        }
        self.served.writes.add(all);
        d.touch((0, elements), 2);
        Some((content, d.number, first))
    }

    /// Puts the content back. False if the object was taken from this process meanwhile. Then
    /// [`answers`](Self::answers) has what was asked for.
    pub(crate) fn put(&mut self, delegation: u64, content: C) -> bool {
        let ours = |d: &&Delegation| d.number == delegation;
        let found = self.delegation.as_ref().filter(ours).is_some();
        if found {
            self.content = Some(content);
        }
        found
    }

    /// Whether others asked for something while the content was being edited.
    pub(crate) fn is_asked(&self) -> bool {
        self.delegation
            .as_ref()
            .is_some_and(|d| !d.asked.is_empty())
    }

    /// Whether elements that others read are to be published.
    pub(crate) fn is_unpublished(&self) -> bool {
        self.delegation.as_ref().is_some_and(|d| d.unpublished)
    }

    /// Answers to what was asked for while the content was being edited.
    pub(crate) fn answers(&mut self) -> Vec<Back<C>> {
        let asked = match &mut self.delegation {
            Some(d) if self.content.is_some() => std::mem::take(&mut d.asked),
            _ => Vec::new(),
        };
        asked.into_iter().filter_map(|w| self.back(w)).collect()
    }

    /// The owner wants something of an object that it delegated to this process.
    pub(crate) fn recall(&mut self, delegation: u64, wanted: Wanted) -> Answer<C> {
        match &mut self.delegation {
            Some(d) if d.number == delegation && self.content.is_none() => {
                d.asked.push(wanted);
                Answer::Later
            }
            Some(d) if d.number == delegation => {
                Answer::Now(self.back(wanted).unwrap_or(Back::nothing(delegation)))
            }
            _ => Answer::Now(Back::nothing(delegation)),
        }
    }

    /// What others read and what changed of it, before this process synchronises.
    pub(crate) fn publish(&mut self) -> Option<Back<C>> {
        let content = self.content.clone()?;
        let d = self.delegation.as_mut().filter(|d| d.unpublished)?;
        d.unpublished = false;
        let fresh = std::mem::take(&mut d.fresh);
        let ranges = d.watched.iter().filter_map(|w| meet(*w, fresh)).collect();
        Some(d.part(content, ranges, &mut self.version))
    }

    /// Gives the object back, if it is delegated to this process and not being edited.
    pub(crate) fn give_back(&mut self) -> Option<Back<C>> {
        self.back(Wanted::Everything)
    }

    fn back(&mut self, wanted: Wanted) -> Option<Back<C>> {
        let content = self.content.clone()?;
        let d = self.delegation.as_mut()?;
        match wanted {
            Wanted::Elements(first, end) => {
                d.watch((first, end));
                let range = if d.sections { ALL } else { (first, end) };
                Some(d.part(content, vec![range], &mut self.version))
            }
            Wanted::Everything => {
                self.version += u64::from(d.newer);
                self.served.sections.handed_over += u64::from(d.in_section);
                let back = Back {
                    delegation: d.number,
                    version: self.version,
                    made: match d.changed {
                        true => Made::All(content),
                        false => Made::Nothing,
                    },
                    served: d.served,
                    epoch: d.epoch,
                    in_section: d.in_section,
                };
                self.delegation = None;
                Some(back)
            }
        }
    }

    /// What was served since the last time.
    pub(crate) fn take_served(&mut self) -> Served {
        std::mem::take(&mut self.served)
    }

    /// The reply to `request` brought content that may be kept.
    pub(crate) fn keep(&mut self, request: u64, content: C, version: u64) {
        if request >= self.valid_from && self.delegation.is_none() {
            self.content = Some(content);
            self.version = version;
        }
    }

    /// The reply to `request` delegates the object to this process, after the section `epoch`, with its content
    /// unless that is what it has. False if it cannot take it: it is to be given back.
    pub(crate) fn entrust(
        &mut self,
        request: u64,
        content: Option<C>,
        version: u64,
        (delegation, epoch): (u64, u64),
    ) -> bool {
        let fresh = request >= self.valid_from && self.delegation.is_none();
        if !fresh || (content.is_none() && self.content.is_none()) {
            return false;
        }
        if content.is_some() {
            self.content = content;
        }
        self.version = version.max(self.version);
        self.delegation = Some(Delegation {
            number: delegation,
            changed: false,
            newer: false,
            watched: Vec::new(),
            fresh: (0, 0),
            unpublished: false,
            asked: Vec::new(),
            served: 0,
            epoch,
            in_section: false,
            sections: false,
        });
        true
    }

    /// This process writes, in the request `request`.
    pub(crate) fn wrote(&mut self, request: u64) {
        self.invalidate();
        self.valid_from = request;
    }

    /// The memory process says that the copy is out of date.
    pub(crate) fn invalidate(&mut self) {
        if self.delegation.is_none() {
            self.content = None;
        }
    }

    /// The memory process says what the copy contains now.
    pub(crate) fn update(&mut self, content: C, version: u64) {
        if self.delegation.is_none() && self.content.is_some() {
            self.content = Some(content);
            self.version = version;
        }
    }

    /// The session is over, or the object was taken from this process. Whether changes are lost that
    /// nobody else has seen.
    pub(crate) fn lose(&mut self) -> bool {
        self.content = None;
        self.delegation.take().is_some_and(|d| d.changed)
    }

    /// The number of the delegation, if the object is delegated to this process.
    pub(crate) fn delegation(&self) -> Option<u64> {
        self.delegation.as_ref().map(|d| d.number)
    }

    /// The owner says that its content has this version now and told of no change: what is held is of that
    /// version too.
    pub(crate) fn confirm(&mut self, version: u64) {
        self.version = self.version.max(version);
    }
}

impl Hits {
    #[inline]
    fn add(&mut self, more: Self) {
        self.count += more.count;
        self.bytes += more.bytes;
        self.version = more.version;
        self.elements = hull(self.elements, more.elements);
    }
}

impl Delegation {
    /// The content changes; whether there is something to publish that was not before.
    fn touch(&mut self, elements: Elements, accesses: u64) -> bool {
        self.served += accesses;
        self.changed = true;
        self.newer = true;
        let seen = self.watched.iter().filter_map(|w| meet(*w, elements));
        self.fresh = seen.fold(self.fresh, hull);
        // Its new version, at least.
        let publish = !self.unpublished && !self.watched.is_empty();
        self.unpublished |= publish;
        publish
    }

    fn watch(&mut self, mut range: Elements) {
        self.watched.retain(|w| {
            let apart = w.1 < range.0 || range.1 < w.0;
            if !apart {
                range = hull(range, *w);
            }
            apart
        });
        self.watched.push(range);
    }

    fn part<C>(&mut self, content: C, ranges: Vec<(u32, u32)>, version: &mut u64) -> Back<C> {
        *version += u64::from(std::mem::take(&mut self.newer));
        let ranges = match self.sections {
            true if self.watched == [ALL] => ranges,
            true => {
                self.watched = vec![ALL];
                self.watched.clone()
            }
            false => ranges,
        };
        Back {
            delegation: self.number,
            version: *version,
            made: Made::Parts(content, ranges),
            served: self.served,
            epoch: self.epoch,
            in_section: false,
        }
    }
}
