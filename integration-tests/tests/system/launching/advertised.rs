//! Processes that others reach through something that forwards: where they advertise, not where they listen.

use std::time::Duration;

use dosmos_integration_tests::{Lab, in_groups};
use dosmos_testkit::SlowLink;

#[test]
fn processes_behind_something_that_forwards_are_reached_where_they_advertise() {
    let lab = Lab::new(env!("CARGO_BIN_EXE_dosmos-under-test"));
    let mut file = in_groups(1, 2);
    let mut links = Vec::new();
    for (table, name) in [("mp", "mp0"), ("mp", "mp1"), ("emp", "emp0")] {
        let socket = lab.path().join(format!("{name}.inside"));
        let link = SlowLink::to(&socket, Duration::from_micros(50)).unwrap();
        let line = format!("[[{table}]]\nname = \"{name}\"\n");
        assert!(file.contains(&line), "{file}");
        let behind = format!(
            "{line}listen = \"unix:{}\"\nadvertise = \"{}\"\n",
            socket.display(),
            link.address()
        );
        file = file.replacen(&line, &behind, 1);
        links.push((name, link));
    }
    lab.cluster(&file);
    let said = lab.must_up(&[
        "sor",
        "--rows",
        "20",
        "--columns",
        "12",
        "--iterations",
        "5",
    ]);
    assert!(
        said.contains("equal to a sequential run bit for bit"),
        "{said}"
    );
    for (name, link) in links {
        assert!(
            link.bytes() > 0,
            "nothing went through what is before {name}"
        );
    }
}
