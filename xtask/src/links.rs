//! Links between the documents lead somewhere: to a file that exists, and to a heading that it has. And the summary of
//! the book lists every page.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::Finding;

/// The summary, from which the book is made.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Checks the documents at the root and in `docs`.
pub(crate) fn check(root: &Path) -> Result<Vec<Finding>, String> {
    let mut documents = Vec::new();
    for folder in ["", "docs"] {
        // The fixtures of the tests have no documents.
        for entry in std::fs::read_dir(root.join(folder)).into_iter().flatten() {
            let path = entry.map_err(|error| error.to_string())?.path();
            if path.extension().is_some_and(|extension| extension == "md") {
                documents.push(path);
            }
        }
    }
    documents.sort();
    let read = |path: &Path| {
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let mut findings = Vec::new();
    let mut listed = HashSet::new();
    for document in &documents {
        let text = read(document)?;
        let path = document.strip_prefix(root).unwrap_or(document).to_path_buf();
        for (line, target) in links(&text) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let beside = document.parent().unwrap_or(root);
            let to = if file.is_empty() { document.clone() } else { beside.join(file) };
            if path == Path::new(SUMMARY) {
                listed.insert(to.clone());
            }
            let what = if !to.exists() {
                format!("the link to {target} leads nowhere: there is no such file")
            } else if !heading.is_empty() && !headings(&read(&to)?).contains(heading) {
                format!("the link to {target} leads nowhere: the file has no such heading")
            } else {
                continue;
            };
            findings.push(Finding { path: path.clone(), line, what, fails: true });
        }
    }
    let pages = documents.iter().filter(|path| path.parent() == Some(&root.join("docs")));
    for page in pages.filter(|page| !page.ends_with(SUMMARY) && !listed.contains(*page)) {
        let name = page.strip_prefix(root.join("docs")).unwrap_or(page).display();
        let what = format!("add {name}: the book has only the pages of its summary");
        findings.push(Finding { path: PathBuf::from(SUMMARY), line: 0, what, fails: true });
    }
    Ok(findings)
}

/// Returns the lines of a document that are not in blocks of code, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((index + 1, line))
    })
}

/// Returns the targets of links to files of this workspace, each with its line.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        for (start, _) in line.match_indices("](") {
            let after = &line[start + 2..];
            let Some(end) = after.find(')') else { continue };
            let target = &after[..end];
            let is_elsewhere = target.contains("://") || target.starts_with("mailto:");
            if !target.is_empty() && !is_elsewhere && !target.contains(' ') {
                found.push((number, target));
            }
        }
    }
    found
}

/// Returns the anchors of a document: those that GitHub and mdBook give to headings, and its own.
fn headings(text: &str) -> HashSet<String> {
    let mut anchors = HashSet::new();
    for (_, line) in prose(text) {
        for (start, _) in line.match_indices("id=\"") {
            anchors.extend(line[start + 4..].split('"').next().map(str::to_owned));
        }
        let Some(heading) = line.trim_start_matches('#').strip_prefix(' ') else { continue };
        if !line.starts_with('#') {
            continue;
        }
        let kept =
            |character: &char| character.is_alphanumeric() || matches!(character, ' ' | '-' | '_');
        let anchor: String = heading.trim().chars().filter(kept).collect();
        anchors.insert(anchor.to_lowercase().replace(' ', "-"));
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_headings_are_found_outside_of_code() {
        let text = "# A `b` of [[c]], D\n[x](a.md#b), [y](https://example.com), ![z](z.png)\n\
                    ```\n[no](no.md)\n# no\n```\n<a id=\"own\"></a>\n";
        assert_eq!(links(text), [(2, "a.md#b"), (2, "z.png")]);
        let expected = ["a-b-of-c-d", "own"].map(str::to_owned);
        assert_eq!(headings(text), HashSet::from(expected));
    }
}
