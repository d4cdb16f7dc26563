//! `weir bench compare`: compares runs, as a table and as a page.

use std::io::{self, Write};
use std::path::Path;

use load_report::{Named, Run, compare, page};

use crate::flags::{Common, Exit, bench::CompareArgs};

use super::output::failed;

/// The largest file that is read, in bytes: a day of seconds is below it.
const FILE_MAX_BYTES: u64 = 256 << 20;

pub(crate) fn run(args: &CompareArgs, _common: Common) -> Exit {
    let mut runs = Vec::new();
    for file in &args.files {
        match read(file) {
            Ok(run) => runs.push(Named { name: name(file, &args.files), run }),
            Err(why) => return failed(&format!("{}: {why}", file.display())),
        }
    }
    // The reader may have closed the pipe; the page is written anyway.
    let _ = io::stdout().lock().write_all(table(&runs).as_bytes());
    match &args.html {
        None => Exit::Done,
        Some(file) => match std::fs::write(file, page(&runs)) {
            Ok(()) => Exit::Done,
            Err(error) => failed(&format!("cannot write {}: {error}", file.display())),
        },
    }
}

fn read(file: &Path) -> Result<Run, String> {
    let size = std::fs::metadata(file).map_err(|error| error.to_string())?.len();
    if size > FILE_MAX_BYTES {
        return Err(format!("{size} bytes are more than any run's figures"));
    }
    let text = std::fs::read(file).map_err(|error| error.to_string())?;
    let run = Run::from_json(&text).map_err(|error| error.to_string())?;
    match run.kind.as_str() {
        "upload" => {
            Err("figures of uploads are no run of requests, and are not compared".to_owned())
        }
        _ => Ok(run),
    }
}

/// A file's name without what all of them share; its whole path where that would not tell them
/// apart.
fn name(file: &Path, files: &[std::path::PathBuf]) -> String {
    let stem = |file: &Path| file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let alike = files.iter().filter(|other| stem(other) == stem(file)).count();
    match stem(file) {
        Some(stem) if alike == 1 => stem,
        _ => file.display().to_string(),
    }
}

/// A row each figure, a column each run, differences beside.
fn table(runs: &[Named]) -> String {
    let mut lines: Vec<Vec<String>> = vec![vec![String::new()]];
    for (index, named) in runs.iter().enumerate() {
        // A file's name may hold anything.
        lines[0].push(named.name.chars().filter(|c| !c.is_control()).collect());
        if index > 0 {
            lines[0].push(String::new());
        }
    }
    for row in compare::rows(runs) {
        let mut line = vec![row.label.to_owned()];
        for (index, (value, change)) in row.values.iter().zip(&row.changes).enumerate() {
            line.push(value.clone());
            if index > 0 {
                line.push(change.map(compare::change).unwrap_or_default());
            }
        }
        lines.push(line);
    }
    let columns = lines[0].len();
    let width = |n: usize| lines.iter().map(|line| line[n].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let cells = line.iter().zip(&widths).enumerate().map(|(n, (cell, &width))| match n {
            0 => format!("{cell:<width$}"),
            _ => format!("{cell:>width$}"),
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use load_report::Summary;

    use super::*;

    #[test]
    fn the_table_shows_each_run_and_its_difference_from_the_first() {
        let named = |name: &str, p99_ms| {
            let mut run = Run::default();
            run.latency.service = Summary { count: 1, p99_ms, ..Summary::default() };
            Named { name: name.to_owned(), run }
        };
        let text = table(&[named("before", 200.0), named("after\x1b", 150.0)]);
        let lines: Vec<&str> = text.lines().collect();
        let ends = |line: &str, word: &str| line.find(word).map(|at| at + word.len());
        let p99 = lines.iter().find(|line| line.starts_with("service p99 ")).unwrap();
        let words: Vec<&str> = p99.split("  ").map(str::trim).filter(|w| !w.is_empty()).collect();
        assert_eq!(words, ["service p99", "200 ms", "150 ms", "-25.0 %"], "{text}");
        assert_eq!(ends(lines[0], "before"), ends(p99, "200 ms"), "aligned: {text}");
        assert_eq!(ends(lines[0], "after"), ends(p99, "150 ms"), "aligned: {text}");
        assert!(!text.contains('\x1b'), "{text}");
    }

    #[test]
    fn files_of_the_same_name_are_told_apart_by_their_folders() {
        let files = ["a/run.json", "b/run.json", "b/other.json"].map(std::path::PathBuf::from);
        let names: Vec<String> = files.iter().map(|file| name(file, &files)).collect();
        assert_eq!(names, ["a/run.json", "b/run.json", "other"]);
    }
}
