//! Where a configuration has something.

use std::fmt;
use std::sync::Arc;

/// The file and line that something is written in, or what else it comes from, if it is known. All of them are
/// equal: what is moved within its file, or to another one, has not changed.
#[derive(Clone, Debug, Default)]
pub struct WrittenAt(Option<(Arc<str>, usize)>);

impl WrittenAt {
    /// Returns a place: a file as messages name it, and a line counted from 1.
    pub fn new(file: Arc<str>, line: usize) -> WrittenAt {
        WrittenAt(Some((file, line)))
    }

    /// Returns a place that is in no file: `tags of web in Consul`.
    pub fn outside_files(name: Arc<str>) -> WrittenAt {
        WrittenAt(Some((name, 0)))
    }

    /// Returns whether it is known.
    pub fn is_known(&self) -> bool {
        self.0.is_some()
    }

    /// Returns whether both were found by the same reading of the same file: each reading names its
    /// files with new texts.
    pub fn is_of_same_reading(&self, other: &WrittenAt) -> bool {
        let both = self.0.as_ref().zip(other.0.as_ref());
        both.is_some_and(|((one, _), (other, _))| Arc::ptr_eq(one, other))
    }
}

impl PartialEq for WrittenAt {
    fn eq(&self, _: &WrittenAt) -> bool {
        true
    }
}

impl Eq for WrittenAt {}

/// As compilers write it: `weir.toml:12`. Empty if it is not known.
impl fmt::Display for WrittenAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some((name, 0)) => f.write_str(name),
            Some((file, line)) => write!(f, "{file}:{line}"),
            None => Ok(()),
        }
    }
}
