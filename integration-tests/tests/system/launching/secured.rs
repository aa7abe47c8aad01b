//! Clusters of real processes with TLS over TCP: certificates as a user makes and renews them, who may look, what is kept secret.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};

use dosmos_integration_tests::{Lab, in_groups, said};
use dsm_lib::{Credentials, Dsm, Files, Settings, Vector};

use super::support::*;

/// A cluster of two groups over TCP, and its certificates.
fn secured() -> Lab {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    let file = in_groups(2, 2);
    let file = file.replacen('\n', "\n[defaults]\nlisten = \"127.0.0.1:0\"\n", 1);
    lab.cluster(&file);
    let made = cert(&lab, "init", &[]);
    let tls = String::from_utf8(made.stdout).unwrap();
    assert!(
        tls.starts_with("[tls]\nca = \"tls/{name}/ca.pem\"\n"),
        "{tls}"
    );
    lab.cluster(&(file + &tls));
    lab
}

/// `dosmos cert …`, which succeeds.
fn cert(lab: &Lab, command: &str, args: &[&str]) -> Output {
    let output = lab.dosmos(&[&["cert", command, "--cluster", "cluster.toml"], args].concat());
    assert!(output.status.success(), "{}", said(&output));
    output
}

/// A question to event manager `emp0` at its address, with the certificate in `tls/NAME` and the token of the run.
fn ask(lab: &Lab, name: Option<&str>, question: &[&str]) -> Output {
    let address = fs::read_to_string(lab.path().join("run/addr/emp0")).unwrap();
    let mut command = lab.command(&[question, &["--emp", address.trim()]].concat());
    command.env("DOSMOS_TOKEN_FILE", "run/token");
    if let Some(name) = name {
        command.env("DOSMOS_TLS", format!("tls/{name}"));
    }
    command.output().unwrap()
}

fn refused(output: &Output, why: &str) {
    let said = said(output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(why), "{said}");
}

/// Runs programs that never end, and waits until they run.
fn running(lab: &Lab) -> Up {
    let mut up = lab.command(&up_args("echo running; exec sleep 1000"));
    let up = Up(up
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap());
    says_running(lab, 2);
    up
}

/// Application process `ap`, in this process.
fn join(lab: &Lab, ap: &str, mp: &str) -> Dsm {
    let run = lab.path().join("run");
    let address = fs::read_to_string(run.join("addr").join(mp)).unwrap();
    let mut settings = Settings::new(address.trim().parse().unwrap(), ap);
    let token = fs::read_to_string(run.join("token")).unwrap();
    settings.token = Some(token.trim().parse().unwrap());
    let files = Files::in_folder(&lab.path().join("tls").join(ap));
    settings.credentials = Some(Credentials::read(files).unwrap());
    Dsm::connect(settings).unwrap()
}

#[test]
fn a_program_runs_over_tls_and_an_observer_looks_at_it() {
    let lab = secured();
    lab.must_up(&[
        "sor",
        "--rows",
        "20",
        "--columns",
        "12",
        "--iterations",
        "5",
    ]);
    let reads = lab.query(&["histogram", "--op", "read"]);
    assert_ne!(reads["total"]["inter"], 0, "{reads}");
    fs::remove_dir_all(lab.path().join("run")).unwrap();

    let _up = running(&lab);
    let ap0 = join(&lab, "ap0", "mp0");
    let x: Vector<u64> = ap0
        .vector("secret-sauce", 4)
        .owner("mp1")
        .declare()
        .unwrap();
    x.object(0).unwrap().write(&[1, 2, 3, 4]).unwrap();
    assert_eq!(&x.object(0).unwrap().read().unwrap()[..], [1, 2, 3, 4]);
    let question = ["query", "variables", "--format", "csv"];
    eventually("the variable", || {
        let answer = ask(&lab, Some("observer"), &question);
        answer.status.success() && said(&answer).contains("secret-sauce")
    });
    // Records come in batches, later than the declaration.
    eventually("what was done", || {
        let check = said(&ask(&lab, Some("observer"), &["check"]));
        check.contains("reads and writes of secret-sauce")
    });
    let by_option = [
        "query",
        "variables",
        "--run-dir",
        "run",
        "--tls",
        "tls/operator",
    ];
    let answer = lab.dosmos(&by_option);
    assert!(said(&answer).contains("secret-sauce"), "{}", said(&answer));

    refused(
        &ask(&lab, None, &question),
        "takes TLS only: set DOSMOS_TLS",
    );
    refused(
        &ask(&lab, Some("ap0"), &question),
        "application ap0 may not call GetCatalog",
    );
    cert(&lab, "init", &["--folder", "foreign"]);
    fs::rename(
        lab.path().join("foreign/observer"),
        lab.path().join("tls/foreign"),
    )
    .unwrap();
    refused(&ask(&lab, Some("foreign"), &question), "another authority");
    fs::write(
        lab.path().join("other"),
        "0123456789abcdef0123456789abcdef\n",
    )
    .unwrap();
    let address = fs::read_to_string(lab.path().join("run/addr/emp0")).unwrap();
    let mut other = lab.command(&[&question[..], &["--emp", address.trim()]].concat());
    let other = other
        .env("DOSMOS_TOKEN_FILE", "other")
        .env("DOSMOS_TLS", "tls/observer");
    refused(
        &other.output().unwrap(),
        "this is not the token of this run",
    );
}

#[test]
fn certificates_are_renewed_while_sessions_go_on() {
    let lab = secured();
    let _up = running(&lab);
    let ap0 = join(&lab, "ap0", "mp0");
    let x: Vector<u64> = ap0.vector("x", 4).owner("mp1").declare().unwrap();
    let object = x.object(0).unwrap();
    object.write(&[1; 4]).unwrap();
    let old = fs::read(lab.path().join("tls/mp1/certificate.pem")).unwrap();

    // A new authority, beside the former; all certificates are of the new one.
    let made = said(&cert(&lab, "rotate", &["--authority-too"]));
    assert!(made.contains("renewed ap0, ap1, emp0,"), "{made}");
    assert_ne!(
        fs::read(lab.path().join("tls/mp1/certificate.pem")).unwrap(),
        old
    );
    cert(&lab, "rotate", &["--forget-former"]);

    // Who has only the new authority is let in by those that run, and lets them in.
    let ap1 = join(&lab, "ap1", "mp1");
    let theirs: Vector<u64> = ap1.vector("x", 4).owner("mp1").declare().unwrap();
    object.write(&[2; 4]).unwrap();
    assert_eq!(&object.read().unwrap()[..], [2; 4], "the session goes on");
    eventually("what was written", || {
        theirs.object(0).unwrap().read().unwrap()[..] == [2; 4]
    });
    let answer = ask(&lab, Some("observer"), &["query", "processes"]);
    assert!(answer.status.success(), "{}", said(&answer));
    ap0.close().unwrap();
    ap1.close().unwrap();
}

#[test]
fn no_secret_is_printed_stored_or_seen_by_others() {
    let lab = secured();
    let program = "env > env.$DOSMOS_AP; echo running; exec sleep 1000";
    let mut up = lab.command(&up_args(program));
    let _up = Up(up
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap());
    says_running(&lab, 2);
    let ap0 = join(&lab, "ap0", "mp0");
    let x: Vector<u64> = ap0.vector("x", 4).owner("mp1").declare().unwrap();
    x.object(0).unwrap().write(&[1; 4]).unwrap();

    let mut secrets = vec![fs::read_to_string(lab.path().join("run/token")).unwrap()];
    let keys = fs::read_dir(lab.path().join("tls")).unwrap().flatten();
    let keys = keys
        .map(|e| e.path().join("key.pem"))
        .filter(|key| key.exists());
    for key in keys.chain([lab.path().join("tls/ca-key.pem")]) {
        let mode = key.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", key.display());
        let text = fs::read_to_string(&key).unwrap();
        secrets.push(text.lines().nth(1).unwrap().to_owned());
    }
    assert!(secrets.len() > 8, "{}", secrets.len());
    let clean = |what: &str, bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        for secret in &secrets {
            assert!(!text.contains(secret.trim()), "{what} has a secret");
        }
    };
    let pids = ["emp0", "mp0", "mp1", "lp.g0"].map(|name| pid_of(&lab, name));
    for pid in pids {
        for file in ["cmdline", "environ"] {
            let path = format!("/proc/{pid}/{file}");
            clean(&path, &fs::read(&path).unwrap());
        }
    }
    for ap in ["env.ap0", "env.ap1"] {
        clean(ap, &fs::read(lab.path().join(ap)).unwrap());
    }
    ap0.close().unwrap();
    // Logs, addresses, stores: all but the token itself.
    files_below(&lab.path().join("run"), &mut |path| {
        if !path.ends_with("run/token") {
            clean(
                &path.display().to_string(),
                &fs::read(path).unwrap_or_default(),
            );
        }
    });
}

fn files_below(dir: &Path, visit: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            files_below(&entry.path(), visit);
        } else if kind.is_file() {
            visit(&entry.path());
        }
    }
}

#[test]
fn certificates_are_made_once_and_what_is_wrong_is_said() {
    let lab = secured();
    let fails = |args: &[&str], why: &str| {
        let all = [&["cert", args[0], "--cluster", "cluster.toml"], &args[1..]].concat();
        refused(&lab.dosmos(&all), why);
    };
    fails(
        &["init"],
        "has an authority already; add certificates with `dosmos cert issue`",
    );
    fails(
        &["rotate", "--forget-former"],
        "there is no former authority",
    );
    fails(&["rotate", "mp9"], "mp9 is not among the certificates in");
    fails(
        &["issue", "--role", "observer", "observer"],
        "renew it with `dosmos cert rotate`",
    );
    fails(
        &["issue", "--role", "observer", "../alice"],
        "is not dosmos://CLUSTER/ROLE/NAME",
    );
    fails(
        &["issue", "--role", "observer", ".."],
        "is not dosmos://CLUSTER/ROLE/NAME",
    );
    fails(&["issue", "--role", "memory", "*"], "say --any-name");
    fails(
        &["issue", "--role", "king", "alice"],
        "is not a role; write application, memory",
    );
    fails(
        &["issue", "--folder", "none", "--role", "observer", "alice"],
        "make one with `dosmos cert init`",
    );
    let made = said(&cert(&lab, "issue", &["--role", "observer", "alice"]));
    assert!(
        made.contains("issued tls/alice, valid for 90 days"),
        "{made}"
    );
    let roles = "memory,event-manager,application,operator";
    cert(&lab, "issue", &["--role", roles, "--any-name", "node"]);

    // One certificate for a host, and all that runs there.
    let file = fs::read_to_string(lab.path().join("cluster.toml")).unwrap();
    lab.cluster(&file.replace("{name}", "node"));
    lab.must_up(&[
        "sor",
        "--rows",
        "20",
        "--columns",
        "12",
        "--iterations",
        "2",
    ]);
}

#[test]
fn what_others_can_reach_takes_tls_or_is_refused_at_the_start() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    let exposed = in_groups(1, 1).replacen('\n', "\n[defaults]\nlisten = \"0.0.0.0:0\"\n", 1);
    lab.cluster(&exposed);
    for command in [
        &["config", "check", "cluster.toml"][..],
        &["node", "--cluster", "cluster.toml", "--name", "mp0"],
        &up_args("true"),
    ] {
        let output = lab.dosmos(command);
        refused(
            &output,
            "process mp0 would listen at 0.0.0.0:0, reachable from other machines",
        );
        refused(&output, "dosmos cert init --cluster");
        refused(&output, "--insecure");
    }
    // With certificates it is allowed; they have to be there.
    lab.cluster(&(exposed + "[tls]\nca = \"ca\"\ncertificate = \"c\"\nkey = \"k\"\n"));
    assert!(
        lab.dosmos(&["config", "check", "cluster.toml"])
            .status
            .success()
    );
    let node = ["node", "--cluster", "cluster.toml", "--name", "mp0"];
    refused(
        &lab.dosmos(&node),
        "the certificate of mp0 ([tls], DOSMOS_TLS): cannot read",
    );
}

/// The commands of the guide, one after another, as they stand there.
#[test]
fn the_guide_can_be_followed_by_the_letter() {
    const GUIDE: &str = include_str!("../../../../docs/guide/security.md");
    let blocks = |kind: &str| -> Vec<&str> {
        let begin = format!("```{kind}\n");
        let parts = GUIDE.split(begin.as_str()).skip(1);
        parts.map(|p| p.split("```").next().unwrap()).collect()
    };
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    let [file, tls] = blocks("toml")[..] else {
        panic!("a cluster file, and what is added to it");
    };
    lab.cluster(file);
    let bin = lab.path().join("bin");
    fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(lab.binary(), bin.join("dosmos")).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let commands = blocks("sh");
    assert!(commands.len() >= 6, "{commands:?}");
    for (i, command) in commands.iter().enumerate() {
        let mut shell = std::process::Command::new("sh");
        let shell = shell.args(["-e", "-c", command]).current_dir(lab.path());
        let output = shell.env("PATH", &path).output().unwrap();
        assert!(output.status.success(), "{command}{}", said(&output));
        if i == 0 {
            assert_eq!(String::from_utf8_lossy(&output.stdout), tls);
            lab.cluster(&format!("{file}{tls}"));
        }
        assert!(
            !said(&output).contains("cannot connect"),
            "{command}{}",
            said(&output)
        );
    }
}
