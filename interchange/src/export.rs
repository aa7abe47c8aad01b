//! Going through stores and feeding what writes a file.

use std::collections::HashMap;
use std::io;
use std::ops::ControlFlow;

use dosmos_proto::{ApId, EmpId, Nanos, ObjectId};
use dosmos_trace::meta::HandOver;
use dosmos_trace::query::{Catalog, Completeness, Filter, TimeRange};
use dosmos_trace::record::{Op, Record};
use dosmos_trace::relation::Relations;
use dosmos_trace::store::{Event, Item, StoreError, StoreSource};

use crate::Names;

/// Records between two calls of the progress function.
const PROGRESS_EVERY: u64 = 1 << 16;

/// What is exported: the stores of one run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Processes and variables of all stores together.
    pub catalog: Catalog,
    /// Their names.
    pub names: Names,
    /// Start of the run: that of the imported file, otherwise the start of its first record.
    pub start: Nanos,
    /// End of the run.
    pub end: Nanos,
    /// Whether the owners' records are there too.
    pub owner_records: bool,
    /// How the clocks of its event managers relate, if records are written in the order of their starts: then all times are by
    /// the clock of the first, as far as that is known.
    pub relations: Relations,
}

/// How far an export is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Records written.
    pub records: u64,
    /// Records in the stores; a filter may let fewer pass.
    pub of: u64,
}

/// What was exported.
#[derive(Clone, Debug, PartialEq)]
pub struct Exported {
    /// Records written.
    pub records: u64,
    /// What the stores lack, as far as they have been read.
    pub lacking: Completeness,
    /// What a reader must know of times, if they were related: one line each.
    pub clocks: Vec<String>,
}

/// Something that writes a trace to a file, piece by piece.
pub trait Export {
    /// The run; once, first.
    ///
    /// # Errors
    /// If it cannot be written.
    fn begin(&mut self, run: &Run) -> io::Result<()>;

    /// Whether it needs the records of all stores together, in the order of their starts; otherwise they come store by
    /// store, each in the order of its log.
    fn in_order_of_start(&self) -> bool {
        false
    }

    /// A record. `pending`: a notice of waiting that nothing followed.
    ///
    /// # Errors
    /// If it cannot be written.
    fn record(&mut self, run: &Run, record: &Record, pending: bool) -> io::Result<()>;

    /// A copy's secondary meta-object was handed over; only if everything is exported, and not in the order of start.
    ///
    /// # Errors
    /// If it cannot be written.
    fn hand_over(&mut self, _run: &Run, _hand_over: &HandOver) -> io::Result<()> {
        Ok(())
    }

    /// The end, with what is missing.
    ///
    /// # Errors
    /// If it cannot be written.
    fn end(&mut self, run: &Run, lacking: &Completeness) -> io::Result<()>;
}

/// Why there is no export.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// Nothing to export.
    #[error("no store is named; give --store DIR")]
    NoStore,
    /// The stores do not belong together.
    #[error("{second} is not of the run that {first} is of; export them one by one")]
    DifferentRuns {
        /// A store.
        first: String,
        /// One of another run.
        second: String,
    },
    /// A store is named twice, or was copied.
    #[error("two of the stores are of event manager {0}; name each store once")]
    Twice(String),
    /// A store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file cannot be written.
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
    /// It was asked to stop.
    #[error("stopped")]
    Stopped,
}

impl Run {
    /// The run that these stores are of.
    ///
    /// # Errors
    /// If there is none, a store twice, or they are of different runs.
    pub fn of(stores: &[StoreSource]) -> Result<Self, ExportError> {
        let (first, rest) = stores.split_first().ok_or(ExportError::NoStore)?;
        let mut catalog = first.describe();
        let imported = first.imported();
        for store in rest {
            let other = store.describe();
            let names = |c: &Catalog| c.event_managers.join(" ");
            if other.topology != catalog.topology || imported.is_some() {
                return Err(ExportError::DifferentRuns {
                    first: names(&catalog),
                    second: names(&other),
                });
            }
            let known = |name: &&String| catalog.event_managers.contains(*name);
            if let Some(twice) = other.event_managers.iter().find(known) {
                return Err(ExportError::Twice(twice.clone()));
            }
            merge(&mut catalog, other);
        }
        let extent = catalog.extent.unwrap_or(TimeRange {
            from: Nanos::ZERO,
            to: Nanos::ZERO,
        });
        Ok(Self {
            names: Names::of(&catalog),
            start: imported.as_ref().map_or(extent.from, |i| i.start),
            end: imported.as_ref().and_then(|i| i.end).unwrap_or(extent.to),
            owner_records: imported.is_none_or(|i| i.owner_records),
            relations: Relations::default(),
            catalog,
        })
    }

    /// The same with all times by the clock of the first event manager, as far as the records say how clocks relate.
    fn on_one_clock(
        mut self,
        stores: &[StoreSource],
        go_on: impl FnMut() -> ControlFlow<()>,
    ) -> Self {
        let complete = self.lacking(stores).is_complete();
        self.relations = Relations::of(stores, &self.catalog, complete, go_on);
        let own = |store: &StoreSource| {
            let (extent, manager) = (store.describe().extent?, store.identity().emp);
            let moved = |at| self.relations.time(manager, at);
            Some((moved(extent.from), moved(extent.to)))
        };
        let extents: Vec<_> = match self.relations.clocks.is_empty() {
            true => Vec::new(),
            false => stores.iter().filter_map(own).collect(),
        };
        if let Some(start) = extents.iter().map(|(start, _)| *start).min() {
            self.start = start;
        }
        if let Some(end) = extents.iter().map(|(_, end)| *end).max() {
            self.end = end;
        }
        self
    }

    /// What a reader must know of times, one line per event manager.
    pub fn about_clocks(&self) -> Vec<String> {
        let topology = &self.catalog.topology;
        let name = |m: EmpId| topology.emp_name(m);
        let Some(first) = self.relations.first() else {
            return Vec::new();
        };
        let first = name(first);
        let mut lines = Vec::new();
        for clock in &self.relations.clocks {
            let its = name(clock.manager);
            lines.push(match clock.moved_ns {
                Some(0) if clock.grows_ppb == 0 => format!(
                    "the clocks of {its} and {first} agree within {}",
                    clock.error
                ),
                Some(ns) => {
                    let sign = if ns < 0 { "-" } else { "+" };
                    let (by, grows) = (Nanos(ns.unsigned_abs()), clock.grows_ppb as f64 / 1e3);
                    format!(
                        "times of {its} were moved by {sign}{by} ({grows:+.1} ppm) to the clock of {first}, within {}",
                        clock.error
                    )
                }
                None => format!(
                    "nothing recorded relates the clock of {its} to that of {first}: times of the one and the other cannot be \
                     compared"
                ),
            });
        }
        for (a, b) in &self.relations.contradictions {
            lines.push(format!(
                "the records of {} and {} cannot both be of clocks that run evenly: perhaps one was set during the run",
                name(*a),
                name(*b)
            ));
        }
        lines
    }

    /// An instant as nanoseconds since the start of the run.
    pub fn since_start(&self, at: Nanos) -> u64 {
        (at - self.start).0
    }

    /// What is missing, as far as `stores` have been read.
    fn lacking(&self, stores: &[StoreSource]) -> Completeness {
        let mut lacking = Completeness::default();
        for store in stores {
            lacking.merge(&store.completeness());
        }
        for emp in self.catalog.topology.event_managers() {
            let known = |list: &[String]| list.contains(&emp.name);
            if !known(&self.catalog.event_managers) && !known(&lacking.missing) {
                lacking.missing.push(emp.name.clone());
            }
        }
        lacking
    }
}

fn merge(catalog: &mut Catalog, other: Catalog) {
    for variable in other.variables {
        if !catalog.variables.iter().any(|v| v.id() == variable.id()) {
            catalog.variables.push(variable);
        }
    }
    for barrier in other.barriers {
        if !catalog.barriers.iter().any(|b| b.id == barrier.id) {
            catalog.barriers.push(barrier);
        }
    }
    catalog.clocks.extend(other.clocks);
    catalog.extent = match (catalog.extent, other.extent) {
        (Some(a), Some(b)) => Some(TimeRange {
            from: a.from.min(b.from),
            to: a.to.max(b.to),
        }),
        (a, b) => a.or(b),
    };
    catalog.event_managers.extend(other.event_managers);
    catalog.records += other.records;
}

/// Writes what `filter` matches of `stores` (all of one run), in the order that the format asks for. `progress` is
/// called now and then and may break off. Memory does not grow with the number of records.
///
/// # Errors
/// If the stores do not belong together or cannot be read, or the file cannot be written.
pub fn export(
    stores: &[StoreSource],
    filter: &Filter,
    to: &mut dyn Export,
    mut progress: impl FnMut(Progress) -> ControlFlow<()>,
) -> Result<Exported, ExportError> {
    let in_order = to.in_order_of_start();
    let mut run = Run::of(stores)?;
    let mut at = Progress {
        records: 0,
        of: run.catalog.records,
    };
    if in_order {
        let mut flow = ControlFlow::Continue(());
        run = run.on_one_clock(stores, || {
            flow = progress(at);
            flow
        });
        if flow.is_break() {
            return Err(ExportError::Stopped);
        }
    }
    let pending = Pending::of(stores, filter)?;
    to.begin(&run)?;
    let mut put = |record: &Record, stored: &Record, to: &mut dyn Export| {
        at.records += 1;
        to.record(&run, record, pending.is(stored))?;
        match at.records.is_multiple_of(PROGRESS_EVERY) && progress(at).is_break() {
            true => Err(ExportError::Stopped),
            false => Ok(()),
        }
    };
    let mut outcome = Ok(());
    if in_order {
        (run.relations).in_order(stores, filter, |record, stored| {
            outcome = put(record, stored, to);
            flow(&outcome)
        });
    } else {
        for store in stores {
            store.scan(filter, |item| {
                outcome = match item {
                    Item::Record(record) => put(record, record, to),
                    Item::Event(Event::HandOver(hand_over)) => {
                        to.hand_over(&run, hand_over).map_err(ExportError::from)
                    }
                    Item::Event(_) => Ok(()),
                };
                flow(&outcome)
            })?;
            if outcome.is_err() {
                break;
            }
        }
    }
    outcome?;
    let lacking = run.lacking(stores);
    to.end(&run, &lacking)?;
    let _ = progress(at);
    Ok(Exported {
        records: at.records,
        lacking,
        clocks: run.about_clocks(),
    })
}

/// To break off at an error.
fn flow(outcome: &Result<(), ExportError>) -> ControlFlow<()> {
    match outcome {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    }
}

/// The notices of waiting that no grant, and no refusal, followed.
#[derive(Debug, Default)]
struct Pending {
    /// Of each process and object: the start of the last notice, the end of what came of one.
    last: HashMap<(ApId, ObjectId), (Nanos, Option<Nanos>)>,
}

impl Pending {
    fn of(stores: &[StoreSource], filter: &Filter) -> Result<Self, StoreError> {
        let mut pending = Self::default();
        if !filter.everything {
            return Ok(pending);
        }
        let waits = Filter {
            ops: vec![Op::Acquire],
            range: None,
            origins: Vec::new(),
            ..filter.clone()
        };
        for store in stores {
            store.scan(&waits, |item| {
                if let Item::Record(record) = item {
                    pending.take(record);
                }
                ControlFlow::Continue(())
            })?;
        }
        pending
            .last
            .retain(|_, (notice, settled)| settled.is_none_or(|end| end < *notice));
        Ok(pending)
    }

    fn take(&mut self, record: &Record) {
        let key = (record.ap, record.object);
        if record.flags.waiting {
            let last = self.last.entry(key).or_insert((record.start, None));
            last.0 = last.0.max(record.start);
        } else if let Some((_, settled)) = self.last.get_mut(&key) {
            *settled = (*settled).max(Some(record.end()));
        }
    }

    fn is(&self, record: &Record) -> bool {
        record.flags.waiting
            && self
                .last
                .get(&(record.ap, record.object))
                .is_some_and(|(start, _)| *start == record.start)
    }
}
