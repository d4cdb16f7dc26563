//! Parses a configuration's text into a [`model::Snapshot`], or reports every mistake in it at
//! once, each with its position, what is wrong and what to write.
//!
//! The steps: `syntax` → `raw` reads each table into checked types → `files` adds the lists of networks
//! that files contain → `check` compares what tables must agree on → `files` checks the contents of the
//! other files → `build` turns names into IDs.
//! Every key is described once, in `schema`: the reader, the JSON Schema and the reference in the
//! documentation all derive from it.
//!
//! Reads no file and opens no socket: text and bytes are arguments.

mod build;
mod check;
mod defaults;
mod diagnostic;
mod diff;
mod files;
mod foreign;
mod names;
mod raw;
mod render;
mod schema;
mod sources;
mod syntax;
mod units;

use std::path::Path;

use model::Material;

pub use diagnostic::{Diagnostic, Label, Severity, Span, Subject};
pub use diff::{Changed, Changes, Diff, diff};
pub use files::SYSTEM_AUTHORITIES;
pub use render::render;
pub use schema::{reference, schema};
pub use sources::{Lines, Place, Sources};

use diagnostic::Problems;

/// What a configuration needs besides its text, provided by the caller.
pub trait Surroundings {
    /// Returns the file that the configuration calls `path`. A relative path is relative to the
    /// configuration file's directory.
    ///
    /// # Errors
    /// The file cannot be read.
    fn file(&self, path: &Path) -> Result<Found, Unreadable>;

    /// As [`Surroundings::file`], for a file that contains a secret of at most `bytes_max` bytes:
    /// refused if other users may read or change it.
    ///
    /// # Errors
    /// The file cannot be read, or other users may read or change it.
    fn secret(&self, path: &Path, bytes_max: u64) -> Result<Found, Unreadable> {
        let _ = bytes_max;
        self.file(path)
    }

    /// Returns seconds since 1970-01-01 UTC, for checking certificates. `None`: unknown, and their
    /// validity is not checked.
    fn now_s(&self) -> Option<i64>;
}

/// A file that a configuration names.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its path and contents.
    pub material: Material,
    /// Only root may read it.
    pub only_root: bool,
    /// Other users than its owner and group may read or change it.
    pub open_to_others: bool,
}

/// Why a file cannot be read.
#[derive(Clone, Debug)]
pub struct Unreadable {
    /// The system's error, in words.
    pub why: String,
    /// The remedy.
    pub help: Option<String>,
    /// It exists, but this user may not read it.
    pub is_denied: bool,
}

/// No files, and no clock.
impl Surroundings for () {
    fn file(&self, _path: &Path) -> Result<Found, Unreadable> {
        let why = "files are not read here".to_owned();
        Err(Unreadable { why, help: None, is_denied: false })
    }

    fn now_s(&self) -> Option<i64> {
        None
    }
}

/// A valid configuration.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The configuration.
    pub snapshot: model::Snapshot,
    /// Warnings.
    pub report: Report,
}

/// What was found in a configuration's files, in order of their text.
#[derive(Clone, Debug)]
pub struct Report {
    /// Mistakes and warnings.
    pub found: Vec<Diagnostic>,
    /// The texts that they are in.
    pub sources: Sources,
}

impl Report {
    /// Returns everything rendered, as [`render`] does.
    pub fn render(&self, colour: bool) -> String {
        render(&self.found, &self.sources, colour)
    }

    /// Returns whether one of them is a mistake.
    fn any_error(&self) -> bool {
        self.found.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }
}

/// Checks a configuration's text alone, without the files that it names and without a clock.
/// Returns its warnings.
///
/// # Errors
/// Every mistake and warning of the text; at least one is an error.
pub fn check_text(text: &str, name: &str) -> Result<Report, Report> {
    let mut report = match check(text, name, &()) {
        Ok(checked) => return Ok(checked.report),
        Err(report) => report,
    };
    report.found.retain(|diagnostic| diagnostic.subject == Subject::File);
    if report.any_error() { Err(report) } else { Ok(report) }
}

/// Reads and checks a configuration; `name` is the file's name, for messages.
///
/// # Errors
/// Every mistake (and warning) at once; at least one is an error.
pub fn check(text: &str, name: &str, surroundings: &dyn Surroundings) -> Result<Checked, Report> {
    let sources = Sources::of(name, text);
    let problems = Problems::default();
    let snapshot = snapshot(text, &problems, surroundings);
    let report = Report { found: problems.into_sorted(), sources };
    match snapshot {
        Some(snapshot) if !report.any_error() => Ok(Checked { snapshot, report }),
        _ => Err(report),
    }
}

/// Returns the configuration, unless it has mistakes.
fn snapshot(
    text: &str,
    problems: &Problems,
    surroundings: &dyn Surroundings,
) -> Option<model::Snapshot> {
    let syntax = syntax::parse(text, 0);
    if !syntax.mistakes.is_empty() {
        if let Some(foreign) = foreign::recognise(text) {
            problems.report(foreign);
            return None;
        }
        problems.broken.set(true);
    }
    let mut document = raw::document(&syntax.tree, problems);
    files::add_client_lists(&mut document, surroundings, problems);
    let names = names::Names::of(&document);
    check::document(&document, &names, problems);
    let files = files::read(&document, surroundings, problems);
    if problems.broken.get() {
        problems.keep_errors(|at| syntax.is_readable(at));
        syntax.mistakes.into_iter().for_each(|mistake| problems.report(mistake));
        return None;
    }
    if problems.any_error() {
        return None;
    }
    let snapshot = build::snapshot(document, &names, files);
    if snapshot.is_none() {
        problems.report(Diagnostic::error(
            "this configuration was found valid but could not be built: a bug in Weir",
            0..0,
            "please report it",
        ));
    }
    snapshot
}
