//! Memory processes within application processes: programs do the same, and what they did is known.

use dosmos_integration_tests::{Lab, NESTED, in_groups, said, up_args};

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
fn only_up_starts_them() {
    let lab = lab();
    for name in ["mp0", "ap0"] {
        let output = lab.dosmos(&[
            "node",
            "--cluster",
            "cluster.toml",
            "--name",
            name,
            "--",
            "true",
        ]);
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        let said = said(&output);
        assert!(
            said.contains("mp0 is within its application process"),
            "{said}"
        );
    }
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
