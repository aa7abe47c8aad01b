//! The modules of a crate: found from its root by their `mod` declarations, each with the paths that it imports or
//! mentions. Test modules are left out.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The names of a module on the way from the root of its crate; empty for the root itself.
pub type ModulePath = Vec<String>;

/// `a::b::c`, as written.
pub type Mention = Vec<String>;

/// A module outside tests.
#[derive(Debug, Default)]
pub struct Module {
    /// The file that it is in.
    pub file: PathBuf,
    /// `use` by the name that it introduces.
    pub names: BTreeMap<String, Mention>,
    /// `use path::*`.
    pub globs: Vec<Mention>,
    /// All other paths of two names or more.
    pub mentions: Vec<Mention>,
}

/// All modules of the crate with this root file.
pub fn modules(root: &Path) -> BTreeMap<ModulePath, Module> {
    let mut found = BTreeMap::new();
    let folder = root.parent().unwrap().to_owned();
    read_file(&mut found, &Vec::new(), root, &folder);
    found
}

fn read_file(
    found: &mut BTreeMap<ModulePath, Module>,
    path: &ModulePath,
    file: &Path,
    children: &Path,
) {
    let text = std::fs::read_to_string(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let tokens = TokenStream::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    read(found, path, file, children, tokens);
}

/// Reads the tokens of one module. `children` is the folder that its modules are in.
fn read(
    found: &mut BTreeMap<ModulePath, Module>,
    path: &ModulePath,
    file: &Path,
    children: &Path,
    tokens: TokenStream,
) {
    let mut module = Module {
        file: file.to_owned(),
        ..Module::default()
    };
    let mut nested = Vec::new();
    collect(
        &tokens.into_iter().collect::<Vec<_>>(),
        &mut module,
        &mut nested,
    );
    found.insert(path.clone(), module);
    for (name, content) in nested {
        let child = [path.as_slice(), std::slice::from_ref(&name)].concat();
        match content {
            Some(tokens) => read(found, &child, file, &children.join(&name), tokens),
            None => {
                let beside = children.join(format!("{name}.rs"));
                let inside = children.join(&name).join("mod.rs");
                let file = if beside.exists() { beside } else { inside };
                read_file(found, &child, &file, &children.join(&name));
            }
        }
    }
}

type Nested = Vec<(String, Option<TokenStream>)>;

/// Sorts the tokens of a module into what it uses, what it mentions, and the modules in it.
fn collect(tokens: &[TokenTree], module: &mut Module, nested: &mut Nested) {
    let mut i = 0;
    let mut only_tests = false;
    while i < tokens.len() {
        match &tokens[i] {
            TokenTree::Punct(p) if p.as_char() == '#' => {
                let attribute = tokens
                    .get(i + 1)
                    .map(ToString::to_string)
                    .unwrap_or_default();
                only_tests |= attribute.replace(' ', "").starts_with("[cfg(test");
                i += 2;
                continue;
            }
            TokenTree::Ident(word) if word == "mod" => {
                let name = tokens[i + 1].to_string();
                let content = match &tokens[i + 2] {
                    TokenTree::Group(g) => Some(g.stream()),
                    _ => None,
                };
                if !only_tests {
                    nested.push((name, content));
                }
                i += 3;
            }
            TokenTree::Ident(word) if word == "use" => {
                let end = (i..tokens.len())
                    .find(|j| is_punct(&tokens[*j], ';'))
                    .unwrap_or(tokens.len());
                if !only_tests {
                    read_use(&tokens[i + 1..end], &[], module);
                }
                i = end + 1;
            }
            TokenTree::Ident(_) => {
                let (path, length) = path_at(&tokens[i..]);
                if path.len() > 1 {
                    module.mentions.push(path);
                }
                i += length;
                continue; // Visibility and attributes belong to what follows.
            }
            TokenTree::Group(group) => {
                if !only_tests || group.delimiter() != Delimiter::Brace {
                    collect(
                        &group.stream().into_iter().collect::<Vec<_>>(),
                        module,
                        nested,
                    );
                }
                only_tests &= group.delimiter() != Delimiter::Brace;
                i += 1;
                continue;
            }
            TokenTree::Punct(p) => {
                only_tests &= p.as_char() != ';';
                i += 1;
                continue;
            }
            TokenTree::Literal(_) => {
                i += 1;
                continue;
            }
        }
        only_tests = false;
    }
}

fn is_punct(token: &TokenTree, what: char) -> bool {
    matches!(token, TokenTree::Punct(p) if p.as_char() == what)
}

/// The path that begins here and the number of its tokens.
fn path_at(tokens: &[TokenTree]) -> (Mention, usize) {
    let mut path = vec![tokens[0].to_string()];
    let mut i = 1;
    while let [a, b, TokenTree::Ident(next), ..] = &tokens[i..] {
        if !is_punct(a, ':') || !is_punct(b, ':') {
            break;
        }
        path.push(next.to_string());
        i += 3;
    }
    (path, i)
}

/// One tree of a `use`: `a::{b, c as d, e::*}`.
fn read_use(tokens: &[TokenTree], before: &[String], module: &mut Module) {
    let mut path = before.to_vec();
    let mut tokens = tokens.iter();
    let mut renamed = None;
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Ident(word) if word == "as" => {
                renamed = tokens.next().map(ToString::to_string);
            }
            TokenTree::Ident(word) => path.push(word.to_string()),
            TokenTree::Group(group) => {
                let inside: Vec<TokenTree> = group.stream().into_iter().collect();
                for part in inside.split(|t| is_punct(t, ',')).filter(|p| !p.is_empty()) {
                    read_use(part, &path, module);
                }
                return;
            }
            TokenTree::Punct(p) if p.as_char() == '*' => {
                module.globs.push(path);
                return;
            }
            _ => {}
        }
    }
    // `use a::{self}` is `use a`.
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    let name = renamed.or_else(|| path.last().cloned());
    // Imported to have its methods only: no name to be mentioned, and an arrow all the same.
    let name = name.map(|n| {
        if n == "_" {
            format!("_ {}", module.names.len())
        } else {
            n
        }
    });
    if let Some(name) = name {
        module.names.insert(name, path);
    }
}
