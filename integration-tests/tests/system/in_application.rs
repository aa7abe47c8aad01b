//! Memory processes within application processes: programs do the same, and what they did is known.

use dosmos_integration_tests::{Lab, NESTED, in_groups, said, up_args};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::launching::support::{Up, eventually, spawn};

fn lab() -> Lab {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    lab.cluster(&format!("{NESTED}\n[defaults]\nin_application = true\n"));
    lab
}

#[test]
fn programs_compute_the_same_and_everything_they_did_is_known() {
    for program in [
        &[
            "sor",
            "--rows",
            "40",
            "--columns",
            "24",
            "--iterations",
            "25",
        ][..],
        &["random", "--seed", "1", "--operations", "400"],
        &[
            "litmus",
            "--test",
            "coherence",
            "--rounds",
            "20",
            "--elements",
            "130000",
            "--update",
        ],
    ] {
        let lab = lab();
        let said = lab.must_up(&[program, &["--counts", "counts"]].concat());
        if program[0] == "sor" {
            assert!(
                said.contains("equal to a sequential run bit for bit"),
                "{said}"
            );
        }
        lab.assert_invariant();
        // The program's time is not taken for that of serving.
        let serving = &lab.query(&["breakdown"])["serving_ns"];
        let serving: Vec<&String> = serving.as_object().unwrap().keys().collect();
        let status = lab.query(&["processes"]);
        let links = status["processes"].as_array().unwrap().iter();
        let links = links.filter(|process| process["kind"] == "link");
        let links: Vec<&str> = links.map(|p| p["name"].as_str().unwrap()).collect();
        assert_eq!(serving, links);
    }
}

#[test]
fn the_contract_holds() {
    for test in ["mp", "sb", "iriw", "coherence", "mutex"] {
        lab().must_up(&["litmus", "--test", test, "--rounds", "60"]);
    }
}

#[test]
fn processes_that_never_join_or_fail_keep_nobody() {
    let program = env!("CARGO_BIN_EXE_dosmos-under-test");
    let up = |defaults: &str, script: &str| {
        let lab = lab();
        lab.cluster(&format!(
            "{NESTED}\n[defaults]\nin_application = true\n{defaults}"
        ));
        let output = lab.dosmos(&up_args(script));
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        said(&output)
    };
    // ap0 waits for the others at a barrier, in vain, and then for nobody.
    let alone = format!("[ $DOSMOS_AP = ap0 ] || exit 0; exec {program} app sor --iterations 5");
    let printed = up("deadline_ms = 1500\n", &alone);
    assert!(printed.contains("ap0 failed"), "{printed}");
    let fails = format!(
        "[ $DOSMOS_AP = ap3 ] || exec {program} app sor --iterations 5; echo no luck >&2; exit 3"
    );
    let printed = up("deadline_ms = 1500\n", &fails);
    assert!(
        printed.contains("ap3 failed (exit status: 3): no luck"),
        "{printed}"
    );
}

#[test]
fn what_is_asked_to_end_hands_its_records_over_first() {
    let program = env!("CARGO_BIN_EXE_dosmos-under-test");
    let lab = lab();
    let script = format!("exec {program} app sor --rows 40 --columns 24 --seconds 600");
    let mut up = spawn(&lab, &up_args(&script));
    let wrote = || {
        let query = ["query", "histogram", "--op", "write", "--format", "json"];
        let answer = lab
            .dosmos(&[&query[..], &["--run-dir", "run"]].concat())
            .stdout;
        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        answer["total"]["local"].as_u64() > Some(0)
    };
    eventually("a write", wrote);
    terminate(&up);
    assert_eq!(up.0.wait().unwrap().code(), Some(2));
    let listed = lab.dosmos(&["runs", ".", "--format", "json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    // That the program ended by a signal is all.
    let lacking = listed["runs"][0]["lacking"].as_array().unwrap();
    let failed = |why: &Value| why.as_str().unwrap().starts_with("the run failed");
    assert!(lacking.iter().all(failed), "{lacking:?}");
}

fn terminate(process: &Up) {
    let id = Pid::from_raw(process.0.id().try_into().unwrap());
    kill(id, Signal::SIGTERM).unwrap();
}

/// Starts each process of the cluster by its name, which has no link processes; application process `lazy` runs something that never
/// joins. The exit status of each application process, and what it printed.
fn one_by_one(lab: &Lab, program: &[&str], lazy: &str) -> [(Option<i32>, String); 2] {
    let start = |name: &str, program: &[&str]| {
        let node = ["node", "--cluster", "cluster.toml", "--run-dir", "run"];
        spawn(lab, &[&node[..], &["--name", name, "--"], program].concat())
    };
    std::fs::create_dir_all(lab.path().join("run")).unwrap();
    let mut emp = start("emp0", &[]);
    let programs = ["ap0", "ap1"].map(|ap| match ap == lazy {
        true => (ap, start(ap, &["true"])),
        false => (ap, start(ap, program)),
    });
    let ended = programs.map(|(ap, mut program)| {
        let status = program.0.wait().unwrap();
        let log = lab.path().join(format!("run/log/{ap}.log"));
        (status.code(), std::fs::read_to_string(log).unwrap())
    });
    terminate(&emp);
    assert!(emp.0.wait().unwrap().success());
    ended
}

#[test]
fn each_can_be_started_by_its_name() {
    let program = env!("CARGO_BIN_EXE_dosmos-under-test");
    let lab = Lab::new(program);
    lab.cluster(&(in_groups(1, 2) + "[defaults]\nin_application = true\ndeadline_ms = 20000\n"));
    let sor = [
        "app",
        "sor",
        "--rows",
        "20",
        "--columns",
        "12",
        "--iterations",
        "5",
    ];
    let sor = [&[program], &sor[..], &["--counts", "counts"]].concat();
    let ended = one_by_one(&lab, &sor, "nobody");
    assert!(ended.iter().all(|(code, _)| *code == Some(0)), "{ended:?}");
    assert!(
        ended[0].1.contains("equal to a sequential run bit for bit"),
        "{ended:?}"
    );
    lab.assert_invariant();
    // Who never joins keeps nobody for longer than the barrier that waits for it.
    std::fs::remove_dir_all(lab.path().join("run")).unwrap();
    lab.cluster(&(in_groups(1, 2) + "[defaults]\nin_application = true\ndeadline_ms = 1000\n"));
    let ended = one_by_one(&lab, &sor, "ap1");
    let codes = ended.each_ref().map(|(code, _)| *code);
    assert_eq!(codes, [Some(1), Some(0)], "{ended:?}");
    // A memory process is started with its application process.
    let node = ["node", "--cluster", "cluster.toml", "--name", "mp0"];
    let output = lab.dosmos(&node);
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(
        said(&output).contains("mp0 is within its application process: start ap0 in its place"),
        "{}",
        said(&output)
    );
}

#[test]
fn over_tls_the_memory_process_has_its_own_certificate() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    let file = in_groups(2, 2).replacen(
        '\n',
        "\n[defaults]\nlisten = \"127.0.0.1:0\"\nin_application = true\n",
        1,
    );
    lab.cluster(&file);
    let made = lab.dosmos(&["cert", "init", "--cluster", "cluster.toml"]);
    assert!(made.status.success(), "{}", said(&made));
    let tls = String::from_utf8(made.stdout).unwrap();
    lab.cluster(&(file + &tls));
    let sor = ["sor", "--rows", "20", "--columns", "12"];
    let printed = lab.must_up(&[&sor[..], &["--iterations", "5", "--counts", "counts"]].concat());
    assert!(
        printed.contains("equal to a sequential run bit for bit"),
        "{printed}"
    );
    lab.assert_invariant();
    // Without it, whoever starts the program is told why it ends.
    std::fs::remove_dir_all(lab.path().join("tls/mp1")).unwrap();
    std::fs::remove_dir_all(lab.path().join("run")).unwrap();
    let output = lab.up(&[&sor[..], &["--iterations", "5"]].concat());
    assert!(!output.status.success());
    let said = said(&output);
    assert!(
        said.contains("mp1 cannot begin: cannot read") && said.contains("tls/mp1/ca.pem"),
        "{said}"
    );
}
