//! What a configuration was read from, in a form in which a later state can be compared with it: files by
//! their metadata, folders by the names in them.

use std::collections::hash_map::DefaultHasher;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::hash::{Hash as _, Hasher as _};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Maximum number of entries of a folder with included files or certificates. Bounds the time of a look.
const ENTRIES_MAX: usize = 10_000;

/// A file or folder, and its stamp just before it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its path.
    path: PathBuf,
    kind: Kind,
    /// `None`: it did not exist, or could not be examined.
    stamp: Option<Stamp>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// A file that the configuration needs.
    File,
    /// A file that the configuration includes because its name matches a pattern.
    Matched,
    /// The names in a folder that match a pattern.
    Names(Box<str>),
}

/// A value that changes when a file is written or replaced, or a name appears or disappears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp(StampKind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StampKind {
    File {
        device: u64,
        inode: u64,
        length: u64,
        /// Seconds and nanoseconds.
        modified: (i64, i64),
        changed: (i64, i64),
    },
    /// A hash of the names.
    Names(u64),
}

impl Seen {
    /// Returns the current state of `file`.
    pub fn now(file: &Path) -> Seen {
        Seen { path: file.to_path_buf(), kind: Kind::File, stamp: of_file(file) }
    }

    /// Returns the current state of a file that is included because its name matches a pattern.
    pub(crate) fn of_matched(file: &Path) -> Seen {
        Seen { kind: Kind::Matched, ..Seen::now(file) }
    }

    /// Returns whether it is a folder and a pattern that means `file`.
    pub(crate) fn lists(&self, file: &Path) -> bool {
        match (&self.kind, file.file_name()) {
            (Kind::Names(pattern), Some(name)) => {
                file.parent() == Some(&self.path) && config::matches(pattern, name)
            }
            _ => false,
        }
    }

    /// Returns the state of `folder` in which it has the `names` that match `pattern`.
    pub(crate) fn of_names(folder: &Path, pattern: &str, names: Option<&[OsString]>) -> Seen {
        let stamp = names.map(of_names);
        Seen { path: folder.to_path_buf(), kind: Kind::Names(pattern.into()), stamp }
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether it did not exist.
    pub fn is_missing(&self) -> bool {
        self.stamp.is_none()
    }

    /// Returns whether its stamp was this one.
    pub fn had(&self, stamp: Option<Stamp>) -> bool {
        self.stamp == stamp
    }

    /// Returns the stamp that it has now.
    pub fn look(&self) -> Option<Stamp> {
        match &self.kind {
            Kind::File | Kind::Matched => of_file(&self.path),
            Kind::Names(pattern) => names(&self.path, pattern).ok().map(|names| of_names(&names)),
        }
    }

    /// Returns whether it existed, and probably comes back if it does not exist now.
    pub fn must_exist(&self) -> bool {
        self.stamp.is_some() && self.kind == Kind::File
    }
}

/// Reads the stamp of a file, following links. `None`: there is no such file at present.
fn of_file(file: &Path) -> Option<Stamp> {
    let metadata: Metadata = fs::metadata(file).ok()?;
    Some(Stamp(StampKind::File {
        device: metadata.dev(),
        inode: metadata.ino(),
        length: metadata.len(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    }))
}

/// Returns the stamp of names in order.
fn of_names(names: &[OsString]) -> Stamp {
    let mut hasher = DefaultHasher::new();
    names.hash(&mut hasher);
    Stamp(StampKind::Names(hasher.finish()))
}

/// Returns the names in `folder` that `pattern` means, in order; none if there is no such folder.
pub(crate) fn names(folder: &Path, pattern: &str) -> io::Result<Vec<OsString>> {
    let mut names = Vec::new();
    // An empty path is the current folder.
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(names),
        entries => entries?,
    };
    for (count, entry) in entries.enumerate() {
        if count == ENTRIES_MAX {
            let why = format!("it has more than {ENTRIES_MAX} entries");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let name = entry?.file_name();
        if config::matches(pattern, &name) {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_match_change_the_stamp_of_a_folder() {
        let folder = std::env::temp_dir().join(format!("weir-names-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let seen = |expected: &[&str]| {
            let names = names(&folder, "*.toml").unwrap();
            assert_eq!(names, expected);
            Seen::of_names(&folder, "*.toml", Some(&names))
        };
        let missing = seen(&[]);
        fs::create_dir_all(&folder).unwrap();
        assert!(missing.had(missing.look()), "an empty folder is as good as none");
        fs::write(folder.join("b.toml"), "").unwrap();
        assert!(!missing.had(missing.look()));
        let one = seen(&["b.toml"]);
        for name in [".a.toml.swp", ".a.toml", "a.toml~", "a.txt"] {
            fs::write(folder.join(name), "").unwrap();
        }
        assert!(one.had(one.look()));
        fs::write(folder.join("a.toml"), "").unwrap();
        assert!(!one.had(one.look()));
        assert!(!seen(&["a.toml", "b.toml"]).must_exist());
        for number in 0..ENTRIES_MAX {
            fs::write(folder.join(number.to_string()), "").unwrap();
        }
        let error = names(&folder, "*.toml").unwrap_err();
        assert_eq!(error.to_string(), "it has more than 10000 entries");
        fs::remove_dir_all(&folder).unwrap();
    }
}
