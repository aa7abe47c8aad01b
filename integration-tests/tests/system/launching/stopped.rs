//! What waits for a process that takes nothing has a bound, in memory processes of their own.

use std::process::Stdio;
use std::time::Duration;

use dosmos_integration_tests::{Lab, in_groups};
use dsm_lib::{Address, Dsm, Settings, Vector};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::support::*;

/// Elements of an object: 64 KiB.
const ELEMENTS: usize = 8 << 10;
/// Writes of all of it: more than a memory process keeps for a peer without listening less.
const WRITES: usize = 3_000;
const MIB: u64 = 1 << 20;
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A memory process, which goes on when the test ends.
struct Stopped(Pid);

impl Drop for Stopped {
    fn drop(&mut self) {
        // It may have ended.
        let _ = kill(self.0, Signal::SIGCONT);
    }
}

/// The peak memory of a process, in bytes.
fn peak_memory(pid: Pid) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib << 10
}

#[test]
fn what_waits_for_a_memory_process_that_is_stopped_is_bounded_and_arrives_when_it_goes_on() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    lab.cluster(&in_groups(1, 2));
    let mut up = lab.command(&up_args("echo running; exec sleep 1000"));
    // All goes over the connection, and not in files beside it.
    up.env("DOSMOS_LARGE_MESSAGES", "off");
    let up = up.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let _up = Up(up.unwrap());
    says_running(&lab, 2);
    let (asked, owner) = (pid_of(&lab, "mp0"), pid_of(&lab, "mp1"));
    let run = lab.path().join("run");
    let mut settings = Settings::new(Address::Unix(run.join("mp0.sock")), "ap0");
    let token = std::fs::read_to_string(run.join("token")).unwrap();
    settings.token = Some(token.trim().parse().unwrap());
    let dsm = Dsm::connect(settings).unwrap();
    let theirs = dsm.vector("theirs", ELEMENTS).owner("mp1");
    let theirs: Vector<u64> = theirs.declare().unwrap();
    let object = theirs.object(0).unwrap();
    object.write(&[1; ELEMENTS]).unwrap();
    let before = peak_memory(asked);

    let stopped = Stopped(owner);
    kill(owner, Signal::SIGSTOP).unwrap();
    let writes = (0..WRITES as u64).map(|n| object.write_async(&[n; ELEMENTS]));
    let calls: Vec<_> = writes.collect();
    // It listens until enough waits, and then no more.
    let (mut most, mut looks) = (0, 0);
    eventually("an end to the memory that it takes", || {
        std::thread::sleep(LOOK_AGAIN);
        let now = peak_memory(asked);
        looks = if now > most { 0 } else { looks + 1 };
        most = now;
        looks > 50 && now > before + 32 * MIB
    });
    let taken = (most - before) / MIB;
    let sent = (WRITES * ELEMENTS * 8) as u64 / MIB;
    // What waits (64 MiB), what is on its way to be read, and what the allocator keeps.
    assert!(taken < 128, "{taken} MiB of {sent} MiB wait");
    drop(stopped);
    for call in calls {
        call.wait().unwrap();
    }
    let last = WRITES as u64 - 1;
    assert_eq!(object.read().unwrap()[..], [last; ELEMENTS]);
    dsm.close().unwrap();
}
