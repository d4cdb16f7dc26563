//! The files that a configuration includes: which ones a pattern means, and their texts.

use std::ffi::{OsStr, OsString};
use std::path::{Component, Path, PathBuf};

use crate::diagnostic::{At, Diagnostic, Problems, Span, Wrong, quote, shown_path};
use crate::sources::Sources;
use crate::{Surroundings, Unreadable};

/// Maximum number of included files.
const FILES_MAX: usize = 1_000;
/// Maximum number of patterns.
const PATTERNS_MAX: usize = 100;
/// Maximum length of a path, as Linux has it. Bounds the time that a pattern takes.
const PATH_MAX_BYTES: usize = 4096;
/// Maximum of all texts together.
const TEXTS_MAX_BYTES: usize = 16 * 1024 * 1024;

/// Endings of what editors and package managers leave beside a file. A `*` does not stand for them.
const BACKUP_ENDINGS: &[&str] = &[
    "~",
    "#",
    ".bak",
    ".dpkg-bak",
    ".dpkg-dist",
    ".dpkg-new",
    ".dpkg-old",
    ".dpkg-tmp",
    ".old",
    ".orig",
    ".rej",
    ".rpmnew",
    ".rpmorig",
    ".rpmsave",
    ".save",
    ".swo",
    ".swp",
    ".swx",
    ".tmp",
    ".ucf-dist",
    ".ucf-new",
    ".ucf-old",
];

/// An entry of `include`.
#[derive(Debug)]
pub(crate) struct Pattern {
    folder: PathBuf,
    name: String,
}

impl Pattern {
    pub(crate) fn parse(text: &str) -> Result<Pattern, Wrong> {
        let (folder, name) = match text.rsplit_once('/') {
            Some(("", name)) => ("/", name),
            Some((folder, name)) => (folder, name),
            None => ("", text),
        };
        let example = "such as \"conf.d/*.toml\"";
        if matches!(name, "" | "." | "..") {
            return Err(Wrong::new("names no file").help(format!("write which files, {example}")));
        }
        if text.len() > PATH_MAX_BYTES {
            return Err(Wrong::new(format!("longer than {PATH_MAX_BYTES} bytes")));
        }
        if text.contains('\0') {
            return Err(Wrong::new("a path has no NUL"));
        }
        if folder.contains('*') {
            return Err(Wrong::new("a `*` in the name of a folder")
                .help(format!("`*` may stand in the last part of the path only, {example}")));
        }
        // So that the same file has the same path.
        let folder = Path::new(folder).components().filter(|part| *part != Component::CurDir);
        Ok(Pattern { folder: folder.collect(), name: name.to_owned() })
    }

    /// Returns the folder that it is about, relative to the file that names it; empty: that file's own.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the pattern for names in the folder.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn is_one_file(&self) -> bool {
        !self.name.contains('*')
    }
}

/// Returns whether the pattern of an `include`, in which `*` stands for any text, means the file called
/// `name`. It does not mean hidden files or backups unless the pattern says so itself.
pub fn matches(pattern: &str, name: &OsStr) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_encoded_bytes());
    // Only a pattern that begins with the same mark means such a file.
    let is_hidden_by = |mark: u8| name.first() == Some(&mark) && pattern.first() != Some(&mark);
    let is_backup =
        |ending: &&str| name.ends_with(ending.as_bytes()) && !pattern.ends_with(ending.as_bytes());
    if is_hidden_by(b'.') || is_hidden_by(b'#') || BACKUP_ENDINGS.iter().any(is_backup) {
        return false;
    }
    let mut parts = pattern.split(|byte| *byte == b'*');
    // There always is a first part.
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        // The earliest place leaves the most for the other parts.
        let place = (0..=rest.len()).find(|&at| rest[at..].starts_with(part));
        let Some(place) = place else { return false };
        rest = &rest[place + part.len()..];
    }
    rest.ends_with(last)
}

/// Adds the files that `patterns` mean to `sources`, in order of the patterns, and then of the names. Returns
/// whether all of them could be read.
pub(crate) fn read(
    patterns: &[At<Pattern>],
    sources: &mut Sources,
    surroundings: &dyn Surroundings,
    problems: &Problems,
) -> bool {
    let mut paths: Vec<PathBuf> = Vec::new();
    let mut complete = true;
    if let Some(first_refused) = patterns.get(PATTERNS_MAX) {
        let title = format!("more than {PATTERNS_MAX} entries of `include`");
        let help = "use a pattern such as \"conf.d/*.toml\"";
        let diagnostic = Diagnostic::error(title, first_refused.span.clone(), "these are too many");
        problems.report(diagnostic.help(help));
        return false;
    }
    for At { value: pattern, span } in patterns {
        let names = match names(pattern, surroundings) {
            Ok(names) => names,
            Err(error) => {
                report(
                    format!("cannot read the folder {}", shown_folder(&pattern.folder)),
                    span,
                    error,
                    problems,
                );
                complete = false;
                continue;
            }
        };
        for name in names {
            let path = pattern.folder.join(name);
            // Two patterns may mean the same file.
            if paths.contains(&path) {
                continue;
            }
            if paths.len() == FILES_MAX {
                let title = format!("more than {FILES_MAX} included files");
                let label = "these are too many";
                problems.report(
                    Diagnostic::error(title, span.clone(), label).help("join some of the files"),
                );
                return false;
            }
            complete &= add(&path, span, sources, surroundings, problems);
            if sources.len_bytes() > TEXTS_MAX_BYTES {
                let title = format!("the configuration has more than {} MB", TEXTS_MAX_BYTES >> 20);
                let label = format!("with {}", shown_path(&path));
                problems.report(Diagnostic::error(title, span.clone(), label));
                return false;
            }
            paths.push(path);
        }
    }
    complete
}

/// Returns the names of the files that a pattern means, in order.
fn names(pattern: &Pattern, surroundings: &dyn Surroundings) -> Result<Vec<OsString>, Unreadable> {
    if pattern.is_one_file() {
        return Ok(vec![pattern.name.clone().into()]);
    }
    let mut names = match surroundings.names(&pattern.folder, &pattern.name) {
        // A folder that does not exist is as good as an empty one.
        Err(Unreadable { is_missing: true, .. }) => Vec::new(),
        names => names?,
    };
    names.sort_unstable();
    Ok(names)
}

fn shown_folder(folder: &Path) -> String {
    if folder.as_os_str().is_empty() {
        "of the configuration".to_owned()
    } else {
        shown_path(folder)
    }
}

/// Adds one file; reports if it cannot be read.
fn add(
    path: &Path,
    span: &Span,
    sources: &mut Sources,
    surroundings: &dyn Surroundings,
    problems: &Problems,
) -> bool {
    let title = || format!("cannot read {}", shown_path(path));
    let included = match surroundings.text(path) {
        Ok(included) => included,
        Err(error) => {
            report(title(), span, error, problems);
            return false;
        }
    };
    if included.is_main {
        problems.report(
            Diagnostic::error(
                "the configuration file includes itself",
                span.clone(),
                format!("{} is this file", shown_path(path)),
            )
            .help("put the included files into a folder of their own, such as conf.d"),
        );
        return false;
    }
    let text = match String::from_utf8(included.material.bytes.to_vec()) {
        Ok(text) => text,
        Err(error) => {
            let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = valid.split(|byte| *byte == b'\n').count();
            let label = format!("line {line} is not UTF-8");
            problems.report(Diagnostic::error(title(), span.clone(), label));
            return false;
        }
    };
    let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
    sources.add(shown_path(&included.material.path), text.into(), folder);
    true
}

fn report(title: String, span: &Span, error: Unreadable, problems: &Problems) {
    let Unreadable { why, help, .. } = error;
    let mut diagnostic = Diagnostic::error(title, span.clone(), why);
    diagnostic.help.extend(help);
    problems.report(diagnostic);
}

/// Returns the mistake of a key that only the configuration file itself may have.
pub(crate) fn main_only(key: &str, span: Span) -> Diagnostic {
    let title = format!("{} in an included file", quote(key));
    let label = "only the configuration file itself may have it";
    let help = match key {
        "include" => "included files do not include others: name them in the configuration file",
        _ => {
            "included files have [[listener]], [[route]], [service.NAME] and [authentication.NAME]"
        }
    };
    Diagnostic::error(title, span, label).help(help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_relative_unless_it_begins_with_a_slash() {
        for (text, folder) in [
            ("a.toml", ""),
            ("./a.toml", ""),
            (".//etc/x.toml", "etc"),
            ("./a/./b//x.toml", "a/b"),
            ("../x.toml", ".."),
            ("/x.toml", "/"),
            ("//etc/x.toml", "/etc"),
        ] {
            let pattern = Pattern::parse(text).unwrap();
            assert_eq!(pattern.folder.to_str(), Some(folder), "{text}");
        }
    }

    #[test]
    fn a_star_stands_for_any_text_but_not_for_hidden_files_and_backups() {
        for (pattern, yes, no) in [
            (
                "*.toml",
                &["a.toml", "a.b.toml", "é.toml"][..],
                &["a.tom", "a.toml~", ".a.toml", "#a.toml#"][..],
            ),
            (
                "*",
                &["a", "a.toml", "a.toml.x"],
                &[".a", "a~", "a.swp", "a.toml.dpkg-old", "#a#", "#a"],
            ),
            (".*", &[".a", "."], &["a", ".a.swp", ".a~"]),
            ("*.bak", &["a.bak"], &["a", ".bak"]),
            ("a*b*c", &["abc", "aXbYc", "abbcc"], &["ab", "ac", "abcd", "acb"]),
            ("a*a", &["aa", "aba"], &["a"]),
            ("**", &["x"], &[".x"]),
            ("10-*.toml", &["10-.toml", "10-a.toml"], &["11-a.toml"]),
        ] {
            for name in yes {
                assert!(matches(pattern, OsStr::new(name)), "{pattern} {name}");
            }
            for name in no {
                assert!(!matches(pattern, OsStr::new(name)), "{pattern} {name}");
            }
        }
    }
}
