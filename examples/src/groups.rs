//! `bad-group` and `good-group`: the programs of figures 8 and 9 of the DOSMOS-Trace paper.
//!
//! The processes of each group read a table of their own over and over; now and then their leader
//! writes it. The two programs differ in one word, the owner of the table: in `bad-group` it is a
//! memory process of another group, so that there can be no copy and every read crosses link
//! processes; in `good-group` it is one of the readers' own group, and no access at all leaves the
//! group.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use clap::Args;
use dsm_lib::{Cache, Dsm, Vector};

use crate::error::{Error, Result};
use crate::program::{Program, patient, wrong};

/// The value that says that the program is over.
const STOP: f64 = -1.0;

/// The arguments of both programs.
#[derive(Args, Debug, Clone)]
struct Options {
    /// Rounds: the table is written once in each.
    #[arg(long, default_value_t = 20)]
    rounds: usize,
    /// Run until this much time is up, whatever the rounds.
    #[arg(long)]
    seconds: Option<f64>,
    /// Reads by each reader in a round.
    #[arg(long, default_value_t = 50)]
    reads: usize,
    /// Elements of the table.
    #[arg(long, default_value_t = 64)]
    elements: usize,
    /// The memory process to own the tables, instead of a suitable one.
    #[arg(long)]
    owner: Option<String>,
}

/// The arguments of `bad-group`.
#[derive(Args, Debug, Clone)]
pub struct Bad {
    #[command(flatten)]
    options: Options,
}

/// The arguments of `good-group`.
#[derive(Args, Debug, Clone)]
pub struct Good {
    #[command(flatten)]
    options: Options,
}

impl Program for Bad {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        play(dsm, "bad-group", &self.options, |mine| {
            find_owner(dsm, |group| top(group) != top(mine))
                .or_else(|| find_owner(dsm, |group| group != mine))
                .ok_or_else(|| Error::TooSmall {
                    program: "bad-group",
                    needs: "memory processes in two groups".into(),
                    has: format!("them in {mine} only"),
                })
        })
    }
}

impl Program for Good {
    fn run(&self, dsm: &Dsm) -> Result<String> {
        // There is one in the group: every process of it has one.
        let own = dsm.memory_process();
        play(dsm, "good-group", &self.options, |mine| {
            Ok(find_owner(dsm, |group| group == mine).unwrap_or_else(|| own.to_owned()))
        })
    }
}

fn find_owner(dsm: &Dsm, suits: impl Fn(&str) -> bool) -> Option<String> {
    let mut all = dsm.memory_processes().iter();
    all.find(|mp| suits(&mp.group))
        .map(|mp| mp.name.to_string())
}

/// The top-level group of a group: `/ocean` of `/ocean/north`.
fn top(group: &str) -> &str {
    let inner = group.get(1..).and_then(|rest| rest.find('/'));
    inner.map_or(group, |at| &group[..=at])
}

/// The group of each application process, by rank.
fn groups(dsm: &Dsm) -> Result<Vec<&str>> {
    let group_of = |home: &str| {
        let mut all = dsm.memory_processes().iter();
        all.find(|mp| &*mp.name == home).map(|mp| &*mp.group)
    };
    let all: Vec<&str> = dsm.homes().iter().filter_map(|h| group_of(h)).collect();
    if all.len() == dsm.size() {
        return Ok(all);
    }
    Err(Error::Usage(
        "the memory process does not say which groups there are; are all processes of one version?"
            .into(),
    ))
}

fn play(
    dsm: &Dsm,
    program: &'static str,
    options: &Options,
    choose_owner: impl Fn(&str) -> Result<String>,
) -> Result<String> {
    let groups = groups(dsm)?;
    let below = format!("{}/", dsm.group());
    if groups.iter().any(|group| group.starts_with(&below)) {
        // A barrier of this group would wait for those of its sub-groups, which have their own tables.
        return Ok(format!(
            "{program}: {} has sub-groups and only looks on",
            dsm.group()
        ));
    }
    let leader = groups.iter().position(|group| *group == dsm.group()) == Some(dsm.rank());
    let owner = match &options.owner {
        Some(name) => name.clone(),
        None => choose_owner(dsm.group())?,
    };
    let table = dsm
        .vector::<f64>(&format!("table{}", dsm.group()), options.elements)
        .owner(&owner)
        .cache(Cache::Mp)
        .declare()?;
    let reads = share(dsm, program, options, &table, leader)?;
    Ok(format!(
        "{program}: {} of {} read {} {reads} times; its owner is {owner}",
        dsm.name(),
        dsm.group(),
        table.name()
    ))
}

/// Read and compute; the leader writes the table once a round, all see what it wrote.
fn share(
    dsm: &Dsm,
    program: &'static str,
    options: &Options,
    table: &Vector<f64>,
    leader: bool,
) -> Result<usize> {
    let patient = patient(dsm);
    let (table, start) = (table.object(0)?, Instant::now());
    let limit = Duration::try_from_secs_f64(options.seconds.unwrap_or(0.0)).unwrap_or_default();
    let (mut round, mut reads) = (0, 0);
    loop {
        patient.group_barrier()?;
        if leader {
            let over = match options.seconds {
                Some(_) => start.elapsed() >= limit,
                None => round >= options.rounds,
            };
            let next = if over { STOP } else { (round + 1) as f64 };
            let mut section = table.acquire()?;
            section.write(&vec![next; options.elements])?;
            section.release()?;
        }
        patient.group_barrier()?;
        round += 1;
        for _ in 0..options.reads.max(1) {
            let view = table.read()?;
            reads += 1;
            if view[0] == STOP {
                return Ok(reads);
            }
            // The last release before the barrier, whole (rules 4 and 5 of the contract).
            if view.iter().any(|v| *v != round as f64) {
                let seen: BTreeSet<String> = view.iter().map(ToString::to_string).collect();
                let what = format!("round {round} was written, {seen:?} read");
                return Err(wrong(dsm, program, what));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::top;

    #[test]
    fn the_top_level_group_is_found() {
        for (group, is) in [("/a", "/a"), ("/a/b", "/a"), ("/a/b/c", "/a"), ("", "")] {
            assert_eq!(top(group), is);
        }
    }
}
