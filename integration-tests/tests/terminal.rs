//! The terminal as a user has it: the real program in a terminal of tmux, keys pressed, the screen read.
//!
//! `cargo test -p dosmos-integration-tests --features tmux --test terminal`; needs tmux (Debian: `tmux`).

#![allow(clippy::unwrap_used)] // a test may

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use dosmos_integration_tests::{Lab, in_groups, said, up_args};

const DEADLINE: Duration = Duration::from_secs(90);

/// A terminal with one program in it, on a tmux server of its own, which ends with this.
struct Terminal {
    socket: PathBuf,
}

impl Terminal {
    fn start(lab: &Lab, size: (u16, u16), args: &[&str]) -> Self {
        Self::start_with(lab, size, &[], args)
    }

    /// With these variables of the environment, `NAME=value`.
    fn start_with(
        lab: &Lab,
        (columns, rows): (u16, u16),
        environment: &[&str],
        args: &[&str],
    ) -> Self {
        // A socket per terminal: the server of the one before may still be ending.
        let socket = lab.path().join(format!("tmux-{columns}x{rows}"));
        let terminal = Self { socket };
        let (columns, rows) = (columns.to_string(), rows.to_string());
        let mut all = vec![
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            &columns,
            "-y",
            &rows,
        ];
        let binary = env!("CARGO_BIN_EXE_dosmos-under-test");
        all.extend([
            "-c",
            lab.path().to_str().unwrap(),
            "env",
            "TERM=screen-256color",
        ]);
        all.extend(environment);
        all.push(binary);
        all.extend(args);
        let output = terminal.tmux(&all);
        assert!(output.status.success(), "{}", said(&output));
        terminal
    }

    fn tmux(&self, args: &[&str]) -> Output {
        Command::new("tmux")
            .arg("-S")
            .arg(&self.socket)
            .args(args)
            .output()
            .expect("these tests drive tmux: apt-get install tmux")
    }

    fn screen(&self) -> String {
        let output = self.tmux(&["capture-pane", "-p"]);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Presses keys, by the names that tmux gives them.
    fn press(&self, keys: &[&str]) {
        let mut args = vec!["send-keys"];
        args.extend(keys);
        assert!(self.tmux(&args).status.success(), "{keys:?}");
    }

    fn types(&self, text: &str) {
        assert!(self.tmux(&["send-keys", "-l", text]).status.success());
        self.press(&["Enter"]);
    }

    /// Waits for a screen that pleases `is_it`, and returns it.
    fn until(&self, what: &str, is_it: impl Fn(&str) -> bool) -> String {
        let started = Instant::now();
        loop {
            let screen = self.screen();
            if is_it(&screen) {
                return screen;
            }
            assert!(
                started.elapsed() < DEADLINE,
                "{what} is not on the screen:\n{screen}"
            );
        }
    }

    fn sees(&self, text: &str) -> String {
        self.until(text, |screen| screen.contains(text))
    }

    /// Waits for the program to end.
    fn ends(&self) {
        let started = Instant::now();
        while self.tmux(&["has-session"]).status.success() {
            assert!(
                started.elapsed() < DEADLINE,
                "it goes on:\n{}",
                self.screen()
            );
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

/// `dosmos up`, killed at the end of the test; what it started ends with it.
struct Up(Child);

impl Drop for Up {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn lab() -> Lab {
    Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"))
}

fn file(lab: &Lab, name: &str) -> String {
    std::fs::read_to_string(Path::new(lab.path()).join(name)).unwrap()
}

/// The last of 40 equal parts of the run in which there was such an operation.
fn last_part(lab: &Lab, op: &str) -> usize {
    let answer = lab.query(&["histogram", "--op", op, "--buckets", "40"]);
    let counts = |bucket: &serde_json::Value| {
        ["local", "intra", "inter"]
            .iter()
            .filter_map(|origin| bucket[origin].as_u64())
            .sum::<u64>()
    };
    let buckets = answer["buckets"].as_array().unwrap();
    buckets.iter().rposition(|b| counts(b) > 0).unwrap()
}

#[test]
fn a_user_walks_through_every_view_of_a_running_program() {
    let lab = lab();
    let demo = [
        "demo",
        "--app",
        "bad-group",
        "--seconds",
        "600",
        "--run-dir",
        "run",
    ];
    let terminal = Terminal::start(&lab, (80, 24), &demo);
    terminal.sees("GROUP, PROCESS");
    terminal.until("a live overview", |s| {
        s.contains("live") && s.contains("ap3") && s.contains("EVENT MANAGER")
    });

    terminal.press(&["2"]);
    terminal.sees("CACHED");
    terminal.until("a variable that was written", |s| {
        s.contains("of 2 variables") && s.contains("last written")
    });
    terminal.press(&["/"]);
    terminal.types("!*");
    terminal.sees("No variable matches the filter");
    terminal.press(&["Escape"]);
    // Which of the two takes more time, and stands first, may change meanwhile; what was selected stays so.
    terminal.sees("of 2 variables");

    terminal.press(&["3"]);
    terminal.until("a histogram", |s| {
        s.contains("1 column =") && s.contains("inter-group")
    });
    terminal.press(&["c"]);
    terminal.until("the cursor's figures", |s| {
        s.contains("accesses:") && s.contains("cached reads")
    });
    // An escape with a key right behind it is another key.
    terminal.press(&["Escape"]);
    terminal.until("no cursor", |s| !s.contains("accesses:"));
    terminal.press(&["+", "Left"]);
    terminal.sees("REWOUND");
    terminal.press(&["f", "0"]);
    terminal.press(&["4"]);
    terminal.sees("waiting for lock");
    terminal.press(&["5"]);
    terminal.sees("ap0 in");
    terminal.press(&["6"]);
    terminal.until("findings", |s| s.contains("by time lost"));
    terminal.press(&["7"]);
    terminal.sees("accesses cost");
    terminal.press(&["8"]);
    terminal.until("health", |s| {
        s.contains("MONITOR") && s.contains("as the cluster file says")
    });
    terminal.press(&["?"]);
    terminal.sees("This view: Health");
    terminal.press(&["/"]);
    terminal.types("time cursor");
    terminal.sees("with \"time cursor\"");
    terminal.press(&["?"]);

    // From now on only writes are recorded, by every process.
    terminal.press(&[":"]);
    terminal.types("record op=write");
    terminal.sees("record the new selection");
    terminal.sees("recording: op=write");
    terminal.press(&[":"]);
    terminal.types("save screen.svg");
    terminal.sees("saved screen.svg");
    terminal.press(&[":"]);
    terminal.types("save screen.csv");
    terminal.sees("saved screen.csv");
    assert!(file(&lab, "screen.svg").contains("</svg>"));
    assert!(file(&lab, "screen.csv").starts_with("name,records,dropped"));

    terminal.tmux(&["resize-window", "-x", "160", "-y", "50"]);
    // A key in the same instant counts.
    terminal.press(&["1"]);
    terminal.until("where the time goes", |s| {
        s.contains("BUSY") && s.contains("BARR")
    });
    // Enough of the run without reads to tell.
    let changes = |after: usize| {
        let line = |s: &str| s.lines().next().unwrap_or_default().to_owned();
        let mut seen = line(&terminal.screen());
        for _ in 0..after {
            let next = terminal.until("another header", |s| line(s) != seen);
            seen = line(&next);
        }
    };
    changes(12);
    terminal.press(&["p"]);
    terminal.sees("PAUSED");
    terminal.press(&["q"]);
    terminal.sees("Quit? This ends bad-group and its cluster");
    terminal.press(&["n"]);
    terminal.until("no question", |s| !s.contains("Quit?"));
    terminal.press(&["q"]);
    terminal.sees("Quit?");
    terminal.press(&["y"]);
    terminal.ends();
    let (reads, writes) = (last_part(&lab, "read"), last_part(&lab, "write"));
    assert!(
        reads < writes,
        "reads until part {reads}, writes until {writes}"
    );
}

#[test]
fn a_terminal_that_watches_a_run_to_its_end_goes_on_with_its_stores() {
    let lab = lab();
    lab.cluster(dosmos_integration_tests::NESTED);
    let binary = env!("CARGO_BIN_EXE_dosmos-under-test");
    let script = format!(
        "{binary} app sor --rows 16 --columns 16 --iterations 4 && while [ ! -e go ]; do sleep 0.05; done"
    );
    let mut up = lab
        .command(&dosmos_integration_tests::up_args(&script))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while !lab.path().join("run/store/emp1").exists() {
        assert!(started.elapsed() < DEADLINE, "no store");
    }
    let terminal = Terminal::start(&lab, (160, 40), &["top", "--run-dir", "run"]);
    terminal.until("a live run", |s| s.contains(" live ") && s.contains("ap3"));
    std::fs::write(lab.path().join("go"), "").unwrap();
    assert!(up.wait().unwrap().success());
    let screen = terminal.sees("the run has ended; this is read from its stores");
    assert!(!screen.contains("No response"), "{screen}");
    terminal.sees("post-mortem");
    terminal.press(&["8"]);
    terminal.sees("exit status: all 4 application processes exited with 0");
    terminal.sees("complete");
    terminal.press(&["q"]);
    terminal.ends();
}

#[test]
fn a_finished_run_says_what_is_wrong_with_it_and_leads_to_where() {
    let lab = lab();
    let args = [
        "demo",
        "--headless",
        "--seconds",
        "2",
        "--app",
        "bad-group",
        "--run-dir",
        "run",
    ];
    let output = lab.dosmos(&args);
    assert!(output.status.success(), "{}", said(&output));
    let terminal = Terminal::start(&lab, (200, 60), &["top", "--run-dir", "run"]);
    terminal.sees("post-mortem");
    terminal.press(&["6"]);
    // On a busy machine the processes do not begin together, which may cost more than the bad group does.
    if !terminal.sees("bad-group ").contains("bad-group · ") {
        terminal.press(&["Down"]);
    }
    let found = terminal.sees("bad-group · ");
    assert!(found.contains("LOST"), "{found}");
    // The evidence of a bad group is in the groups.
    terminal.press(&["/"]);
    terminal.types("bad-group");
    terminal.press(&["Enter"]);
    terminal.sees("Findings › Groups");
    terminal.sees("with the proposed groups");
    terminal.press(&["Enter"]);
    terminal.sees("PROPOSED");
    terminal.press(&["8"]);
    terminal.sees("No event manager is running");
    terminal.press(&[":"]);
    terminal.types("record off");
    terminal.sees("this run has ended");
    terminal.press(&["q"]);
    terminal.ends();

    let plain = Terminal::start(&lab, (80, 24), &["top", "--run-dir", "run", "--ascii"]);
    let screen = plain.sees("GROUP, PROCESS");
    assert!(screen.is_ascii(), "{screen}");
    plain.press(&["C-c"]);
    plain.ends();
}

#[test]
fn the_locale_and_the_settings_decide_on_characters_and_keys() {
    let lab = lab();
    let output = lab.dosmos(&["demo", "--headless", "--seconds", "1", "--run-dir", "run"]);
    assert!(output.status.success(), "{}", said(&output));
    let file = lab.path().join("mine.toml");
    std::fs::write(&file, "[keys]\nquit = [\"X\"]\nhelp = [\"F1\"]\n").unwrap();
    let top = ["top", "--run-dir", "run", "--settings", "mine.toml"];
    let plain = Terminal::start_with(&lab, (80, 24), &["LC_ALL=C"], &top);
    let screen = plain.sees("X quit");
    assert!(screen.is_ascii(), "{screen}");
    plain.press(&["q", "F1"]);
    plain.sees("This view: Overview");
    plain.press(&["F1"]);
    plain.until("no help", |s| !s.contains("This view"));
    plain.press(&["X"]);
    plain.ends();

    std::fs::write(&file, "[keys]\nquit = [\"?\"]\n").unwrap();
    let output = lab.dosmos(&top);
    assert!(!output.status.success());
    let said = said(&output);
    assert!(
        said.contains("mine.toml: [keys]: the key ? is bound to help and to quit"),
        "{said}"
    );
}

/// With its certificate an observer sees everything, and changes nothing; an operator does.
#[test]
fn an_observer_of_a_secured_cluster_looks_and_an_operator_changes() {
    let lab = lab();
    let file = in_groups(1, 2).replacen('\n', "\n[defaults]\nlisten = \"127.0.0.1:0\"\n", 1);
    lab.cluster(&file);
    let made = lab.dosmos(&["cert", "init", "--cluster", "cluster.toml"]);
    lab.cluster(&(file + &String::from_utf8(made.stdout).unwrap()));
    let mut up = lab.command(&up_args("exec sleep 1000"));
    let up = up.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let _up = Up(up.unwrap());
    let address = lab.path().join("run/addr/emp0");
    let started = Instant::now();
    while !address.exists() {
        assert!(
            started.elapsed() < DEADLINE,
            "the event manager does not answer"
        );
    }
    let address = std::fs::read_to_string(address).unwrap();
    for (who, size) in [("observer", (100, 30)), ("operator", (101, 30))] {
        let environment = [
            "DOSMOS_TOKEN_FILE=run/token",
            &format!("DOSMOS_TLS=tls/{who}"),
        ];
        let top = ["top", "--emp", address.trim()];
        let terminal = Terminal::start_with(&lab, size, &environment, &top);
        terminal.until("a live overview", |s| {
            s.contains("live") && s.contains("ap1")
        });
        terminal.press(&[":"]);
        terminal.types("record op=write");
        match who {
            "observer" => terminal.sees("observer observer may not call SetSelection"),
            _ => terminal.sees("2 processes record the new selection"),
        };
        terminal.press(&["q"]);
        terminal.ends();
    }
}
