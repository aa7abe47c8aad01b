//! The events of a location, one after another.

use std::collections::HashMap;

use super::archive::{Archive, Clock};
use super::error::Otf2Error;
use super::ids::{event, frame, kind, local, mapping};
use super::take::{Records, Take};

/// What a process did with a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Locking {
    Request,
    Acquire,
    Release,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    Enter(u32),
    Leave(u32),
    CollectiveBegin,
    /// A collective operation of a communicator ended.
    CollectiveOfComm {
        op: u8,
        communicator: u32,
    },
    /// The same of a window.
    CollectiveOfWindow {
        op: u8,
        window: u32,
    },
    Lock {
        what: Locking,
        window: u32,
        /// Rank of the target in the window.
        target: u32,
        lock: u64,
        exclusive: bool,
    },
    /// One-sided access, which ends with [`What::Complete`] of that number.
    Transfer {
        write: bool,
        atomic: bool,
        window: u32,
        target: u32,
        bytes: u64,
        number: u64,
    },
    Complete {
        window: u32,
        number: u64,
    },
    /// A message was sent.
    Message,
    Other,
}

/// An event of a location.
#[derive(Clone, Debug)]
pub(super) struct Event {
    /// Nanoseconds since the archive's first tick.
    pub(super) time: u64,
    pub(super) what: What,
    /// Attributes that are numbers or refer to something, by number.
    pub(super) attributes: Vec<(u32, u64)>,
}

/// Numbers of a location to those of the archive; others are the same in both.
#[derive(Debug, Default)]
struct Maps(HashMap<(u8, u64), u64>);

impl Maps {
    fn number(&self, what: u8, number: u64) -> u64 {
        self.0.get(&(what, number)).copied().unwrap_or(number)
    }

    fn reference(&self, what: u8, number: u32) -> u32 {
        let its = self.number(what, number.into());
        u32::try_from(its).unwrap_or(number)
    }
}

/// Reads the events of a location.
#[derive(Debug)]
pub(super) struct Events {
    records: Records,
    clock: Clock,
    tick: u64,
    maps: Maps,
    /// Ticks, and what is to be added to the clock then.
    offsets: Vec<(u64, i64)>,
}

impl Events {
    pub(super) fn of(archive: &Archive, location: u64) -> Result<Self, Otf2Error> {
        let mut events = Self {
            records: archive.events_of(location)?,
            clock: archive.clock,
            tick: 0,
            maps: Maps::default(),
            offsets: Vec::new(),
        };
        if let Some(records) = archive.definitions_of(location)? {
            events.define(records)?;
        }
        Ok(events)
    }

    pub(super) fn records(&self) -> &Records {
        &self.records
    }

    /// Reads what maps the location's numbers and times.
    fn define(&mut self, mut records: Records) -> Result<(), Otf2Error> {
        while let Some(id) = records.next()? {
            records.within(|take, end| match id {
                local::MAPPING_TABLE => self.mapping(take, end),
                local::CLOCK_OFFSET => {
                    let at = take.whole_u64()?;
                    // Negative numbers take all eight bytes.
                    self.offsets.push((at, take.u64()? as i64));
                    Ok(())
                }
                _ => Ok(()),
            })?;
        }
        self.offsets.sort_by_key(|(at, _)| *at);
        self.offsets.dedup_by_key(|(at, _)| *at);
        Ok(())
    }

    fn mapping(&mut self, take: &mut Take, end: u64) -> Result<(), Otf2Error> {
        let (what, length, dense) = (take.byte()?, take.u64()?, take.byte()? == 0);
        for i in 0..length {
            if take.position() >= end {
                return Err(take.bad("a mapping has fewer entries than it says"));
            }
            let from = if dense { i } else { take.u64()? };
            self.maps.0.insert((what, from), take.u64()?);
        }
        Ok(())
    }

    /// A tick on the clock of the archive: what is to be added grows evenly between the measurements of it.
    fn corrected(&self, tick: u64) -> u64 {
        let (Some(first), true) = (self.offsets.first(), self.offsets.len() > 1) else {
            return tick;
        };
        let behind = self.offsets.partition_point(|(at, _)| *at < tick);
        let right = behind.clamp(1, self.offsets.len() - 1);
        let (from, to) = (
            self.offsets.get(right - 1).unwrap_or(first),
            self.offsets.get(right).unwrap_or(first),
        );
        let length = i128::from(to.0) - i128::from(from.0);
        let since = i128::from(tick) - i128::from(from.0);
        let growth = i128::from(to.1) - i128::from(from.1);
        // Clocks that are wrong by centuries are not worth more than an estimate.
        let grown = match growth.checked_mul(since) {
            Some(product) => product / length.max(1),
            None => (growth as f64 * (since as f64 / length as f64)) as i128,
        };
        let corrected = i128::from(from.1).saturating_add(grown);
        u64::try_from(corrected.saturating_add(i128::from(tick))).unwrap_or(0)
    }

    /// The next event; none at the end.
    pub(super) fn next(&mut self) -> Result<Option<Event>, Otf2Error> {
        let mut attributes = Vec::new();
        while let Some(id) = self.records.next()? {
            match id {
                frame::TIMESTAMP => self.tick = self.records.take.whole_u64()?,
                frame::ATTRIBUTES => self.attributes(&mut attributes)?,
                frame::END_OF_BUFFER => {}
                _ => {
                    let what = self.what(id)?;
                    for (number, _) in &mut attributes {
                        *number = self.maps.reference(mapping::ATTRIBUTE, *number);
                    }
                    return Ok(Some(Event {
                        time: self.clock.nanos(self.corrected(self.tick)),
                        what,
                        attributes,
                    }));
                }
            }
        }
        Ok(None)
    }

    fn attributes(&mut self, list: &mut Vec<(u32, u64)>) -> Result<(), Otf2Error> {
        let maps = &self.maps;
        self.records.within(|take, end| {
            for _ in 0..take.u32()? {
                if take.position() >= end {
                    return Err(take.bad("an event has fewer attributes than it says"));
                }
                let (attribute, kind) = (take.u32()?, take.byte()?);
                let value = match kind {
                    kind::UINT8 | kind::INT8 => take.byte()?.into(),
                    kind::UINT16 | kind::INT16 => {
                        take.skip(2)?;
                        continue;
                    }
                    kind::FLOAT => {
                        take.skip(4)?;
                        continue;
                    }
                    kind::DOUBLE => {
                        take.skip(8)?;
                        continue;
                    }
                    kind::UINT32 | kind::INT32 => take.u32()?.into(),
                    kind::UINT64 | kind::INT64 => take.u64()?,
                    kind => {
                        let number = take.u64()?;
                        let what = match kind {
                            kind::STRING => mapping::STRING,
                            kind::LOCATION => mapping::LOCATION,
                            _ => continue,
                        };
                        maps.number(what, number)
                    }
                };
                list.push((attribute, value));
            }
            Ok(())
        })
    }

    fn what(&mut self, id: u8) -> Result<What, Otf2Error> {
        let maps = &self.maps;
        if event::ONE_NUMBER.contains(&id) {
            let number = self.records.take.u64()?;
            let region = maps.reference(mapping::REGION, u32::try_from(number).unwrap_or(u32::MAX));
            return Ok(match id {
                event::ENTER => What::Enter(region),
                event::LEAVE => What::Leave(region),
                _ => What::Other,
            });
        }
        self.records.within(|take, _| what_of(id, take, maps))
    }
}

/// What a record with a length says, in the numbers of the archive.
fn what_of(id: u8, take: &mut Take, maps: &Maps) -> Result<What, Otf2Error> {
    let window = |take: &mut Take| {
        let number = take.u32();
        number.map(|number| maps.reference(mapping::RMA_WIN, number))
    };
    Ok(match id {
        event::MPI_COLLECTIVE_BEGIN | event::RMA_COLLECTIVE_BEGIN => What::CollectiveBegin,
        event::MPI_COLLECTIVE_END => What::CollectiveOfComm {
            op: take.byte()?,
            communicator: maps.reference(mapping::COMM, take.u32()?),
        },
        event::RMA_COLLECTIVE_END => {
            let (op, _level) = (take.byte()?, take.u32()?);
            let window = window(take)?;
            What::CollectiveOfWindow { op, window }
        }
        event::RMA_REQUEST_LOCK
        | event::RMA_ACQUIRE_LOCK
        | event::RMA_TRY_LOCK
        | event::RMA_RELEASE_LOCK => {
            let (window, target, lock) = (window(take)?, take.u32()?, take.u64()?);
            let what = match id {
                event::RMA_REQUEST_LOCK => Locking::Request,
                event::RMA_RELEASE_LOCK => Locking::Release,
                _ => Locking::Acquire,
            };
            let exclusive = what == Locking::Release || take.byte()? == super::ids::EXCLUSIVE;
            What::Lock {
                what,
                window,
                target,
                lock,
                exclusive,
            }
        }
        event::RMA_PUT | event::RMA_GET => What::Transfer {
            write: id == event::RMA_PUT,
            atomic: false,
            window: window(take)?,
            target: take.u32()?,
            bytes: take.u64()?,
            number: take.u64()?,
        },
        event::RMA_ATOMIC => {
            let (window, target, _kind) = (window(take)?, take.u32()?, take.byte()?);
            let (sent, received) = (take.u64()?, take.u64()?);
            What::Transfer {
                write: true,
                atomic: true,
                window,
                target,
                bytes: sent.max(received),
                number: take.u64()?,
            }
        }
        event::RMA_COMPLETE_BLOCKING | event::RMA_COMPLETE_NON_BLOCKING => What::Complete {
            window: window(take)?,
            number: take.u64()?,
        },
        event::MPI_SEND | event::MPI_ISEND => What::Message,
        _ => What::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events whose clock is off by so much at these ticks.
    fn corrected(offsets: &[(u64, i64)], tick: u64) -> u64 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("0.evt");
        super::super::chunks::Chunks::create(&path, 1 << 18)
            .unwrap()
            .finish()
            .unwrap();
        let events = Events {
            records: Records::open(&path, 1 << 18).unwrap(),
            clock: Clock {
                resolution: 1,
                offset: 0,
                unix: 0,
            },
            tick: 0,
            maps: Maps::default(),
            offsets: offsets.to_vec(),
        };
        events.corrected(tick)
    }

    #[test]
    fn a_clock_is_corrected_evenly_between_its_measurements_and_beyond() {
        let measured = [(100, 10), (200, 20), (300, 0)];
        assert_eq!(corrected(&measured, 150), 165);
        assert_eq!(corrected(&measured, 200), 220);
        assert_eq!(corrected(&measured, 250), 260);
        assert_eq!(corrected(&measured, 400), 380);
        assert_eq!(corrected(&measured, 50), 55);
        // One measurement says nothing of how fast it goes; the library leaves such a clock as it is.
        assert_eq!(corrected(&measured[..1], 50), 50);
        assert_eq!(corrected(&[], 50), 50);
    }
}
