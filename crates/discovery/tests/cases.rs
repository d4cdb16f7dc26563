//! Reads every file in `tests/cases`; the expected rows are beside it as `.expected`.
//! `UPDATE_EXPECT=1` rewrites them: review the changes before committing.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails its test")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use discovery::consul::{self, Reading};
use discovery::etcd::{self, Keys};
use discovery::nomad;
use discovery::prometheus::{self, Options};
use discovery::rows;
use discovery::{Answer, Row};
use model::ListedLimits;

fn cases(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(folder);
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension != "expected"))
        .collect();
    files.sort();
    files
}

fn line(row: &Row) -> String {
    let Row { server, readiness, object } = row;
    let mut line = format!("{} {} weight={}", server.target, readiness.as_str(), server.weight);
    if let Some(zone) = &server.zone {
        let _ = write!(line, " zone={zone}");
    }
    if let Some(limit) = server.in_flight_max {
        let _ = write!(line, " in_flight_max={limit}");
    }
    if server.backup {
        line.push_str(" backup");
    }
    if let Some(version) = server.version {
        let _ = write!(line, " version={version}");
    }
    format!("{line} ({object})\n")
}

fn shown(title: &str, answer: Result<Answer, String>) -> String {
    let mut text = format!("# {title}\n");
    match answer {
        Ok(answer) => {
            answer.rows.iter().for_each(|row| text.push_str(&line(row)));
            let _ = writeln!(text, "refused: {}", answer.refused_count);
            for refused in &answer.refused {
                let _ = writeln!(text, "- {}: {}", refused.object, refused.why);
            }
        }
        Err(why) => {
            let _ = writeln!(text, "error: {why}");
        }
    }
    text
}

fn compare(folder: &str, cases_min: usize, read: impl Fn(&Path, &[u8]) -> String) {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let files = cases(folder);
    assert!(files.len() >= cases_min, "only {} cases", files.len());
    let mut wrong = Vec::new();
    for file in files {
        let text = read(&file, &std::fs::read(&file).unwrap());
        let expected = file.with_extension("expected");
        if update {
            std::fs::write(&expected, &text).unwrap();
        } else if std::fs::read_to_string(&expected).unwrap_or_default() != text {
            wrong.push(format!("--- {}\n{text}", file.display()));
        }
    }
    assert!(wrong.is_empty(), "not as expected (UPDATE_EXPECT=1 rewrites):\n{}", wrong.join("\n"));
}

#[test]
fn target_lists_become_the_expected_rows() {
    compare("prometheus", 12, |file, bytes| {
        let object = format!("targets/{}", file.file_name().unwrap().to_str().unwrap());
        let read = |port| {
            let options = Options { port };
            match file.extension().unwrap().to_str() {
                Some("json") => prometheus::json(bytes, &object, &options),
                _ => prometheus::yaml(bytes, &object, &options),
            }
        };
        shown("port of the target", read(None)) + &shown("port 8080", read(Some(8080)))
    });
}

#[test]
fn answers_of_consul_become_the_expected_rows() {
    compare("consul", 10, |_, bytes| {
        shown("limits of each server", read(bytes, ListedLimits::Each))
            + &shown("limits added", read(bytes, ListedLimits::Added))
    });
}

#[test]
fn answers_of_nomad_become_the_expected_rows() {
    compare("nomad", 8, |_, bytes| {
        let read = |limits, port, tag: Option<&str>| {
            nomad::registrations(bytes, &nomad::Reading { limits, port, tag: tag.map(Into::into) })
        };
        shown("limits of each server", read(ListedLimits::Each, None, None))
            + &shown("limits added", read(ListedLimits::Added, None, None))
            + &shown("with the tag v1, port 8080", read(ListedLimits::Each, Some(8080), Some("v1")))
    });
}

#[test]
fn files_of_rows_become_the_expected_rows() {
    compare("rows", 12, |file, bytes| {
        let object = format!("servers/{}", file.file_name().unwrap().to_str().unwrap());
        shown("port of the server", rows::toml(bytes, &object, None))
            + &shown("port 8443", rows::toml(bytes, &object, Some(8443)))
    });
}

#[test]
fn keys_of_etcd_become_the_expected_rows() {
    compare("etcd", 10, |_, bytes| {
        let read = |limits, port| {
            let keys = Keys::listed(bytes, "/web/", etcd::Reading { limits, port })?;
            Ok(keys.answer())
        };
        shown("limits of each server", read(ListedLimits::Each, None))
            + &shown("limits added", read(ListedLimits::Added, None))
            + &shown("port 8443", read(ListedLimits::Each, Some(8443)))
    });
}

fn read(bytes: &[u8], limits: ListedLimits) -> Result<Answer, String> {
    consul::instances(bytes, Reading { limits, port: None })
}
