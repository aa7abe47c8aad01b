//! What went wrong in a program of many processes, for people: the process that failed first, once; those that failed
//! because of it, together.

use std::collections::BTreeMap;

use dosmos_proto::blame::blamed;

/// A process of the program that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) name: String,
    /// How it ended: `exit status: 1`.
    pub(crate) status: String,
    /// What it said last.
    pub(crate) words: String,
}

/// One line per cause, then one per group of processes that failed because of another, then those that were `stopped`.
pub(crate) fn lines(failures: &[Failure], stopped: &[String]) -> Vec<String> {
    let mut failures: Vec<&Failure> = failures.iter().collect();
    // They end in any order.
    failures.sort_by(|a, b| a.name.cmp(&b.name));
    let failed = |name: &str| failures.iter().any(|f| f.name == name);
    // Only a process that failed itself explains the failure of another.
    let because_of = |f: &Failure| {
        let name = blamed(&f.words).filter(|name| *name != f.name && failed(name))?;
        Some(name.to_owned())
    };
    let mut causes: Vec<(&Failure, Vec<&str>)> = Vec::new();
    let mut consequences: BTreeMap<String, Vec<&Failure>> = BTreeMap::new();
    for failure in failures.iter().copied() {
        if let Some(cause) = because_of(failure) {
            consequences.entry(cause).or_default().push(failure);
            continue;
        }
        let same = |(first, _): &&mut (&Failure, _)| {
            first.status == failure.status && first.words == failure.words
        };
        match causes.iter_mut().find(same) {
            Some((_, others)) => others.push(&failure.name),
            None => causes.push((failure, Vec::new())),
        }
    }
    let mut lines: Vec<String> = causes.iter().map(|(f, others)| cause(f, others)).collect();
    for (cause, failures) in &consequences {
        let names: Vec<&str> = failures.iter().map(|f| f.name.as_str()).collect();
        let words = failures.first().map_or("", |f| f.words.as_str());
        let names = names.join(", ");
        lines.push(format!("{names} failed because {cause} had left: {words}"));
    }
    if !stopped.is_empty() {
        let were = if stopped.len() == 1 { "was" } else { "were" };
        lines.push(format!("{} {were} stopped", stopped.join(", ")));
    }
    lines
}

fn cause(failure: &Failure, others: &[&str]) -> String {
    let Failure {
        name,
        status,
        words,
    } = failure;
    let line = format!("{name} failed ({status}): {words}");
    match others {
        [] => line,
        others => format!("{line} (the same of {})", others.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dosmos_proto::blame::has_left;

    fn failure(name: &str, words: &str) -> Failure {
        Failure {
            name: name.into(),
            status: "exit status: 1".into(),
            words: words.into(),
        }
    }

    fn blames(name: &str, other: &str) -> Failure {
        let words = format!("barrier was refused: {}", has_left(other).message);
        failure(name, &words)
    }

    #[test]
    fn the_process_that_failed_first_comes_first_and_those_it_made_fail_together() {
        let all = [
            blames("ap3", "ap2"),
            failure("ap2", "no luck"),
            blames("ap0", "ap2"),
        ];
        let said = lines(&all, &["ap1".into()]);
        assert_eq!(
            said,
            [
                "ap2 failed (exit status: 1): no luck",
                "ap0, ap3 failed because ap2 had left: barrier was refused: the barrier cannot open: ap2 has left, \
                 and it is one of its participants",
                "ap1 was stopped",
            ]
        );
    }

    #[test]
    fn what_several_say_is_said_once() {
        let all = [
            failure("ap0", "no luck"),
            failure("ap1", "no luck"),
            failure("ap2", "tired"),
        ];
        let said = lines(&all, &["ap3".into(), "ap4".into()]);
        assert_eq!(
            said,
            [
                "ap0 failed (exit status: 1): no luck (the same of ap1)",
                "ap2 failed (exit status: 1): tired",
                "ap3, ap4 were stopped",
            ]
        );
    }

    #[test]
    fn a_process_that_ended_well_too_early_is_named_by_those_that_waited_for_it() {
        let said = lines(&[blames("ap0", "ap2"), blames("ap1", "ap2")], &[]);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0].starts_with("ap0 failed") && said[0].contains("ap2 has left"),
            "{said:?}"
        );
        // Two that blame each other are both named.
        let said = lines(&[blames("ap0", "ap1"), blames("ap1", "ap0")], &[]);
        assert_eq!(said.len(), 2, "{said:?}");
    }
}
