//! What each operation costs, from the program's call to its return.
//!
//! Process 0 measures, the others wait; one JSON object an operation, times in nanoseconds. `remote` is
//! another memory process of the group, `far` one of another group, where there are such. A remote read
//! finds no copy, because process 0 writes the object before each (writes are not in the measurement);
//! a `copy_read` finds one. `section_writes` is an acquire, a thousand writes of an element and the release. What is
//! done without a message is measured a thousand at a time, at an object that the process has to itself: `own_gets`,
//! `own_sets`, `own_reads` and `own_edits` of all its elements, and `own_sections`: an acquire, a write of an element and
//! the release.
//!
//! With all processes taking part: `together_barrier`, one after the other; and `together_hand_over`, from one section of process 0 to its
//! next, halved, while another process of its group, at another memory process, wants the same lock all the time.

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
    /// Only objects here, seen from process 0, or what takes several processes (`together`); may be given several times [default: all that
    /// there are]
    #[arg(long, value_name = "PLACE", value_parser = ["own", "local", "remote", "far", "together"])]
    at: Vec<String>,
}

impl Program for Latency {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        let mut lines = Vec::new();
        let wanted = |place: &str| self.at.is_empty() || self.at.iter().any(|at| at == place);
        if dsm.rank() == 0 {
            if wanted("own") {
                self.measure_own(dsm, &mut lines)?;
            }
            for (place, owner) in places(dsm).into_iter().filter(|(place, _)| wanted(place)) {
                let object = dsm
                    .vector::<f64>(&format!("latency.{place}"), self.elements)
                    .owner(&owner)
                    .cache(Cache::Mp)
                    .declare()?
                    .object(0)?;
                self.measure_all(place, &object, &mut lines)?;
            }
        }
        patient(dsm).barrier()?;
        if wanted("together") {
            self.measure_together(dsm, &mut lines)?;
        }
        patient(dsm).barrier()?;
        match dsm.rank() {
            0 => Ok(lines.join("\n")),
            _ => Ok(String::new()),
        }
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
        let copy = dsm.vector::<f64>("latency.copy", self.elements);
        let copy = copy.cache(Cache::Ap).declare()?.object(0)?;
        let mut reader = copy.reader();
        lines.push(self.measure("own", "reader_gets", nothing, || {
            for i in 0..BATCH {
                black_box(reader.get(black_box(i) % self.elements)?);
            }
            Ok(())
        })?);
        lines.push(self.measure("own", "reader_reads", nothing, || {
            for _ in 0..BATCH {
                black_box(reader.read()?);
            }
            Ok(())
        })?);
        drop(reader);
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

    /// What takes several processes.
    fn measure_together(&self, dsm: &Dsm, lines: &mut Vec<String>) -> Result<()> {
        let nothing = || Ok(());
        lines.push(self.measure("together", "barrier", nothing, || Ok(dsm.barrier()?))?);

        // Which memory process each process has, so that all agree on who takes part.
        let all = dsm.memory_processes();
        let place = all.iter().position(|mp| *mp.name == *dsm.memory_process());
        let places = dsm
            .vector::<u64>("latency.places", dsm.size())
            .cache(Cache::Mp)
            .declare()?;
        places.set(dsm.rank(), place.unwrap_or_default() as u64)?;
        dsm.barrier()?;
        let places = places.read_all()?;
        let at = |rank: usize| all.get(places[rank] as usize);
        let first = at(0).map(|mp| (&mp.group, &mp.name));
        let Some(other) = (1..dsm.size()).find(|rank| {
            let theirs = at(*rank).map(|mp| (&mp.group, &mp.name));
            theirs.map(|t| t.0) == first.map(|f| f.0) && theirs != first
        }) else {
            return Ok(());
        };
        let lock = dsm.vector::<f64>("latency.lock", self.elements);
        let lock = lock.owner_rank(0).cache(Cache::Mp).declare()?.object(0)?;
        let [mine, theirs] = [0, other].map(|rank| dsm.rank() == rank);
        dsm.barrier()?;
        if theirs {
            // Until process 0 has written that it has finished.
            while lock.acquire()?.get(0)? < 1.0 {}
        }
        if mine {
            let mut times = Times::default();
            let mut last = None;
            for i in 0..self.warm_up + self.ops {
                let section = lock.acquire()?;
                let now = Instant::now();
                let before = last.replace(now);
                if let Some(before) = before.filter(|_| i >= self.warm_up) {
                    times.add((now - before).as_nanos() as u64 / 2);
                }
                section.release()?;
            }
            let mut section = lock.acquire()?;
            section.set(0, 1.0)?;
            section.release()?;
            lines.push(self.line("together", "hand_over", &times));
        }
        if mine || theirs {
            for (op, cache) in [("flag", Cache::Ap), ("flag_by_messages", Cache::Mp)] {
                let times = self.measure_flags(dsm, op, cache, [0, other])?;
                lines.extend(mine.then(|| self.line("together", op, &times)));
            }
        }
        Ok(())
    }

    /// There and back between two processes: each writes and publishes a word, and the other reads it again and again until it is there.
    fn measure_flags(
        &self,
        dsm: &Dsm,
        name: &str,
        cache: Cache,
        ranks: [usize; 2],
    ) -> Result<Times> {
        let flags = dsm
            .vector::<u64>(&format!("latency.{name}"), 2)
            .split(2)
            .owner_ranks(ranks)
            .cache(cache)
            .declare()?;
        let me = usize::from(dsm.rank() != ranks[0]);
        let mut times = Times::default();
        for i in 1..=self.warm_up + self.ops {
            let start = Instant::now();
            if me == 0 {
                flags.set(0, i)?;
                dsm.publish()?;
            }
            while flags.get(1 - me)? < i {}
            if me == 1 {
                flags.set(1, i)?;
                dsm.publish()?;
            } else if i > self.warm_up {
                times.add(start.elapsed().as_nanos() as u64);
            }
        }
        Ok(times)
    }

    fn measure(
        &self,
        place: &str,
        op: &str,
        prepare: impl Fn() -> Result<()>,
        mut measured: impl FnMut() -> Result<()>,
    ) -> Result<String> {
        let mut times = Times::default();
        for i in 0..self.warm_up + self.ops {
            prepare()?;
            let start = Instant::now();
            measured()?;
            let took = start.elapsed().as_nanos() as u64;
            if i >= self.warm_up {
                times.add(took);
            }
        }
        Ok(self.line(place, op, &times))
    }

    fn line(&self, place: &str, op: &str, times: &Times) -> String {
        let times = times.0.as_ref();
        let at = |q: f64| times.map_or(0, |t| t.value_at_quantile(q));
        json!({
            "op": format!("{place}_{op}"),
            "bytes": 8 * self.elements,
            "count": self.ops,
            "median_ns": at(0.5),
            "p99_ns": at(0.99),
            "min_ns": times.map_or(0, Histogram::min),
            "max_ns": times.map_or(0, Histogram::max),
        })
        .to_string()
    }
}

/// The times of one operation.
struct Times(Option<Histogram<u64>>);

impl Default for Times {
    fn default() -> Self {
        // Three digits; times beyond ten minutes count as that (a histogram does not grow by itself).
        Self(Histogram::new_with_bounds(1, 600_000_000_000, 3).ok())
    }
}

impl Times {
    fn add(&mut self, ns: u64) {
        if let Some(times) = &mut self.0 {
            times.saturating_record(ns);
        }
    }
}
