//! Stores of which one file is not what it was, with checksums that hold: they are read in every way, or refused.

use std::fs;
use std::path::{Path, PathBuf};

use dosmos_proto::{EmpId, MpId, Nanos};
use dosmos_trace::meta::MetaState;
use dosmos_trace::query::{Filter, HistogramQuery, HistoryQuery, MetaQuery, TraceSource};
use dosmos_trace::run::RunId;
use dosmos_trace::store::{
    BatchMark, Commit, Event, Exit, Identity, RankOutcome, RecordingCounters, RunMetadata,
    Snapshot, StoreSource, StoreWriter,
};
use futures::executor::block_on;
use tempfile::TempDir;

use crate::{samples, seal};

const LOG: &str = "log.000";
/// The files beside the log, by the first byte of an input.
const FILES: [&str; 4] = ["state", "ledger", "manifest.json", "run.json"];

fn identity() -> Identity {
    Identity {
        run: RunId::from_bits(1),
        event_manager: "emp0".into(),
        emp: EmpId(0),
        topology: (*samples::topology()).clone(),
    }
}

/// A sound store with one of everything; its state is that of half of the log.
fn sound(dir: &Path) {
    let (mut writer, _) = StoreWriter::open(dir, &identity()).unwrap();
    let mut metas = MetaState::new((*samples::topology()).clone(), EmpId(0));
    metas.declare(&samples::variable());
    let mp = MpId(0);
    for sequence in 1..=4 {
        let incarnation = 1;
        let counters = RecordingCounters {
            recorded: sequence * 10,
            ..RecordingCounters::default()
        };
        let commit = Commit {
            marks: vec![BatchMark {
                mp,
                incarnation,
                sequence,
                until: Default::default(),
            }],
            records: samples::records(10),
            events: vec![
                (0, Event::Variable(samples::variable())),
                (
                    10,
                    Event::Counters {
                        mp,
                        incarnation,
                        counters,
                    },
                ),
            ],
        };
        writer.commit(&commit).unwrap();
        commit.records.iter().for_each(|r| metas.apply(r));
        if sequence == 2 {
            let metas = metas.clone();
            let due = Vec::new();
            writer.save(&Snapshot { metas, due }).unwrap();
        }
    }
    run().write(dir).unwrap();
}

fn run() -> RunMetadata {
    RunMetadata {
        run: RunId::from_bits(1),
        name: "sample".into(),
        command: vec!["dosmos".into(), "up".into()],
        application: vec!["program".into()],
        directory: "/".into(),
        version: "0".into(),
        hosts: vec!["host".into()],
        cluster_file: "name = \"sample\"".into(),
        started: Nanos(1),
        ended: Some(Nanos(2)),
        ranks: vec![RankOutcome {
            name: "ap0".into(),
            host: "host".into(),
            exit: Exit::Code(0),
        }],
    }
}

/// The sound store of this thread, and a copy of its files.
struct Lab {
    dir: TempDir,
    files: Vec<(PathBuf, Vec<u8>)>,
}

impl Lab {
    fn new() -> Self {
        let first = dosmos_testseeds::scratch();
        sound(first.path());
        let entries = fs::read_dir(first.path()).unwrap().map(Result::unwrap);
        // Readers never open the engine.
        let files = entries.filter(|e| e.path().is_file());
        let files = files.map(|e| {
            let name = PathBuf::from(e.file_name());
            (name, fs::read(e.path()).unwrap())
        });
        let files = files.collect();
        Self {
            dir: dosmos_testseeds::scratch(),
            files,
        }
    }

    fn sound(&self, name: &str) -> Vec<u8> {
        let found = self.files.iter().find(|(n, _)| n == Path::new(name));
        found.unwrap_or_else(|| panic!("no {name}")).1.clone()
    }

    /// Reads the store with `content` in the place of one file.
    fn with(&self, name: &str, content: &[u8]) {
        for (name, content) in &self.files {
            fs::write(self.dir.path().join(name), content).unwrap();
        }
        fs::write(self.dir.path().join(name), content).unwrap();
        look(self.dir.path());
    }
}

thread_local! {
    static LAB: Lab = Lab::new();
}

/// Asks everything.
fn look(dir: &Path) {
    let _ = RunMetadata::read(dir);
    let Ok(source) = StoreSource::open(dir) else {
        return;
    };
    let filter = Filter {
        everything: true,
        ..Filter::default()
    };
    let records = block_on(source.records(&filter, 0)).unwrap();
    let lacking = &records.completeness;
    let known = lacking
        .recorded
        .saturating_sub(lacking.dropped + lacking.removed);
    assert!(records.len() as u64 <= known, "{lacking:?}");
    let some = Filter {
        range: Some(dosmos_trace::query::TimeRange {
            from: Nanos(0),
            to: Nanos(1_005_000),
        }),
        ..Filter::default()
    };
    let _ = block_on(source.records(&some, 3)).unwrap();
    let histogram = HistogramQuery {
        filter: filter.clone(),
        buckets: 13,
    };
    let _ = source.view().histogram(&histogram);
    let history = HistoryQuery {
        filter,
        max_points: 50,
    };
    let _ = source.view().history(&history);
    let _ = block_on(source.meta_objects(&MetaQuery::default()));
    let _ = block_on(source.status());
    let _ = block_on(source.breakdown());
    let _ = block_on(source.catalog());
    let _ = source.verify();
}

pub(crate) fn take_log(input: &[u8]) {
    let mut log = input.to_vec();
    seal::log(&mut log);
    LAB.with(|lab| lab.with(LOG, &log));
}

pub(crate) fn log_seeds() -> Vec<Vec<u8>> {
    vec![LAB.with(|lab| lab.sound(LOG))]
}

pub(crate) fn take_file(input: &[u8]) {
    let Some((which, body)) = input.split_first() else {
        return;
    };
    let name = FILES[usize::from(*which) % FILES.len()];
    let content = match name {
        "state" => seal::state(body),
        "ledger" => seal::ledger(&body[..body.len().min(32)]),
        _ => seal::document(body),
    };
    LAB.with(|lab| lab.with(name, &content));
}

pub(crate) fn file_seeds() -> Vec<Vec<u8>> {
    let body = |which: usize, name: &str| {
        let sound = LAB.with(|lab| lab.sound(name));
        let body = match name {
            "state" => sound[8..].to_vec(),
            "ledger" => sound[4..36].to_vec(),
            _ => seal::opened(&sound),
        };
        [vec![which as u8], body].concat()
    };
    (0..)
        .zip(FILES)
        .map(|(which, name)| body(which, name))
        .collect()
}
