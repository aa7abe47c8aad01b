//! Cluster files: a cluster that can be shown and asked, or all that is wrong with it.

use std::path::Path;

use dosmos_cli::config::Cluster;

pub(crate) fn take(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    match Cluster::parse(text) {
        Ok(cluster) => {
            assert!(cluster.to_string().starts_with("cluster "));
            let run_dir = Path::new("run");
            let _ = cluster.address_book(Some(run_dir));
            for mp in cluster.topology.memory_processes() {
                let _ = cluster.bind_address(&mp.name, run_dir);
                let _ = cluster.metrics.address_of(&mp.name);
            }
            for emp in cluster.topology.event_managers() {
                let _ = cluster.store_of(&emp.name, run_dir);
            }
            let _ = cluster.topology.fingerprint();
        }
        Err(errors) => assert!(!errors.is_empty() && errors.iter().all(|e| !e.is_empty())),
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let small = r#"
name = "small"
[defaults]
listen = "unix"
metrics = "off"
deadline_ms = 100
insecure = true
[[group]]
name = "a"
[[group]]
name = "b"
parent = "a"
[[emp]]
name = "e"
store = "s"
[[lp]]
name = "l"
group = "a"
[[mp]]
name = "m"
group = "/a/b"
emp = "e"
listen = "127.0.0.1:0"
[[ap]]
name = "p"
mp = "m"
[recording]
mode = "full"
sample_one_in = 3
variables = ["x*"]
ops = ["read"]
overflow = "block"
buffer_bytes = 2000000
[store]
max_bytes = 20000000
max_age_s = 1.5
[[variable]]
name = "x"
policy = "update"
lock = "mcs"
owners = ["m"]
[[variable]]
name = "y"
placement = { round_robin = "/a" }
[app]
command = ["true"]
"#;
    vec![small.as_bytes().to_vec()]
}
