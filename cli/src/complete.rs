//! Completion in the shell, of the names in a run too: the shell calls this program with what was typed so far.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::Context;
use clap_complete::engine::CompletionCandidate;
use clap_complete::env::Shells;
use dosmos_client::{Run, Target};
use dosmos_trace::query::Catalog;

use crate::runtime::block_on;

/// The variable by which the shell says that it asks for completions; its value is the name of the shell.
const ASKED_BY: &str = "COMPLETE";
/// zsh loads the file `_dosmos` when `dosmos` is completed for the first time, and that time is to be answered too.
const ZSH_LOADS: &str = r#"
if [[ "${funcstack[1]}" = _dosmos ]]; then
    _clap_dynamic_completer_dosmos "$@"
fi
"#;
/// Who presses the key waits: a run that does not answer until then has no names.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The script that a shell reads to complete the command line.
pub(crate) fn script(shell: clap_complete::Shell) -> anyhow::Result<String> {
    let shells = Shells::builtins();
    let completer = shells
        .completer(&shell.to_string())
        .with_context(|| format!("there are no completions for {shell}"))?;
    let mut script = Vec::new();
    completer.write_registration(ASKED_BY, "dosmos", "dosmos", "dosmos", &mut script)?;
    if shell == clap_complete::Shell::Zsh {
        script.extend_from_slice(ZSH_LOADS.as_bytes());
    }
    Ok(String::from_utf8(script)?)
}

/// The variables and barriers of the run that the command line names.
pub(crate) fn variables() -> Vec<CompletionCandidate> {
    candidates(|catalog| {
        let variables = catalog.variables.iter().map(|v| v.spec().name().to_owned());
        let barriers = catalog.barriers.iter().map(|b| catalog.name_of(b.id));
        variables.chain(barriers).collect()
    })
}

/// The application processes of the run that the command line names.
pub(crate) fn processes() -> Vec<CompletionCandidate> {
    candidates(|catalog| {
        let processes = catalog.topology.application_processes().iter();
        processes.map(|p| p.name.clone()).collect()
    })
}

fn candidates(names: fn(&Catalog) -> Vec<String>) -> Vec<CompletionCandidate> {
    let words: Vec<OsString> = std::env::args_os().collect();
    let catalog = async {
        let asked = async {
            let run = Run::open(&target(&words)).await?;
            anyhow::Ok(run.source().catalog().await?)
        };
        tokio::time::timeout(TIMEOUT, asked).await?
    };
    // Nothing may be said while somebody types: without a run there is nothing to choose from.
    let names = block_on(catalog).map_or_else(|_| Vec::new(), |catalog| names(&catalog));
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// The run that these words of a command line name.
fn target(words: &[OsString]) -> Target {
    let mut target = Target::default();
    let mut words = words.iter().map(|w| w.to_string_lossy());
    while let Some(word) = words.next() {
        let (option, value) = match word.split_once('=') {
            Some((option, value)) => (option.to_owned(), Some(value.to_owned())),
            None => (word.into_owned(), None),
        };
        if !["--emp", "--store", "--run-dir"].contains(&option.as_str()) {
            continue;
        }
        let Some(value) = value.or_else(|| words.next().map(std::borrow::Cow::into_owned)) else {
            break;
        };
        match option.as_str() {
            "--emp" => target.event_managers.push(value),
            "--store" => target.stores.push(value.into()),
            _ => target.run_dir = Some(value.into()),
        }
    }
    target
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    use clap::ValueEnum;

    #[test]
    fn the_run_is_the_one_that_the_command_line_names() {
        let words = [
            "dosmos",
            "query",
            "--run-dir=a",
            "--var",
            "x",
            "--store",
            "b",
            "--emp",
        ];
        let target = target(&words.map(OsString::from));
        assert_eq!(target.run_dir.as_deref(), Some(Path::new("a")));
        assert_eq!(target.stores, [Path::new("b")]);
        assert!(target.event_managers.is_empty());
    }

    #[test]
    fn every_shell_has_a_script_that_asks_this_program() {
        for shell in clap_complete::Shell::value_variants() {
            let script = script(*shell).unwrap();
            assert!(
                script.contains("dosmos") && script.contains(ASKED_BY),
                "{shell}:\n{script}"
            );
            let called = script.contains("_clap_dynamic_completer_dosmos \"$@\"");
            assert_eq!(called, *shell == clap_complete::Shell::Zsh, "{script}");
        }
    }
}
