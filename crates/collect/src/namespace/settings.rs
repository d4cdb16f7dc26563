//! Reads the network settings (`/proc/sys/net`) of the calling thread's namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::Path;

use diagnose::facts::Settings;
use os::folder::Folder;

use crate::file::reason;

/// Where the kernel shows its settings.
const ROOT: &str = "/proc/sys";

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
const OTHERS: &[(&str, &[&str])] =
    &[("fs", &["file-max", "nr_open"]), ("vm", &["swappiness", "min_free_kbytes"])];

/// Keys of the kernel, not for anyone's eyes, and not for files of facts that are passed on.
const SECRETS: &[&str] = &["tcp_fastopen_key", "stable_secret"];

/// Longer than any setting.
const VALUE_MAX_BYTES: usize = 4096;

/// Most are no longer. The kernel sets as much memory to zero as one asks for, each time.
const SHORT_BYTES: usize = 256;

/// More than files of settings name on any host that a person has tuned.
const NAMED_MAX: usize = 1024;

/// Which settings are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    /// All of the folders, and the others.
    All,
    /// Files by folder below /proc/sys.
    Named(BTreeMap<&'static str, BTreeSet<String>>),
}

impl Selection {
    /// Of `names`, written with dots, those that [`Selection::All`] would read.
    pub(crate) fn named<'a>(names: impl Iterator<Item = &'a str>) -> Selection {
        let mut files: BTreeMap<&'static str, BTreeSet<String>> = BTreeMap::new();
        let mut count = 0;
        for (folder, file) in names.filter_map(place) {
            count += usize::from(files.entry(folder).or_default().insert(file.to_owned()));
            if count > NAMED_MAX {
                return Selection::All;
            }
        }
        Selection::Named(files)
    }
}

/// The folder and the file of a setting, if it is one that is read.
fn place(name: &str) -> Option<(&'static str, &str)> {
    let (above, file) = name.rsplit_once('.')?;
    if file.is_empty() || file.contains('/') {
        return None;
    }
    let is_above = |folder: &&str| folder.split('/').eq(above.split('.'));
    let of_others = OTHERS.iter().filter(|(_, files)| files.contains(&file));
    let mut folders = FOLDERS.iter().copied().chain(of_others.map(|&(folder, _)| folder));
    folders.find(is_above).map(|folder| (folder, file))
}

pub(crate) fn settings(selection: &Selection) -> Settings {
    match selection {
        Selection::All => all(),
        Selection::Named(files) => named(files),
    }
}

fn all() -> Settings {
    let mut settings = Settings { complete: true, ..Settings::default() };
    for folder in FOLDERS {
        let path = Path::new(ROOT).join(folder);
        let put_all = |files: Folder| {
            files.each(|file| {
                if file.is_file {
                    put(&mut settings, &files, folder, file.name);
                }
                ControlFlow::Continue(())
            })
        };
        if Folder::open(&path).and_then(put_all).is_err() {
            // A kernel without IPv6 or connection tracking has no such folder; one that may not be
            // looked into leaves the list incomplete.
            settings.complete &= !path.exists();
        }
    }
    for (folder, names) in OTHERS {
        if let Ok(files) = Folder::open(Path::new(ROOT).join(folder)) {
            for name in *names {
                put(&mut settings, &files, folder, OsStr::new(name));
            }
        }
    }
    settings
}

fn named(files: &BTreeMap<&'static str, BTreeSet<String>>) -> Settings {
    let mut settings = Settings::default();
    for (&folder, names) in files {
        let files = Folder::open(Path::new(ROOT).join(folder));
        for name in names.iter().map(OsStr::new) {
            match &files {
                Ok(files) => put(&mut settings, files, folder, name),
                Err(error) => not_read(&mut settings, folder, name, error),
            }
        }
    }
    settings
}

/// Reads the setting `file`, which stands in `files`, the folder `folder` below /proc/sys.
fn put(settings: &mut Settings, files: &Folder, folder: &str, file: &OsStr) {
    let name = name_of(folder, file);
    if SECRETS.iter().any(|secret| name.ends_with(secret)) {
        settings.unreadable.insert(name, "a secret, which is not read".to_owned());
        return;
    }
    let mut buffer = [0; VALUE_MAX_BYTES + 1];
    match value(files, file, &mut buffer) {
        Ok(value) if value.len() > VALUE_MAX_BYTES => {
            settings.unreadable.insert(name, "longer than any setting known".to_owned());
        }
        Ok(value) => {
            let value = String::from_utf8_lossy(value);
            settings.values.insert(name, value.trim_end_matches('\n').to_owned());
        }
        Err(error) => not_read(settings, folder, file, &error),
    }
}

fn not_read(settings: &mut Settings, folder: &str, file: &OsStr, error: &io::Error) {
    let path = Path::new(ROOT).join(folder).join(file);
    if error.kind() == io::ErrorKind::NotFound {
        settings.absent.insert(name_of(folder, file));
    } else if !is_write_only(&path) {
        // What can only be written (`net.ipv4.route.flush`) is no setting.
        let why = format!("{}: {}", path.display(), reason(error));
        settings.unreadable.insert(name_of(folder, file), why);
    }
}

/// With dots. Interfaces may have dots in their names, but those are left out.
fn name_of(folder: &str, file: &OsStr) -> String {
    format!("{folder}.{}", file.to_string_lossy()).replace('/', ".")
}

/// The kernel tells a value in one read, or as much of it as there is room for.
fn value<'b>(files: &Folder, name: &OsStr, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
    let file = files.file(name)?;
    let mut length = 0;
    for room in [SHORT_BYTES, buffer.len()] {
        length = file.read_at(buffer.get_mut(..room).unwrap_or_default(), 0)?;
        if length < room {
            break;
        }
    }
    Ok(buffer.get(..length).unwrap_or_default())
}

fn is_write_only(path: &Path) -> bool {
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
        let settings = settings(&Selection::All);
        assert!(settings.complete);
        let somaxconn = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
        assert_eq!(settings.get("net.core.somaxconn"), Setting::Is(somaxconn.trim()));
        assert_eq!(settings.numbers("net.ipv4.tcp_rmem").get().map(Vec::len), Some(3));
        assert_eq!(settings.get("net.ipv4.tcp_tw_recycle"), Setting::Absent);
        assert!(matches!(settings.get("net.ipv4.tcp_fastopen_key"), Setting::Unknown(_)));
        assert_eq!(settings.get("net.ipv4.route.flush"), Setting::Absent, "it is a button");
    }
    #[test]
    fn of_named_ones_as_much_is_known_as_of_all() {
        let names = [
            "net.core.somaxconn",
            "net.ipv4.tcp_rmem",
            "net.ipv4.conf.all.rp_filter",
            "net.ipv4.tcp_fastopen_key",
            "net.ipv4.tcp_tw_recycle",
            "vm.swappiness",
        ];
        let named = settings(&Selection::named(names.into_iter().chain(["net.ipv4.route.flush"])));
        let all = settings(&Selection::All);
        for name in names {
            assert_eq!(named.get(name), all.get(name), "{name}");
        }
        assert_eq!(named.values.len(), 4, "{named:?}");
        assert_eq!(named.get("net.core.rmem_max"), Setting::Unknown("not collected"));
    }

    #[test]
    fn what_is_no_name_of_a_setting_is_not_looked_for() {
        let odd = ["", ".", "somaxconn", "net.core.", "net.core.../x", "net.ipv4.conf.*.rp_filter"];
        let more = ["kernel.panic", "fs.inotify", "net.ipv4.conf.eth0.rp_filter", "net/core.x"];
        let none = Selection::named(odd.into_iter().chain(more));
        assert_eq!(none, Selection::Named(BTreeMap::new()));
        let many: Vec<String> = (0..=NAMED_MAX).map(|n| format!("net.core.x{n}")).collect();
        assert_eq!(Selection::named(many.iter().map(String::as_str)), Selection::All);
    }
}
