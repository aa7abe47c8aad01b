//! What a patch changes in a cluster file, what it leaves, and what is said of one that does not fit.

use super::*;

const FILE: &str = r#"# A cluster.
name = "t"   # its name

[[group]]
name = "north"
[[group]]
name = "south"

[[emp]]
name = "emp0"

[[mp]]
name = "mp0"
group = "north"
emp = "emp0"
[[ap]]
name = "ap0"
mp = "mp0" # near its data

[[mp]]
name = "mp1"
group = "south"
emp = "emp0"
[[ap]]
name = 'ap1'
mp = "mp1"

# The end.
"#;

const VARIABLE: &str = r#"
[[variable]]
name = "grid"
# As on the old machine.
placement = "by_name" # for now
lock = "mcs"
"#;

fn applied(file: &str, patch: &str) -> String {
    apply_patch(file, patch).unwrap_or_else(|e| panic!("{e}"))
}

fn refused(file: &str, patch: &str) -> String {
    apply_patch(file, patch).unwrap_err().to_string()
}

#[test]
fn a_process_moves_and_all_else_stays() {
    let patch = [("ap0", "mp0", "mp1"), ("ap1", "mp1", "mp0")]
        .map(|(ap, from, to)| format!(" [[ap]]\n name = {ap:?}\n-mp = {from:?}\n+mp = {to:?}\n"));
    let patch = patch.concat();
    let expected = FILE
        .replace("mp = \"mp0\" # near", "mp = \"mp1\" # near")
        .replace("'ap1'\nmp = \"mp1\"", "'ap1'\nmp = \"mp0\"");
    assert_eq!(applied(FILE, &patch), expected);
}

#[test]
fn a_variable_is_added_behind_all_tables() {
    let patch = "+[[variable]]\n+name = \"grid\"\n+owners = [\"mp1\", \"mp0\"]\n";
    let text = applied(FILE, patch);
    let table = "\n[[variable]]\nname = \"grid\"\nowners = [\"mp1\", \"mp0\"]\n";
    assert_eq!(
        text,
        FILE.replace("\n# The end.", &format!("{table}\n# The end."))
    );
    let again = applied(
        &text,
        "+[[variable]]\n+name = \"x\"\n+policy = \"update\"\n",
    );
    let both = format!("{table}\n[[variable]]\nname = \"x\"\npolicy = \"update\"\n");
    assert!(again.contains(&both), "{again}");
}

#[test]
fn a_variable_that_is_there_gets_the_keys_of_the_patch() {
    let file = FILE.to_owned() + VARIABLE;
    let patch = "+[[variable]]\n+name = \"grid\"\n+policy = \"update\"\n";
    assert_eq!(
        applied(&file, patch),
        file.clone() + "policy = \"update\"\n"
    );
    // It has owners or a placement, not both.
    let owners = "+[[variable]]\n+name = \"grid\"\n+owners = [\"mp1\"]\n";
    let moved = applied(&file, owners);
    let expected = VARIABLE.replace(
        "# As on the old machine.\nplacement = \"by_name\" # for now\nlock = \"mcs\"\n",
        "lock = \"mcs\"\n# As on the old machine.\nowners = [\"mp1\"] # for now\n",
    );
    assert_eq!(moved, FILE.to_owned() + &expected);
    // Another owner instead of that.
    let back = applied(&moved, &owners.replace("mp1", "mp0"));
    assert_eq!(back, moved.replace("[\"mp1\"]", "[\"mp0\"]"));
}

#[test]
fn tables_may_be_written_inline() {
    let inline = "ap = [{ name = \"ap0\", mp = \"mp0\" }, { name = \"ap1\", mp = \"mp1\" }]\n\
                  variable = [{ name = \"a\", lock = \"mcs\" }]\n";
    let tables = FILE.replace("[[ap]]\nname = \"ap0\"\nmp = \"mp0\" # near its data\n", "");
    let tables = tables.replace("[[ap]]\nname = 'ap1'\nmp = \"mp1\"\n", "");
    let file = tables.replace("name = \"t\"", &format!("{inline}name = \"t\""));
    let move_it = " [[ap]]\n name = \"ap0\"\n-mp = \"mp0\"\n+mp = \"mp1\"\n";
    let add = "+[[variable]]\n+name = \"b\"\n+policy = \"update\"\n";
    let text = applied(&file, &format!("{move_it}{add}"));
    let cluster = Cluster::parse(&text).unwrap();
    assert!(text.contains("name = \"ap0\", mp = \"mp1\""), "{text}");
    assert_eq!(cluster.overrides.len(), 2, "{text}");
}

#[test]
fn what_does_not_fit_is_named_with_the_cure() {
    let ap = |name: &str, from: &str, to: &str| {
        format!(" [[ap]]\n name = {name:?}\n-mp = {from:?}\n+mp = {to:?}\n")
    };
    for (file, patch, says) in [
        (FILE, ap("ap7", "mp0", "mp1"), "no [[ap]] with name = \"ap7\"; give"),
        (FILE, ap("ap0", "mp1", "mp0"), "mp is \"mp0\" in the cluster file, but was \"mp1\""),
        (FILE, ap("ap0", "mp0", "mp9"), "mp9 does not exist; did you mean"),
        ("name = ", ap("ap0", "mp0", "mp1"), "not TOML"),
        ("name = \"t\"\nap = 3", ap("ap0", "mp0", "mp1"), "write each as [[ap]]"),
        (FILE, "policy = \"update\"".to_owned(), "belongs to no table"),
        (FILE, "+[[variable]]\n+policy = \"update\"\n".to_owned(), "which [[variable]]"),
        (FILE, String::new(), "it is empty"),
        // As it is shown.
        (
            FILE,
            "+[[variable]]\n+name = \"x\"\n+owners = [\n+  \"mp0\",\n+  … and 9 more; `dosmos check --apply` writes all\n+]\n"
                .to_owned(),
            "not a whole patch",
        ),
    ] {
        let said = refused(file, &patch);
        assert!(said.contains(says), "{patch}: {said}");
    }
}
