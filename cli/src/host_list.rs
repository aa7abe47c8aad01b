//! Lists of hosts as Slurm writes them: `n[01-04,7],login`.

use std::fmt;

/// Longest list that is accepted: nobody means more, and a typing error must not fill the memory.
const MOST: usize = 1 << 16;

/// A text that is not a list of hosts.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a list of hosts such as n[01-04,7],login: {why}")]
pub(crate) struct InvalidHostList {
    text: String,
    why: &'static str,
}

impl fmt::Debug for InvalidHostList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The hosts of a list, in its order.
///
/// # Errors
/// What is wrong with the text.
pub(crate) fn parse(text: &str) -> Result<Vec<String>, InvalidHostList> {
    let invalid = |why| InvalidHostList {
        text: text.to_owned(),
        why,
    };
    let mut hosts = Vec::new();
    for entry in entries(text).map_err(invalid)? {
        for host in expand(entry).map_err(invalid)? {
            if hosts.len() == MOST {
                return Err(invalid("it has more than 65536 hosts"));
            }
            hosts.push(host);
        }
    }
    Ok(hosts)
}

/// The parts between the commas that are in no brackets.
fn entries(text: &str) -> Result<Vec<&str>, &'static str> {
    let (mut parts, mut begin, mut inside) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            '[' if inside => return Err("brackets within brackets"),
            '[' => inside = true,
            ']' if !inside => return Err("a bracket is closed that was not opened"),
            ']' => inside = false,
            ',' if !inside => {
                parts.push(&text[begin..at]);
                begin = at + 1;
            }
            c if c.is_whitespace() => return Err("it has a space"),
            _ => {}
        }
    }
    if inside {
        return Err("a bracket is not closed");
    }
    parts.push(&text[begin..]);
    if parts.iter().any(|p| p.is_empty()) {
        return Err("a name is missing");
    }
    Ok(parts)
}

/// The hosts of one part: every combination of what its brackets say, the last changing fastest.
fn expand(entry: &str) -> Result<Vec<String>, &'static str> {
    let Some((before, rest)) = entry.split_once('[') else {
        return Ok(vec![entry.to_owned()]);
    };
    let (inside, after) = rest.split_once(']').ok_or("a bracket is not closed")?;
    let after = expand(after)?;
    let mut hosts = Vec::new();
    for number in numbers(inside)? {
        for after in &after {
            if hosts.len() == MOST {
                return Err("it has more than 65536 hosts");
            }
            hosts.push(format!("{before}{number}{after}"));
        }
    }
    Ok(hosts)
}

/// `01-03,7` is 01, 02, 03, 7.
fn numbers(inside: &str) -> Result<Vec<String>, &'static str> {
    let mut all = Vec::new();
    for range in inside.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let number = |text: &str| match text.bytes().all(|b| b.is_ascii_digit()) {
            true => text.parse::<u64>().map_err(|_| "a number is missing"),
            false => Err("brackets hold numbers and ranges of numbers"),
        };
        let (from, to) = (number(first)?, number(last)?);
        if from > to {
            return Err("a range ends before it begins");
        }
        if to - from >= MOST as u64 {
            return Err("it has more than 65536 hosts");
        }
        let width = first.len();
        all.extend((from..=to).map(|n| format!("{n:0width$}")));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_slurm_are_understood() {
        for (text, hosts) in [
            ("n1", &["n1"][..]),
            ("a,b.example.org", &["a", "b.example.org"]),
            ("n[01-03,7]", &["n01", "n02", "n03", "n7"]),
            ("n[8-11]x,login", &["n8x", "n9x", "n10x", "n11x", "login"]),
            ("r[1-2]n[0-1]", &["r1n0", "r1n1", "r2n0", "r2n1"]),
        ] {
            assert_eq!(parse(text).unwrap(), hosts, "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, why) in [
            ("", "a name is missing"),
            ("a,,b", "a name is missing"),
            ("n[1-2", "not closed"),
            ("n1-2]", "not opened"),
            ("n[[1]]", "within brackets"),
            ("n[]", "a number is missing"),
            ("n[x]", "numbers and ranges"),
            ("n[3-1]", "before it begins"),
            ("n[0-99999999]", "65536"),
            ("n[0-999]m[0-999]", "65536"),
            ("n[99999999999999999999999]", "missing"),
            ("a b", "space"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
