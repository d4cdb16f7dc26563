//! A configuration's text becomes a [`model::Snapshot`], or every mistake in it at once, each with
//! its place, what is wrong and what to write.
//!
//! The walk: `syntax` → `raw` reads each table into checked types → `check` compares what
//! tables must agree on → `build` turns names into ids. Every key is described once, in `schema`:
//! the reader, the JSON Schema and the reference in the documentation all come from there.
//!
//! Reads no file and opens no socket: text and bytes are handed in.

mod build;
mod check;
mod defaults;
mod diagnostic;
mod diff;
mod raw;
mod render;
mod schema;
mod syntax;

use std::path::Path;

pub use diagnostic::{Diagnostic, Label, Severity, Span};
pub use diff::{Changed, Changes, Diff, diff};
pub use raw::units::{show_duration, show_size};
pub use render::render;
pub use schema::{reference, schema};

use diagnostic::Problems;

/// Bytes of the files that a configuration names, handed in by a shell. No key names one yet.
pub trait Files {
    /// The bytes of the file at `path`, if it was handed in.
    fn bytes(&self, path: &Path) -> Option<&[u8]>;
}

/// No files.
impl Files for () {
    fn bytes(&self, _path: &Path) -> Option<&[u8]> {
        None
    }
}

/// A valid configuration.
#[derive(Clone, Debug)]
pub struct Checked {
    /// What it says.
    pub snapshot: model::Snapshot,
    /// What it says but probably does not mean, in order of the text.
    pub warnings: Vec<Diagnostic>,
}

/// Reads and checks a configuration; `name` is the file's, for messages that need it.
///
/// # Errors
/// Every mistake (and warning) at once, in order of the text; at least one is an error.
pub fn check(text: &str, _name: &str, _files: &dyn Files) -> Result<Checked, Vec<Diagnostic>> {
    let syntax = syntax::parse(text);
    let problems = Problems { broken: !syntax.mistakes.is_empty(), ..Problems::default() };
    let document = raw::document(syntax.tree.get_ref(), &problems);
    let names = check::Names::of(&document);
    check::document(&document, &names, &problems);
    if problems.broken {
        return Err(syntax.with(text, problems.into_sorted()));
    }
    if problems.any_error() {
        return Err(problems.into_sorted());
    }
    if let Some(snapshot) = build::snapshot(document, &names) {
        return Ok(Checked { snapshot, warnings: problems.into_sorted() });
    }
    problems.report(Diagnostic::error(
        "this configuration was found valid but could not be built: a bug in Weir",
        0..0,
        "please report it",
    ));
    Err(problems.into_sorted())
}
