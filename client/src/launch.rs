//! How a run was started and how it ended, as whoever started it wrote beside its stores (docs/design/store-format.md#run-metadata).

use std::path::{Path, PathBuf};

use dosmos_trace::store::{Exit, RankOutcome, RunMetadata};

use crate::text;

/// Application processes that are named in one line.
const NAMED: usize = 20;

/// How a run was started and how it ended, as far as that is known.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    metadata: Option<RunMetadata>,
    /// Why a part of it cannot be read.
    unreadable: Vec<String>,
}

impl Launch {
    /// What stands in the store directories `stores` of one run.
    pub fn beside(stores: &[PathBuf]) -> Self {
        let mut launch = Self::default();
        for store in stores {
            launch.add(store);
        }
        launch
    }

    fn add(&mut self, store: &Path) {
        match RunMetadata::read(store) {
            // Written into every store; into one whose disk was full, perhaps not to the end.
            Ok(Some(found)) => match &self.metadata {
                Some(known) if known.ended >= found.ended => {}
                _ => self.metadata = Some(found),
            },
            Ok(None) => {}
            Err(e) => self.unreadable.push(e.to_string()),
        }
    }

    /// What was written; none if nobody did, as of processes that were started one by one.
    pub fn metadata(&self) -> Option<&RunMetadata> {
        self.metadata.as_ref()
    }

    /// The name of the program: of the file, without folders, or of an example; none if nobody wrote what was run.
    pub fn program(&self) -> Option<String> {
        let words = &self.metadata.as_ref()?.application;
        let program = Path::new(words.first()?).file_name()?.to_string_lossy();
        let name = match words.get(1..3) {
            Some([app, name]) if app == "app" => name,
            _ => program.as_ref(),
        };
        Some(text::clean_line(name))
    }

    /// What to show of it: pairs of a heading and a text on one line.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        let Some(m) = &self.metadata else {
            return vec![("command", "unknown how it was started".to_owned())];
        };
        let mut lines = vec![("command", command_line(&m.command))];
        if !m.application.is_empty() {
            lines.push(("program", command_line(&m.application)));
        }
        lines.push(("host", text::clean_line(&m.hosts.join(", "))));
        lines.push(("version", text::clean_line(&m.version)));
        lines.push(("exit status", exits(m)));
        lines
    }

    /// The same on one line.
    pub fn line(&self) -> String {
        let lines = self.lines().into_iter();
        let lines: Vec<String> = lines.map(|(what, is)| format!("{what}: {is}")).collect();
        lines.join("; ")
    }

    /// Why the records cannot be those of a whole run: the program failed, was never started, or nobody saw its end. None of a
    /// run that is `live`, as long as nothing has failed, and of one of which nothing is known.
    pub fn troubles(&self, live: bool) -> Vec<String> {
        let mut troubles = self.unreadable.clone();
        let Some(m) = &self.metadata else {
            return troubles;
        };
        let runs = live && m.ended.is_none();
        if !runs && m.ended.is_none() {
            troubles.push(
                "nobody saw the end of the run: what started it was killed, or could not write"
                    .to_owned(),
            );
        }
        let failed = |rank: &&RankOutcome| match rank.exit {
            Exit::Code(0) => false,
            Exit::Unknown => !runs && m.ended.is_some(),
            _ => true,
        };
        let failed: Vec<&RankOutcome> = m.ranks.iter().filter(failed).collect();
        if !failed.is_empty() {
            troubles.push(format!("the run failed: {}", named(&failed)));
        }
        troubles
    }
}

/// A command as a shell would take it, on one line.
fn command_line(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    let quoted = |word: &String| match !word.is_empty() && word.chars().all(plain) {
        true => word.clone(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    };
    let words: Vec<String> = words.iter().map(quoted).collect();
    text::clean_line(&words.join(" "))
}

/// How every application process ended.
fn exits(m: &RunMetadata) -> String {
    let is_zero = |rank: &&RankOutcome| rank.exit == Exit::Code(0);
    let (zero, others): (Vec<_>, Vec<_>) = m.ranks.iter().partition(is_zero);
    match (others.len(), zero.len()) {
        (_, 0 | 1) => named(&m.ranks.iter().collect::<Vec<_>>()),
        (0, n) => format!("all {n} application processes exited with 0"),
        (_, n) => format!("{}, the other {n} with 0", named(&others)),
    }
}

fn named(ranks: &[&RankOutcome]) -> String {
    let one = |rank: &&RankOutcome| {
        let how = match &rank.exit {
            Exit::Unknown => "ended unseen".to_owned(),
            Exit::NotStarted(why) => format!("was not started ({why})"),
            Exit::Code(code) => format!("exited with {code}"),
            Exit::Signal(signal) => format!("was ended by signal {signal}"),
        };
        text::clean_line(&format!("{} {how}", rank.name))
    };
    let mut all: Vec<String> = ranks.iter().take(NAMED).map(one).collect();
    match ranks.len().saturating_sub(NAMED) {
        0 => {}
        more => all.push(format!("and {more} more")),
    }
    all.join(", ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // tests may
mod tests {
    use dosmos_proto::Nanos;
    use dosmos_trace::run::RunId;

    use super::*;

    fn ended(ended: Option<u64>, exits: &[Exit]) -> Launch {
        let ranks = exits.iter().enumerate().map(|(i, exit)| RankOutcome {
            name: format!("ap{i}"),
            host: "here".into(),
            exit: exit.clone(),
        });
        Launch {
            metadata: Some(RunMetadata {
                run: RunId::from_bits(7),
                name: "demo".into(),
                command: vec!["dosmos".into(), "up".into(), "it's".into()],
                application: vec!["./app".into(), "--size".into(), "9\u{1b}[2J".into()],
                directory: "/".into(),
                version: "0.1.0".into(),
                hosts: vec!["here".into()],
                cluster_file: String::new(),
                started: Nanos(1),
                ended: ended.map(Nanos),
                ranks: ranks.collect(),
            }),
            unreadable: Vec::new(),
        }
    }

    #[test]
    fn a_run_that_ended_well_has_no_troubles_and_says_how_it_was_started() {
        let well = ended(Some(2), &[Exit::Code(0), Exit::Code(0)]);
        assert!(well.troubles(false).is_empty());
        assert_eq!(
            well.line(),
            "command: dosmos up 'it'\\''s'; program: ./app --size '9?[2J'; host: here; version: 0.1.0; \
             exit status: all 2 application processes exited with 0"
        );
        assert_eq!(
            Launch::default().line(),
            "command: unknown how it was started"
        );
        assert!(Launch::default().troubles(false).is_empty());
    }

    #[test]
    fn a_program_is_named_without_folders_and_an_example_by_its_own_name() {
        let named = |words: &[&str]| {
            let mut launch = ended(None, &[]);
            let metadata = launch.metadata.as_mut().unwrap();
            metadata.application = words.iter().map(ToString::to_string).collect();
            launch.program()
        };
        assert_eq!(named(&["/bin/sim", "app"]).as_deref(), Some("sim"));
        assert_eq!(
            named(&["target/dosmos", "app", "sor", "-x"]).as_deref(),
            Some("sor")
        );
        assert_eq!(named(&[]), None);
    }

    #[test]
    fn whatever_did_not_end_well_is_a_trouble() {
        let some = [Exit::Code(0), Exit::Code(3), Exit::Signal(9)];
        let failed = ended(Some(2), &some);
        assert_eq!(
            failed.troubles(false),
            ["the run failed: ap1 exited with 3, ap2 was ended by signal 9"]
        );
        let line = failed.line();
        assert!(
            line.ends_with("ap0 exited with 0, ap1 exited with 3, ap2 was ended by signal 9"),
            "{line}"
        );
        let never = ended(Some(2), &[Exit::NotStarted("no such program".into())]);
        assert_eq!(
            never.troubles(true),
            ["the run failed: ap0 was not started (no such program)"]
        );
        // Nothing is wrong with a run that goes on.
        let running = ended(None, &[Exit::Unknown, Exit::Code(0)]);
        assert!(running.troubles(true).is_empty());
        assert_eq!(running.troubles(false).len(), 1, "its starter was killed");
        assert_eq!(ended(Some(2), &[Exit::Unknown]).troubles(false).len(), 1);
    }

    #[test]
    fn the_store_that_knows_the_end_counts_and_damage_is_a_trouble() {
        let dir = dosmos_testseeds::scratch();
        let stores: Vec<PathBuf> = ["a", "b", "c"].map(|s| dir.path().join(s)).into();
        stores
            .iter()
            .for_each(|s| std::fs::create_dir_all(s).unwrap());
        let write = |store: &Path, launch: Launch| launch.metadata.unwrap().write(store).unwrap();
        write(&stores[0], ended(Some(2), &[Exit::Code(0)]));
        write(&stores[1], ended(None, &[Exit::Unknown]));
        let read = Launch::beside(&stores);
        assert!(read.troubles(false).is_empty(), "{read:?}");
        let file = stores[0].join("run.json");
        let text = std::fs::read_to_string(&file).unwrap();
        std::fs::write(&file, text.replace("demo", "dema")).unwrap();
        let damaged = Launch::beside(&stores[..1]);
        assert!(damaged.troubles(false)[0].contains("damaged"));
    }
}
