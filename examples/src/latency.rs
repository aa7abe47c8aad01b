//! What each operation costs, from the program's call to its return.
//!
//! Process 0 measures, the others wait; one JSON object an operation, times in nanoseconds. `remote` is
//! another memory process of the group, `far` one of another group, where there are such. A remote read
//! finds no copy, because process 0 writes the object before each (writes are not in the measurement);
//! a `copy_read` finds one. `section_writes` is an acquire, a thousand writes of an element and the release. What is
//! done without a message is measured a thousand at a time, at an object that the process has to itself: `own_gets`,
//! `own_sets`, `own_reads` and `own_edits` of all its elements, and `own_sections`: an acquire, a write of an element and
//! the release.

use std::hint::black_box;
use std::time::Instant;

use clap::Args;
use dsm_lib::{Cache, Dsm, Object};
use hdrhistogram::Histogram;
use serde_json::json;

use crate::error::Result;
use crate::program::{Program, patient};

/// Operations that are measured together, where one is too short.
const BATCH: usize = 1000;

/// The arguments of the program.
#[derive(Args, Debug, Clone)]
pub struct Latency {
    /// Measurements of each operation.
    #[arg(long, default_value_t = 2000)]
    ops: u64,
    /// Measurements before those that count.
    #[arg(long, default_value_t = 200)]
    warm_up: u64,
    /// Elements (of 8 bytes) of the object.
    #[arg(long, default_value_t = 1)]
    elements: usize,
    /// Only objects here, seen from process 0; may be given several times [default: all that there are]
    #[arg(long, value_name = "PLACE", value_parser = ["own", "local", "remote", "far"])]
    at: Vec<String>,
}

impl Program for Latency {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        let mut lines = Vec::new();
        if dsm.rank() == 0 {
            let wanted = |place: &str| self.at.is_empty() || self.at.iter().any(|at| at == place);
            if wanted("own") {
                self.measure_own(dsm, &mut lines)?;
            }
            for (place, owner) in places(dsm).into_iter().filter(|(place, _)| wanted(place)) {
                let object = dsm
                    .vector::<f64>(&format!("latency.{place}"), self.elements)
                    .owner(&owner)
                    .declare()?
                    .object(0)?;
                self.measure_all(place, &object, &mut lines)?;
            }
        }
        patient(dsm).barrier()?;
        Ok(lines.join("\n"))
    }
}

/// Where an object can be, seen from this process.
fn places(dsm: &Dsm) -> Vec<(&'static str, String)> {
    let mut found = vec![("local", dsm.memory_process().to_owned())];
    let mut others = dsm.memory_processes().iter();
    let mut remote = others.clone();
    let near = remote.find(|mp| *mp.group == *dsm.group() && *mp.name != *dsm.memory_process());
    found.extend(near.map(|mp| ("remote", mp.name.to_string())));
    let far = others.find(|mp| *mp.group != *dsm.group());
    found.extend(far.map(|mp| ("far", mp.name.to_string())));
    found
}

impl Latency {
    fn measure_all(
        &self,
        place: &str,
        object: &Object<f64>,
        lines: &mut Vec<String>,
    ) -> Result<()> {
        let values = vec![1.0; object.len()];
        let write = || Ok(object.write(&values)?);
        let read = || match object.read() {
            Ok(_) => Ok(()),
            Err(e) => Err(e.into()),
        };
        let nothing = || Ok(());
        match place {
            "local" => lines.push(self.measure(place, "read", nothing, read)?),
            _ => lines.push(self.measure(place, "read", write, read)?),
        }
        if place == "remote" {
            lines.push(self.measure(place, "copy_read", nothing, read)?);
        }
        lines.push(self.measure(place, "write", nothing, write)?);
        lines.push(self.measure(place, "acquire_release", nothing, || {
            object.acquire()?.release()?;
            Ok(())
        })?);
        lines.push(self.measure(place, "section_writes", nothing, || {
            let mut section = object.acquire()?;
            for i in 0..BATCH {
                section.set(i % self.elements, i as f64)?;
            }
            section.release()?;
            Ok(())
        })?);
        Ok(())
    }

    /// Operations that take no message, a thousand at a time.
    fn measure_own(&self, dsm: &Dsm, lines: &mut Vec<String>) -> Result<()> {
        let own = dsm.vector::<f64>("latency.own", self.elements);
        let own = own.cache(Cache::Ap).declare()?.object(0)?;
        own.edit()?.finish()?; // from now on it is this process's
        let nothing = || Ok(());
        lines.push(self.measure("own", "gets", nothing, || {
            for i in 0..BATCH {
                black_box(own.get(black_box(i) % self.elements)?);
            }
            Ok(())
        })?);
        lines.push(self.measure("own", "sets", nothing, || {
            for i in 0..BATCH {
                own.set(black_box(i) % self.elements, 1.0)?;
            }
            Ok(())
        })?);
        lines.push(self.measure("own", "reads", nothing, || {
            for _ in 0..BATCH {
                black_box(own.read()?);
            }
            Ok(())
        })?);
        lines.push(self.measure("own", "edits", nothing, || {
            for _ in 0..BATCH {
                own.edit()?.finish()?;
            }
            Ok(())
        })?);
        lines.push(self.measure("own", "sections", nothing, || {
            for i in 0..BATCH {
                let mut section = own.acquire()?;
                section.set(black_box(i) % self.elements, 1.0)?;
                section.release()?;
            }
            Ok(())
        })?);
        Ok(())
    }

    fn measure(
        &self,
        place: &str,
        op: &str,
        prepare: impl Fn() -> Result<()>,
        measured: impl Fn() -> Result<()>,
    ) -> Result<String> {
        // Three digits; times beyond ten minutes count as that (a histogram does not grow by itself).
        let mut times = Histogram::<u64>::new_with_bounds(1, 600_000_000_000, 3).ok();
        for i in 0..self.warm_up + self.ops {
            prepare()?;
            let start = Instant::now();
            measured()?;
            let took = start.elapsed().as_nanos() as u64;
            if let Some(times) = times.as_mut().filter(|_| i >= self.warm_up) {
                times.saturating_record(took);
            }
        }
        let at = |q: f64| times.as_ref().map_or(0, |t| t.value_at_quantile(q));
        Ok(json!({
            "op": format!("{place}_{op}"),
            "bytes": 8 * self.elements,
            "count": self.ops,
            "median_ns": at(0.5),
            "p99_ns": at(0.99),
            "min_ns": times.as_ref().map_or(0, Histogram::min),
            "max_ns": times.as_ref().map_or(0, Histogram::max),
        })
        .to_string())
    }
}
