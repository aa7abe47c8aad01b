//! One run of the program in one of the configurations.

use anyhow::{Context, bail};
use dosmos_cli::launch::Running;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeVal;
use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;
use serde::Deserialize;

use crate::run::{json_lines, run_watched};

/// What a run took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// From the first round to the last one of all processes, seconds.
    pub(super) seconds: f64,
    /// Processor time of all its processes from when the cluster was up to their end, seconds.
    pub(super) processor: f64,
    /// Of that, what event managers took until the program had ended.
    pub(super) managers: f64,
}

impl Run {
    /// Of application and memory processes.
    pub(super) fn program(&self) -> f64 {
        self.processor - self.managers
    }
}

#[derive(Deserialize)]
struct Line {
    seconds: f64,
}

pub(super) async fn one(configuration: usize, rounds: u64, compute_us: u64) -> anyhow::Result<Run> {
    let (rounds, compute) = (rounds.to_string(), compute_us.to_string());
    let app = ["exclusive", "--rounds", &rounds, "--compute", &compute];
    let (mut managers, mut started, mut at_end) = (0.0, 0.0, 0.0);
    let ended_before = of_ended_processes()?;
    let prepare = |running: &Running| {
        if configuration == 3 {
            running.emp_pids().try_for_each(|pid| pin(pid, 1))?;
        }
        managers = of_processes(running.emp_pids())?;
        started = managers + of_processes(running.mp_pids())?;
        Ok(())
    };
    let ended = |running: &Running| {
        at_end = of_processes(running.emp_pids())?;
        Ok(())
    };
    let place = std::env::temp_dir();
    let said = run_watched(&place, &cluster(configuration), &app, prepare, ended).await?;
    let lines: Vec<Line> = json_lines(&said.said)?;
    let line = lines.first().context("the program said nothing")?;
    Ok(Run {
        seconds: line.seconds,
        // All of them have ended by now; before the program began they took `started`.
        processor: of_ended_processes()? - ended_before - started,
        managers: at_end - managers,
    })
}

/// Four memory processes with an application process each, in one group.
pub(super) fn cluster(configuration: usize) -> String {
    let emps = if configuration == 1 { 4 } else { 1 };
    let mode = if configuration == 0 { "off" } else { "events" };
    let mut text = format!(
        "name = \"intrusion\"\n[defaults]\nlisten = \"unix\"\n[recording]\nmode = \"{mode}\"\n\
         [[group]]\nname = \"all\"\n"
    );
    for i in 0..emps {
        text += &format!("[[emp]]\nname = \"emp{i}\"\n");
    }
    for i in 0..4 {
        let emp = i % emps;
        text += &format!(
            "[[mp]]\nname = \"mp{i}\"\ngroup = \"all\"\nemp = \"emp{emp}\"\n\
             [[ap]]\nname = \"ap{i}\"\nmp = \"mp{i}\"\n"
        );
    }
    text
}

/// Processor time of the processes that this one started and that ended, with those that they started, seconds.
fn of_ended_processes() -> anyhow::Result<f64> {
    let used = getrusage(UsageWho::RUSAGE_CHILDREN).context("what did processes take?")?;
    let seconds = |time: TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(used.user_time()) + seconds(used.system_time()))
}

/// Processor time of running processes, seconds.
fn of_processes(mut pids: impl Iterator<Item = u32>) -> anyhow::Result<f64> {
    pids.try_fold(0.0, |sum, pid| {
        let clock = clock_getcpuclockid(Pid::from_raw(pid as i32));
        let time = clock.and_then(clock_gettime);
        let time = time.with_context(|| format!("what did process {pid} take?"))?;
        Ok(sum + time.tv_sec() as f64 + time.tv_nsec() as f64 / 1e9)
    })
}

/// Keeps this process, and those it starts from now on, on the first processor until dropped.
pub(super) struct Affinity(CpuSet);

impl Affinity {
    pub(super) fn first_processor() -> anyhow::Result<Self> {
        let this = Pid::from_raw(0);
        let before = sched_getaffinity(this).context("which processors may this process use?")?;
        if !before.is_set(0)? || !before.is_set(1)? {
            bail!("this benchmark needs processors 0 and 1");
        }
        set(this, 0)?;
        Ok(Self(before))
    }
}

impl Drop for Affinity {
    fn drop(&mut self) {
        // Only a convenience for what comes after.
        let _ = sched_setaffinity(Pid::from_raw(0), &self.0);
    }
}

fn set(task: Pid, processor: usize) -> anyhow::Result<()> {
    let mut only = CpuSet::new();
    only.set(processor)?;
    sched_setaffinity(task, &only).with_context(|| format!("cannot move task {task}"))
}

/// Moves a process with all its threads to a processor.
fn pin(pid: u32, processor: usize) -> anyhow::Result<()> {
    for task in std::fs::read_dir(format!("/proc/{pid}/task"))? {
        let task = task?.file_name().to_string_lossy().parse()?;
        set(Pid::from_raw(task), processor)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use dosmos_cli::config::Cluster;
    use nix::time::ClockId;

    #[test]
    fn every_configuration_is_a_cluster() {
        for configuration in 0..4 {
            let cluster = Cluster::parse(&cluster(configuration)).unwrap();
            let emps = cluster.topology.event_managers().len();
            assert_eq!(emps, if configuration == 1 { 4 } else { 1 });
        }
    }

    #[test]
    fn processor_time_of_a_process_is_that_of_its_threads() {
        let this = std::process::id();
        let before = of_processes([this].into_iter()).unwrap();
        let work = || {
            let used = || {
                let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
                std::time::Duration::from(time)
            };
            let start = used();
            while (used() - start).as_millis() < 20 {}
        };
        std::thread::scope(|s| (0..2).for_each(|_| drop(s.spawn(work))));
        let used = of_processes([this].into_iter()).unwrap() - before;
        assert!(used >= 0.04, "{used}");
    }
}
