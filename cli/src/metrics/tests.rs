//! What is written for run directories as processes leave them.

use std::path::{Path, PathBuf};

use dosmos_proto::transport::Address;
use dosmos_proto::{AddressBook, EmpId, Nanos};
use dosmos_trace::run::RunId;
use dosmos_trace::store::{Identity, RunMetadata, StoreWriter};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::config::Cluster;

const CLUSTER: &str = r#"
name = "test"

[[group]]
name = "north"

[[emp]]
name = "emp0"

[[mp]]
name = "mp.0"
group = "north"
emp = "emp0"

[[lp]]
name = "lp0"
group = "north"
emp = "emp0"

[[ap]]
name = "ap0"
mp = "mp.0"
"#;

const TLS: &str = r#"
[tls]
ca = "tls/{name}/ca.pem"
certificate = "tls/{name}/certificate.pem"
key = "tls/{name}/key.pem"
"#;

/// A run directory.
struct Run {
    place: TempDir,
    metadata: RunMetadata,
}

impl Run {
    fn new(cluster_file: &str) -> Self {
        let run = Self {
            place: tempfile::tempdir().unwrap(),
            metadata: RunMetadata {
                run: RunId::from_bits(1),
                name: "test".to_owned(),
                command: Vec::new(),
                application: Vec::new(),
                directory: String::new(),
                version: String::new(),
                hosts: Vec::new(),
                cluster_file: cluster_file.to_owned(),
                started: Nanos(1),
                ended: None,
                ranks: Vec::new(),
            },
        };
        let identity = Identity {
            run: run.metadata.run,
            event_manager: "emp0".to_owned(),
            emp: EmpId(0),
            topology: Cluster::parse(CLUSTER).unwrap().topology,
        };
        let (writer, _) = StoreWriter::open(&run.store(), &identity).unwrap();
        writer.close().unwrap();
        run.metadata.write(&run.store()).unwrap();
        run
    }

    fn dir(&self) -> PathBuf {
        self.place.path().join("run-1")
    }

    fn store(&self) -> PathBuf {
        self.dir().join("store/emp0")
    }

    fn publish(&self, name: &str, address: &str) {
        let book = AddressBook::new(Default::default(), Some(&self.dir()));
        let address = Address::Tcp(address.to_owned());
        book.publish(name, &address).unwrap();
    }

    /// All its processes serve metrics.
    fn serving(self) -> Self {
        for (name, port) in [("mp.0", 1), ("lp0", 2), ("emp0", 3)] {
            self.publish(&format!("{name}.metrics"), &format!("127.0.0.1:{port}"));
        }
        self
    }

    fn watched(&self) -> anyhow::Result<Watched> {
        Watched::of(Some(&self.dir()))
    }

    fn why_not(&self) -> String {
        self.watched().unwrap_err().to_string()
    }

    /// A folder as `dosmos cert issue` makes it.
    fn observer(&self) -> PathBuf {
        let folder = self.place.path().join("observer");
        std::fs::create_dir(&folder).unwrap();
        for file in ["ca.pem", "certificate.pem", "key.pem"] {
            std::fs::write(folder.join(file), "").unwrap();
        }
        folder
    }
}

#[test]
fn every_process_that_serves_metrics_is_a_target_with_its_labels() {
    let run = Run::new(CLUSTER).serving();
    let target = |at: &str, labels: Value| json!({ "targets": [at], "labels": labels });
    let labels = |process, role| json!({ "process": process, "role": role, "run": "run-1", "group": "/north" });
    let expected = json!([
        target("127.0.0.1:1", labels("mp.0", "mp")),
        target("127.0.0.1:2", labels("lp0", "lp")),
        target(
            "127.0.0.1:3",
            json!({ "process": "emp0", "role": "emp", "run": "run-1" })
        ),
    ]);
    let watched = run.watched().unwrap();
    assert_eq!(serde_json::to_value(watched.targets()).unwrap(), expected);
    let text = prometheus::configuration(&watched, None, None).unwrap();
    for target in expected.as_array().unwrap() {
        let listed = text.lines().filter_map(|l| l.strip_prefix("      - "));
        let mut listed = listed.filter_map(|l| serde_json::from_str::<Value>(l).ok());
        assert!(listed.any(|t| t == *target), "{text}");
    }
    assert_eq!(text.matches("job_name").count(), 1);
    assert!(!text.contains("tls_config"), "{text}");
}

#[test]
fn a_file_of_targets_is_named_in_place_of_them() {
    let run = Run::new(CLUSTER).serving();
    let text =
        prometheus::configuration(&run.watched().unwrap(), Some(Path::new("/x/t.json")), None)
            .unwrap();
    assert!(text.contains("- files: [\"/x/t.json\"]"), "{text}");
    assert!(!text.contains("127.0.0.1"), "{text}");
    let error = prometheus::configuration(&run.watched().unwrap(), Some(Path::new("t")), None);
    let error = error.unwrap_err().to_string();
    assert!(error.contains("end in .json"), "{error}");
}

#[test]
fn a_cluster_with_certificates_is_scraped_with_one_and_by_the_names_of_its_processes() {
    let run = Run::new(&(CLUSTER.to_owned() + TLS)).serving();
    let watched = run.watched().unwrap();
    let none = run.place.path().join("none");
    let error = Certificates::of(&watched, Some(&none)).unwrap_err();
    assert!(format!("{error:#}").contains("none/ca.pem"), "{error:#}");
    let folder = run.observer();
    let certificates = Certificates::of(&watched, Some(&folder)).unwrap();
    let text =
        prometheus::configuration(&watched, Some(Path::new("/t.json")), certificates.as_ref())
            .unwrap();
    assert_eq!(text.matches("job_name").count(), 3);
    assert_eq!(text.matches("scheme: https").count(), 3);
    let key = format!("key_file: \"{}\"", folder.join("key.pem").display());
    assert_eq!(text.matches(&key).count(), 3);
    assert!(text.contains("server_name: \"mp.0\""), "{text}");
    assert!(text.contains(r#"regex: "mp\\.0", action: keep"#), "{text}");
}

#[test]
fn one_certificate_for_all_processes_is_compared_with_their_hosts() {
    let shared = TLS.replace("{name}", "node");
    let run = Run::new(&(CLUSTER.to_owned() + &shared)).serving();
    let watched = run.watched().unwrap();
    let certificates = Certificates::of(&watched, Some(&run.observer())).unwrap();
    let text = prometheus::configuration(&watched, None, certificates.as_ref()).unwrap();
    assert_eq!(text.matches("scheme: https").count(), 1);
    assert!(!text.contains("server_name"), "{text}");
}

#[test]
fn what_serves_no_metrics_is_refused_with_the_reason() {
    let place = tempfile::tempdir().unwrap();
    let error = Watched::of(Some(place.path())).unwrap_err().to_string();
    assert!(error.contains("is not a run directory"), "{error}");
    let mut run = Run::new(CLUSTER);
    assert!(
        run.why_not().contains("is running here"),
        "{}",
        run.why_not()
    );
    run.publish("mp.0", "127.0.0.1:7");
    assert!(
        run.why_not().contains("metrics = \"off\""),
        "{}",
        run.why_not()
    );
    run.metadata.ended = Some(Nanos(2));
    run.metadata.write(&run.store()).unwrap();
    assert!(run.why_not().contains("has ended"), "{}", run.why_not());
}

#[test]
fn the_dashboard_is_json_and_its_queries_are_of_the_chosen_run() {
    let board: Value = serde_json::from_str(DASHBOARD).unwrap();
    let panels = board["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|p| p["targets"].as_array());
    let queries: Vec<&str> = targets
        .flatten()
        .filter_map(|t| t["expr"].as_str())
        .collect();
    assert!(queries.len() >= panels.len());
    for query in queries {
        assert!(
            query.contains("dosmos_") && query.contains("$run"),
            "{query}"
        );
    }
}
