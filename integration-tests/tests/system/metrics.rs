//! Every process of a running cluster answers a scrape, and the figures agree.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use dosmos_integration_tests::{Lab, NESTED, up_args};

const DEADLINE: Duration = Duration::from_secs(60);

/// `dosmos up`, killed at the end of the test; what it started ends with it.
struct Up(Child);

impl Drop for Up {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The samples of the process `name`, as in `name{labels}` → value; none while it does not answer.
fn scrape(lab: &Lab, name: &str) -> Option<BTreeMap<String, f64>> {
    let file = lab.path().join(format!("run/addr/{name}.metrics"));
    let address = std::fs::read_to_string(file).ok()?;
    let mut stream = TcpStream::connect(address.trim()).ok()?;
    let request = "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    assert!(head.starts_with("HTTP/1.1 200"), "{name}: {head}");
    assert!(body.ends_with("# EOF\n"), "{name}: {body}");
    let samples = body.lines().filter(|l| !l.starts_with('#'));
    let samples = samples.map(|l| l.rsplit_once(' ').unwrap());
    Some(
        samples
            .map(|(k, v)| (k.to_owned(), v.parse().unwrap()))
            .collect(),
    )
}

/// Sum of a family over all processes and labels.
fn sum<'a>(pages: impl IntoIterator<Item = &'a BTreeMap<String, f64>>, family: &str) -> f64 {
    let family = format!("{family}{{");
    let samples = pages.into_iter().flatten();
    samples
        .filter(|(k, _)| k.starts_with(&family))
        .map(|(_, v)| v)
        .sum()
}

const EMPS: [&str; 2] = ["emp0", "emp1"];
const MPS: [&str; 7] = [
    "mp0", "mp1", "mp2", "mp3", "lp.ocean", "lp.north", "lp.land",
];

#[test]
fn every_process_answers_and_event_managers_come_to_agree_with_memory_processes() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    lab.cluster(NESTED);
    let binary = env!("CARGO_BIN_EXE_dosmos-under-test");
    let program = format!("{binary} app random --seed 5 --operations 200 && exec sleep 1000");
    let args = up_args(&program);
    let mut command = lab.command(&args);
    let _up = Up(command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap());
    let started = Instant::now();
    let of = |names: &[&str]| {
        let pages = names.iter().map(|name| scrape(&lab, name));
        pages.collect::<Option<Vec<_>>>()
    };
    loop {
        assert!(
            started.elapsed() < DEADLINE,
            "{:?} {:?}",
            of(&MPS),
            of(&EMPS)
        );
        let (Some(before), Some(emps), Some(mps)) = (of(&MPS), of(&EMPS), of(&MPS)) else {
            std::thread::yield_now();
            continue;
        };
        let done = sum(&mps, "dosmos_mp_accesses_total");
        let stored = sum(&emps, "dosmos_emp_accesses_total");
        let still = done == sum(&before, "dosmos_mp_accesses_total");
        if done < 800.0 || !still || stored < done {
            std::thread::yield_now();
            continue;
        }
        assert_eq!(done, stored);
        assert_eq!(
            sum(&mps, "dosmos_mp_lock_wait_seconds_count"),
            sum(&emps, "dosmos_emp_lock_wait_seconds_count"),
        );
        assert!(sum(&mps, "dosmos_mp_lock_wait_seconds_count") > 0.0);
        assert_eq!(sum(&emps, "dosmos_emp_connected"), MPS.len() as f64);
        assert_eq!(sum(&mps, "dosmos_mp_event_manager_up"), MPS.len() as f64);
        assert_eq!(sum(&mps, "dosmos_mp_records_dropped_total"), 0.0);
        assert!(
            sum(&mps, "dosmos_mp_forwarded_total") > 0.0,
            "links forward"
        );
        assert!(sum(&emps, "dosmos_emp_store_bytes") > 0.0);
        let series: usize = mps.iter().chain(&emps).map(BTreeMap::len).sum();
        assert!(series < 9 * 80, "{series} series");
        return;
    }
}
