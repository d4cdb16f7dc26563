//! Whether the configuration file has changed.
//!
//! The file's stamp is looked at now and then. That is one system call, needs no descriptor, and
//! works where notifications do not: for a link that comes to point elsewhere (as Kubernetes
//! exchanges a `ConfigMap`), on network file systems, for editors that write a new file and rename
//! it. A change counts once the stamp has stayed the same from one look to the next, so that a file
//! that is still being written is left alone.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Looks at one file.
#[derive(Debug)]
pub(crate) struct Watch {
    file: PathBuf,
    /// The stamp of what was read last.
    read: Option<Stamp>,
    /// Another one that was seen at the last look.
    seen: Option<Stamp>,
}

/// What changes when a file is written to or exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// Links are followed. `None`: there is no such file at present.
    fn of(file: &Path) -> Option<Stamp> {
        let metadata = fs::metadata(file).ok()?;
        Some(Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

impl Watch {
    /// Watches `file`, which is about to be read.
    pub(crate) fn new(file: &Path) -> Watch {
        Watch { read: Stamp::of(file), seen: None, file: file.to_path_buf() }
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// It is about to be read: what it is now is no news any more.
    pub(crate) fn about_to_read(&mut self) {
        self.read = Stamp::of(&self.file);
        self.seen = None;
    }

    /// Whether it has changed since it was read, and has been left alone since the last call.
    pub(crate) fn has_settled(&mut self) -> bool {
        let now = Stamp::of(&self.file);
        if now.is_none() || now == self.read {
            self.seen = None;
            return false;
        }
        let settled = now == self.seen;
        self.seen = now;
        settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_once_and_only_when_it_is_over() {
        let folder = std::env::temp_dir().join(format!("weir-watch-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join("weir.toml");
        fs::write(&file, "one").unwrap();
        let mut watch = Watch::new(&file);
        assert!(!watch.has_settled());

        fs::write(&file, "still being").unwrap();
        assert!(!watch.has_settled());
        fs::write(&file, "still being written").unwrap();
        assert!(!watch.has_settled(), "it has changed again");
        assert!(watch.has_settled());
        watch.about_to_read();
        assert!(!watch.has_settled() && !watch.has_settled());

        // As editors do it; for a moment there is none.
        fs::rename(&file, folder.join("backup")).unwrap();
        assert!(!watch.has_settled() && !watch.has_settled());
        fs::write(folder.join("new"), "still being written").unwrap();
        fs::rename(folder.join("new"), &file).unwrap();
        assert!(!watch.has_settled() && watch.has_settled());
        watch.about_to_read();

        // A link that comes to point elsewhere.
        let link = folder.join("link.toml");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let mut watch = Watch::new(&link);
        std::os::unix::fs::symlink(folder.join("backup"), folder.join("link.new")).unwrap();
        fs::rename(folder.join("link.new"), &link).unwrap();
        assert!(!watch.has_settled() && watch.has_settled());
        fs::remove_dir_all(&folder).unwrap();
    }
}
