//! Where a configuration has something.

use std::fmt;
use std::sync::Arc;

/// The file and line that something is written in, if it is known. All of them are equal: what is
/// moved within its file, or to another one, has not changed.
#[derive(Clone, Debug, Default)]
pub struct WrittenAt(Option<(Arc<str>, usize)>);

impl WrittenAt {
    /// Returns a place: a file as messages name it, and a line counted from 1.
    pub fn new(file: Arc<str>, line: usize) -> WrittenAt {
        WrittenAt(Some((file, line)))
    }

    /// Returns whether it is known.
    pub fn is_known(&self) -> bool {
        self.0.is_some()
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
            Some((file, line)) => write!(f, "{file}:{line}"),
            None => Ok(()),
        }
    }
}
