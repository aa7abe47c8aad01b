//! Each thing that can be wrong with a cluster file, and what is said of it.

use std::collections::HashMap;
use std::path::Path;

use dosmos_memproc::ALL_VARIABLES;
use dosmos_proto::transport::Address;
use dosmos_proto::{AddressBook, CopyPolicy, Placement};

use super::*;

const GOOD: &str = r#"
name = "t"
[[group]]
name = "north"
parent = "ocean"
[[group]]
name = "ocean"
[[emp]]
name = "emp0"
[[mp]]
name = "mp0"
group = "north"
emp = "emp0"
[[mp]]
name = "mp1"
group = "/ocean"
emp = "emp0"
listen = "unix"
[[ap]]
name = "ap0"
mp = "mp0"
"#;

fn errors(change: impl Fn(String) -> String) -> String {
    Cluster::parse(&change(GOOD.to_owned()))
        .unwrap_err()
        .join("\n")
}

fn with(more: &str) -> String {
    errors(|s| s + more)
}

fn replacing(what: &str, by: &str) -> String {
    assert!(GOOD.contains(what));
    errors(|s| s.replacen(what, by, 1))
}

#[test]
fn a_memory_process_is_within_the_one_application_process_that_it_has() {
    let within = |text: &str| {
        let cluster = Cluster::parse(text).unwrap();
        let names = cluster.in_application.iter();
        let names: Vec<String> = names.map(|mp| cluster.topology.mp_name(*mp)).collect();
        (names.join(" "), cluster.to_string())
    };
    let all = "[defaults]\nin_application = true\n";
    // mp1 has none.
    let (names, shown) = within(&format!("{GOOD}{all}"));
    assert_eq!(names, "mp0");
    assert!(
        shown.contains("mp mp0: reports to emp0, is within ap0"),
        "{shown}"
    );
    assert_eq!(within(GOOD).0, "");
    let said = |value: &str| {
        GOOD.replacen(
            "name = \"mp0\"\n",
            &format!("name = \"mp0\"\nin_application = {value}\n"),
            1,
        )
    };
    assert_eq!(within(&said("true")).0, "mp0");
    assert_eq!(within(&format!("{}{all}", said("false"))).0, "");
    let two = "[[ap]]\nname = \"ap1\"\nmp = \"mp0\"\n";
    assert_eq!(within(&format!("{GOOD}{two}{all}")).0, "");
    let error = Cluster::parse(&format!("{}{two}", said("true")))
        .unwrap_err()
        .join("\n");
    assert!(
        error.contains("memory process mp0") && error.contains("it has 2"),
        "{error}"
    );
}

#[test]
fn memory_processes_are_bound_or_all_or_none() {
    let bound = |text: &str| Cluster::parse(text).map(|c| c.bind);
    assert_eq!(bound(GOOD), Ok(Bind::Memory));
    let all = [
        ("cores", Bind::Cores),
        ("memory", Bind::Memory),
        ("none", Bind::None),
    ];
    for (value, expected) in all {
        let text = format!("{GOOD}[defaults]\nbind = \"{value}\"\n");
        assert_eq!(bound(&text), Ok(expected));
    }
    let error = with("[defaults]\nbind = \"sockets\"\n");
    assert!(error.contains("`none`, `memory`, `cores`"), "{error}");
}

#[test]
fn a_good_file_gives_processes_and_made_up_links() {
    let c = Cluster::parse(GOOD).unwrap();
    let paths: Vec<_> = c
        .topology
        .groups()
        .iter()
        .map(|g| g.path.to_string())
        .collect();
    assert_eq!(paths, ["/ocean", "/ocean/north"], "parents first");
    let names: Vec<_> = c.topology.process_names().collect();
    assert_eq!(names, ["mp0", "mp1", "lp.north", "lp.ocean", "ap0", "emp0"]);
    assert_eq!(c.listen["mp1"], Listen::UnixInRunDir);
    assert_eq!(c.listen["mp0"], Listen::OnThisMachine);
    let socket = Address::Unix("r/mp0.sock".into());
    assert_eq!(c.bind_address("mp0", Path::new("r")), socket);
    let deep = "d".repeat(120);
    let port = Address::Tcp("127.0.0.1:0".into());
    assert_eq!(c.bind_address("mp0", Path::new(&deep)), port);
    assert_eq!(
        c.store_of("emp0", Path::new("r")),
        Path::new("r/store/emp0")
    );
    assert!(
        c.address_book(None).resolve("mp0").is_none(),
        "not known before it runs"
    );
}

#[test]
fn variables_are_overridden() {
    let text = format!(
        "{GOOD}
[[variable]]
name = \"a\"
policy = \"update\"
placement = {{ round_robin = \"/ocean/north\" }}
[[variable]]
name = \"b\"
placement = \"by_name\"
[[variable]]
name = \"c\"
placement = \"round_robin\"
[[variable]]
name = \"d\"
owners = [\"mp1\", \"mp0\"]
[[variable]]
name = \"*\"
cache = \"mp\"
placement = \"creator\"
"
    );
    let c = Cluster::parse(&text).unwrap();
    assert_eq!(c.overrides[4].name, ALL_VARIABLES);
    assert_eq!(c.overrides[0].policy, Some(CopyPolicy::Update));
    let placements: Vec<_> = c
        .overrides
        .iter()
        .map(|o| o.placement.clone().unwrap())
        .collect();
    assert_eq!(
        placements,
        [
            Placement::RoundRobin(Some("/ocean/north".into())),
            Placement::ByName,
            Placement::RoundRobin(None),
            Placement::explicit(["mp1", "mp0"]).unwrap(),
            Placement::Creator,
        ]
    );
}

#[test]
fn replicas_need_other_memory_processes_in_the_group_of_an_owner() {
    let variable = |more: &str| format!("[[variable]]\nname = \"x\"\n{more}\n");
    let third = "[[mp]]\nname = \"mp2\"\ngroup = \"north\"\nemp = \"emp0\"\n";
    let enough = format!("{GOOD}{third}{}", variable("replicas = 1"));
    let c = Cluster::parse(&enough).unwrap();
    assert_eq!(c.overrides[0].replicas, Some(1));
    let e = with(&variable("replicas = 3"));
    assert_eq!(e, "variable x: replicas = 3; there can be 0 to 2");
    let e = with(&(third.to_owned() + &variable("replicas = 2")));
    assert_eq!(
        e,
        "variable x: replicas = 2, but only 1 other memory processes are in the group of an owner; add [[mp]] there or lower it"
    );
    let e = with(&(third.to_owned() + &variable("replicas = 1\nowners = [\"mp1\"]")));
    assert!(e.contains("but only 0 other memory processes"), "{e}");
}

#[test]
fn unknown_keys_are_named_with_their_line() {
    let e = replacing("[[ap]]\nname", "[[ap]]\nnmae");
    assert!(
        e.contains("line 20") && e.contains("nmae") && e.contains("`name`"),
        "{e}"
    );
}

#[test]
fn duplicate_names_are_refused() {
    let e = with("[[ap]]\nname = \"mp0\"\nmp = \"mp0\"\n");
    assert_eq!(e, "two processes are called mp0; rename one");
    let e = with("[[group]]\nname = \"ocean\"\n");
    assert_eq!(e, "two groups are called ocean; rename one");
    let e = with("[[variable]]\nname = \"x\"\n[[variable]]\nname = \"x\"\n");
    assert_eq!(e, "variable x has two entries; merge them");
}

#[test]
fn an_application_process_needs_a_memory_process() {
    let e = replacing("mp = \"mp0\"", "");
    assert_eq!(
        e,
        "application process ap0 has no memory process; add mp = \"…\""
    );
    let e = replacing("mp = \"mp0\"", "mp = \"mp7\"");
    assert_eq!(
        e,
        "application process ap0: memory process mp7 does not exist; did you mean mp0?"
    );
}

#[test]
fn a_group_cycle_is_shown() {
    let e = replacing(
        "name = \"ocean\"\n",
        "name = \"ocean\"\nparent = \"north\"\n",
    );
    assert!(
        e.starts_with("the groups form a cycle: north in ocean in north; remove one `parent`"),
        "{e}"
    );
    let e = replacing("parent = \"ocean\"", "parent = \"north\"");
    assert!(
        e.starts_with("the groups form a cycle: north in north"),
        "{e}"
    );
}

#[test]
fn unknown_groups_and_event_managers_are_named() {
    let e = replacing("group = \"north\"", "group = \"nort\"");
    assert_eq!(
        e,
        "memory process mp0: group nort does not exist; did you mean north?"
    );
    let e = replacing("emp = \"emp0\"", "emp = \"boss\"");
    assert_eq!(
        e,
        "memory process mp0: event manager boss does not exist; known: emp0"
    );
    let e = replacing("parent = \"ocean\"", "parent = \"sea\"");
    assert!(
        e.starts_with("group north: its parent sea does not exist; known: north, ocean"),
        "{e}"
    );
}

#[test]
fn something_is_needed_of_everything() {
    let e = Cluster::parse("name = \"t\"").unwrap_err();
    let what: Vec<_> = e.iter().map(|e| e.split(';').next().unwrap()).collect();
    assert_eq!(
        what,
        [
            "there is no group",
            "there is no event manager",
            "there is no memory process",
            "there is no application process",
        ]
    );
    let e = with("[[emp]]\nname = \"idle\"\n");
    assert!(
        e.contains("no memory process reports to event manager idle"),
        "{e}"
    );
}

#[test]
fn others_reach_a_process_where_it_advertises() {
    let behind = GOOD.replacen(
        "listen = \"unix\"",
        "listen = \"unix\"\nadvertise = \"gate.example:7000\"",
        1,
    );
    let cluster = Cluster::parse(&behind).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let at: Address = "gate.example:7000".parse().unwrap();
    let book = cluster.address_book(Some(dir.path()));
    assert_eq!(book.resolve("mp1"), Some(at.clone()));
    assert_eq!(
        cluster.bind_address("mp1", dir.path()),
        Address::Unix(dir.path().join("mp1.sock"))
    );
    // Also for those who know the run directory only.
    book.publish("mp1", &Address::Unix(dir.path().join("mp1.sock")))
        .unwrap();
    let other = AddressBook::new(HashMap::new(), Some(dir.path()));
    assert_eq!(other.resolve("mp1"), Some(at));
    book.withdraw("mp1", &Address::Unix(dir.path().join("mp1.sock")));
    assert_eq!(other.resolve("mp1"), None);
}

#[test]
fn links_addresses_and_recording_are_checked() {
    let lp = "[[lp]]\nname = \"l1\"\ngroup = \"ocean\"\n";
    let e = with(&(lp.to_owned() + &lp.replace("l1", "l2")));
    assert_eq!(
        e,
        "group ocean has two link processes, l2 the second; a group has one"
    );
    let e = replacing("listen = \"unix\"", "listen = \"here\"");
    assert!(e.contains("process mp1: \"here\" is not an address"), "{e}");
    let e = replacing("listen = \"unix\"", "listen = \"0.0.0.0:7000\"");
    assert!(
        e.contains("reachable from other machines") && e.contains("insecure = true"),
        "{e}"
    );
    let exposed = GOOD.replacen("listen = \"unix\"", "listen = \"0.0.0.0:7000\"", 1);
    assert!(exposed != GOOD && e.contains("dosmos cert init") && e.contains("--insecure"));
    let e = replacing("listen = \"unix\"", "advertise = \"gate.example:0\"");
    assert!(
        e.contains("process mp1 advertises gate.example:0") && e.contains("name the port"),
        "{e}"
    );
    let e = replacing("listen = \"unix\"", "advertise = \"gate\"");
    assert!(
        e.contains("process mp1: advertise: \"gate\" is not an address"),
        "{e}"
    );
    let tls =
        "[tls]\nca = \"tls/ca.pem\"\ncertificate = \"{name}.pem\"\nkey = \"/etc/{name}.key\"\n";
    let secured = Cluster::parse(&(exposed.clone() + tls)).unwrap();
    let files = secured.files_of("mp1").unwrap().unwrap();
    assert_eq!(files.certificate, Path::new("mp1.pem"));
    assert_eq!(files.key, Path::new("/etc/mp1.key"));
    let e = with("[tls]\nca = \"ca.pem\"\n");
    assert!(e.contains("missing field `certificate`"), "{e}");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cluster.toml");
    std::fs::write(&file, &exposed).unwrap();
    assert!(Cluster::read_with(&file, Protection::None).is_err());
    for protection in [Protection::Insecure, Protection::Tls] {
        let cluster = Cluster::read_with(&file, protection).unwrap();
        assert_eq!(cluster.insecure, protection == Protection::Insecure);
    }
    std::fs::write(&file, exposed + tls).unwrap();
    let cluster = Cluster::read_with(&file, Protection::None).unwrap();
    let files = cluster.files_of("mp1").unwrap().unwrap();
    assert_eq!(
        files.certificate,
        dir.path().canonicalize().unwrap().join("mp1.pem")
    );
    let e = replacing("listen = \"unix\"", "metrics = \"unix:here\"");
    assert!(e.contains("process mp1: metrics = \"unix:here\""), "{e}");
    let e = replacing("listen = \"unix\"", "metrics = \"0.0.0.0:9100\"");
    assert!(
        e.contains("metrics at 0.0.0.0:9100, reachable from other machines"),
        "{e}"
    );
    let e = with("[recording]\nsample_one_in = 0\n");
    assert!(e.contains("sample_one_in must be at least 1"), "{e}");
    let e = with("[recording]\nvariables = [\"re:a(\"]\n");
    assert!(e.contains("\"a(\" is not a regular expression"), "{e}");
    let e = with("[recording]\nmode = \"some\"\n");
    assert!(e.contains("some") && e.contains("off"), "{e}");
    let e = with("[[variable]]\nname = \"x\"\nowners = [\"mp9\"]\n");
    assert!(
        e.contains("variable x: memory process mp9 does not exist"),
        "{e}"
    );
    let e = replacing("name = \"ap0\"", "name = \"a/b\"");
    assert!(e.contains("process \"a/b\": a name has"), "{e}");
}

#[test]
fn a_cluster_name_is_no_path() {
    for name in ["../../evil", "a/b", "", ".hidden", "a\\nb"] {
        let said = replacing("name = \"t\"", &format!("name = \"{name}\""));
        assert!(
            said.contains("cluster") && said.contains("a name has"),
            "{name}: {said}"
        );
    }
}

#[test]
fn declarations_in_the_file_are_bounded() {
    let variable = |name: &str, owners: &str| {
        format!("{GOOD}[[variable]]\nname = \"{name}\"\nowners = [{owners}]\n")
    };
    let refused = |text: String| Cluster::parse(&text).unwrap_err().join("\n");
    let e = refused(variable("x", &"\"mp1\",".repeat(65_537)));
    assert!(
        e.contains(
            "variable x: malformed list of owners: there are more than 65536 owners; a shorter list repeats"
        ),
        "{e}"
    );
    let e = refused(variable("x", ""));
    assert!(e.contains("name one memory process or more"), "{e}");
    let e = refused(variable(&"x".repeat(201), "\"mp1\""));
    assert!(e.contains("a name has 1 to 200 bytes, this one 201"), "{e}");
}
