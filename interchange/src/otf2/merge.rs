//! The events of all locations in the order of their times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::archive::Archive;
use super::error::Otf2Error;
use super::events::{Event, Events};

/// A location that is read.
#[derive(Debug)]
struct Source {
    location: u64,
    events: Events,
    /// The event that was read last and not handed out.
    next: Option<Event>,
    /// Events read, and how many there should be.
    count: u64,
    expected: u64,
}

impl Source {
    fn advance(&mut self) -> Result<Option<u64>, Otf2Error> {
        self.next = self.events.next()?;
        if self.next.is_some() {
            self.count += 1;
        } else if self.count != self.expected {
            let (found, expected) = (self.count, self.expected);
            let why = format!("{found} events, where the definitions say {expected}");
            return Err(self.events.records().take.bad(why));
        }
        Ok(self.next.as_ref().map(|event| event.time))
    }
}

/// Reads all locations that have events.
#[derive(Debug)]
pub(super) struct Merged {
    sources: Vec<Source>,
    /// Times of the next events.
    order: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Merged {
    pub(super) fn of(archive: &Archive) -> Result<Self, Otf2Error> {
        let mut merged = Self {
            sources: Vec::new(),
            order: BinaryHeap::new(),
        };
        let locations = &archive.defined.locations;
        // A location that nothing happened at need not have a file.
        for (&location, its) in locations.iter().filter(|(_, l)| l.events > 0) {
            let mut source = Source {
                location,
                events: Events::of(archive, location)?,
                next: None,
                count: 0,
                expected: its.events,
            };
            if let Some(time) = source.advance()? {
                merged.order.push(Reverse((time, merged.sources.len())));
            }
            merged.sources.push(source);
        }
        Ok(merged)
    }

    /// The next event and its location.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Event)>, Otf2Error> {
        let Some(Reverse((_, index))) = self.order.pop() else {
            return Ok(None);
        };
        let source = &mut self.sources[index];
        let event = source.next.take();
        if let Some(time) = source.advance()? {
            self.order.push(Reverse((time, index)));
        }
        Ok(event.map(|event| (source.location, event)))
    }
}
