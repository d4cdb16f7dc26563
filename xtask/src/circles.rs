//! Finds circular dependencies of files: no two sibling modules may use each other, directly or through
//! others.
//!
//! A module uses what its paths that begin with `crate` or `super` name, outside its tests. A module and
//! its submodules may use each other: they are one thing in several files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::Finding;
use crate::source::{SourceFile, named_paths};

/// The modules of one package: each one's path below the package, and its file.
type Modules = BTreeMap<Vec<String>, PathBuf>;

/// Who uses whom among the modules of one folder.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// Findings for every circle in any package.
pub(crate) fn check(files: &[SourceFile]) -> Vec<Finding> {
    let mut packages: BTreeMap<&str, Vec<&SourceFile>> = BTreeMap::new();
    for file in files.iter().filter(|file| !file.is_test()) {
        if let Some(package) = file.package() {
            packages.entry(package).or_default().push(file);
        }
    }
    packages.into_iter().flat_map(|(package, files)| check_package(package, &files)).collect()
}

fn check_package(package: &str, files: &[&SourceFile]) -> Vec<Finding> {
    let source = Path::new("crates").join(package).join("src");
    let module = |file: &SourceFile| Some(module(file.path.strip_prefix(&source).ok()?));
    let modules: Modules =
        files.iter().filter_map(|file| Some((module(file)?, file.path.clone()))).collect();
    let mut folders: BTreeMap<Vec<String>, Uses> = BTreeMap::new();
    for file in files {
        let Some(from) = module(file) else { continue };
        let tests_begin = file.tests_begin();
        for named in named_paths(&file.text).iter().filter(|named| named.line < tests_begin) {
            let Some(to) = used(&from, &named.path, &modules) else { continue };
            let shared = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (Some(user), Some(used)) = (from.get(shared), to.get(shared)) {
                let uses = folders.entry(from[..shared].to_vec()).or_default();
                uses.entry(user.clone()).or_default().insert(used.clone());
            }
        }
    }
    let circles = folders.iter().flat_map(|(folder, uses)| {
        circles(uses).into_iter().map(|circle| {
            let path = [folder.clone(), vec![circle[0].clone()]].concat();
            let path = modules.get(&path).unwrap_or(&source).clone();
            let what = format!("a circle of files: {}; move what they share", circle.join(" → "));
            Finding { path, line: 0, what, fails: true }
        })
    });
    circles.collect()
}

/// The module of a file below `src`: `a/b.rs` and `a/b/mod.rs` are both `a::b`.
fn module(path: &Path) -> Vec<String> {
    let without_extension = path.with_extension("");
    let mut module: Vec<String> =
        without_extension.iter().map(|part| part.to_string_lossy().into_owned()).collect();
    if module.last().is_some_and(|last| ["mod", "lib", "main"].contains(&last.as_str())) {
        module.pop();
    }
    module
}

/// The module that a path stands for, as far as it leads to one: an item belongs to its module.
fn used(from: &[String], path: &str, modules: &Modules) -> Option<Vec<String>> {
    let mut words = path.split("::").peekable();
    let mut to = match words.next()? {
        "crate" => Vec::new(),
        "super" => {
            let mut to = from.to_vec();
            to.pop();
            while words.next_if_eq(&"super").is_some() {
                to.pop();
            }
            to
        }
        _ => return None,
    };
    for word in words {
        to.push(word.to_owned());
        if !modules.contains_key(&to) {
            to.pop();
            break;
        }
    }
    Some(to)
}

/// The circles: each as the way from a module back to itself, the shortest from its first.
fn circles(uses: &Uses) -> Vec<Vec<String>> {
    let mut found: Vec<Vec<String>> = Vec::new();
    for start in uses.keys() {
        if found.iter().any(|circle| circle.contains(start)) {
            continue;
        }
        let mut seen = BTreeSet::new();
        let mut ways = std::collections::VecDeque::from([vec![start.clone()]]);
        while let Some(way) = ways.pop_front() {
            let last = &way[way.len() - 1];
            for next in uses.get(last).into_iter().flatten() {
                let longer = || way.iter().chain([next]).cloned().collect();
                if next == start {
                    found.push(longer());
                    ways.clear();
                    break;
                }
                if seen.insert(next) {
                    ways.push_back(longer());
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles_of(files: &[(&str, &str)]) -> Vec<String> {
        let file = |(path, text): &(&str, &str)| SourceFile {
            path: Path::new("crates/package/src").join(path),
            text: (*text).to_owned(),
        };
        let files: Vec<SourceFile> = files.iter().map(file).collect();
        check(&files).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn modules_side_by_side_use_each_other_in_one_direction() {
        assert!(circles_of(&[("a.rs", "use crate::b::X;"), ("b.rs", "")]).is_empty());
        let circle = circles_of(&[
            ("a.rs", "use crate::b::X;"),
            ("b.rs", "fn f() { super::c::y() }"),
            ("c/mod.rs", "use crate::{d, a::Z};"),
            ("d.rs", ""),
        ]);
        assert_eq!(circle, ["a circle of files: a → b → c → a; move what they share"]);
    }

    #[test]
    fn a_module_and_those_below_it_are_one_thing() {
        let files = [("a/mod.rs", "use crate::a::b::X;"), ("a/b.rs", "use super::Y;")];
        assert!(circles_of(&files).is_empty());
        let side = [("a/b.rs", "use super::c::X;"), ("a/c.rs", "use crate::a::b::Y;")];
        let files = [("a/mod.rs", ""), side[0], side[1]];
        assert_eq!(circles_of(&files).len(), 1);
    }

    #[test]
    fn tests_may_use_what_uses_them() {
        let files =
            [("a.rs", "use crate::b::X;"), ("b.rs", "\n#[cfg(test)]\nmod t { use crate::a::Y; }")];
        assert!(circles_of(&files).is_empty());
    }
}
