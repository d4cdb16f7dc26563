//! Detects changes of the configuration file, of the files that it includes or names, and of which files
//! it includes.
//!
//! It polls the files' stamps. Each poll is one system call per file and a few per folder, and works
//! where inotify does not: for a symbolic link that is replaced (as Kubernetes does for a
//! `ConfigMap`), on network file systems, for editors that write a new file and rename it. A change
//! counts once all stamps are equal in two consecutive polls, so that a reload does not read files
//! that are still being written, such as a certificate whose key is renewed with it.

use std::path::{Path, PathBuf};

use control::load::{Seen, Stamp};

/// For how many polls a file that was there is waited for. Editors take milliseconds to replace one; a
/// file that is gone for longer was removed, perhaps together with what named it.
const POLLS_WITHOUT_MAX: u32 = 4;

/// Polls the configuration file and what else it was read from.
#[derive(Debug)]
pub(crate) struct Watch {
    file: PathBuf,
    /// Their stamps when they were last read.
    read: Vec<Seen>,
    /// Different stamps seen by the last poll, in the same order.
    changed: Option<Vec<Option<Stamp>>>,
    /// The polls, up to now, in which a file was missing that was there.
    polls_without: u32,
}

impl Watch {
    /// Returns a watch of `file`, which is about to be read.
    pub(crate) fn new(file: &Path) -> Watch {
        let read = vec![Seen::now(file)];
        Watch { read, changed: None, polls_without: 0, file: file.to_path_buf() }
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// Records that exactly these files were read; from now on only they are watched.
    pub(crate) fn has_read(&mut self, seen: Vec<Seen>) {
        self.read = seen;
        self.changed = None;
        self.polls_without = 0;
    }

    /// Returns whether a file has changed since it was read and none has changed since the last call.
    pub(crate) fn has_settled(&mut self) -> bool {
        let now: Vec<_> = self.read.iter().map(Seen::look).collect();
        let pairs = || self.read.iter().zip(&now);
        // A missing file is probably about to be replaced.
        let is_gone = pairs().any(|(read, now)| read.must_exist() && now.is_none());
        self.polls_without = if is_gone { self.polls_without + 1 } else { 0 };
        let is_awaited = is_gone && self.polls_without <= POLLS_WITHOUT_MAX;
        if is_awaited || pairs().all(|(read, now)| read.had(*now)) {
            self.changed = None;
            return false;
        }
        let settled = self.changed.as_ref() == Some(&now);
        self.changed = Some(now);
        settled
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        watch.has_read(vec![Seen::now(&file)]);
        assert!(!watch.has_settled() && !watch.has_settled());

        // As editors do it; for a moment there is none.
        fs::rename(&file, folder.join("backup")).unwrap();
        assert!(!watch.has_settled() && !watch.has_settled());
        fs::write(folder.join("new"), "still being written").unwrap();
        fs::rename(folder.join("new"), &file).unwrap();
        assert!(!watch.has_settled() && watch.has_settled());
        watch.has_read(vec![Seen::now(&file)]);

        // A link that comes to point elsewhere.
        let link = folder.join("link.toml");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let mut watch = Watch::new(&link);
        std::os::unix::fs::symlink(folder.join("backup"), folder.join("link.new")).unwrap();
        fs::rename(folder.join("link.new"), &link).unwrap();
        assert!(!watch.has_settled() && watch.has_settled());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn files_that_are_named_are_watched_too() {
        let folder = std::env::temp_dir().join(format!("weir-named-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let [file, chain, key] = ["weir.toml", "a.pem", "a.key"].map(|name| folder.join(name));
        for path in [&file, &chain] {
            fs::write(path, "one").unwrap();
        }
        let mut watch = Watch::new(&file);
        let seen = || [&file, &chain, &key].map(|path| Seen::now(path)).to_vec();
        watch.has_read(seen());
        assert!(!watch.has_settled() && !watch.has_settled(), "that one is missing is no news");

        // A certificate is renewed, and then its key.
        fs::write(&chain, "renewed").unwrap();
        assert!(!watch.has_settled());
        fs::write(&key, "renewed").unwrap();
        assert!(!watch.has_settled(), "another one has changed meanwhile");
        assert!(watch.has_settled());
        watch.has_read(seen());
        assert!(!watch.has_settled() && !watch.has_settled());

        fs::remove_file(&key).unwrap();
        assert!(!watch.has_settled() && !watch.has_settled(), "it is about to come back");
        fs::write(&key, "back again").unwrap();
        assert!(!watch.has_settled() && watch.has_settled());
        watch.has_read(seen());

        // It does not come back, perhaps because nothing names it any more.
        fs::remove_file(&key).unwrap();
        assert!((0..POLLS_WITHOUT_MAX).all(|_| !watch.has_settled()));
        assert!(!watch.has_settled() && watch.has_settled());
        watch.has_read(seen());
        assert!(!watch.has_settled() && !watch.has_settled(), "that it is missing is known");
        fs::remove_dir_all(&folder).unwrap();
    }
}
