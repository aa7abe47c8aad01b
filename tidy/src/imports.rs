//! Arrows between the files of a crate: from the file that imports or mentions something to the file that defines it.
//! A name is followed through re-exports, so a `lib.rs` that only re-exports is never an end of an arrow. A name that
//! stands for itself in the module where it is looked up (a type, a function) is taken to be defined there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::circles::Graph;
use crate::modules::{Mention, Module, ModulePath};

/// Re-exports are followed this far at most; only a circle of them is longer.
const MOST_STEPS: usize = 32;

/// Which file takes something from which other file of the same crate.
pub fn arrows(modules: &BTreeMap<ModulePath, Module>) -> Graph<PathBuf> {
    let mut graph = Graph::new();
    for (path, module) in modules {
        let aims: &mut BTreeSet<PathBuf> = graph.entry(module.file.clone()).or_default();
        let uses = module.names.values().chain(&module.globs);
        for mention in uses.chain(&module.mentions) {
            if let Some(file) = definition(modules, path, mention, MOST_STEPS)
                && *file != module.file
            {
                aims.insert(file.clone());
            }
        }
    }
    graph
}

/// The file that defines what `mention` means in the module `at`; none if that is another crate.
fn definition<'a>(
    modules: &'a BTreeMap<ModulePath, Module>,
    at: &ModulePath,
    mention: &Mention,
    steps: usize,
) -> Option<&'a PathBuf> {
    let (mut here, mut rest) = start(modules, at, mention)?;
    let steps = steps.checked_sub(1)?;
    while let Some((first, after)) = rest.split_first() {
        let child = [here.as_slice(), std::slice::from_ref(first)].concat();
        if modules.contains_key(&child) {
            (here, rest) = (child, after);
            continue;
        }
        if first == "self" || first == "super" {
            break;
        }
        let module = &modules[&here];
        if let Some(target) = module
            .names
            .get(first)
            .filter(|t| *t != mention || here != *at)
        {
            let target = [target.as_slice(), after].concat();
            return definition(modules, &here, &target, steps);
        }
        return globbed(modules, &here, rest, steps).or(Some(&module.file));
    }
    Some(&modules[&here].file)
}

/// Where a path begins: the module, and what of the path is left.
fn start<'m>(
    modules: &BTreeMap<ModulePath, Module>,
    at: &ModulePath,
    mention: &'m [String],
) -> Option<(ModulePath, &'m [String])> {
    let (first, rest) = mention.split_first()?;
    match first.as_str() {
        "crate" => Some((Vec::new(), rest)),
        "self" => Some((at.clone(), rest)),
        "super" => {
            let mut here = at[..at.len().checked_sub(1)?].to_vec();
            let mut rest = rest;
            while let Some(after) = rest.strip_prefix(&["super".to_owned()]) {
                here.pop()?;
                rest = after;
            }
            Some((here, rest))
        }
        name => {
            let child = [at.as_slice(), std::slice::from_ref(first)].concat();
            let known = modules.contains_key(&child) || modules[at].names.contains_key(name);
            known.then(|| (at.clone(), mention))
        }
    }
}

/// What a name means that some `use path::*` of this module may bring: only if the module named by the path re-exports
/// it by name or has a module of that name, since what a file defines is not looked at.
fn globbed<'a>(
    modules: &'a BTreeMap<ModulePath, Module>,
    here: &ModulePath,
    rest: &[String],
    steps: usize,
) -> Option<&'a PathBuf> {
    modules[here].globs.iter().find_map(|glob| {
        let (at, left) = start(modules, here, glob)?;
        let module = left.iter().try_fold(at, |at, name| {
            let child = [at.as_slice(), std::slice::from_ref(name)].concat();
            modules.contains_key(&child).then_some(child)
        })?;
        let child = [module.as_slice(), &rest[..1]].concat();
        let known = modules.contains_key(&child) || modules[&module].names.contains_key(&rest[0]);
        known.then(|| definition(modules, &module, &rest.to_vec(), steps))?
    })
}
