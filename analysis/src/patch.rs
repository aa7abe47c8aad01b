//! Changes of the cluster file, as unified-diff hunks without line numbers: lines to take out begin with
//! `-`, lines to add with `+`; context lines say in which table. A `[[variable]]` table is always
//! added (it overrides what the program declares), an application process's memory process is replaced. A patch is complete; where it
//! is shown, its long lists are cut ([`in_short`]).

use std::collections::BTreeMap;
use std::fmt::Write as _;

use dosmos_proto::{ApId, CopyPolicy, GroupId, MpId, ObjectId, Placement, VarId};

use crate::profile::Profile;

/// Owners on one line; of a longer list each line has [`PER_LINE`].
const ON_ONE_LINE: usize = 64;
/// Owners per line of a long list.
const PER_LINE: usize = 16;
/// Lines of a long list that are shown.
const SHOWN_LINES: usize = 4;

/// A memory process for each process that is to move to a group: those who leave one make room for those who come.
pub(crate) fn seats(profile: &Profile, moved: &[(ApId, usize)]) -> Vec<(ApId, MpId)> {
    let topology = &profile.catalog.topology;
    let mut free: BTreeMap<usize, Vec<MpId>> = BTreeMap::new();
    for (ap, _) in moved {
        if let (Some(p), Some(g)) = (topology.ap(*ap), topology.group_of_ap(*ap)) {
            free.entry(g.index()).or_default().push(p.memory_process);
        }
    }
    let seat = |(ap, to): &(ApId, usize)| {
        let left = free.get_mut(to).and_then(Vec::pop);
        let first = || topology.owners_in(Some(GroupId(*to as u32))).next();
        Some((*ap, left.or_else(first)?))
    };
    moved.iter().filter_map(seat).collect()
}

/// Moves processes and objects to memory processes.
pub(crate) fn regroup(
    profile: &Profile,
    seats: &[(ApId, MpId)],
    owners: &BTreeMap<VarId, BTreeMap<ObjectId, MpId>>,
) -> String {
    let topology = &profile.catalog.topology;
    let mut text = String::new();
    for (ap, seat) in seats {
        let Some(process) = topology.ap(*ap) else {
            continue;
        };
        let _ = writeln!(
            text,
            " [[ap]]\n name = {:?}\n-mp = {:?}\n+mp = {:?}",
            process.name,
            topology.mp_name(process.memory_process),
            topology.mp_name(*seat)
        );
    }
    for (&variable, moves) in owners {
        text += &self::owners(profile, variable, moves).unwrap_or_default();
    }
    text
}

/// A table that names the owner of every object of `variable`, the moved ones at their new owner. None if the
/// variable's declaration is not known, or a cluster file cannot hold that many owners.
pub(crate) fn owners(
    profile: &Profile,
    variable: VarId,
    moves: &BTreeMap<ObjectId, MpId>,
) -> Option<String> {
    let mut all = profile.catalog.variables.iter();
    let declared = all.find(|v| v.id() == variable)?;
    let owners: Vec<MpId> = (0..declared.spec().layout().objects())
        .map(|i| {
            let moved = moves.get(&ObjectId::new(variable, i));
            moved.copied().unwrap_or_else(|| declared.owner(i))
        })
        .collect();
    let topology = &profile.catalog.topology;
    let names = repeated(&owners).iter().map(|mp| topology.mp_name(*mp));
    let names: Vec<String> = names.collect();
    Placement::explicit(names.clone()).ok()?;
    Some(owners_table(declared.spec().name(), &names))
}

/// The shortest list that gives `list` when it is repeated as often as necessary: a shorter list of owners repeats.
fn repeated<T: PartialEq>(list: &[T]) -> &[T] {
    // For each beginning of the list, the length of its longest proper beginning that is also its end.
    let mut borders = vec![0; list.len()];
    for i in 1..list.len() {
        let mut border: usize = borders[i - 1];
        while border > 0 && list[i] != list[border] {
            border = borders[border - 1];
        }
        borders[i] = border + usize::from(list[i] == list[border]);
    }
    &list[..list.len() - borders.last().copied().unwrap_or(0)]
}

fn owners_table(variable: &str, owners: &[String]) -> String {
    let quoted: Vec<String> = owners.iter().map(|o| format!("{o:?}")).collect();
    let list = match quoted.len() <= ON_ONE_LINE {
        true => format!("+owners = [{}]\n", quoted.join(", ")),
        false => {
            let lines = quoted.chunks(PER_LINE);
            let lines: String = lines.map(|l| format!("+  {},\n", l.join(", "))).collect();
            format!("+owners = [\n{lines}+]\n")
        }
    };
    format!("+[[variable]]\n+name = {variable:?}\n{list}")
}

/// A patch as people read it: of a long list only the first lines, and how many owners follow. No TOML then, so that what is
/// copied from a screen is not taken for the whole.
pub(crate) fn in_short(patch: &str) -> String {
    let mut text = String::new();
    // Lines and owners of the list that this line is in.
    let mut list: Option<(usize, usize)> = None;
    for line in patch.lines() {
        list = match list {
            Some((lines, owners)) if line != "+]" => {
                let owners = match lines < SHOWN_LINES {
                    true => 0,
                    false => owners + line.matches(',').count(),
                };
                Some((lines + 1, owners))
            }
            Some((_, owners)) => {
                if owners > 0 {
                    let _ = writeln!(
                        text,
                        "+  … and {owners} more; `dosmos check --apply` writes all"
                    );
                }
                None
            }
            None => line.ends_with("= [").then_some((0, 0)),
        };
        if list.is_none_or(|(lines, _)| lines <= SHOWN_LINES) {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

/// A table that sets the copy policy.
pub(crate) fn policy(name: &str, policy: CopyPolicy) -> String {
    format!("+[[variable]]\n+name = {name:?}\n+policy = \"{policy}\"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_owners_is_as_short_as_repeating_makes_it() {
        for (list, short) in [
            ("", ""),
            ("a", "a"),
            ("aaaa", "a"),
            ("abab", "ab"),
            // The last repetition need not be whole.
            ("ababa", "ab"),
            ("abaab", "aba"),
            ("aab", "aab"),
        ] {
            assert_eq!(repeated(list.as_bytes()), short.as_bytes(), "{list}");
        }
        for bits in 0u32..1 << 10 {
            let list: Vec<u32> = (0..10).map(|i| bits >> i & 1).collect();
            let short = repeated(&list);
            let again = |n: usize| (0..10).all(|i| list[i] == list[i % n]);
            assert!(again(short.len()), "{list:?}");
            assert!((1..short.len()).all(|n| !again(n)), "{list:?}");
        }
    }

    #[test]
    fn a_long_list_is_whole_in_the_patch_and_cut_where_it_is_shown() {
        let names = |n: usize| -> Vec<String> { (0..n).map(|i| format!("mp{i}")).collect() };
        let short = owners_table("x", &names(64));
        assert_eq!(short.lines().count(), 3, "{short}");
        assert_eq!(in_short(&short), short);
        let long = owners_table("x", &names(1000)) + &policy("y", CopyPolicy::Update);
        assert!(
            names(1000)
                .iter()
                .all(|n| long.contains(&format!("{n:?},"))),
            "{long}"
        );
        let shown = in_short(&long);
        let expected = "+  … and 936 more; `dosmos check --apply` writes all\n+]\n+[[variable]]\n\
                        +name = \"y\"\n+policy = \"update\"\n";
        assert!(
            shown.ends_with(expected) && shown.contains("\"mp63\",\n"),
            "{shown}"
        );
        assert_eq!(shown.lines().count(), 3 + SHOWN_LINES + 5, "{shown}");
        // One line more than is shown.
        let two = in_short(&owners_table("x", &names(65)));
        assert!(two.contains("… and 1 more"), "{two}");
    }
}
