//! This instance's key for affinity cookies: made once, kept in the state directory, so that it
//! survives a restart and an upgrade. Services with a `key_file` do not need it.

use std::env;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use model::{AffinityKey, Snapshot};

/// Its name in the state directory.
const FILE: &str = "affinity.key";
/// The state directory where neither the configuration nor the environment names one.
const DIRECTORY: &str = "/var/lib/weir";
/// More than any key file holds, in bytes.
const FILE_MAX_BYTES: u64 = 128;

/// Sets the registry's key if `snapshot` has a service that needs it. `owner` (user and group ids):
/// whom this process, still root, is about to become; a new file belongs to them.
///
/// Without a usable state directory the key holds until this process ends, which is logged: clients
/// then lose their servers at a restart or an upgrade, but nothing fails.
pub(crate) fn ensure(snapshot: &Snapshot, registry: &decide::Registry, owner: Option<(u32, u32)>) {
    let mut affinities = snapshot.services.iter().filter_map(|service| service.affinity.as_ref());
    if registry.has_affinity_key() || affinities.all(|affinity| affinity.key_file.is_some()) {
        return;
    }
    let path = directory(snapshot).join(FILE);
    let key = kept(&path, owner).or_else(|error| {
        tracing::warn!(
            file = %path.display(),
            %error,
            "cannot keep the key of affinity cookies; clients may change servers at the next \
             restart or upgrade; create the directory, or set `state_directory` or \
             `affinity.key_file`"
        );
        random()
    });
    match key {
        Ok(key) => registry.set_affinity_key(key),
        Err(error) => tracing::error!(%error, "no random bytes for the key of affinity cookies"),
    }
}

fn directory(snapshot: &Snapshot) -> PathBuf {
    // systemd may name several, separated by colons (systemd.exec(5)).
    let from_environment = || {
        let value = env::var_os("STATE_DIRECTORY")?;
        let first = env::split_paths(&value).next()?;
        first.is_absolute().then_some(first)
    };
    let configured = snapshot.state_directory.clone();
    configured.or_else(from_environment).unwrap_or_else(|| PathBuf::from(DIRECTORY))
}

/// The key in the file at `path`, which is created with a new key if it does not exist.
fn kept(path: &Path, owner: Option<(u32, u32)>) -> io::Result<AffinityKey> {
    let mut create = OpenOptions::new();
    match create.write(true).create_new(true).mode(0o600).open(path) {
        Ok(file) => {
            let key = random()?;
            write(file, key, owner).inspect_err(|_| {
                // Half a key would be in the way of the next start.
                let _ = std::fs::remove_file(path);
            })?;
            Ok(key)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read(path),
        Err(error) => Err(error),
    }
}

fn write(mut file: File, key: AffinityKey, owner: Option<(u32, u32)>) -> io::Result<()> {
    if let Some((user, group)) = owner {
        fchown(&file, Some(user), Some(group))?;
    }
    file.write_all(format!("{}\n", key.to_text()).as_bytes())?;
    file.sync_all()
}

fn read(path: &Path) -> io::Result<AffinityKey> {
    // A FIFO would keep the start waiting for a writer.
    if !std::fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    let mut text = Vec::new();
    File::open(path)?.take(FILE_MAX_BYTES).read_to_end(&mut text)?;
    let why = "it does not hold 32 hexadecimal digits; remove it to have a new key made";
    AffinityKey::parse(&text).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, why))
}

fn random() -> io::Result<AffinityKey> {
    let mut bytes = [0; AffinityKey::LENGTH];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(AffinityKey::new(bytes))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_is_made_once_and_found_again() {
        let folder = env::temp_dir().join(format!("weir-affinity-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(FILE);
        let key = kept(&path, None).unwrap();
        assert_eq!(kept(&path, None).unwrap(), key);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::remove_file(&path).unwrap();
        assert_ne!(kept(&path, None).unwrap(), key);
        std::fs::write(&path, "nonsense").unwrap();
        assert!(kept(&path, None).unwrap_err().to_string().contains("hexadecimal"));
        assert!(kept(&folder.join("absent/key"), None).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
