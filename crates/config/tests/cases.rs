//! Checks every file in `tests/cases`; the expected diagnostics are beside it as `.expected`.
//! `UPDATE_EXPECT=1` rewrites them: review the changes before committing.

mod files;

use std::path::{Path, PathBuf};

fn cases() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    files.sort();
    files
}

#[test]
fn each_case_has_the_expected_diagnostics() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut wrong = Vec::new();
    let files = cases();
    assert!(files.len() >= 50, "only {} cases", files.len());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap();
        let (verdict, report) = match config::check(&text, name, files::made()) {
            Ok(checked) => ("valid", checked.report),
            Err(report) => ("refused", report),
        };
        let said = format!("{}{verdict}\n", report.render(false));
        let expected = file.with_extension("expected");
        if update {
            std::fs::write(&expected, &said).unwrap();
        } else if std::fs::read_to_string(&expected).unwrap_or_default() != said {
            wrong.push(format!("--- {name}\n{said}"));
        }
    }
    assert!(wrong.is_empty(), "not as expected (UPDATE_EXPECT=1 rewrites):\n{}", wrong.join("\n"));
}
