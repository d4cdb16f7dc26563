//! The files that a configuration includes and names: each is read once when needed, relative paths from
//! the configuration file's directory. What was read is remembered, so that a change can be detected.

use std::cell::RefCell;
use std::collections::HashMap;
use std::env::VarError;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::hash::Hash;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use config::{Found, Included, Surroundings, Unreadable};
use model::Material;
use os::plain_file;
use os::secret_file::{self, Links, SecretError};

use super::FILE_MAX_BYTES;
use super::seen::{self, Seen};

/// The largest file that is read. A system's whole CA bundle takes a quarter of it.
pub const NAMED_FILE_MAX_BYTES: u64 = 1 << 20;

/// The environment of a configuration file: the files that it names, and the clock.
#[derive(Debug)]
pub struct Folder {
    base: PathBuf,
    main: PathBuf,
    read: RefCell<HashMap<PathBuf, Outcome>>,
    secrets: RefCell<HashMap<PathBuf, Outcome>>,
    names: RefCell<HashMap<(PathBuf, String), Names>>,
    texts: RefCell<HashMap<PathBuf, Result<Included, Unreadable>>>,
    seen: RefCell<Vec<Seen>>,
}

type Outcome = Result<Found, Unreadable>;
type Names = Result<Vec<OsString>, Unreadable>;

impl Folder {
    /// Returns the environment of the configuration file at `path`.
    pub fn of(path: &Path) -> Folder {
        Folder {
            base: path.parent().unwrap_or(Path::new("")).to_path_buf(),
            main: path.to_path_buf(),
            read: RefCell::default(),
            secrets: RefCell::default(),
            names: RefCell::default(),
            texts: RefCell::default(),
            seen: RefCell::default(),
        }
    }

    /// Returns every file that was requested, including those that could not be read.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.borrow().clone()
    }

    fn look(&self, path: &Path) -> Outcome {
        self.seen.borrow_mut().push(Seen::now(path));
        let (bytes, metadata) = self.bytes(path, NAMED_FILE_MAX_BYTES)?;
        Ok(found_at(path, bytes, &metadata))
    }

    fn bytes(&self, path: &Path, bytes_max: u64) -> Result<(Vec<u8>, Metadata), Unreadable> {
        let (bytes, metadata) =
            plain_file::read(path, bytes_max).map_err(|error| self.unreadable(path, &error))?;
        if bytes.len() as u64 > bytes_max {
            return Err(refused(format!("more than {bytes_max} bytes")));
        }
        Ok((bytes, metadata))
    }

    fn look_at_secret(&self, path: &Path, bytes_max: u64) -> Outcome {
        self.seen.borrow_mut().push(Seen::now(path));
        match secret_file::read(path, bytes_max, Links::Refused) {
            Ok(secret) => Ok(found_at(path, secret.bytes, &secret.metadata)),
            Err(SecretError::Unreadable(error)) => Err(self.unreadable(path, &error)),
            Err(error) => {
                Err(Unreadable { help: error.remedy(path), ..refused(format!("it {error}")) })
            }
        }
    }

    fn look_into(&self, path: &Path, pattern: &str) -> Names {
        let names = seen::names(path, pattern);
        self.seen.borrow_mut().push(Seen::of_names(path, pattern, names.as_deref().ok()));
        let names = names.map_err(|error| self.unreadable(path, &error))?;
        if names.is_empty() {
            // It may not exist.
            fs::metadata(path).map_err(|error| self.unreadable(path, &error))?;
        }
        Ok(names)
    }

    fn look_at_text(&self, path: &Path) -> Result<Included, Unreadable> {
        let is_matched = self.seen.borrow().iter().any(|seen| seen.lists(path));
        let seen = if is_matched { Seen::of_matched(path) } else { Seen::now(path) };
        self.seen.borrow_mut().push(seen);
        let (bytes, metadata) = self.bytes(path, FILE_MAX_BYTES)?;
        let is_main = fs::metadata(&self.main)
            .is_ok_and(|main| (main.dev(), main.ino()) == (metadata.dev(), metadata.ino()));
        let material = Material { path: path.to_path_buf(), bytes: bytes.into() };
        Ok(Included { material, is_main })
    }

    fn unreadable(&self, path: &Path, error: &io::Error) -> Unreadable {
        let help = match error.kind() {
            io::ErrorKind::NotFound if path.starts_with(&self.base) => {
                let path = path.to_string_lossy();
                Some(format!("is the path right? It is looked for as {}", path.escape_debug()))
            }
            io::ErrorKind::NotFound => Some("is the path right?".to_owned()),
            io::ErrorKind::PermissionDenied => Some(
                "let this user read the file, and enter every folder on the way to it".to_owned(),
            ),
            _ => None,
        };
        let is_denied = error.kind() == io::ErrorKind::PermissionDenied;
        let is_missing =
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
        Unreadable { why: error.to_string(), help, is_denied, is_missing }
    }
}

/// Returns what `known` has for `key`, or else what `read` returns, which is remembered.
fn read_once<K: Eq + Hash, T: Clone>(
    known: &RefCell<HashMap<K, T>>,
    key: K,
    read: impl FnOnce(&K) -> T,
) -> T {
    if let Some(outcome) = known.borrow().get(&key) {
        return outcome.clone();
    }
    let outcome = read(&key);
    known.borrow_mut().insert(key, outcome.clone());
    outcome
}

fn refused(why: String) -> Unreadable {
    Unreadable { why, help: None, is_denied: false, is_missing: false }
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
        read_once(&self.read, self.base.join(path), |path| self.look(path))
    }

    fn secret(&self, path: &Path, bytes_max: u64) -> Outcome {
        read_once(&self.secrets, self.base.join(path), |path| self.look_at_secret(path, bytes_max))
    }

    fn names(&self, folder: &Path, pattern: &str) -> Names {
        let path = self.base.join(folder);
        read_once(&self.names, (path, pattern.to_owned()), |(path, pattern)| {
            self.look_into(path, pattern)
        })
    }

    fn absolute(&self, path: &Path) -> PathBuf {
        let path = self.base.join(path);
        // It fails only without a current directory.
        std::path::absolute(&path).unwrap_or(path)
    }

    fn text(&self, path: &Path) -> Result<Included, Unreadable> {
        read_once(&self.texts, self.base.join(path), |path| self.look_at_text(path))
    }

    fn variable(&self, name: &str) -> Result<String, String> {
        std::env::var(name).map_err(|error| match error {
            VarError::NotPresent => "not set".to_owned(),
            VarError::NotUnicode(_) => "not UTF-8".to_owned(),
        })
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

        let seen = around.seen();
        let names: Vec<_> = seen.iter().filter_map(|seen| seen.path().file_name()).collect();
        assert_eq!(names, ["a.pem", "large", "certs", "missing.pem"]);
        assert!(seen[3].is_missing());
        assert_eq!(seen[1], Seen::now(&folder.join("large")));
        assert_ne!(seen[0], Seen::now(&folder.join("certs/a.pem")), "written since");
        fs::remove_dir_all(&folder).unwrap();
    }
}
