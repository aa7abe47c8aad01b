//! What messages cost is measured over real processes, and written as the models read it.

#![allow(clippy::unwrap_used)] // a test may

use std::process::Command;

use dosmos_model::inputs::NetworkRecord;

#[test]
fn a_measured_network_record_is_one_that_the_models_read() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("net.json");
    // Few messages: it is the way that is tested.
    let output = Command::new(env!("CARGO_BIN_EXE_dosmos-bench"))
        .args([
            "network",
            "--runs",
            "1",
            "--messages",
            "20",
            "--format",
            "json",
            "-o",
        ])
        .arg(&file)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(
        printed["network"]["segments"][0]["total_us"][0]
            .as_f64()
            .unwrap()
            > 0.0,
        "{printed}"
    );
    let record: NetworkRecord =
        serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    record.validate().unwrap();
    assert!(
        printed["hop"]["read_us"][0].as_f64().unwrap() > 0.0,
        "{printed}"
    );
}
