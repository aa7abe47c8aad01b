//! The commands typed after `:`. One table behind parsing, completion and help.

use dosmos_trace::Op;
use dosmos_trace::query::UnknownColumn;
use dosmos_trace::query::table::SortKey;
use dosmos_trace::selection::{Mode, Selection};

use super::screen::Screen;

/// A command as it is typed.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // the table below says what each does
pub enum Command {
    Quit,
    Help,
    View(Screen),
    Filter(String),
    Sort(SortKey, bool),
    Variable(String, Option<u32>),
    Process(String),
    Only(Option<Op>),
    GoTo(f64),
    Window(f64),
    Whole,
    Follow,
    Pause,
    /// None: say what is recorded now.
    Record(Option<Selection>),
    Save(String),
    Palette(String),
    Ascii(bool),
    Runs,
}

/// How a command is called, what comes after it, and what it does.
#[derive(Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What is typed after the name.
    pub takes: &'static str,
    /// What it does.
    pub does: &'static str,
    parse: fn(&str) -> Result<Command, String>,
}

/// Every command there is.
pub const COMMANDS: &[Entry] = &[
    Entry {
        name: "filter",
        takes: "[!]REGEX",
        does: "show matching names (!: others); empty: all",
        parse: |rest| Ok(Command::Filter(rest.to_owned())),
    },
    Entry {
        name: "sort",
        takes: "COLUMN [reverse]",
        does: "sort the table of variables",
        parse: sort,
    },
    Entry {
        name: "view",
        takes: "NAME",
        does: "open a view",
        parse: view,
    },
    Entry {
        name: "variable",
        takes: "NAME[OBJECT]",
        does: "open its history; in view 3 its histogram",
        parse: variable,
    },
    Entry {
        name: "process",
        takes: "NAME",
        does: "open its history",
        parse: |rest| Ok(Command::Process(required(rest, "the name of a process")?)),
    },
    Entry {
        name: "only",
        takes: "OPERATION|all",
        does: "charts: read, write, acquire, release, barrier",
        parse: only,
    },
    Entry {
        name: "goto",
        takes: "SECONDS",
        does: "put the cursor there; 0 is the start of the run",
        parse: |rest| Ok(Command::GoTo(seconds(rest)?)),
    },
    Entry {
        name: "window",
        takes: "SECONDS",
        does: "show this much time",
        parse: |rest| Ok(Command::Window(seconds(rest)?)),
    },
    Entry {
        name: "whole",
        takes: "",
        does: "show the whole run",
        parse: |_| Ok(Command::Whole),
    },
    Entry {
        name: "follow",
        takes: "",
        does: "follow the end of a running program",
        parse: |_| Ok(Command::Follow),
    },
    Entry {
        name: "pause",
        takes: "",
        does: "pause the display; again: continue",
        parse: |_| Ok(Command::Pause),
    },
    Entry {
        name: "record",
        takes: "[all|off|op=…|…]",
        does: "set what is recorded; empty: show it",
        parse: record,
    },
    Entry {
        name: "save",
        takes: "FILE.svg|FILE.csv",
        does: "save the screen as a picture or its numbers",
        parse: |rest| Ok(Command::Save(required(rest, "the name of a file")?)),
    },
    Entry {
        name: "palette",
        takes: "NAME",
        does: "colours: classic, safe (colour-blind people), light (light background), mono, or your own",
        parse: |rest| Ok(Command::Palette(required(rest, "the name of a palette")?)),
    },
    Entry {
        name: "ascii",
        takes: "on|off",
        does: "draw with ASCII characters only",
        parse: |rest| match rest {
            "" | "on" => Ok(Command::Ascii(true)),
            "off" => Ok(Command::Ascii(false)),
            other => Err(format!("{other:?}: expected on or off")),
        },
    },
    Entry {
        name: "runs",
        takes: "",
        does: "list the runs of the folder, and open one of them",
        parse: |_| Ok(Command::Runs),
    },
    Entry {
        name: "help",
        takes: "",
        does: "keys and commands",
        parse: |_| Ok(Command::Help),
    },
    Entry {
        name: "quit",
        takes: "",
        does: "quit",
        parse: |_| Ok(Command::Quit),
    },
];

/// What `text` means; an unambiguous beginning of a name will do.
///
/// # Errors
/// If it means nothing; says what would.
pub fn parse(text: &str) -> Result<Command, String> {
    let text = text.trim();
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let exact = COMMANDS.iter().find(|e| e.name == name);
    let begun: Vec<&Entry> = COMMANDS
        .iter()
        .filter(|e| e.name.starts_with(name))
        .collect();
    let entry = match (exact, &begun[..]) {
        (Some(entry), _) => entry,
        (None, [entry]) => entry,
        (None, []) => return Err(format!("there is no command {name:?}; :help lists all")),
        (None, several) => {
            let names: Vec<&str> = several.iter().map(|e| e.name).collect();
            return Err(format!("{name:?} is ambiguous: {}", names.join(", ")));
        }
    };
    (entry.parse)(rest.trim())
}

fn required(rest: &str, what: &str) -> Result<String, String> {
    if rest.is_empty() {
        return Err(format!("needs {what}"));
    }
    Ok(rest.to_owned())
}

fn sort(rest: &str) -> Result<Command, String> {
    let mut words = rest.split_whitespace();
    let key = words.next().unwrap_or_default();
    let key = key.parse().map_err(|e: UnknownColumn| e.to_string())?;
    match words.next() {
        None => Ok(Command::Sort(key, false)),
        Some("reverse") => Ok(Command::Sort(key, true)),
        Some(other) => Err(format!("{other:?}: expected reverse or nothing")),
    }
}

fn view(rest: &str) -> Result<Command, String> {
    let wanted = rest.to_lowercase();
    let found = Screen::ALL.into_iter().enumerate().find(|(i, screen)| {
        let names = [screen.name().to_lowercase(), screen.short().to_lowercase()];
        names.contains(&wanted) || wanted == (i + 1).to_string()
    });
    found
        .map(|(_, screen)| Command::View(screen))
        .ok_or_else(|| {
            let names = Screen::ALL.map(|s| s.short().to_lowercase());
            format!("there is no view {rest:?}; views: {}", names.join(", "))
        })
}

fn variable(rest: &str) -> Result<Command, String> {
    let whole = required(rest, "the name of a variable")?;
    let (name, object) = object_named(&whole);
    Ok(Command::Variable(name, object))
}

/// The variable and, behind it in brackets, the number of one of its objects.
pub(super) fn object_named(text: &str) -> (String, Option<u32>) {
    let indexed = text
        .strip_suffix(']')
        .and_then(|t| t.rsplit_once('['))
        .and_then(|(name, index)| Some((name.to_owned(), index.parse().ok()?)));
    match indexed {
        Some((name, index)) => (name, Some(index)),
        None => (text.to_owned(), None),
    }
}

fn only(rest: &str) -> Result<Command, String> {
    match rest {
        "all" | "" => Ok(Command::Only(None)),
        name => Ok(Command::Only(Some(op(name)?))),
    }
}

fn op(name: &str) -> Result<Op, String> {
    let known = Op::ALL.into_iter().find(|op| op.to_string() == name);
    known.ok_or_else(|| {
        let names = Op::ALL.map(|op| op.to_string());
        format!(
            "there is no operation {name:?}; operations: {}",
            names.join(", ")
        )
    })
}

/// `1.5`, `+1.5s`, `300ms`, `20us`.
fn seconds(rest: &str) -> Result<f64, String> {
    let text = rest.trim_start_matches('+');
    let units = [("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("s", 1.0)];
    let (number, unit) = units
        .into_iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)))
        .unwrap_or((text, 1.0));
    match number.trim().parse::<f64>() {
        Ok(n) if n.is_finite() && n >= 0.0 => Ok(n * unit),
        _ => Err(format!(
            "{rest:?} is not a time; examples: 1.5, 1.5s, 300ms"
        )),
    }
}

/// Everything, narrowed by what follows.
fn record(rest: &str) -> Result<Command, String> {
    if rest.is_empty() {
        return Ok(Command::Record(None));
    }
    let mut selection = Selection::default();
    let list = |text: &str| -> Vec<String> {
        let items = text.split(',').filter(|item| !item.is_empty());
        items.map(str::to_owned).collect()
    };
    for word in rest.split_whitespace() {
        match word.split_once('=') {
            None if word == "all" || word == "events" => {}
            None if word == "off" => selection.mode = Mode::Off,
            None if word == "counters" => selection.mode = Mode::Counters,
            Some(("op", ops)) => {
                selection.ops = list(ops).iter().map(|o| op(o)).collect::<Result<_, _>>()?;
            }
            Some(("var", names)) => selection.variables = list(names),
            Some(("ap", names)) => selection.processes = list(names),
            Some(("every", n)) => {
                let n: u32 = n.parse().unwrap_or(0);
                if n == 0 {
                    return Err("every=N: N must be a whole number, at least 1".to_owned());
                }
                selection.sample_one_in = n;
            }
            _ => {
                return Err(format!(
                    "{word:?}: expected all, counters, off, op=read,write, var=grid*, ap=ap0 or every=10"
                ));
            }
        }
    }
    Ok(Command::Record(Some(selection)))
}

/// What is recorded, as one would type it.
pub fn typed(selection: &Selection) -> String {
    let mut words = vec![match selection.mode {
        Mode::Off => "off".to_owned(),
        Mode::Counters => "counters".to_owned(),
        Mode::Events => "all".to_owned(),
    }];
    let ops: Vec<String> = selection.ops.iter().map(ToString::to_string).collect();
    let lists = [
        ("op", &ops),
        ("var", &selection.variables),
        ("ap", &selection.processes),
    ];
    for (name, list) in lists {
        if !list.is_empty() {
            words.push(format!("{name}={}", list.join(",")));
        }
    }
    if selection.sample_one_in > 1 {
        words.push(format!("every={}", selection.sample_one_in));
    }
    if words.len() > 1 && selection.mode == Mode::Events {
        words.remove(0);
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_known_by_unambiguous_beginnings() {
        assert_eq!(parse("q"), Ok(Command::Quit));
        assert_eq!(parse(" quit "), Ok(Command::Quit));
        assert!(parse("p").unwrap_err().contains("process, pause, palette"));
        assert!(parse("frobnicate").unwrap_err().contains(":help"));
    }

    #[test]
    fn arguments_are_checked_and_errors_say_what_would_do() {
        assert_eq!(
            parse("sort writes reverse"),
            Ok(Command::Sort(SortKey::Writes, true))
        );
        assert!(parse("sort size").unwrap_err().contains("objects"));
        assert_eq!(
            parse("variable ocean/h[3]"),
            Ok(Command::Variable("ocean/h".into(), Some(3)))
        );
        assert_eq!(
            parse("variable odd[x]"),
            Ok(Command::Variable("odd[x]".into(), None))
        );
        assert_eq!(parse("goto +1.5s"), Ok(Command::GoTo(1.5)));
        assert_eq!(parse("window 250ms"), Ok(Command::Window(0.25)));
        assert!(parse("window -1").is_err() && parse("goto NaN").is_err());
        assert_eq!(parse("view 6"), Ok(Command::View(Screen::Findings)));
        assert_eq!(
            parse("view process"),
            Ok(Command::View(Screen::ProcessHistory))
        );
        assert!(parse("save").unwrap_err().contains("file"));
    }

    #[test]
    fn what_is_recorded_reads_as_it_is_typed() {
        for text in [
            "all",
            "off",
            "counters",
            "op=read,write var=grid*,sum ap=ap0 every=10",
            "every=3",
        ] {
            let Ok(Command::Record(Some(selection))) = parse(&format!("record {text}")) else {
                panic!("{text}");
            };
            assert_eq!(typed(&selection), text);
        }
        assert_eq!(parse("record"), Ok(Command::Record(None)));
        for bad in ["record every=0", "record op=jump", "record grid"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
