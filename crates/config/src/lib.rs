//! Parses a configuration's text into a [`model::Snapshot`], or reports every mistake in it at
//! once, each with its position, what is wrong and what to write.
//!
//! The steps: `syntax` parses the text → `substitute` puts in environment variables and secrets →
//! `include` adds further files → `raw` reads each table into checked types → `files` adds the
//! lists of networks that files contain → `check` compares what tables must agree on → `files`
//! checks the contents of the other files → `build` turns names into IDs.
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
mod include;
mod listed;
mod names;
pub mod policy;
mod published;
mod raw;
mod render;
mod schema;
mod sources;
mod substitute;
mod syntax;
mod units;

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use identity::CostBounds;
use model::Material;

pub use diagnostic::{Diagnostic, Label, Severity, Span, Subject, nearest, quote};
pub use diff::{Changed, Changes, Diff, diff};
pub use files::SYSTEM_AUTHORITIES;
pub use include::matches;
pub use listed::{
    ServerTexts, listed_host, listed_path, listed_path_exact, listed_server, written_path,
};
pub use published::{Addition, addition_of, additions};
pub use render::render;
pub use schema::{reference, schema};
pub use sources::{Lines, Place, Sources};

use diagnostic::Problems;
use substitute::Substitution;

/// What a configuration needs besides its text, provided by the caller.
pub trait Surroundings {
    /// Returns a file that the configuration names. A relative path is relative to the configuration file's
    /// directory.
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

    /// Returns the names in `folder` that [`matches`] finds for `pattern`, in any order.
    ///
    /// # Errors
    /// The folder cannot be read, or does not exist.
    fn names(&self, folder: &Path, pattern: &str) -> Result<Vec<OsString>, Unreadable> {
        let _ = (folder, pattern);
        Err(Unreadable::not_here())
    }

    /// Returns the absolute path of a file or folder that the configuration names. Nothing is read.
    fn absolute(&self, path: &Path) -> PathBuf {
        path.to_path_buf()
    }

    /// Returns an included file.
    ///
    /// # Errors
    /// The file cannot be read, or is too large.
    fn text(&self, path: &Path) -> Result<Included, Unreadable> {
        let _ = path;
        Err(Unreadable::not_here())
    }

    /// Returns the value of an environment variable.
    ///
    /// # Errors
    /// Why there is none, in words.
    fn variable(&self, name: &str) -> Result<String, String> {
        let _ = name;
        Err("variables are not read here".to_owned())
    }

    /// Returns whether there may be a fleet that the text does not tell of.
    fn may_have_fleet(&self) -> bool {
        false
    }

    /// Returns what the verification of a user's password may cost.
    fn password_bounds(&self) -> &'static CostBounds {
        &CostBounds::OPERATOR
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

/// A file that a configuration includes.
#[derive(Clone, Debug)]
pub struct Included {
    /// Its path and contents.
    pub material: Material,
    /// It is the configuration file itself.
    pub is_main: bool,
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
    /// It does not exist.
    pub is_missing: bool,
}

impl Unreadable {
    fn not_here() -> Unreadable {
        let why = "files are not read here".to_owned();
        Unreadable { why, help: None, is_denied: false, is_missing: false }
    }
}

/// No files, and no clock.
impl Surroundings for () {
    fn file(&self, _path: &Path) -> Result<Found, Unreadable> {
        Err(Unreadable::not_here())
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

    /// Returns the names of the additions that have mistakes, each with its first one.
    pub fn additions_at_fault(&self) -> Vec<(&str, &str)> {
        let errors = self.found.iter().filter(|one| one.severity == Severity::Error);
        let (mut all, mut names) = (Vec::new(), HashSet::new());
        for error in errors {
            let labels = std::iter::once(&error.primary).chain(&error.others);
            let mut sources = labels.map(|label| self.sources.at(label.span.start));
            if let Some(source) = sources.find(|source| !source.is_file)
                && names.insert(&source.name)
            {
                all.push((&*source.name, &*error.title));
            }
        }
        all
    }

    /// Returns whether one of them is a mistake.
    fn any_error(&self) -> bool {
        self.found.iter().any(|diagnostic| diagnostic.severity == Severity::Error)
    }
}

/// Only the files that a configuration includes.
struct Texts<'s>(&'s dyn Surroundings);

impl Surroundings for Texts<'_> {
    fn file(&self, path: &Path) -> Result<Found, Unreadable> {
        ().file(path)
    }

    fn names(&self, folder: &Path, pattern: &str) -> Result<Vec<OsString>, Unreadable> {
        self.0.names(folder, pattern)
    }

    fn text(&self, path: &Path) -> Result<Included, Unreadable> {
        self.0.text(path)
    }

    fn now_s(&self) -> Option<i64> {
        None
    }
}

/// Checks a configuration's text and the files that it includes, without others that it names and without
/// a clock. Returns its warnings.
///
/// # Errors
/// Every mistake and warning of the texts; at least one is an error.
pub fn check_text(
    text: &str,
    name: &str,
    surroundings: &dyn Surroundings,
) -> Result<Report, Report> {
    let mut report = match check(text, name, &Texts(surroundings)) {
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
    check_with(text, name, surroundings, &[])
}

/// As [`check`], with tables that are in no file, as if the file included them.
///
/// # Errors
/// As [`check`].
pub fn check_with(
    text: &str,
    name: &str,
    surroundings: &dyn Surroundings,
    additions: &[Addition],
) -> Result<Checked, Report> {
    let mut sources = Sources::of(name, text);
    let problems = Problems::default();
    let snapshot = snapshot(&mut sources, &problems, surroundings, additions);
    let report = Report { found: problems.into_sorted(), sources };
    match snapshot {
        Some(snapshot) if !report.any_error() => Ok(Checked { snapshot, report }),
        _ => Err(report),
    }
}

/// Returns the configuration, unless it has mistakes. Adds the files that it includes to `sources`.
fn snapshot(
    sources: &mut Sources,
    problems: &Problems,
    surroundings: &dyn Surroundings,
    additions: &[Addition],
) -> Option<model::Snapshot> {
    let mut substitution = Substitution::new(surroundings, problems);
    let main = Arc::clone(&sources.all()[0].text);
    let mut main = syntax::parse(&main, 0);
    substitution.in_table(&mut main.tree, &schema::TOP, sources);
    let patterns = raw::includes(&main.tree, problems);
    let all_read = include::read(&patterns, sources, surroundings, problems);
    for Addition { name, text } in additions {
        sources.add_tables(name.clone(), Arc::clone(text));
    }
    let included: Vec<_> = sources.all()[1..].to_vec();
    let included = included.iter().map(|file| {
        let mut syntax = syntax::parse(&file.text, file.start);
        // What others publish must not name variables and secrets.
        if file.is_file {
            substitution.in_table(&mut syntax.tree, &schema::INCLUDED, sources);
        }
        syntax
    });
    let syntaxes: Vec<_> = std::iter::once(main).chain(included).collect();
    // What seems missing may be in a file or on a line that could not be read.
    let broken = !all_read || syntaxes.iter().any(|syntax| !syntax.mistakes.is_empty());
    problems.broken.set(broken);

    let trees: Vec<_> = syntaxes
        .iter()
        .zip(sources.all())
        .map(|(syntax, file)| (&syntax.tree, file.start))
        .collect();
    let mut document = raw::document(&trees, problems);
    document.fleet_meant |= surroundings.may_have_fleet();
    files::add_client_lists(&mut document, sources, surroundings, problems);
    let names = names::Names::of(&document);
    check::document(&document, &names, problems);
    let files = files::read(&document, &names, sources, surroundings, problems);
    files::warn_of_only_root(&document, &substitution.only_root, problems);
    if broken {
        problems.keep_errors(|at| syntaxes[sources.index_at(at)].is_readable(at));
        syntaxes
            .into_iter()
            .flat_map(|syntax| syntax.mistakes)
            .for_each(|mistake| problems.report_as_is(mistake));
        return None;
    }
    if !substitution.complete {
        // A warning may be about what another value would make right.
        problems.keep_errors(|_| true);
        return None;
    }
    if problems.any_error() {
        return None;
    }
    let snapshot = build::snapshot(document, &names, files, sources);
    if snapshot.is_none() {
        problems.report(Diagnostic::error(
            "this configuration was found valid but could not be built: a bug in Weir",
            0..0,
            "please report it",
        ));
    }
    snapshot
}
