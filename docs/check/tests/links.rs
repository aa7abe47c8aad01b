//! Every link in the documents leads somewhere, and so does every mention of a document's section in the sources.

use dosmos_documents::{anchors, documents, explanations, root};
use regex::Regex;

#[test]
fn every_link_in_the_documents_leads_somewhere() {
    let mut followed = 0;
    let mut wrong = Vec::new();
    for document in documents() {
        let file = document.file();
        let folder = file.parent().unwrap();
        for part in document.text.split("](").skip(1) {
            let Some((target, _)) = part.split_once(')') else {
                continue;
            };
            if target.contains("://") || target.contains(char::is_whitespace) {
                continue;
            }
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let target_file = if path.is_empty() {
                file.clone()
            } else {
                folder.join(path)
            };
            followed += 1;
            if !target_file.exists() {
                wrong.push(format!("{}: there is no {target}", document.path));
            } else if !anchor.is_empty() {
                let known = anchors(&std::fs::read_to_string(&target_file).unwrap());
                if !known.iter().any(|a| a == anchor) {
                    wrong.push(format!("{}: {target}: {known:?}", document.path));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(followed > 20, "only {followed} links were found");
}

/// A comment cites a section as `docs/design/consistency.md#copies`.
#[test]
fn every_section_cited_in_the_sources_exists() {
    let citation = Regex::new(r"\bdocs/[a-z/_-]+\.md(#[A-Za-z0-9_-]+)?").unwrap();
    let mut cited = 0;
    let mut wrong = Vec::new();
    for text in explanations() {
        for (number, line) in text.numbered_lines() {
            // The address of a web site and a template cite nothing here.
            if line.contains("://") || line.contains("#NAME") {
                continue;
            }
            for found in citation.find_iter(line) {
                let (path, anchor) = found
                    .as_str()
                    .split_once('#')
                    .unwrap_or((found.as_str(), ""));
                let at = format!("{}:{number}: {}", text.path, found.as_str());
                cited += 1;
                match std::fs::read_to_string(root().join(path)) {
                    Err(_) => wrong.push(format!("{at}: there is no such document")),
                    Ok(t) if !anchor.is_empty() && !anchors(&t).iter().any(|a| a == anchor) => {
                        wrong.push(format!("{at}: there is no such heading"));
                    }
                    Ok(_) => {}
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cited > 5, "only {cited} citations were found");
}
