//! A directory held open, for access to its entries by name. For the thousands of small files of
//! /proc, where resolving a whole path to each, and querying its size, costs more than reading it.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{
    Access, AtFlags, CWD, FileType, Mode, OFlags, RawDir, accessat, openat, readlinkat_raw,
};

/// Entries are read in pieces of this size; a name has at most 255 bytes.
const ENTRIES_BYTES: usize = 8192;

/// Checks that this process, as it is now, can create a file in the directory at `path`. Changes
/// nothing.
///
/// # Errors
/// The system's error: the directory does not exist, is not a directory or not writable, or its
/// file system is read-only.
pub fn takes_new_files(path: &Path) -> io::Result<()> {
    // The parent of a bare file name.
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let rights = Access::WRITE_OK | Access::EXEC_OK;
    if !std::fs::metadata(path)?.is_dir() {
        return Err(io::Error::from(io::ErrorKind::NotADirectory));
    }
    Ok(accessat(CWD, path, rights, AtFlags::EACCESS)?)
}

/// A directory, held open.
#[derive(Debug)]
pub struct Folder {
    descriptor: OwnedFd,
}

/// An entry of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its name, without a path.
    pub name: &'a OsStr,
    /// Whether it is a regular file: not a directory, link or device.
    pub is_file: bool,
}

impl Folder {
    /// Opens the directory at `path`.
    ///
    /// # Errors
    /// When it does not exist, or this process may not read it.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Folder> {
        folder(CWD, path.as_ref())
    }

    /// Opens the directory `name` in it.
    ///
    /// # Errors
    /// As [`Folder::open`].
    pub fn folder(&self, name: impl AsRef<Path>) -> io::Result<Folder> {
        folder(&self.descriptor, name.as_ref())
    }

    /// Opens the file `name` in it for reading.
    ///
    /// # Errors
    /// When it does not exist, or this process may not read it.
    pub fn file(&self, name: impl AsRef<Path>) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(File::from(openat(&self.descriptor, name.as_ref(), flags, Mode::empty())?))
    }

    /// Returns the target of the link `name` in it, as far as `buffer` has room.
    ///
    /// # Errors
    /// When there is no such link, or this process may not read it.
    pub fn link<'b>(&self, name: impl AsRef<Path>, buffer: &'b mut [u8]) -> io::Result<&'b OsStr> {
        let length = readlinkat_raw(&self.descriptor, name.as_ref(), &mut *buffer)?;
        Ok(OsStr::from_bytes(buffer.get(..length).unwrap_or_default()))
    }

    /// Passes every entry to `each`, except `.` and `..`, until it breaks. A further call continues
    /// from about there.
    ///
    /// # Errors
    /// When the entries can't be read.
    pub fn each(&self, mut each: impl FnMut(Entry<'_>) -> ControlFlow<()>) -> io::Result<()> {
        let mut buffer = [MaybeUninit::uninit(); ENTRIES_BYTES];
        let mut entries = RawDir::new(&self.descriptor, &mut buffer);
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            let is_file = entry.file_type() == FileType::RegularFile;
            if each(Entry { name, is_file }).is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn folder(at: impl AsFd, path: &Path) -> io::Result<Folder> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(Folder { descriptor: openat(at, path, flags, Mode::empty())? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    #[test]
    fn entries_files_folders_and_links_of_proc() {
        let proc = Folder::open("/proc").unwrap();
        let mut names = Vec::new();
        proc.each(|entry| {
            names.push((entry.name.to_owned(), entry.is_file));
            ControlFlow::Continue(())
        })
        .unwrap();
        for (wanted, is_file) in [("meminfo", true), ("sys", false), ("self", false)] {
            assert!(names.contains(&(wanted.into(), is_file)), "{wanted}");
        }
        assert!(names.iter().all(|(name, _)| name != "." && name != ".."));
        let mut text = String::new();
        let kernel = proc.folder("sys/kernel").unwrap();
        kernel.file("ostype").unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "Linux\n");
        let mut buffer = [0; 64];
        let own = std::process::id().to_string();
        assert_eq!(proc.link("self", &mut buffer).unwrap(), own.as_str());
        assert_eq!(proc.link("self", &mut [0; 1]).unwrap(), &own[..1], "there is no more room");
    }

    #[test]
    fn what_is_not_there_is_refused() {
        let proc = Folder::open("/proc").unwrap();
        let kind = |result: io::Result<Folder>| result.unwrap_err().kind();
        assert_eq!(kind(proc.folder("no-such")), io::ErrorKind::NotFound);
        assert_eq!(kind(proc.folder("meminfo")), io::ErrorKind::NotADirectory);
        assert_eq!(kind(Folder::open("/no-such")), io::ErrorKind::NotFound);
        assert!(proc.file("no-such").is_err() && proc.link("meminfo", &mut [0; 9]).is_err());
    }

    #[test]
    fn a_folder_of_more_entries_than_one_piece_is_read_to_its_end() {
        let path = std::env::temp_dir().join(format!("weir-folder-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let names: Vec<String> = (0..400).map(|n| format!("a-name-of-some-length-{n}")).collect();
        for name in &names {
            File::create(path.join(name)).unwrap();
        }
        let mut seen = Vec::new();
        let each = |entry: Entry<'_>| {
            seen.push(entry.name.to_str().unwrap().to_owned());
            ControlFlow::Continue(())
        };
        let read = Folder::open(&path).and_then(|folder| folder.each(each));
        std::fs::remove_dir_all(&path).unwrap();
        read.unwrap();
        assert!(seen.len() == 400 && names.iter().all(|name| seen.contains(name)));
    }
}
