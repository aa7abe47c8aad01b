//! Which options belong to which question. One that would change nothing is an error.

use anyhow::bail;
use clap::ValueEnum;

use crate::args::{QueryArgs, Question};

/// An option, whether it was given, and the questions that it belongs to.
type Rule<'a> = (&'a str, bool, &'a [Question]);

/// Refuses what has no effect.
pub(super) fn check(args: &QueryArgs) -> anyhow::Result<()> {
    use Question::{Breakdown, Efficiency, Events, Histogram, History, Meta, Times, Variables};
    let select = &args.select;
    let rules: [Rule<'_>; 12] = [
        (
            "--var",
            !select.var.is_empty(),
            &[Variables, Times, Meta, Histogram, History, Events],
        ),
        (
            "--ap",
            !select.ap.is_empty(),
            &[Histogram, History, Events, Breakdown],
        ),
        ("--op", !select.op.is_empty(), &[Histogram, History, Events]),
        (
            "--origin",
            !select.origin.is_empty(),
            &[Histogram, History, Events],
        ),
        (
            "--from",
            select.from.is_some(),
            &[Histogram, History, Events],
        ),
        ("--to", select.to.is_some(), &[Histogram, History, Events]),
        ("--buckets", args.buckets.is_some(), &[Histogram]),
        ("--limit", args.limit.is_some(), &[History, Events]),
        ("--after", args.after.is_some(), &[Events]),
        ("--sort", args.sort.is_some(), &[Variables]),
        ("--top", args.top.is_some(), &[Variables, Times]),
        ("--all", args.all, &[Events, Breakdown, Efficiency]),
    ];
    for (option, given, belongs_to) in rules {
        if given && !belongs_to.contains(&args.question) {
            let belongs: Vec<String> = belongs_to.iter().map(|q| name(*q)).collect();
            bail!(
                "{option} has no effect on `query {}`; it belongs to {}",
                name(args.question),
                belongs.join(", ")
            );
        }
    }
    if args.after.is_some() && args.limit == Some(0) {
        bail!("--after has no effect with --limit 0, which prints all records; leave one out");
    }
    Ok(())
}

fn name(question: Question) -> String {
    let value = question.to_possible_value();
    value.map_or_else(String::new, |v| v.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    /// Every option, with a value.
    const OPTIONS: [&[&str]; 12] = [
        &["--var", "grid"],
        &["--ap", "ap0"],
        &["--op", "read"],
        &["--origin", "inter"],
        &["--from", "+1s"],
        &["--to", "+2s"],
        &["--buckets", "3"],
        &["--limit", "3"],
        &["--after", "3+1"],
        &["--sort", "wait"],
        &["--top", "3"],
        &["--all"],
    ];

    fn refused(question: &str, options: &[&str]) -> Option<String> {
        let words = [&["dosmos", "query", question], options].concat();
        let Command::Query(args) = Cli::try_parse_from(words).unwrap().command else {
            panic!("not a query");
        };
        check(&args).err().map(|e| e.to_string())
    }

    #[test]
    fn an_option_belongs_to_a_question_or_is_refused() {
        let mut accepted = Vec::new();
        for question in Question::value_variants() {
            let question = name(*question);
            assert_eq!(refused(&question, &[]), None);
            let takes = OPTIONS.iter().filter(|o| match refused(&question, o) {
                None => true,
                Some(why) => {
                    assert!(why.starts_with(o[0]) && why.contains(&question), "{why}");
                    false
                }
            });
            accepted.push(format!("{question}: {}", takes.count()));
        }
        let expected = [
            "variables: 3",
            "times: 2",
            "processes: 0",
            "groups: 0",
            "meta: 1",
            "histogram: 7",
            "history: 7",
            "events: 9",
            "efficiency: 1",
            "breakdown: 2",
        ];
        assert_eq!(accepted, expected);
        let both = refused("events", &["--after", "3+1", "--limit", "0"]);
        assert!(both.is_some_and(|why| why.contains("--limit 0")));
    }

    #[test]
    fn no_option_of_a_query_is_without_a_rule() {
        use clap::CommandFactory;
        let command = Cli::command();
        let query = command.find_subcommand("query").unwrap();
        let everywhere = ["emp", "store", "run-dir", "tls", "format", "help"];
        for option in query.get_arguments().filter_map(clap::Arg::get_long) {
            let ruled = OPTIONS.iter().any(|o| o[0][2..] == *option);
            assert!(ruled || everywhere.contains(&option), "--{option}");
        }
    }
}
