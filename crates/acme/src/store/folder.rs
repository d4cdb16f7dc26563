//! Makes the state directory usable, also as root for a user to whom it will belong.
//!
//! That user may have put links in place of what was there, so root reaches nothing by a path that
//! the user can change: each component is opened in its parent, and links are followed only in
//! directories that root alone can write to.

use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::fchown;
use std::path::{Component, Path};

use rustix::fs::{CWD, Mode, OFlags, fchmod, fstat, mkdirat, openat};
use rustix::io::Errno;

/// Creates the directory at `path`, which is absolute, its parents, and the empty file `lock` in it,
/// unless they exist. Only their owner can read them. `owner`: the user and group IDs to which they are
/// given, if this process is root and will switch to that user.
pub(super) fn prepare(path: &Path, lock: &str, owner: Option<(u32, u32)>) -> io::Result<()> {
    let directory = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut folder = openat(CWD, "/", directory, Mode::empty())?;
    for part in path.components() {
        let name = match part {
            Component::Normal(name) => name,
            Component::ParentDir => OsStr::new(".."),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => continue,
        };
        folder = open_or_create(&folder, name, owner)?;
    }
    // Opened again, since no mode can be set through a descriptor of a path.
    let folder = openat(&folder, ".", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    if fstat(&folder)?.st_mode & 0o077 != 0 {
        fchmod(&folder, Mode::RWXU)?;
    }
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let new = flags | OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    match openat(&folder, lock, new, Mode::RUSR | Mode::WUSR) {
        Ok(file) => give(&file, owner),
        Err(Errno::EXIST) => {
            openat(&folder, lock, flags | OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())?;
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Opens the directory `name` in `parent`, and creates it if it is missing.
fn open_or_create(
    parent: &OwnedFd,
    name: &OsStr,
    owner: Option<(u32, u32)>,
) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match openat(parent, name, flags | OFlags::NOFOLLOW, Mode::empty()) {
        // A link (`ELOOP`, or `ENOTDIR` since a directory is wanted), or no directory.
        Err(Errno::LOOP | Errno::NOTDIR) if owner.is_none() || is_roots(parent)? => {
            Ok(openat(parent, name, flags, Mode::empty())?)
        }
        Err(Errno::LOOP | Errno::NOTDIR) => Err(io::Error::other(format!(
            "{} is a link, or no directory, and stands where others than root can write",
            name.display()
        ))),
        Err(Errno::NOENT) => match mkdirat(parent, name, Mode::RWXU) {
            Ok(()) => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let created = openat(parent, name, flags, Mode::empty())?;
                give(&created, owner)?;
                Ok(created)
            }
            // Another process has just created it.
            Err(Errno::EXIST) => Ok(openat(parent, name, flags | OFlags::NOFOLLOW, Mode::empty())?),
            Err(error) => Err(error.into()),
        },
        opened => Ok(opened?),
    }
}

/// Returns whether root alone can write to a directory.
fn is_roots(folder: &OwnedFd) -> io::Result<bool> {
    let found = fstat(folder)?;
    Ok(found.st_uid == 0 && found.st_mode & 0o022 == 0)
}

fn give(created: &OwnedFd, owner: Option<(u32, u32)>) -> io::Result<()> {
    match owner {
        Some((user, group)) => fchown(created, Some(user), Some(group)),
        None => Ok(()),
    }
}
