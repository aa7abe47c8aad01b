//! The applications that are compared, with their arguments.

use std::fmt;

use anyhow::bail;

use crate::applications::APPLICATIONS;

/// An application with its arguments.
#[derive(Clone, Debug)]
pub(super) struct Program(Vec<String>);

impl Program {
    pub(super) fn name(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    pub(super) fn args(&self) -> &[String] {
        self.0.get(1..).unwrap_or_default()
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

/// The applications that were named, all if none was; of small size if `quick`.
pub(super) fn chosen(named: &[String], quick: bool) -> anyhow::Result<Vec<Program>> {
    let of_paper = APPLICATIONS.iter().map(|app| {
        let mut words = app.command(quick);
        // As someone writes it who wants it fast, where that is not the papers' way.
        match app.name {
            "workpile" => words.extend(["--ahead", "--guided"]),
            "is" => words.push("--gather"),
            "water" => words.push("--accumulate"),
            // Neither the sequential program nor that with MPI looks for the largest change, or adds up mass and energy.
            "sor" | "sphere" => words.extend(["--check", "0"]),
            "radix" => words.push("--partition"),
            _ => {}
        }
        Program(words.into_iter().map(str::to_owned).collect())
    });
    let of_paper: Vec<Program> = of_paper.collect();
    if named.is_empty() {
        return Ok(of_paper);
    }
    let program = |text: &String| {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        let name = words.first().map_or("", String::as_str);
        let Some(known) = of_paper.iter().find(|p| p.name() == name) else {
            let names: Vec<&str> = of_paper.iter().map(Program::name).collect();
            bail!(
                "there is no application {name:?}; there are {}",
                names.join(", ")
            );
        };
        Ok(if words.len() == 1 {
            known.clone()
        } else {
            Program(words)
        })
    };
    named.iter().map(program).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applications_are_found_by_name_and_keep_their_arguments() {
        let all = chosen(&[], false).unwrap();
        assert_eq!(all.len(), 12);
        let own = chosen(&["is --keys 100".into(), "sor".into()], false).unwrap();
        assert_eq!(own[0].args(), ["--keys", "100"]);
        assert!(own[1].to_string().contains("2000"), "{}", own[1]);
        let error = chosen(&["latency".into()], false).unwrap_err();
        assert!(error.to_string().contains("there are sor"), "{error}");
        for program in all.iter().chain(&chosen(&[], true).unwrap()) {
            let mut apps = dosmos_examples::catalog().iter();
            let app = apps.find(|a| a.name == program.name()).unwrap();
            assert!(
                app.is_application() && app.accepts(program.args()),
                "{program}"
            );
        }
    }
}
