//! The demo's temporary directory, removed when the demo ends.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// Removed with all that is in it when this is dropped.
#[derive(Debug)]
pub(super) struct Directory(PathBuf);

impl Directory {
    /// Makes one among the system's temporary files, for this user only. It must not exist yet, so
    /// that no one else can have prepared it.
    pub(super) fn create() -> io::Result<Directory> {
        let path = std::env::temp_dir().join(format!("weir-demo-{}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Directory(path))
    }

    /// Writes a file into it, and yields its path.
    pub(super) fn write(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.0.join(name);
        let mut file = OpenOptions::new().write(true).create_new(true).open(&path)?;
        file.write_all(text.as_bytes())?;
        Ok(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, directory = %self.0.display(), "could not be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left() {
        let directory = Directory::create().unwrap();
        let file = directory.write("weir.toml", "zone = \"a\"\n").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "zone = \"a\"\n");
        assert!(directory.write("weir.toml", "").is_err());
        drop(directory);
        assert!(!file.parent().unwrap().exists());
    }
}
