//! Loads a configuration file and the files that it includes and names, and checks them. Errors are rendered for
//! display.

mod folder;
pub(crate) mod seen;

use std::fmt;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::Surroundings;
use model::Snapshot;

pub use folder::{Folder, NAMED_FILE_MAX_BYTES};
pub use seen::{Seen, Stamp};

/// The largest configuration file that is read, with all that it includes: some 100,000 routes.
pub const FILE_MAX_BYTES: u64 = 16 * 1024 * 1024;

/// A valid configuration.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The parsed configuration.
    pub snapshot: Arc<Snapshot>,
    /// Warnings, rendered for people; empty if there are none.
    pub warnings: String,
}

/// Why a configuration could not be loaded. Displays as one line for a file that cannot be read,
/// otherwise as every mistake in it with its position.
#[derive(Debug)]
pub enum LoadError {
    /// The file cannot be read.
    Unreadable {
        /// Its path.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The file was read, but is not a valid configuration.
    Invalid {
        /// How many mistakes.
        mistakes: usize,
        /// All of them, rendered for people.
        rendered: String,
    },
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Unreadable { path, source } => {
                let path = path.display();
                let remedy = match source.kind() {
                    io::ErrorKind::NotFound => "is the path right?",
                    io::ErrorKind::PermissionDenied => "let this user read it",
                    io::ErrorKind::IsADirectory => "name a file in it",
                    io::ErrorKind::InvalidData => "it must be UTF-8",
                    _ => return write!(f, "cannot read {path}: {source}"),
                };
                write!(f, "cannot read {path}: {source}; {remedy}")
            }
            LoadError::Invalid { rendered, .. } => f.write_str(rendered.trim_end()),
        }
    }
}

impl std::error::Error for LoadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LoadError::Unreadable { source, .. } => Some(source),
            LoadError::Invalid { .. } => None,
        }
    }
}

/// The result of loading a configuration file.
#[derive(Debug)]
pub struct Load {
    /// The configuration, or the error.
    pub outcome: Result<Loaded, LoadError>,
    /// The file itself, then every file that it includes or names, as they were just before they were read. A
    /// change of any of them may change the outcome.
    pub seen: Vec<Seen>,
    /// What was read, for a configuration with further tables; `None` if the file could not be read.
    pub input: Option<Input>,
}

/// The files of a configuration as they were read: it can be checked again without reading them again.
pub struct Input {
    text: String,
    name: String,
    folder: Folder,
}

impl Input {
    /// Checks the configuration with tables that are in no file. There are no warnings: those about the files are
    /// known, and the tables are not the operator's.
    ///
    /// # Errors
    /// The additions that have mistakes, each with the first one in one line; none if the mistakes are in no addition.
    pub fn with(
        &self,
        additions: &[config::Addition],
    ) -> Result<Arc<Snapshot>, Vec<(String, String)>> {
        let checked = config::check_with(&self.text, &self.name, &self.folder, additions);
        checked.map(|checked| Arc::new(checked.snapshot)).map_err(|report| {
            let at_fault = report.additions_at_fault().into_iter();
            at_fault.map(|(name, why)| (name.to_owned(), why.to_owned())).collect()
        })
    }
}

/// Shows no contents, which may be secret.
impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Loads the configuration file at `path`. `colour`: whether what is rendered may use terminal
/// colours.
pub fn load(path: &Path, colour: bool) -> Load {
    let mut seen = vec![Seen::now(path)];
    let text = match read(path) {
        Ok(text) => text,
        Err(source) => {
            let path = path.to_path_buf();
            return Load {
                outcome: Err(LoadError::Unreadable { path, source }),
                seen,
                input: None,
            };
        }
    };
    let (folder, name) = (Folder::of(path), path.display().to_string());
    let outcome = check(&text, &name, &folder, colour);
    seen.extend(folder.seen());
    Load { outcome, seen, input: Some(Input { text, name, folder }) }
}

/// Checks a configuration's text; `name` is the file name shown in errors.
///
/// # Errors
/// The mistakes, rendered.
pub fn check(
    text: &str,
    name: &str,
    surroundings: &dyn Surroundings,
    colour: bool,
) -> Result<Loaded, LoadError> {
    match config::check(text, name, surroundings) {
        Ok(checked) => Ok(Loaded {
            warnings: checked.report.render(colour),
            snapshot: Arc::new(checked.snapshot),
        }),
        Err(report) => Err(invalid(&report, colour)),
    }
}

fn invalid(report: &config::Report, colour: bool) -> LoadError {
    LoadError::Invalid { mistakes: report.found.len(), rendered: report.render(colour) }
}

/// Returns the text of the configuration file at `path`: at most [`FILE_MAX_BYTES`] of it are read,
/// even from a device or a pipe, which have no size.
///
/// # Errors
/// When it cannot be read, is larger, or is not UTF-8.
pub fn read(path: &Path) -> io::Result<String> {
    let file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    if length > FILE_MAX_BYTES {
        return Err(too_large());
    }
    read_from(file, length)
}

/// As [`read`], from any reader. `length_bytes`: the expected length.
///
/// # Errors
/// As [`read`].
pub fn read_from(source: impl Read, length_bytes: u64) -> io::Result<String> {
    let capacity = usize::try_from(length_bytes.min(FILE_MAX_BYTES)).unwrap_or_default();
    let mut bytes = Vec::with_capacity(capacity);
    source.take(FILE_MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_MAX_BYTES {
        return Err(too_large());
    }
    String::from_utf8(bytes)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
}

fn too_large() -> io::Error {
    let why = format!("it has more than {} MB", FILE_MAX_BYTES >> 20);
    io::Error::new(io::ErrorKind::FileTooLarge, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unreadable_file_is_reported_in_one_line_with_a_remedy() {
        let missing =
            load(Path::new("/nonexistent/weir.toml"), false).outcome.expect_err("no such file");
        let text = missing.to_string();
        assert!(text.starts_with("cannot read /nonexistent/weir.toml: "), "{text}");
        assert!(text.ends_with("is the path right?"), "{text}");
        assert_eq!(text.lines().count(), 1);

        let directory = load(Path::new("/"), false).outcome.expect_err("a directory");
        assert!(directory.to_string().ends_with("name a file in it"), "{directory}");
    }

    #[test]
    fn what_has_no_end_and_what_is_no_text_is_refused() {
        let endless = load(Path::new("/dev/zero"), false).outcome.expect_err("no end");
        let expected = "cannot read /dev/zero: it has more than 16 MB";
        assert_eq!(endless.to_string(), expected);
        let most = vec![b'\n'; FILE_MAX_BYTES as usize];
        assert_eq!(read_from(&*most, 0).map(|text| text.len()).ok(), Some(most.len()));
        let binary = read_from(&[b'a', 0xff][..], 2).expect_err("no text");
        assert_eq!(binary.kind(), io::ErrorKind::InvalidData, "{binary}");
    }

    #[test]
    fn every_mistake_is_counted_and_shown_under_the_files_name() {
        let text = "nonsense = 1\nworkers = \"many\"\n";
        let Err(LoadError::Invalid { mistakes, rendered }) = check(text, "weir.toml", &(), false)
        else {
            panic!("two mistakes");
        };
        assert!(mistakes >= 2, "{mistakes}: {rendered}");
        assert!(rendered.contains("weir.toml:1") && rendered.contains("nonsense"), "{rendered}");
    }
}
