//! Settings of the network (`/proc/sys/net`) of the calling thread's namespace.

use std::path::Path;

use diagnose::facts::Settings;

use crate::file::{read, reason};

/// Folders below /proc/sys whose files are read: those of single interfaces are left out, since
/// there are dozens for each and no rule asks for them.
const FOLDERS: &[&str] = &[
    "net/core",
    "net/ipv4",
    "net/ipv4/conf/all",
    "net/ipv4/conf/default",
    "net/ipv4/neigh/default",
    "net/ipv4/route",
    "net/ipv6",
    "net/ipv6/conf/all",
    "net/ipv6/conf/default",
    "net/ipv6/neigh/default",
    "net/ipv6/route",
    "net/netfilter",
];

/// Settings outside /proc/sys/net that matter to traffic.
const OTHERS: &[&str] = &["fs/file-max", "fs/nr_open", "vm/swappiness", "vm/min_free_kbytes"];

/// Keys of the kernel, not for anyone's eyes, and not for files of facts that are passed on.
const SECRETS: &[&str] = &["tcp_fastopen_key", "stable_secret"];

/// Longer than any setting.
const VALUE_MAX_BYTES: usize = 4096;

pub(crate) fn settings() -> Settings {
    let mut settings = Settings { complete: true, ..Settings::default() };
    for folder in FOLDERS {
        let path = Path::new("/proc/sys").join(folder);
        let Ok(files) = std::fs::read_dir(&path) else {
            // A kernel without IPv6 or connection tracking has no such folder; one that may not be
            // looked into leaves the list incomplete.
            settings.complete &= !path.exists();
            continue;
        };
        for file in files.flatten() {
            if file.file_type().is_ok_and(|kind| kind.is_file()) {
                put(&mut settings, &format!("{folder}/{}", file.file_name().to_string_lossy()));
            }
        }
    }
    for other in OTHERS {
        put(&mut settings, other);
    }
    settings
}

fn put(settings: &mut Settings, place: &str) {
    // Interfaces may have dots in their names, but those are left out.
    let name = place.replace('/', ".");
    if SECRETS.iter().any(|secret| name.ends_with(secret)) {
        settings.unreadable.insert(name, "a secret, which is not read".to_owned());
        return;
    }
    let path = Path::new("/proc/sys").join(place);
    match read(&path) {
        Ok(value) if value.len() > VALUE_MAX_BYTES => {
            settings.unreadable.insert(name, "longer than any setting known".to_owned());
        }
        Ok(value) => {
            settings.values.insert(name, value.trim_end_matches('\n').to_owned());
        }
        // What can only be written (`net.ipv4.route.flush`) is no setting.
        Err(_) if is_write_only(&path) => {}
        Err(why) => {
            settings.unreadable.insert(name, why);
        }
    }
}

fn is_write_only(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    match std::fs::metadata(path) {
        Ok(metadata) => metadata.permissions().mode() & 0o444 == 0,
        Err(error) => reason(&error).is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use diagnose::facts::Setting;

    #[test]
    fn settings_are_as_the_kernel_prints_them_and_secrets_are_not_there() {
        let settings = settings();
        assert!(settings.complete);
        let somaxconn = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
        assert_eq!(settings.get("net.core.somaxconn"), Setting::Is(somaxconn.trim()));
        assert_eq!(settings.numbers("net.ipv4.tcp_rmem").get().map(Vec::len), Some(3));
        assert_eq!(settings.get("net.ipv4.tcp_tw_recycle"), Setting::Absent);
        assert!(matches!(settings.get("net.ipv4.tcp_fastopen_key"), Setting::Unknown(_)));
        assert_eq!(settings.get("net.ipv4.route.flush"), Setting::Absent, "it is a button");
    }
}
