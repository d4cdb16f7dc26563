//! The files that a configuration names: each is read once when needed, relative paths from the
//! configuration file's directory. What was read is remembered, so that a change can be detected.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use config::{Found, Surroundings, Unreadable};
use model::Material;
use os::secret_file::{self, Links, SecretError};

/// The largest file that is read. A system's whole CA bundle takes a quarter of it.
pub const NAMED_FILE_MAX_BYTES: u64 = 1 << 20;

/// The environment of a configuration file: the files that it names, and the clock.
#[derive(Debug)]
pub struct Folder {
    base: PathBuf,
    read: RefCell<HashMap<PathBuf, Outcome>>,
    secrets: RefCell<HashMap<PathBuf, Outcome>>,
    seen: RefCell<Vec<Seen>>,
}

type Outcome = Result<Found, Unreadable>;

/// A file, and its stamp just before it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its path.
    pub path: PathBuf,
    /// `None`: the file did not exist, or could not be examined.
    pub stamp: Option<Stamp>,
}

/// Metadata that changes when a file is written or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    length: u64,
    /// Seconds and nanoseconds.
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    /// Reads the stamp of a file, following links. `None`: there is no such file at present.
    pub fn of(file: &Path) -> Option<Stamp> {
        fs::metadata(file).ok().map(|metadata| Stamp::from(&metadata))
    }
}

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Stamp {
        Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl Seen {
    /// Returns the current state of `file`.
    pub fn now(file: &Path) -> Seen {
        Seen { path: file.to_path_buf(), stamp: Stamp::of(file) }
    }
}

impl Folder {
    /// Returns the environment of the configuration file at `path`.
    pub fn of(path: &Path) -> Folder {
        Folder {
            base: path.parent().unwrap_or(Path::new("")).to_path_buf(),
            read: RefCell::default(),
            secrets: RefCell::default(),
            seen: RefCell::default(),
        }
    }

    /// Returns every file that was requested, including those that could not be read.
    pub fn into_seen(self) -> Vec<Seen> {
        self.seen.into_inner()
    }

    fn look(&self, path: &Path) -> Outcome {
        let refused = |why: String| Unreadable { why, help: None, is_denied: false };
        let found = fs::metadata(path);
        let stamp = found.as_ref().ok().map(Stamp::from);
        self.seen.borrow_mut().push(Seen { path: path.to_path_buf(), stamp });
        let metadata = found.map_err(|error| self.unreadable(path, &error))?;
        // Opening a pipe would block until there is a writer.
        if !metadata.is_file() {
            return Err(refused("not a file".to_owned()));
        }
        let mut bytes = Vec::new();
        let read = File::open(path)
            .and_then(|file| file.take(NAMED_FILE_MAX_BYTES + 1).read_to_end(&mut bytes));
        read.map_err(|error| self.unreadable(path, &error))?;
        if bytes.len() as u64 > NAMED_FILE_MAX_BYTES {
            return Err(refused(format!("more than {NAMED_FILE_MAX_BYTES} bytes")));
        }
        Ok(found_at(path, bytes, &metadata))
    }

    fn look_at_secret(&self, path: &Path, bytes_max: u64) -> Outcome {
        self.seen.borrow_mut().push(Seen::now(path));
        match secret_file::read(path, bytes_max, Links::Refused) {
            Ok(secret) => Ok(found_at(path, secret.bytes, &secret.metadata)),
            Err(SecretError::Unreadable(error)) => Err(self.unreadable(path, &error)),
            Err(error) => {
                let why = format!("it {error}");
                Err(Unreadable { why, help: error.remedy(path), is_denied: false })
            }
        }
    }

    fn unreadable(&self, path: &Path, error: &io::Error) -> Unreadable {
        let help = match error.kind() {
            io::ErrorKind::NotFound if path.starts_with(&self.base) => {
                Some(format!("is the path right? It is looked for as {}", path.display()))
            }
            io::ErrorKind::NotFound => Some("is the path right?".to_owned()),
            io::ErrorKind::PermissionDenied => Some(
                "let this user read the file, and enter every folder on the way to it".to_owned(),
            ),
            _ => None,
        };
        let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
        Unreadable { why: error.to_string(), help, is_denied }
    }
}

fn found_at(path: &Path, bytes: Vec<u8>, metadata: &Metadata) -> Found {
    // No permission bit for group or others.
    let only_root = metadata.uid() == 0 && metadata.mode().trailing_zeros() >= 6;
    let open_to_others = metadata.mode() & 0o006 != 0;
    let material = Material { path: path.to_path_buf(), bytes: bytes.into() };
    Found { material, only_root, open_to_others }
}

impl Surroundings for Folder {
    fn file(&self, path: &Path) -> Outcome {
        let path = self.base.join(path);
        if let Some(outcome) = self.read.borrow().get(&path) {
            return outcome.clone();
        }
        let outcome = self.look(&path);
        self.read.borrow_mut().insert(path, outcome.clone());
        outcome
    }

    fn secret(&self, path: &Path, bytes_max: u64) -> Outcome {
        let path = self.base.join(path);
        if let Some(outcome) = self.secrets.borrow().get(&path) {
            return outcome.clone();
        }
        let outcome = self.look_at_secret(&path, bytes_max);
        self.secrets.borrow_mut().insert(path, outcome.clone());
        outcome
    }

    fn now_s(&self) -> Option<i64> {
        i64::try_from(os::clock::wall().as_secs()).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn files_are_read_once_from_the_configurations_folder_and_bounded() {
        let folder = std::env::temp_dir().join(format!("weir-folder-{}", std::process::id()));
        fs::create_dir_all(folder.join("certs")).unwrap();
        fs::write(folder.join("certs/a.pem"), "a").unwrap();
        let by_mode = [(0o640, false), (0o644, true), (0o602, true)].map(|(mode, open)| {
            let path = folder.join(format!("{mode:o}"));
            fs::write(&path, "").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            (Folder::of(&path).file(&path).unwrap().open_to_others, open)
        });
        assert!(by_mode.iter().all(|(found, open)| found == open), "{by_mode:?}");
        fs::write(folder.join("large"), vec![0; NAMED_FILE_MAX_BYTES as usize + 1]).unwrap();
        let around = Folder::of(&folder.join("weir.toml"));
        let bytes = |name: &str| around.file(Path::new(name)).map(|found| found.material.bytes);
        assert_eq!(&*bytes("certs/a.pem").unwrap(), b"a");
        fs::write(folder.join("certs/a.pem"), "another").unwrap();
        assert_eq!(&*bytes("certs/a.pem").unwrap(), b"a", "one configuration, one content");
        assert_eq!(&*bytes(folder.join("certs/a.pem").to_str().unwrap()).unwrap(), b"a");
        let why = |name: &str| bytes(name).unwrap_err();
        assert!(why("large").why.starts_with("more than 1048576"), "{:?}", why("large"));
        assert_eq!(why("certs").why, "not a file");
        let missing = why("missing.pem");
        assert!(missing.help.unwrap().contains(folder.join("missing.pem").to_str().unwrap()));

        let seen = around.into_seen();
        let names: Vec<_> = seen.iter().filter_map(|seen| seen.path.file_name()).collect();
        assert_eq!(names, ["a.pem", "large", "certs", "missing.pem"]);
        assert_eq!(seen[3].stamp, None);
        assert_eq!(seen[1], Seen::now(&folder.join("large")));
        assert_ne!(seen[0], Seen::now(&folder.join("certs/a.pem")), "written since");
        fs::remove_dir_all(&folder).unwrap();
    }
}
