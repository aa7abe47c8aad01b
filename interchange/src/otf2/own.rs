//! Archives that were written here: the accesses that went into them.

use std::collections::HashMap;

use dosmos_trace::record::{Op, Origin, Side};

use super::archive::Defined;
use super::definitions::{ATTRIBUTES, Attribute};
use super::events::{Event, What};
use super::ids;
use crate::jsonl::{BadLine, line};

/// An operation whose end has not been read.
#[derive(Debug)]
struct Open {
    region: u32,
    begin: u64,
    attributes: Vec<(Attribute, u64)>,
}

/// Makes records of events.
#[derive(Debug)]
pub(super) struct Own<'a> {
    defined: &'a Defined,
    attributes: HashMap<u32, Attribute>,
    open: HashMap<u64, Open>,
    /// Records of owners, which are left out.
    pub(super) served: u64,
}

impl<'a> Own<'a> {
    pub(super) fn new(defined: &'a Defined) -> Self {
        let known = |name: &str| {
            let name = name.strip_prefix(ids::PREFIX)?;
            let found = ATTRIBUTES.iter().find(|(_, its, ..)| *its == name);
            found.map(|(attribute, ..)| *attribute)
        };
        Self {
            defined,
            attributes: defined
                .attributes()
                .filter_map(|(number, name)| Some((number, known(name)?)))
                .collect(),
            open: HashMap::new(),
            served: 0,
        }
    }

    /// Takes an event of a location; the record that it completes.
    pub(super) fn take(
        &mut self,
        location: u64,
        event: &Event,
    ) -> Result<Option<line::Record<'a>>, BadLine> {
        match event.what {
            What::Enter(region) => {
                let known =
                    |(number, value): &(u32, u64)| Some((*self.attributes.get(number)?, *value));
                let attributes: Vec<_> = event.attributes.iter().filter_map(known).collect();
                // Other tools may have added regions of their own.
                if attributes.iter().any(|(a, _)| *a == Attribute::Owner) {
                    let open = Open {
                        region,
                        begin: event.time,
                        attributes,
                    };
                    self.open.insert(location, open);
                }
                Ok(None)
            }
            What::Leave(region) if self.open.get(&location).is_some_and(|o| o.region == region) => {
                match self.open.remove(&location) {
                    Some(open) => self.record(location, &open, event.time),
                    None => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    fn record(
        &mut self,
        location: u64,
        open: &Open,
        end: u64,
    ) -> Result<Option<line::Record<'a>>, BadLine> {
        use Attribute as A;
        let defined = self.defined;
        let region = defined.region(open.region).unwrap_or_default();
        let value = |attribute: A| {
            let found = open.attributes.iter().find(|(a, _)| *a == attribute);
            found.map(|(_, value)| *value)
        };
        // What an owner says is derived from what processes did, but for who still waited at the end.
        if value(A::Requester).is_some() && value(A::Pending).is_none() {
            self.served += 1;
            return Ok(None);
        }
        let (op, of) = region.split_once(' ').unwrap_or((region, ""));
        let op = op_of(op).ok_or_else(|| {
            format!("region {region:?} does not name an operation on shared memory")
        })?;
        let number = |attribute: A| value(attribute).unwrap_or(0);
        let small = |attribute: A| -> Result<u32, BadLine> {
            let value = number(attribute);
            u32::try_from(value).map_err(|_| format!("{attribute:?} is {value}").into())
        };
        let set = |attribute: A| number(attribute) != 0;
        let text = |attribute: A| {
            value(attribute)
                .and_then(|n| u32::try_from(n).ok())
                .map(|n| defined.text(n))
        };
        let process = |location: u64| -> Result<&'a str, BadLine> {
            let process = defined.process_of(location);
            let process = process.ok_or_else(|| format!("there is no location {location}"))?;
            Ok(defined.process(process))
        };
        let of_process = |attribute: A| value(attribute).map(process).transpose();
        let requester = of_process(A::Requester)?;
        let is_barrier = op == Op::Barrier;
        Ok(Some(line::Record {
            t_ns: open.begin,
            dur_ns: value(A::Duration).unwrap_or(end.saturating_sub(open.begin)),
            wait_ns: number(A::Wait),
            service_ns: number(A::Service),
            op,
            var: (!is_barrier).then_some(of.into()),
            object: Some(small(A::Object)?),
            barrier: is_barrier.then_some(of.into()),
            barrier_group: text(A::BarrierGroup).map(Into::into),
            ap: requester.map_or_else(|| process(location), Ok)?.into(),
            mp: of_process(A::MemoryProcess)?.map(Into::into),
            owner: of_process(A::Owner)?.map(Into::into),
            origin: text(A::Origin).map(origin_of).transpose()?,
            optimized: set(A::Optimized),
            in_process: set(A::InProcess),
            atomic: set(A::Atomic),
            first: set(A::FirstOfProcess),
            own_clock: set(A::OwnClock),
            ahead: set(A::Ahead),
            posted: set(A::Posted),
            count: value(A::Count).map_or(Ok(1), |_| small(A::Count))?,
            bytes: number(A::Bytes),
            version: number(A::Version),
            range: match value(A::First) {
                Some(_) => Some((small(A::First)?, small(A::End)?)),
                None => None,
            },
            side: match requester {
                Some(_) => Side::Owner,
                None => Side::Requester,
            },
            sampled: set(A::Sampled),
            failed: set(A::Failed),
            waiting: set(A::Waiting),
            pending: set(A::Pending),
        }))
    }

    /// Operations that were begun and never ended.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }
}

fn op_of(word: &str) -> Option<Op> {
    Op::ALL.into_iter().find(|op| op.name() == word)
}

fn origin_of(word: &str) -> Result<Origin, BadLine> {
    let found = Origin::ALL.into_iter().find(|origin| origin.name() == word);
    Ok(found.ok_or_else(|| format!("origin {word:?} is none of local, intra, inter"))?)
}
