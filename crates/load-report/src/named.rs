//! A run with a name, for comparisons.

use crate::run::Run;

/// A run with the name it goes by beside others.
#[derive(Clone, Debug, PartialEq)]
pub struct Named {
    /// Its name: a file's, or a time.
    pub name: String,
    /// Its figures.
    pub run: Run,
}
