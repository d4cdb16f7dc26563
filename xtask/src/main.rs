//! `cargo run -p xtask -- arrows`: checks that the workspace is as ARCHITECTURE.md describes it, and that links between
//! the documents lead somewhere.
//!
//! [`layers`] has the rules as data; each module checks one kind of rule and returns [`Finding`]s. It does
//! not check style, as clippy and rustfmt do.

mod arrows;
mod circles;
mod fences;
mod layers;
mod links;
mod source;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq)]
struct Finding {
    /// The file, relative to the workspace.
    path: PathBuf,
    /// Line, from 1; 0 when it is about the whole file.
    line: usize,
    /// What is wrong and what to do.
    what: String,
    /// Whether it fails the check, or is only printed.
    fails: bool,
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let (Some("arrows"), None) = (words.next().as_deref(), words.next()) else {
        eprintln!("usage: cargo run -p xtask -- arrows");
        return ExitCode::from(2);
    };
    let root = workspace_root();
    match check(&root) {
        Ok(findings) => report(&findings),
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::from(2)
        }
    }
}

fn workspace_root() -> PathBuf {
    // xtask is directly below the workspace's root.
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Returns every finding in the workspace at `root`.
fn check(root: &Path) -> Result<Vec<Finding>, String> {
    let packages = arrows::read_packages(root)?;
    let mut findings = arrows::check(&packages);
    findings.extend(arrows::check_map(root, &packages)?);
    findings.extend(links::check(root)?);
    let files = source::rust_files(root)?;
    for file in &files {
        findings.extend(tidy::check(file));
        findings.extend(fences::check(file));
    }
    findings.extend(circles::check(&files));
    Ok(findings)
}

fn report(findings: &[Finding]) -> ExitCode {
    for finding in findings {
        let kind = if finding.fails { "error" } else { "warning" };
        let path = finding.path.display();
        match finding.line {
            0 => println!("{kind}: {path}: {}", finding.what),
            line => println!("{kind}: {path}:{line}: {}", finding.what),
        }
    }
    let errors = findings.iter().filter(|finding| finding.fails).count();
    let warnings = findings.len() - errors;
    if errors > 0 {
        println!("arrows: FAILED. {errors} errors; {warnings} warnings");
        return ExitCode::FAILURE;
    }
    println!("arrows: ok. {warnings} warnings");
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each fixture is a small workspace; `expected` lists its findings, one a line.
    #[test]
    fn fixtures_yield_what_they_expect() {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
        let mut seen = 0;
        for entry in std::fs::read_dir(&fixtures).unwrap() {
            let root = entry.unwrap().path();
            let expected = std::fs::read_to_string(root.join("expected")).unwrap();
            let mut found: Vec<String> = check(&root)
                .unwrap()
                .iter()
                .map(|f| {
                    let kind = if f.fails { "error" } else { "warning" };
                    format!("{kind} {}:{} {}", f.path.display(), f.line, f.what)
                })
                .collect();
            found.sort();
            let mut expected: Vec<&str> = expected.lines().collect();
            expected.sort_unstable();
            assert_eq!(found, expected, "in {}", root.display());
            seen += 1;
        }
        assert!(seen >= 6, "fixtures are missing");
    }
}
