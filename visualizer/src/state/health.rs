//! The monitoring itself: event managers with their processes, how far behind they are, what was lost,
//! and what watching costs.

use dosmos_proto::Nanos;
use dosmos_trace::query::{EmpStatus, ProcessStatus, Status};

use super::command;
use super::data::{Costs, Data};

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub enum Row {
    /// An event manager.
    Manager(Manager),
    /// A memory or link process of the one above.
    Process(Process),
}

/// An event manager's row.
#[derive(Clone, Debug, PartialEq)]
pub struct Manager {
    /// Its name.
    pub name: String,
    /// Records on disk.
    pub records: u64,
    /// Records received and not on disk yet.
    pub pending: u64,
    /// Size of its store, in bytes.
    pub stored: u64,
    /// Records lost by its processes.
    pub lost: u64,
    /// The oldest of its processes' last records is so old.
    pub lag: Option<Nanos>,
    /// Share of a processor, recently.
    pub cpu: Option<f64>,
    /// What is wrong; empty if nothing.
    pub trouble: String,
}

/// A process's row.
#[derive(Clone, Debug, PartialEq)]
pub struct Process {
    /// Its name.
    pub name: String,
    /// A link process.
    pub link: bool,
    /// Its stream is up.
    pub connected: bool,
    /// Records made.
    pub recorded: u64,
    /// Records lost.
    pub lost: u64,
    /// Bytes of records that are not acknowledged yet.
    pub unsent: u64,
    /// Its last record is so old; none: it has not made any.
    pub lag: Option<Nanos>,
    /// Processor time used so far; none if it is not known.
    pub cpu: Option<Nanos>,
    /// Of that, for monitoring.
    pub monitor: Nanos,
    /// Its recent costs.
    pub costs: Option<Costs>,
    /// Its clock against cluster time, in nanoseconds.
    pub offset: i64,
    /// Error bound of that.
    pub clock_error: Nanos,
}

/// The rows; a filter is by the names of processes, and keeps their event managers.
pub fn rows(data: &Data, passes: impl Fn(&str) -> bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for manager in &data.status.event_managers {
        let processes = manager.processes.iter().map(|p| process(data, manager, p));
        let all = passes(&manager.name);
        let processes: Vec<Process> = processes.filter(|p| all || passes(&p.name)).collect();
        if all || !processes.is_empty() {
            rows.push(Row::Manager(summary(data, manager)));
            rows.extend(processes.into_iter().map(Row::Process));
        }
    }
    rows
}

/// What is recorded now, as far as the event managers were told by a terminal.
pub fn recorded(status: &Status) -> String {
    let managers = status.event_managers.iter();
    let mut told: Vec<String> = managers
        .map(|m| match &m.selection {
            Some(selection) => command::typed(selection),
            None => "as the cluster file says".to_owned(),
        })
        .collect();
    told.sort();
    told.dedup();
    match told.is_empty() {
        true => "no event manager is running: nothing is being recorded".to_owned(),
        false => format!("recording: {}", told.join(" / ")),
    }
}

fn lag(now: Nanos, p: &ProcessStatus) -> Option<Nanos> {
    (p.last_record > Nanos::ZERO).then(|| now - p.last_record)
}

fn summary(data: &Data, manager: &EmpStatus) -> Manager {
    Manager {
        name: manager.name.clone(),
        records: manager.records,
        pending: manager.pending,
        stored: manager.stored_bytes,
        lost: manager.processes.iter().map(|p| p.counters.dropped).sum(),
        lag: manager
            .processes
            .iter()
            .filter_map(|p| lag(manager.now, p))
            .max(),
        cpu: data.cpu_of_manager(&manager.name),
        trouble: manager.trouble.clone(),
    }
}

fn process(data: &Data, manager: &EmpStatus, p: &ProcessStatus) -> Process {
    let topology = &data.catalog.topology;
    Process {
        name: topology.mp_name(p.mp),
        link: topology.mp(p.mp).is_some_and(|m| m.link),
        connected: p.connected,
        recorded: p.counters.recorded,
        lost: p.counters.dropped,
        unsent: p.counters.buffered_bytes,
        lag: lag(manager.now, p),
        cpu: p.counters.cpu,
        monitor: p.counters.monitor,
        costs: data.costs_of_mp(p.mp),
        offset: p.clock_offset_ns,
        clock_error: p.clock_error,
    }
}
