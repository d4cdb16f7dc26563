//! Checks each file for a header that says what it is for, and for its size.

use crate::Finding;
use crate::layers::LINES_BEFORE_TESTS_MAX;
use crate::source::SourceFile;

/// Reports what is wrong with one file.
pub(crate) fn check(file: &SourceFile) -> Vec<Finding> {
    let mut findings = Vec::new();
    let first = file.text.lines().find(|line| !line.trim().is_empty()).unwrap_or("");
    if !first.starts_with("//!") {
        findings.push(Finding {
            path: file.path.clone(),
            line: 1,
            what: "has no `//!` header that says what it is for".to_owned(),
            fails: true,
        });
    }
    let lines = file.tests_begin() - 1;
    if lines > LINES_BEFORE_TESTS_MAX && !file.is_test() {
        findings.push(Finding {
            path: file.path.clone(),
            line: 0,
            what: format!("{lines} lines before its tests; split it if it has several purposes"),
            fails: false,
        });
    }
    findings
}
