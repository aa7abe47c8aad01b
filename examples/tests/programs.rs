//! All programs on real memory processes: alone, in the demo's two groups, and in nested groups. The
//! programs check their own results.
#![allow(clippy::unwrap_used)] // also in the helpers

mod cluster;

use std::time::Duration;

use cluster::{Cluster, demo, nested, single};
use dosmos_examples::kernels::{BarrierOutcome, Outcome};
use dsm_lib::{Dsm, ErrorCode, LockKind, Scalar};

fn each(clusters: impl IntoIterator<Item = fn() -> Cluster>, test: impl Fn(&Cluster)) {
    for start in clusters {
        test(&start());
    }
}

fn one_mp() -> Cluster {
    single(4)
}

const ALL: [fn() -> Cluster; 3] = [one_mp, demo, nested];

#[test]
fn sor_equals_the_sequential_run() {
    each(ALL, |cluster| {
        let said = cluster.run("sor", "--rows 23 --columns 17 --iterations 25");
        assert!(said[0].contains("25 iterations"), "{}", said[0]);
        assert!(said[0].contains("bit for bit"), "{}", said[0]);
    });
    let said = demo().run("sor", "--iterations 10 --invalidate --check 1");
    assert!(said[0].contains("in iteration 10"), "{}", said[0]);
}

#[test]
fn sor_by_the_clock_stops_everywhere_in_the_same_iteration() {
    // All stop together, or the barriers fail; the result is that of as many sequential iterations.
    let said = demo().run("sor", "--rows 16 --columns 16 --seconds 0.2");
    assert!(said[0].contains("bit for bit"), "{}", said[0]);
}

/// What the applications do by other arguments than those of the whole-system test.
#[test]
fn applications_verify_whatever_their_options() {
    for (name, args) in [
        ("spmv", "--rows 30 --per-row 4 --gets --iterations 3"),
        ("workpile", "--chunks 20 --work 50 --locks --servers 2"),
        ("water", "--molecules 30 --blocks 6 --seconds 0.1"),
        (
            "is",
            "--keys 100 --buckets 5 --seconds 0.1 --iterations 100000",
        ),
        (
            "water",
            "--molecules 30 --blocks 3 --accumulate --iterations 4",
        ),
        ("is", "--keys 100 --buckets 5 --accumulate --iterations 5"),
        ("barnes", "--bodies 20 --theta 0 --iterations 2"),
        ("fft", "--side 16 --iterations 0"),
        ("lu", "--n 20 --block 20"),
        ("lu", "--n 7 --block 1 --seconds 0.1"),
        ("radix", "--keys 100 --bits 16 --seconds 0.1"),
        ("radix", "--keys 3000 --bits 10 --partition --iterations 4"),
        ("radix", "--keys 9 --bits 1 --partition"),
        ("sphere", "--rows 7 --columns 9 --seconds 0.1"),
        ("sphere", "--rows 6 --columns 3 --iterations 0"),
        ("raytrace", "--rows 9 --columns 7 --tile 9 --depth 0"),
        ("raytrace", "--rows 16 --columns 24 --tile 2 --seconds 0.1"),
        ("edge", "--rows 32 --columns 1 --threshold 1"),
        ("edge", "--rows 40 --columns 30 --seconds 0.1"),
    ] {
        // One cluster per size: variables stay, and another size would be another declaration.
        let said = nested().run(name, args);
        assert!(said[0].contains("equal to"), "{}", said[0]);
        assert!(said[1..].iter().all(String::is_empty), "{said:?}");
    }
}

#[test]
fn applications_say_which_argument_is_wrong() {
    for (name, args, about) in [
        ("is", "--buckets 1", "--buckets"),
        ("spmv", "--rows 4", "--per-row"),
        ("workpile", "--servers 2", "--servers"),
        ("fft", "--side 12", "--side"),
        ("water", "--blocks 0", "--blocks"),
        ("lu", "--block 193", "--block"),
        ("radix", "--keys 1", "--keys"),
        ("sphere", "--columns 2", "--columns"),
        ("raytrace", "--tile 0", "--tile"),
        ("edge", "--rows 7", "rows"),
        ("suite", "suite", "suite"),
    ] {
        for said in single(2).try_run(name, args) {
            let error = said.unwrap_err().to_string();
            assert!(error.contains(name) && error.contains(about), "{error}");
        }
    }
}

#[test]
fn pictures_are_written_and_read() {
    let dir = dosmos_testseeds::scratch();
    let path = |name| dir.path().join(name).display().to_string();
    let (scene, edges) = (path("scene.png"), path("edges.png"));
    let cluster = demo();
    cluster.run(
        "raytrace",
        &format!("--rows 32 --columns 48 --output {scene}"),
    );
    let said = cluster.run("edge", &format!("--input {scene} --output {edges}"));
    assert!(said[0].contains("32 x 48 pixels"), "{said:?}");
    // Another cluster: a picture of another size would be another declaration.
    let said = demo().run("edge", &format!("--input {edges} --threshold 1000"));
    assert!(said[0].contains("32 x 48 pixels"), "{said:?}");
    demo().run("sphere", &format!("--rows 4 --columns 5 --output {scene}"));
    let none = demo().try_run("edge", &format!("--input {}", path("none.png")));
    let errors: Vec<String> = none
        .into_iter()
        .map(|s| s.unwrap_err().to_string())
        .collect();
    assert!(errors[0].contains("none.png"), "{errors:?}");
}

#[test]
fn groups_read_what_their_leaders_wrote() {
    let cluster = demo();
    let said = cluster.run("bad-group", "--rounds 5 --reads 10");
    assert!(
        said[0].contains("owner is mp2") && said[3].contains("owner is mp0"),
        "{said:?}"
    );
    let said = demo().run("good-group", "--rounds 5 --reads 10");
    assert!(
        said[1].contains("owner is mp0") && said[2].contains("owner is mp2"),
        "{said:?}"
    );
    let said = nested().run("good-group", "--seconds 0.1 --reads 10");
    assert!(said[0].contains("looks on"), "{said:?}");
}

#[test]
fn a_bad_group_needs_two() {
    let cluster = single(1);
    let error = dosmos_examples::run_on(&cluster.join(0), "bad-group", &[]).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("needs memory processes in two groups"),
        "{error}"
    );
}

#[test]
fn ping_pong_loses_no_turn() {
    each(ALL, |cluster| {
        let said = cluster.run("ping-pong", "--rounds 50");
        assert!(said[0].contains("50 turns"), "{said:?}");
    });
    let said = demo().run("ping-pong-split", "--rounds 50 --players 1 2");
    assert!(
        said[2].contains("50 turns") && said[0].is_empty(),
        "{said:?}"
    );
    demo().run("ping-pong", "--seconds 0.1");
}

#[test]
fn the_contract_holds() {
    each(ALL, |cluster| {
        // One variable, one name: each test has its own, so they can share the cluster in turn.
        for test in ["mp", "sb", "iriw", "coherence", "mutex"] {
            for said in cluster.run("litmus", &format!("--test {test} --rounds 60")) {
                assert!(said.contains("forbidden 0"), "{said}");
            }
        }
    });
    for test in ["mp", "sb", "iriw", "coherence", "mutex"] {
        for more in ["--update", "--messages"] {
            demo().run("litmus", &format!("--test {test} --rounds 60 {more}"));
        }
    }
}

#[test]
fn every_kind_of_lock_excludes() {
    each(ALL, |cluster| {
        cluster.run("litmus", "--test mutex --rounds 30 --lock mcs");
    });
    // One kind a cluster: the counter is declared once.
    each(ALL, |cluster| {
        cluster.run("litmus", "--test mutex --rounds 30 --lock spin --update");
    });
}

#[test]
fn locks_of_words_tell_what_is_wrong() {
    let cluster = single(2);
    let (one, two) = (cluster.join(0), cluster.join(1));
    for kind in [LockKind::Spin, LockKind::Mcs] {
        let declare = |dsm: &Dsm| {
            let x = dsm.scalar::<u64>(&format!("x.{kind}")).lock(kind);
            x.declare().unwrap().object(0).unwrap()
        };
        let (x, y) = (
            declare(&one),
            declare(&two).with_deadline(Duration::from_millis(50)),
        );
        let conflict = one
            .scalar::<u64>(&format!("x.{kind}"))
            .declare()
            .unwrap_err();
        assert!(
            conflict.to_string().contains(&format!("{kind} lock")),
            "{conflict}"
        );
        let section = x.acquire().unwrap();
        let twice = x.acquire().unwrap_err();
        assert_eq!(twice.code(), Some(ErrorCode::AlreadyHeld), "{twice}");
        let late = y.acquire().unwrap_err();
        assert_eq!(late.code(), Some(ErrorCode::Deadline), "{late}");
        assert!(late.to_string().contains("rank 0"), "{late}");
        // Whoever gave up is passed by, and may come again.
        section.release().unwrap();
        drop(y.acquire().unwrap());
        let held = y.acquire().unwrap();
        let apart = x.acquire_async().wait().unwrap_err();
        assert!(apart.to_string().contains("use acquire()"), "{apart}");
        held.release().unwrap();
        drop(x.acquire().unwrap());
    }
}

/// A deadline after which a call that others must join gives up; nothing is said about how long it takes.
const SOON: Duration = Duration::from_millis(100);

#[test]
fn an_arrival_that_was_dropped_or_given_up_does_not_count() {
    for cluster in [single(2), demo()] {
        let all: Vec<_> = (0..cluster.processes())
            .map(|ap| cluster.join(ap))
            .collect();
        let (first, others) = all.split_first().unwrap();
        drop(first.barrier_async());
        first.publish().unwrap();
        // The arrival that was dropped was the only one of the first process.
        let calls = others
            .iter()
            .map(|dsm| dsm.with_deadline(SOON).barrier_async());
        for call in calls.collect::<Vec<_>>() {
            let late = call.wait().unwrap_err();
            assert_eq!(late.code(), Some(ErrorCode::Deadline), "{late}");
        }
        // Those that gave up do not count either.
        let late = first.with_deadline(SOON).barrier().unwrap_err();
        assert_eq!(late.code(), Some(ErrorCode::Deadline), "{late}");
        let calls: Vec<_> = all.iter().map(Dsm::barrier_async).collect();
        calls.into_iter().for_each(|call| call.wait().unwrap());
    }
}

#[test]
fn a_second_process_of_the_same_name_is_refused_and_the_first_goes_on() {
    let cluster = single(2);
    let first = cluster.join(0);
    let n = first.scalar::<u64>("n").declare().unwrap();
    let mut section = n.acquire().unwrap();
    section.write(7).unwrap();
    let second = Dsm::connect(cluster.settings(0)).unwrap_err();
    assert_eq!(second.code(), Some(ErrorCode::AlreadyConnected), "{second}");
    assert!(second.to_string().contains("ap0"), "{second}");
    section.release().unwrap();
    assert_eq!(n.read().unwrap(), 7);
    // Once the first has left, another may come.
    first.close().unwrap();
    let again = cluster.join(0);
    assert_eq!(again.open::<Scalar<u64>>("n").unwrap().read().unwrap(), 7);
}

#[test]
fn the_litmus_tests_notice_a_program_without_synchronisation() {
    for test in ["mp", "sb", "mutex"] {
        // A race shows only sometimes: try until it does.
        let noticed = (0..20).any(|_| {
            let said = demo().try_run("litmus", &format!("--test {test} --sloppy"));
            let mut wrong = said.iter().filter_map(|s| s.as_ref().err());
            wrong.any(|e| matches!(e, dosmos_examples::Error::Wrong { .. }))
        });
        assert!(noticed, "{test}");
    }
}

#[test]
fn random_programs_lose_no_addition() {
    each(ALL, |cluster| {
        cluster.run("random", "--seed 7 --operations 300");
    });
}

#[test]
fn counts_are_written_for_each_process() {
    let directory = dosmos_testseeds::scratch();
    let base = directory.path().join("counts");
    let args = format!("--operations 100 --counts {}", base.display());
    single(2).run("random", &args);
    for ap in ["ap0", "ap1"] {
        let text = std::fs::read_to_string(format!("{}.{ap}", base.display())).unwrap();
        assert!(text.lines().count() > 3, "{text}");
        assert!(text.contains("\"variable\":\"random.totals\""), "{text}");
        assert!(
            text.trim_end().ends_with("}") && text.contains("{\"barriers\":9}"),
            "{text}"
        );
    }
}

#[test]
fn latency_says_a_line_for_each_operation() {
    let said = demo().run("latency", "--ops 20 --warm-up 5");
    let lines: Vec<&str> = said[0].lines().collect();
    assert_eq!(lines.len(), 7 + 4 + 5 + 4 + 4, "{}", said[0]);
    for op in [
        "local_read",
        "remote_read",
        "remote_copy_read",
        "far_acquire_release",
        "far_section_writes",
        "own_gets",
        "own_reader_gets",
        "own_reader_reads",
        "own_edits",
        "own_sections",
        "together_barrier",
        "together_hand_over",
        "together_flag",
        "together_flag_by_messages",
    ] {
        let line = lines.iter().find(|l| l.contains(&format!("\"{op}\"")));
        assert!(
            line.is_some_and(|l| l.contains("median_ns")),
            "{op}: {lines:?}"
        );
    }
    assert!(said[1..].iter().all(String::is_empty));

    let said = demo().run("latency", "--ops 20 --warm-up 5 --at far");
    let lines: Vec<&str> = said[0].lines().collect();
    assert_eq!(lines.len(), 4, "{}", said[0]);
    assert!(
        lines.iter().all(|line| line.contains("far_")),
        "{}",
        said[0]
    );
}

#[test]
fn kernels_measure_a_process_beside_its_competitors() {
    let directory = dosmos_testseeds::scratch();
    let file = directory.path().join("experiments.json");
    let experiment = |name: &str, lock: &str, grain: &str| {
        format!(
            r#"{{"name":"{name}","words":40,"test":{grain},"n":[1,3],"lock":"{lock}","place":"far"}}"#
        )
    };
    let memory = r#"{"g_m":{"t":1,"p":3,"s":"random","m":{"uniform":[1,3]}},"g_c":1}"#;
    let section = r#"{"g_s":{"c_s":0,"m_s":2,"f_s":0.5}}"#;
    let all = [
        experiment("mad", "queue", memory),
        experiment("queue", "queue", section),
        experiment("spin", "spin", section),
        experiment("mcs", "mcs", section),
    ];
    std::fs::write(&file, format!("[{}]", all.join(","))).unwrap();
    let args = format!("--experiments {} --time 5 --repeats 2", file.display());
    let said = demo().run("kernels", &args);
    let outcomes: Vec<Outcome> = lines(&said[0]);
    assert_eq!(outcomes.len(), 4 * 3, "{}", said[0]);
    for outcome in &outcomes {
        assert_eq!(outcome.t_ns.len(), 2, "{outcome:?}");
        assert!(outcome.grains > 0, "{outcome:?}");
        assert_eq!(
            outcome.n == 0,
            outcome.efficiency == [1.0, 1.0],
            "{outcome:?}"
        );
        let accesses = outcome.words_per_second.iter().all(|w| *w > 0.0);
        assert_eq!(accesses, outcome.name == "mad", "{outcome:?}");
    }
    let said = demo().run("kernels", "--barriers 10 --skew 0,50");
    let barriers: Vec<BarrierOutcome> = lines(&said[0]);
    assert_eq!(barriers.len(), 4);
    assert!(
        barriers
            .iter()
            .all(|b| b.t_ns.len() == 10 && b.processes == 4)
    );
}

fn lines<T: serde::de::DeserializeOwned>(text: &str) -> Vec<T> {
    text.lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect()
}

#[test]
fn the_guide_names_the_applications_and_arguments_that_there_are() {
    let guide = include_str!("../../docs/guide/applications.md");
    let rows = guide.lines().filter(|line| line.starts_with("| `"));
    let mut named = 0;
    for row in rows {
        let cells: Vec<&str> = row.split(" | ").collect();
        let name = cells[0].trim_matches(['|', ' ', '`']);
        let mut apps = dosmos_examples::catalog().iter();
        let app = apps.find(|a| a.name == name).unwrap();
        let help = app.check(&["--help".into()]).unwrap_err().to_string();
        for argument in cells[3].trim_matches('`').split(' ') {
            assert!(
                help.contains(&format!("{argument} ")) || help.contains(&format!("{argument}\n")),
                "{name} {argument}:\n{help}"
            );
        }
        named += 1;
    }
    assert_eq!(named, 12);
}

#[test]
fn nonsense_is_told() {
    let unknown = dosmos_examples::run("sro", &[]).unwrap_err();
    assert!(
        unknown.to_string().contains("there are sor, is"),
        "{unknown}"
    );
    let usage = dosmos_examples::run("sor", &["--rwos".into(), "3".into()]).unwrap_err();
    assert!(usage.to_string().contains("--rwos"), "{usage}");
    assert!(dosmos_examples::run("sor", &["--help".into()]).is_ok());
    assert!(
        dosmos_examples::catalog()
            .iter()
            .any(|a| a.name == "litmus")
    );
}
