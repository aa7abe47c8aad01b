//! The module `mutant` of a changed crate: which change is on.

/// The environment variable with the number of the change.
pub const CHOSEN: &str = "DOSMOS_MUTANT";
/// The environment variable with the file that numbers of changes go to that would be asked for.
pub const REACHED: &str = "DOSMOS_MUTANTS_REACHED";

/// Its text, for changes up to this number.
pub fn module(last: usize) -> String {
    format!(
        r#"//! Which change is on.

use std::io::Write;
use std::sync::atomic::{{AtomicBool, AtomicUsize, Ordering::Relaxed}};

const LAST: usize = {last};
const LOGS: usize = usize::MAX - 1;
const UNREAD: usize = usize::MAX;
static CHOSEN: AtomicUsize = AtomicUsize::new(UNREAD);
static REACHED: [AtomicBool; LAST + 1] = [const {{ AtomicBool::new(false) }}; LAST + 1];

/// Whether this change is on.
#[inline]
pub fn on(n: usize) -> bool {{
    match CHOSEN.load(Relaxed) {{
        0 => false,
        chosen if chosen <= LAST => chosen == n,
        _ => first(n),
    }}
}}

#[cold]
fn first(n: usize) -> bool {{
    let path = std::env::var("{REACHED}");
    let chosen = std::env::var("{CHOSEN}").ok().and_then(|n| n.parse().ok());
    let chosen = chosen.unwrap_or(if path.is_ok() {{ LOGS }} else {{ 0 }});
    CHOSEN.store(chosen, Relaxed);
    if let (LOGS, Ok(path)) = (chosen, path) {{
        if n > 0 && !REACHED[n].swap(true, Relaxed) {{
            let file = std::fs::OpenOptions::new().append(true).create(true).open(path);
            _ = file.and_then(|mut f| f.write_all(format!("{{n}}\n").as_bytes()));
        }}
        return false;
    }}
    chosen == n
}}
"#
    )
}
