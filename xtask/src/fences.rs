//! Checks that pure packages do no I/O and that `unsafe` occurs only in `os`.

use crate::Finding;
use crate::layers::{FENCES, UNSAFE_PACKAGE, layer};
use crate::source::{NamedPath, SourceFile, named_paths};

/// Findings for what `file` names and must not.
pub(crate) fn check(file: &SourceFile) -> Vec<Finding> {
    let named = named_paths(&file.text);
    let mut findings = Vec::new();
    if file.package() != Some(UNSAFE_PACKAGE) {
        let uses = named.iter().filter(|named| named.path == "unsafe");
        findings.extend(uses.map(|named| {
            finding(
                file,
                named,
                format!("`unsafe` is allowed only in {UNSAFE_PACKAGE}; wrap it there"),
            )
        }));
    }
    let is_pure = file.package().and_then(layer).is_some_and(super::layers::Layer::is_pure);
    // A build script is no part of the program.
    if !is_pure || file.is_test() || file.is_build_script() {
        return findings;
    }
    let tests_begin = file.tests_begin();
    for named in named.iter().filter(|named| named.line < tests_begin) {
        if let Some(fence) = FENCES.iter().find(|fence| crosses(&named.path, fence.path)) {
            let what = format!("{} in a pure package; {}", named.path, fence.instead);
            findings.push(finding(file, named, what));
        }
    }
    findings
}

/// Whether `path` is `fence`, lies below it, or is what is left of it after its parent was
/// imported (`net::TcpStream`, `Instant::now`).
fn crosses(path: &str, fence: &str) -> bool {
    if is_or_below(path, fence) {
        return true;
    }
    let Some((_, tail)) = fence.split_once("::") else {
        return false;
    };
    let last = tail.rsplit("::").next().unwrap_or(tail);
    match tail.split_once("::") {
        // `net::TcpStream` or `TcpStream::connect`; a bare name might be a type of our own.
        Some(_) => is_or_below(path, tail) || path.starts_with(&format!("{last}::")),
        // `fs::read`; the bare word might be anything.
        None => path.starts_with(&format!("{tail}::")),
    }
}

fn is_or_below(path: &str, fence: &str) -> bool {
    path.strip_prefix(fence).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn finding(file: &SourceFile, named: &NamedPath, what: String) -> Finding {
    Finding { path: file.path.clone(), line: named.line, what, fails: true }
}

#[cfg(test)]
mod tests {
    use super::crosses;

    #[test]
    fn a_fence_is_crossed_by_any_spelling() {
        assert!(crosses("std::time::Instant", "std::time::Instant"));
        assert!(crosses("std::time::Instant::now", "std::time::Instant"));
        assert!(crosses("time::Instant::now", "std::time::Instant"));
        assert!(crosses("Instant::now", "std::time::Instant"));
        assert!(crosses("fs::read", "std::fs"));
        assert!(crosses("tokio::net", "tokio"));
        assert!(!crosses("std::time::Duration", "std::time::Instant"));
        assert!(!crosses("std::fsx", "std::fs"));
        assert!(!crosses("env", "std::env"));
        assert!(!crosses("tokio_like::x", "tokio"));
    }
}
