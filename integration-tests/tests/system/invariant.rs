//! Whole runs: what memory processes, stores and meta-objects say is what the programs did, and the contract holds.

use dosmos_integration_tests::{Lab, NESTED, said, up_args};

fn lab() -> Lab {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    lab.cluster(NESTED);
    lab
}

#[test]
fn sor_is_right_to_the_bit_and_everything_it_did_is_known() {
    let lab = lab();
    let said = lab.must_up(&[
        "sor",
        "--rows",
        "40",
        "--columns",
        "24",
        "--iterations",
        "25",
        "--counts",
        "counts",
    ]);
    assert!(
        said.contains("equal to a sequential run bit for bit"),
        "{said}"
    );
    lab.assert_invariant();
}

#[test]
fn a_random_program_is_known_to_the_last_access() {
    for seed in ["1", "2"] {
        let lab = lab();
        lab.must_up(&[
            "random",
            "--seed",
            seed,
            "--operations",
            "400",
            "--counts",
            "counts",
        ]);
        let done = lab.assert_invariant();
        assert!(done.values().sum::<u64>() > 800, "seed {seed}: {done:?}");
    }
}

#[test]
fn the_consistency_contract_holds_between_real_processes() {
    for test in ["mp", "sb", "iriw", "coherence", "mutex"] {
        for policy in [&[][..], &["--update"]] {
            let lab = lab();
            let mut args = vec!["litmus", "--test", test, "--rounds", "60"];
            args.extend(policy);
            lab.must_up(&args);
        }
    }
}

#[test]
fn the_contract_holds_for_contents_in_shared_memory() {
    // Of 20 and 48 KB, which go through a ring, and of 72 KB and 1 MB, which are mapped.
    for elements in ["2500", "6000", "9000", "130000"] {
        for (test, more) in [("coherence", "--update"), ("mp", "--messages")] {
            let lab = lab();
            let litmus = ["litmus", "--test", test, "--rounds", "20"];
            let of = ["--elements", elements, more];
            lab.must_up(&[&litmus[..], &of].concat());
        }
    }
}

/// As [`lab`], with copies of these variables in application processes.
fn lab_with_copies(variables: &[&str]) -> Lab {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    let overrides = variables
        .iter()
        .map(|name| format!("\n[[variable]]\nname = \"{name}\"\ncache = \"ap\"\n"));
    lab.cluster(&format!("{NESTED}{}", overrides.collect::<String>()));
    lab
}

#[test]
fn the_contract_holds_with_copies_in_application_processes() {
    let variables = [
        "mp.data",
        "mp.flag",
        "sb.x",
        "sb.found",
        "iriw.xy",
        "iriw.found",
        "coherence",
        "mutex",
    ];
    for test in ["mp", "sb", "iriw", "coherence", "mutex"] {
        for policy in [&[][..], &["--update"]] {
            let lab = lab_with_copies(&variables);
            let mut args = vec!["litmus", "--test", test, "--rounds", "60"];
            args.extend(policy);
            lab.must_up(&args);
        }
    }
}

#[test]
fn reads_of_copies_in_application_processes_are_known_to_the_last() {
    let variables = [
        "bool", "bytes", "i32", "i64", "u32", "u64", "f32", "f64", "totals", "sum",
    ];
    let variables = variables.map(|name| format!("random.{name}"));
    let variables: Vec<&str> = variables.iter().map(String::as_str).collect();
    let lab = lab_with_copies(&variables);
    lab.must_up(&[
        "random",
        "--seed",
        "3",
        "--operations",
        "400",
        "--counts",
        "counts",
    ]);
    lab.assert_invariant();
}

/// Reads by origin, as `dosmos query histogram` tells them: local, intra-group, inter-group.
fn reads_by_origin(app: &str) -> [u64; 3] {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    let output = lab.dosmos(&[
        "demo",
        "--headless",
        "--seconds",
        "1",
        "--app",
        app,
        "--run-dir",
        "run",
    ]);
    assert!(output.status.success(), "{}", said(&output));
    let answer = lab.query(&["histogram", "--op", "read", "--buckets", "7"]);
    ["local", "intra", "inter"].map(|o| answer["total"][o].as_u64().unwrap())
}

#[test]
fn a_bad_group_structure_shows_as_inter_group_reads_and_a_good_one_has_none() {
    let [local, intra, inter] = reads_by_origin("bad-group");
    assert!(
        inter > 9 * (local + intra) && inter > 0,
        "{local} {intra} {inter}"
    );
    let [local, intra, inter] = reads_by_origin("good-group");
    assert!(local + intra > 0 && inter == 0, "{local} {intra} {inter}");
}

#[test]
fn a_failing_program_is_named_and_everything_ends() {
    let lab = lab();
    let output = lab.dosmos(&up_args("echo no luck >&2; exit 3"));
    assert_eq!(output.status.code(), Some(1));
    let said = said(&output);
    assert!(
        said.contains("ap0 failed (exit status: 3): no luck"),
        "{said}"
    );
    let output = lab.dosmos(&[
        "up",
        "-c",
        "cluster.toml",
        "--run-dir",
        "another",
        "--",
        "no-such-program",
    ]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        dosmos_integration_tests::said(&output).contains("cannot start no-such-program for ap0")
    );
}

#[test]
fn what_is_not_there_is_said_by_name() {
    let lab = lab();
    let fails = |args: &[&str], expected: &str| {
        let output = lab.dosmos(args);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(expected), "{args:?}: {said}");
    };
    fails(
        &["config", "check", "none.toml"],
        "none.toml: cannot be read",
    );
    fails(&["up", "-c", "cluster.toml"], "no program to run");
    fails(
        &["node", "-c", "cluster.toml", "--name", "mp9"],
        "the cluster has no process mp9; its processes: emp0",
    );
    fails(
        &["node", "-c", "cluster.toml", "--name", "ap0"],
        "ap0 is an application process",
    );
    fails(
        &["demo", "--app", "chess", "--headless"],
        "no example program chess",
    );
    fails(&["query", "variables"], "name the run with");
    fails(
        &["query", "variables", "--store", "."],
        "is not a trace store",
    );
    fails(
        &["query", "variables", "--emp", "nowhere"],
        "is not an address",
    );
    fails(
        &["query", "variables", "--emp", "127.0.0.1:1"],
        "127.0.0.1:1",
    );
    fails(&["top", "--store", "none"], "is not a trace store");
}

#[test]
fn questions_about_a_run_are_checked_against_it() {
    let lab = lab();
    lab.must_up(&["sor", "--rows", "8", "--columns", "8", "--iterations", "2"]);
    let fails = |args: &[&str], expected: &str| {
        let mut all = vec!["query", "--run-dir", "run"];
        all.extend(args);
        let output = lab.dosmos(&all);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(expected), "{args:?}: {said}");
    };
    fails(
        &["histogram", "--var", "sor.gird"],
        "no variable \"sor.gird\"; did you mean \"sor.grid\"?",
    );
    fails(
        &["histogram", "--var", "sor.grid[99]"],
        "sor.grid has 4 objects, 0 to 3",
    );
    fails(
        &["histogram", "--ap", "ap9"],
        "no application process \"ap9\"; did you mean \"ap0\"?",
    );
    fails(
        &["histogram", "--op", "red"],
        "\"red\" is not an operation; use one of read, write",
    );
    fails(&["histogram", "--from", "soon"], "\"soon\" is not a time");
    fails(&["histogram", "--buckets", "0"], "0 buckets");
    fails(&["history", "--limit", "0"], "0 points");
    // A point that stands for several processes names none of them.
    let output = lab.dosmos(&[
        "query",
        "history",
        "--run-dir",
        "run",
        "--limit",
        "1",
        "--format",
        "csv",
    ]);
    let point = said(&output);
    let point: Vec<&str> = point.lines().nth(1).unwrap().split(',').collect();
    assert_eq!([point[3], point[5], point[6]], ["several"; 3], "{point:?}");
    // Every question that makes sense has an answer in every format.
    for question in [
        "variables",
        "processes",
        "groups",
        "meta",
        "histogram",
        "history",
        "events",
    ] {
        for format in ["table", "json", "csv"] {
            let output = lab.dosmos(&["query", question, "--run-dir", "run", "--format", format]);
            assert!(
                output.status.success(),
                "{question} {format}: {}",
                said(&output)
            );
            assert!(!output.stdout.is_empty(), "{question} {format}");
        }
    }
}
