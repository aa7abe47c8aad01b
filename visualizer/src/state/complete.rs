//! How a command being typed may go on.

use dosmos_proto::Topology;
use dosmos_trace::Op;
use dosmos_trace::query::table::SortKey;

use super::command::{COMMANDS, Entry};
use super::look::Palettes;
use super::screen::Screen;
use super::variables::VariableRow;

/// The names that commands may go on with.
pub(super) struct Names<'a> {
    pub(super) variables: &'a [VariableRow],
    pub(super) topology: &'a Topology,
    pub(super) palettes: &'a Palettes,
}

/// The whole lines that `text` may go on to.
pub(super) fn completions(text: &str, names: &Names<'_>) -> Vec<String> {
    let Some((name, rest)) = text.split_once(' ') else {
        let names = COMMANDS.iter().filter(|e| e.name.starts_with(text));
        let space = |e: &Entry| if e.takes.is_empty() { "" } else { " " };
        return names.map(|e| format!("{}{}", e.name, space(e))).collect();
    };
    let begun: Vec<&Entry> = COMMANDS
        .iter()
        .filter(|e| e.name.starts_with(name))
        .collect();
    let [entry] = &begun[..] else {
        return Vec::new();
    };
    // Only the last word goes on, and in it what comes after its last comma.
    let cut = rest.rfind([' ', '=', ',']).map_or(0, |at| at + 1);
    let (kept, word) = rest.split_at(cut);
    let mut words: Vec<String> = arguments(entry.name, kept, names);
    words.retain(|w| w.starts_with(word) && w != word);
    words.sort();
    words.dedup();
    words
        .into_iter()
        .map(|w| format!("{} {kept}{w}", entry.name))
        .collect()
}

/// What may stand after `kept` in a command.
fn arguments(command: &str, kept: &str, names: &Names<'_>) -> Vec<String> {
    let variables = || names.variables.iter().map(|v| v.name.clone()).collect();
    let aps = names.topology.application_processes();
    let processes = || aps.iter().map(|ap| ap.name.clone()).collect();
    let ops = || Op::ALL.map(|op| op.to_string()).to_vec();
    let fixed = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect();
    match command {
        "sort" if kept.is_empty() => SortKey::ALL.map(|k| k.name().to_owned()).to_vec(),
        "sort" => fixed(&["reverse"]),
        "view" => Screen::ALL.map(|s| s.short().to_lowercase()).to_vec(),
        "variable" | "filter" => variables(),
        "process" => processes(),
        "only" => [ops(), fixed(&["all"])].concat(),
        "palette" => names.palettes.names().map(str::to_owned).collect(),
        "ascii" => fixed(&["on", "off"]),
        "save" => fixed(&["dosmos.svg", "dosmos.csv"]),
        "record" => {
            let list = kept.rsplit(' ').next().unwrap_or_default();
            match list.split_once('=') {
                Some(("op", _)) => ops(),
                Some(("var", _)) => variables(),
                Some(("ap", _)) => processes(),
                _ => fixed(&["all", "counters", "off", "op=", "var=", "ap=", "every="]),
            }
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completion_goes_on_with_names_columns_and_operations() {
        let names = Names {
            variables: &[],
            topology: &Topology::default(),
            palettes: &Palettes::default(),
        };
        assert_eq!(completions("re", &names), ["record "]);
        assert_eq!(completions("sort w", &names), ["sort wait", "sort writes"]);
        assert_eq!(
            completions("record op=read,w", &names),
            ["record op=read,write"]
        );
        assert_eq!(completions("nonsense x", &names), Vec::<String>::new());
    }
}
