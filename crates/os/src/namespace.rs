//! Network namespaces: opening them and running code inside one.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// A network namespace, held open: it exists as long as this value does.
#[derive(Debug)]
pub struct Namespace {
    file: File,
    inode: u64,
}

impl Namespace {
    /// Opens the namespace at `path`: `/proc/PID/ns/net`, or a file of `/run/netns`.
    ///
    /// # Errors
    /// When it does not exist, or this process may not access it.
    pub fn open(path: &Path) -> io::Result<Namespace> {
        let file = File::open(path)?;
        let inode = file.metadata()?.ino();
        Ok(Namespace { file, inode })
    }

    /// Opens that of the calling thread.
    ///
    /// # Errors
    /// When `/proc` is not mounted, or there is no descriptor left.
    pub fn current() -> io::Result<Namespace> {
        Self::open(Path::new("/proc/thread-self/ns/net"))
    }

    /// Returns the number that identifies it: that in `net:[4026531840]`.
    pub fn inode(&self) -> u64 {
        self.inode
    }

    /// Moves the calling thread into this namespace, until it moves to another. Its open sockets
    /// stay where they were opened. For a thread that serves connections, [`Namespace::inside`] is
    /// the better choice.
    ///
    /// # Errors
    /// When this process may not enter: that takes `CAP_SYS_ADMIN`.
    pub fn enter(&self) -> io::Result<()> {
        Ok(move_into_link_name_space(self.file.as_fd(), Some(LinkNameSpaceType::Network))?)
    }

    /// Runs `work` on a new thread that has entered this namespace, and waits for it. Paths below
    /// `/proc/sys/net` and `/proc/thread-self/net` refer to that namespace there; `/proc/net` and
    /// `/sys/class/net` do not.
    ///
    /// # Errors
    /// When this process may not enter (that takes `CAP_SYS_ADMIN`), when no thread can be created,
    /// or `work` panicked.
    pub fn inside<R: Send>(&self, work: impl FnOnce() -> R + Send) -> io::Result<R> {
        std::thread::scope(|scope| {
            let enter_and_work = || {
                self.enter()?;
                Ok(work())
            };
            let named = std::thread::Builder::new().name("weir-namespace".to_owned());
            let thread = named.spawn_scoped(scope, enter_and_work)?;
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a look into it panicked")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_own_namespace_is_the_one_it_is_in() {
        let own = Namespace::current().unwrap();
        let link = std::fs::read_link("/proc/self/ns/net").unwrap();
        assert_eq!(link.to_string_lossy(), format!("net:[{}]", own.inode()));
        assert!(Namespace::open(Path::new("/proc/self/ns/none")).is_err());
    }

    #[test]
    fn entering_a_namespace_works_or_reports_missing_permission() {
        let own = Namespace::current().unwrap();
        match own.inside(|| Namespace::current().unwrap().inode()) {
            Ok(inside) => assert_eq!(inside, own.inode()),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{error}"),
        }
    }
}
