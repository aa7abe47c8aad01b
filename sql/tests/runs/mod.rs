//! Runs to ask: stores of the reference workload, and event managers that serve them.

#![allow(dead_code)] // each test uses a part
#![allow(clippy::unwrap_used)] // tests may

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dosmos_cli::config::Cluster;
use dosmos_client::{Run, Target};
use dosmos_proto::{AddressBook, EmpId};
use dosmos_sql::{Database, Settings};
use dosmos_testkit::reference::{self, Workload};
use dosmos_trace::record::Record;
use dosmos_trace::run::RunId;
use dosmos_trace::store::{BatchMark, Commit, Event, Identity, StoreWriter};

/// How long anything may take on a machine with much else to do.
const DEADLINE: Duration = Duration::from_secs(120);

/// Two groups of four memory processes that report to `managers` event managers.
pub(crate) fn cluster_file(managers: usize) -> String {
    let mut text =
        String::from("name = \"reference\"\n[[group]]\nname = \"a\"\n[[group]]\nname = \"b\"\n");
    for emp in 0..managers {
        text += &format!("[[emp]]\nname = \"emp{emp}\"\n");
    }
    for mp in 0..8 {
        let (group, emp) = (["a", "b"][mp / 4], mp * managers / 8);
        text += &format!("[[mp]]\nname = \"mp{mp}\"\ngroup = \"{group}\"\nemp = \"emp{emp}\"\n");
    }
    text += "[[lp]]\nname = \"lp-a\"\ngroup = \"a\"\n[[lp]]\nname = \"lp-b\"\ngroup = \"b\"\n";
    for ap in 0..8 {
        text += &format!("[[ap]]\nname = \"ap{ap}\"\nmp = \"mp{ap}\"\n");
    }
    text
}

/// A run directory with the stores of its event managers.
pub(crate) struct RunDir {
    pub(crate) dir: PathBuf,
    pub(crate) file: PathBuf,
    pub(crate) managers: Vec<String>,
}

impl RunDir {
    /// Made in `dir`, from `records` of the workload of this seed.
    pub(crate) fn make(dir: &Path, managers: usize, records: u64, seed: u64) -> Self {
        let file = dir.join("cluster.toml");
        std::fs::write(&file, cluster_file(managers)).unwrap();
        let topology = Cluster::read(&file).unwrap().topology;
        let run = RunId::of_directory(dir).unwrap();
        let names: Vec<String> = (0..managers).map(|i| format!("emp{i}")).collect();
        let mut stores: Vec<StoreWriter> = (0..)
            .zip(&names)
            .map(|(i, name)| {
                let identity = Identity {
                    run,
                    event_manager: name.clone(),
                    emp: EmpId(i),
                    topology: topology.clone(),
                };
                StoreWriter::open(&dir.join("store").join(name), &identity)
                    .unwrap()
                    .0
            })
            .collect();
        let mut workload = Workload::new(seed);
        let mut left = records;
        let mut events: Vec<(u32, Event)> = reference::variables()
            .into_iter()
            .map(|v| (0, Event::Variable(v)))
            .collect();
        let mut sequence = 0;
        while left > 0 {
            let here = left.min(1 << 18);
            left -= here;
            sequence += 1;
            let mut parts: Vec<Vec<Record>> = vec![Vec::new(); managers];
            for record in workload.take_records(here as usize) {
                parts[record.mp.index() * managers / 8].push(record);
            }
            for (i, (store, records)) in stores.iter_mut().zip(parts).enumerate() {
                let mark = BatchMark {
                    mp: dosmos_proto::MpId((i * 8 / managers) as u32),
                    incarnation: 1,
                    sequence,
                    until: Default::default(),
                };
                store
                    .commit(&Commit {
                        marks: vec![mark],
                        records,
                        events: events.clone(),
                    })
                    .unwrap();
            }
            events.clear();
        }
        for store in stores {
            store.close().unwrap();
        }
        Self {
            dir: dir.to_owned(),
            file,
            managers: names,
        }
    }

    /// The one that was made in `dir` before, if any.
    pub(crate) fn made(dir: &Path, managers: usize) -> Option<Self> {
        let managers: Vec<String> = (0..managers).map(|i| format!("emp{i}")).collect();
        let run = Self {
            dir: dir.to_owned(),
            file: dir.join("cluster.toml"),
            managers,
        };
        let all = run
            .managers
            .iter()
            .all(|name| run.store(name).join("manifest.json").exists());
        (run.file.exists() && all).then_some(run)
    }

    /// The same with certificates: `program` makes the authority; processes listen on TCP.
    pub(crate) fn secured(self, program: &Path) -> Self {
        let text = std::fs::read_to_string(&self.file).unwrap();
        let name = "name = \"reference\"\n";
        let text = text.replace(
            name,
            &format!("{name}[defaults]\nlisten = \"127.0.0.1:0\"\n"),
        );
        std::fs::write(&self.file, &text).unwrap();
        let init = Command::new(program)
            .args(["cert", "init", "--cluster"])
            .arg(&self.file)
            .output()
            .unwrap();
        assert!(init.status.success(), "{init:?}");
        let tls = "[tls]\nca = \"tls/{name}/ca.pem\"\ncertificate = \"tls/{name}/certificate.pem\"\nkey = \"tls/{name}/key.pem\"\n";
        std::fs::write(&self.file, text + tls).unwrap();
        self
    }

    /// What is in the run directory, for the holder of a certificate.
    pub(crate) fn target(&self, holder: &str) -> Target {
        Target {
            tls: Some(self.dir.join("tls").join(holder)),
            ..Target::run(&self.dir)
        }
    }

    pub(crate) fn store(&self, name: &str) -> PathBuf {
        self.dir.join("store").join(name)
    }

    /// Starts its event managers, with SQL; they answer when this returns.
    pub(crate) fn serve(&self, program: &Path) -> Vec<EventManager> {
        let book = AddressBook::new(Default::default(), Some(&self.dir));
        // Those of an earlier time say nothing of when these are up.
        let _ = std::fs::remove_dir_all(self.dir.join("addr"));
        let start = |name: &String| {
            let child = Command::new(program)
                .args(["node", "--name", name, "--cluster"])
                .arg(&self.file)
                .arg("--run-dir")
                .arg(&self.dir)
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(std::fs::File::create(self.dir.join(format!("{name}.log"))).unwrap())
                .spawn()
                .unwrap();
            EventManager {
                child,
                name: name.clone(),
            }
        };
        let started: Vec<EventManager> = self.managers.iter().map(start).collect();
        for name in &self.managers {
            let log = self.dir.join(format!("{name}.log"));
            until(
                || book.resolve(&format!("{name}.sql")).is_some() && book.resolve(name).is_some(),
                || std::fs::read_to_string(&log).unwrap_or_default(),
            );
        }
        started
    }

    /// Where an event manager answers.
    pub(crate) fn address(&self, name: &str) -> String {
        let book = AddressBook::new(Default::default(), Some(&self.dir));
        book.resolve(name).unwrap().to_string()
    }

    /// What is in the run directory, as a database.
    pub(crate) async fn database(&self, settings: Settings) -> Database {
        let run = Run::open(&Target::run(&self.dir)).await.unwrap();
        Database::open(run, settings).await.unwrap()
    }
}

/// A process that ends with the test.
pub(crate) struct EventManager {
    child: Child,
    pub(crate) name: String,
}

impl EventManager {
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends it a signal by name.
    pub(crate) fn signal(&self, signal: &str) {
        let status = Command::new("kill")
            .args([&format!("-{signal}"), &self.child.id().to_string()])
            .status();
        assert!(status.unwrap().success());
    }
}

impl Drop for EventManager {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for a condition.
pub(crate) fn until(condition: impl Fn() -> bool, why: impl Fn() -> String) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < DEADLINE, "{}", why());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// One answer as text, row by row, sorted.
pub(crate) async fn rows(database: &Database, sql: &str) -> Vec<String> {
    use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
    let answer = database
        .query(sql)
        .await
        .unwrap_or_else(|e| panic!("{sql}: {e}"));
    let batches = answer.all().await.unwrap_or_else(|e| panic!("{sql}: {e}"));
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        let columns: Vec<_> = batch
            .columns()
            .iter()
            .map(|c| ArrayFormatter::try_new(c.as_ref(), &options).unwrap())
            .collect();
        for i in 0..batch.num_rows() {
            let cells: Vec<String> = columns.iter().map(|c| c.value(i).to_string()).collect();
            rows.push(cells.join(" | "));
        }
    }
    rows.sort();
    rows
}

/// Several stores opened at once, as one run.
pub(crate) async fn open(stores: &[PathBuf], settings: Settings) -> Arc<Database> {
    let target = Target {
        stores: stores.to_vec(),
        ..Target::default()
    };
    let run = Run::open(&target).await.unwrap();
    Arc::new(Database::open(run, settings).await.unwrap())
}
