//! The programs whose cures are measured: every pathology, and the twelve applications; all on four processes.

use std::fmt;

use anyhow::ensure;
use dosmos_analysis::Kind;
use dosmos_cli::demo;

use crate::run::one_group;

/// Application processes of each program.
const PROCESSES: usize = 4;

/// A program with its arguments, and the cluster that it runs on.
#[derive(Clone, Debug)]
pub(super) struct Program {
    /// What it is called in tables.
    pub(super) name: String,
    words: Vec<String>,
    /// What is wrong with it; none of an application.
    pub(super) pathology: Option<Kind>,
}

impl Program {
    /// Its name and arguments.
    pub(super) fn words(&self) -> Vec<&str> {
        self.words.iter().map(String::as_str).collect()
    }

    /// The program that does it right, of a pathology.
    pub(super) fn healthy(&self) -> Option<Vec<String>> {
        self.pathology?;
        let mut words = self.words.clone();
        words.push("--healthy".to_owned());
        Some(words)
    }

    /// The cluster file.
    pub(super) fn cluster(&self) -> String {
        match self.pathology {
            // Those that need groups: two, of two processes each.
            Some(Kind::BadGroup | Kind::Polling) => demo::CLUSTER.to_owned(),
            _ => one_group(PROCESSES, true),
        }
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words.join(" "))
    }
}

/// Each pathology with how much of it takes one to three seconds.
const PATHOLOGIES: [(Kind, [&str; 2]); 15] = [
    (Kind::Bottleneck, ["--rounds", "300"]),
    (Kind::PingPong, ["--rounds", "4000"]),
    (Kind::NoSharing, ["--rounds", "4000"]),
    (Kind::PolicyMismatch, ["--rounds", "600"]),
    (Kind::FalseSharing, ["--rounds", "5000"]),
    (Kind::BadGroup, ["--rounds", "50"]),
    (Kind::MisplacedOwner, ["--rounds", "5000"]),
    (Kind::Imbalance, ["--rounds", "20"]),
    (Kind::Deadlock, ["--deadline", "1500"]),
    (Kind::CrowdedOwner, ["--rounds", "2000"]),
    (Kind::FineGrained, ["--rounds", "300"]),
    (Kind::BarrierOverhead, ["--rounds", "8000"]),
    (Kind::Polling, ["--rounds", "500"]),
    (Kind::ReadOnlyLocking, ["--rounds", "4000"]),
    (Kind::SlowProcess, ["--rounds", "40"]),
];

/// The applications, at sizes that take one to two seconds, and two of them as they run without arguments but longer: LU with many
/// small blocks, the work pile with a server.
const APPLICATIONS: [(&str, &str); 14] = [
    ("sor", "sor --rows 2000 --columns 1000 --iterations 200"),
    ("is", "is --keys 1048576 --buckets 512 --iterations 250"),
    (
        "barnes",
        "barnes --bodies 16384 --theta 0.57 --iterations 12",
    ),
    ("sphere", "sphere --rows 384 --columns 768 --iterations 160"),
    ("water", "water --molecules 1000 --iterations 150"),
    (
        "raytrace",
        "raytrace --rows 480 --columns 640 --iterations 3",
    ),
    ("spmv", "spmv --rows 13000 --per-row 50 --iterations 800"),
    ("workpile", "workpile --servers 0 --chunks 16000"),
    ("fft", "fft --side 1024 --iterations 12"),
    ("lu", "lu --n 1024 --block 64 --iterations 12"),
    ("radix", "radix --keys 1048576 --bits 10 --iterations 20"),
    ("edge", "edge --rows 1024 --columns 1024 --iterations 5"),
    ("lu-blocks", "lu --iterations 20"),
    ("workpile-server", "workpile --chunks 10000"),
];

/// All of them.
fn all() -> Vec<Program> {
    let pathologies = PATHOLOGIES.iter().map(|(kind, amount)| {
        let words = ["pathology", "--kind", kind.name()].into_iter();
        Program {
            name: kind.name().to_owned(),
            words: words.chain(*amount).map(str::to_owned).collect(),
            pathology: Some(*kind),
        }
    });
    let applications = APPLICATIONS.iter().map(|(name, command)| Program {
        name: (*name).to_owned(),
        words: words(command),
        pathology: None,
    });
    pathologies.chain(applications).collect()
}

/// Those that were named, or are given with their arguments; all if none is.
pub(super) fn chosen(named: &[String]) -> anyhow::Result<Vec<Program>> {
    let all = all();
    if named.is_empty() {
        return Ok(all);
    }
    let program = |text: &String| match all.iter().find(|p| p.name == *text) {
        Some(known) => Ok(known.clone()),
        None => other(text, &all),
    };
    named.iter().map(program).collect()
}

/// An example program with arguments of its own.
fn other(text: &str, all: &[Program]) -> anyhow::Result<Program> {
    let words = words(text);
    let (name, args) = words.split_first().unzip();
    let mut examples = dosmos_examples::catalog().iter();
    let example = examples.find(|app| name.is_some_and(|name| app.name == name));
    let names: Vec<&str> = all.iter().map(|p| p.name.as_str()).collect();
    ensure!(
        example.is_some(),
        "there is no program {text:?}; name one of {}, or an example with its arguments (`dosmos app --list`)",
        names.join(", ")
    );
    if let (Some(example), Some(args)) = (example, args) {
        example.check(args)?;
    }
    Ok(Program {
        name: text.to_owned(),
        words,
        pathology: None,
    })
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use dosmos_cli::config::Cluster;

    use super::*;

    #[test]
    fn every_kind_and_every_application_is_among_them() {
        let all = chosen(&[]).unwrap();
        // A data race costs correctness, not time: what its cure takes is not gained.
        for kind in Kind::ALL.into_iter().filter(|k| *k != Kind::DataRace) {
            assert!(all.iter().any(|p| p.pathology == Some(kind)), "{kind}");
        }
        let applications = dosmos_examples::catalog().iter();
        for app in applications.filter(|app| app.is_application()) {
            assert!(all.iter().any(|p| p.name == app.name), "{}", app.name);
        }
    }

    #[test]
    fn every_program_takes_its_arguments_and_has_a_cluster() {
        for program in chosen(&[]).unwrap() {
            for words in [Some(program.words.clone()), program.healthy()]
                .into_iter()
                .flatten()
            {
                let mut examples = dosmos_examples::catalog().iter();
                let example = examples.find(|app| app.name == words[0]).unwrap();
                example.check(&words[1..]).unwrap();
            }
            let cluster = Cluster::parse(&program.cluster()).unwrap();
            let groups = cluster.topology.groups().len();
            let two = matches!(program.pathology, Some(Kind::BadGroup | Kind::Polling));
            assert_eq!(groups, if two { 2 } else { 1 }, "{program}");
            assert_eq!(cluster.topology.application_processes().len(), PROCESSES);
        }
    }

    #[test]
    fn programs_are_named_or_given_with_arguments() {
        let some = chosen(&["deadlock".into(), "sor --rows 64".into()]).unwrap();
        assert_eq!(some[0].pathology, Some(Kind::Deadlock));
        assert!(some[0].healthy().unwrap().contains(&"--healthy".to_owned()));
        assert_eq!(
            (some[1].to_string().as_str(), some[1].healthy()),
            ("sor --rows 64", None)
        );
        let refused = |text: &str| chosen(&[text.to_owned()]).unwrap_err().to_string();
        assert!(
            refused("sore").contains("name one of bottleneck"),
            "{}",
            refused("sore")
        );
        assert!(refused("").contains("no program"), "{}", refused(""));
        assert!(chosen(&["sor --rowz 64".into()]).is_err());
    }
}
