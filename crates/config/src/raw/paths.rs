//! Parses paths of files and directories.

use std::path::{Path, PathBuf};

use crate::diagnostic::Wrong;

/// Parses a file path, absolute or relative to the configuration's directory.
pub(super) fn file_path(text: &str) -> Result<PathBuf, Wrong> {
    if text.contains("-----BEGIN") {
        return Err(Wrong::new("this is what stands in the file").help("write the file's path"));
    }
    if text.is_empty() || text.contains('\0') || text.ends_with('/') {
        return Err(Wrong::new("not the path of a file"));
    }
    Ok(PathBuf::from(text))
}

/// Parses an absolute path.
pub(super) fn absolute(text: &str) -> Result<PathBuf, Wrong> {
    if text.contains('\0') || text.ends_with('/') || text.is_empty() {
        return Err(Wrong::new("not the path of a file"));
    }
    if Path::new(text).is_absolute() {
        return Ok(PathBuf::from(text));
    }
    Err(Wrong::new("where it would be looked for depends on where Weir is started")
        .help("write the whole path, from the first slash on"))
}
