//! This instance's key for affinity cookies and sessions: generated once and kept in the state directory, so
//! that it survives restarts and upgrades. Services and routes with a `key_file` do not need it.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, fchown};
use std::path::Path;

use model::{Action, AffinityKey, Route, RouteAffinity, Snapshot};
use os::secret_file::{self, Links, SecretError};

use crate::state_directory;

/// File name in the state directory.
const FILE: &str = "affinity.key";
/// Source of random bytes.
const RANDOM: &str = "/dev/urandom";

/// Sets the registry's key if `snapshot` has a service or route that needs it. `owner` (user and group IDs)
/// is the user that this process, still root, will switch to; a new file is created as theirs.
///
/// `handed`: the key of the process that this one takes over from. It is used unless the state
/// directory contains one, and stored there if possible.
///
/// Without a usable state directory the key lasts until this process and those that take over from
/// it end, which is logged: clients then lose their servers at a restart, but nothing fails.
///
/// # Errors
/// One line, if the file must not be used, or no random bytes are available for a key.
pub(crate) fn ensure(
    snapshot: &Snapshot,
    registry: &decide::Registry,
    owner: Option<(u32, u32)>,
    handed: Option<AffinityKey>,
) -> Result<(), String> {
    if registry.affinity_key().is_some() || !is_needed(snapshot) {
        return Ok(());
    }
    let path = state_directory::of(snapshot).join(FILE);
    let new = || handed.map_or_else(random, Ok);
    let key = match kept(&path, owner, new) {
        Err(KeyError::NotKept(error)) => {
            tracing::warn!(
                file = %path.display(),
                %error,
                "cannot save the key of affinity cookies; clients may change servers at the next \
                 restart; create the directory, or set `state_directory` or `affinity_key_file`"
            );
            new()
        }
        other => other,
    };
    registry.set_affinity_key(key.map_err(|error| error.to_string())?);
    if has_sessions_of_cluster(snapshot) {
        tracing::warn!(
            "routes of Kubernetes have sessions, and `affinity_key_file` is not set: each Pod of Weir has its own key and \
             does not accept sessions of the others; with several Pods, put a key into a Secret and set `affinity_key_file`"
        );
    }
    Ok(())
}

/// Returns what would make [`ensure`] fail, as far as that can be determined without creating the
/// file.
pub(crate) fn obstacle(snapshot: &Snapshot) -> Option<String> {
    if !is_needed(snapshot) {
        return None;
    }
    match read(&state_directory::of(snapshot).join(FILE)) {
        Ok(Some(_)) => None,
        Ok(None) | Err(KeyError::NotKept(_)) => random().err().map(|error| error.to_string()),
        Err(error) => Some(error.to_string()),
    }
}

/// Returns whether a service or a route has affinity, and no file has its key.
fn is_needed(snapshot: &Snapshot) -> bool {
    let of_services = snapshot
        .services
        .iter()
        .filter_map(|service| service.affinity.as_ref().map(|affinity| &affinity.key_file));
    let of_routes = snapshot.routes.iter().filter_map(|route| Some(&affinity(route)?.key_file));
    snapshot.affinity_key_file.is_none() && of_services.chain(of_routes).any(Option::is_none)
}

/// Returns whether a route from Kubernetes has affinity: its objects cannot name a file with a key.
fn has_sessions_of_cluster(snapshot: &Snapshot) -> bool {
    // Only routes of the cluster's objects have an age.
    let mut routes = snapshot.routes.iter().filter(|route| route.matches.age.is_some());
    routes.any(|route| affinity(route).is_some())
}

/// Returns the affinity of a route.
fn affinity(route: &Route) -> Option<&RouteAffinity> {
    match &route.action {
        Action::Forward(forward) => forward.affinity.as_deref(),
        Action::Redirect(_) | Action::Deny(_) | Action::Respond(_) => None,
    }
}

/// Why there is no key. Displays as one line.
#[derive(Debug)]
enum KeyError {
    /// The state directory cannot be used: a key is generated all the same.
    NotKept(io::Error),
    /// The file must not be used: the reason and the remedy.
    Refused(String),
    /// No random bytes are available.
    NotRandom(io::Error),
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::NotKept(error) => {
                write!(f, "cannot save the key of affinity cookies: {error}")
            }
            KeyError::Refused(line) => f.write_str(line),
            KeyError::NotRandom(error) => write!(
                f,
                "cannot make a key for affinity cookies: no random bytes from {RANDOM}: {error}; \
                 make that device available, or set `affinity_key_file`"
            ),
        }
    }
}

/// Returns the key in the file at `path`, which is created with a `new` key if it does not exist.
fn kept(
    path: &Path,
    owner: Option<(u32, u32)>,
    new: impl FnOnce() -> Result<AffinityKey, KeyError>,
) -> Result<AffinityKey, KeyError> {
    if let Some(key) = read(path)? {
        return Ok(key);
    }
    let key = new()?;
    // O_EXCL also prevents following a link, and guarantees that this call created the file.
    let mut create = OpenOptions::new();
    match create.write(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => {
            write(file, key, owner).map_err(|error| {
                // A partial key would break the next start.
                let _ = std::fs::remove_file(path);
                KeyError::NotKept(error)
            })?;
            Ok(key)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // Another process has created it in the meantime.
            read(path)?.ok_or(KeyError::NotKept(error))
        }
        Err(error) => Err(KeyError::NotKept(error)),
    }
}

fn write(mut file: File, key: AffinityKey, owner: Option<(u32, u32)>) -> io::Result<()> {
    if let Some((user, group)) = owner {
        fchown(&file, Some(user), Some(group))?;
    }
    file.write_all(format!("{}\n", key.to_text()).as_bytes())?;
    file.sync_all()
}

/// Reads the key in the file at `path`; `None` if there is no such file.
fn read(path: &Path) -> Result<Option<AffinityKey>, KeyError> {
    const WHAT: &str = "key file";
    let secret = match secret_file::read(path, AffinityKey::FILE_MAX_BYTES, Links::Refused) {
        Ok(secret) => secret,
        Err(SecretError::Unreadable(error)) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(None);
        }
        Err(SecretError::Unreadable(error)) => return Err(KeyError::NotKept(error)),
        Err(error @ (SecretError::TooLarge { .. } | SecretError::NotAFile)) => {
            let line = error.line(WHAT, path);
            return Err(KeyError::Refused(format!("{line}; remove it to have a new key made")));
        }
        Err(error) => return Err(KeyError::Refused(error.line(WHAT, path))),
    };
    AffinityKey::parse(&secret.bytes).map(Some).ok_or_else(|| {
        KeyError::Refused(format!(
            "the {WHAT} {} does not hold 32 hexadecimal digits; remove it to have a new key made",
            path.display()
        ))
    })
}

fn random() -> Result<AffinityKey, KeyError> {
    let mut bytes = [0; AffinityKey::LENGTH];
    File::open(RANDOM)
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(KeyError::NotRandom)?;
    Ok(AffinityKey::new(bytes))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_found_again() {
        let folder = std::env::temp_dir().join(format!("weir-affinity-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(FILE);
        let key = kept(&path, None, random).unwrap();
        assert_eq!(kept(&path, None, random).unwrap(), key);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::remove_file(&path).unwrap();
        assert_ne!(kept(&path, None, random).unwrap(), key);
        assert_ne!(kept(&path, None, || Ok(key)).unwrap(), key, "the file's stays");
        std::fs::remove_file(&path).unwrap();
        assert_eq!(kept(&path, None, || Ok(key)).unwrap(), key);
        assert_eq!(kept(&path, None, random).unwrap(), key, "it has been written");
        std::fs::write(&path, "nonsense").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(kept(&path, None, random).unwrap_err().to_string().contains("chmod 600"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert!(kept(&path, None, random).unwrap_err().to_string().contains("hexadecimal"));
        let absent = kept(&folder.join("absent/key"), None, random).unwrap_err();
        assert!(matches!(absent, KeyError::NotKept(_)), "{absent}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
