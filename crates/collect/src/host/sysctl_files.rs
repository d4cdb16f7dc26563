//! Finds the files that set kernel parameters at boot, in the order in which they apply.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use diagnose::facts::{Known, SysctlFile};

use crate::file::read;

/// sysctl.d(5): files of these folders apply in the order of their names, whichever folder they
/// are in; of two with the same name, the one in the earlier folder counts.
const FOLDERS: &[&str] = &[
    "/etc/sysctl.d",
    "/run/sysctl.d",
    "/usr/local/lib/sysctl.d",
    "/usr/lib/sysctl.d",
    "/lib/sysctl.d",
];

/// `sysctl --system` reads it last. systemd reads it through the link `/etc/sysctl.d/99-sysctl.conf`.
const LAST: &str = "/etc/sysctl.conf";

/// Larger than any such file that a person wrote.
const FILE_MAX_BYTES: usize = 1024 * 1024;

/// More than any distribution has.
const FILES_MAX: usize = 256;

pub(crate) fn sysctl_files() -> Known<Vec<SysctlFile>> {
    let mut files = Vec::new();
    for path in in_order(FOLDERS.iter().map(Path::new), Path::new(LAST)) {
        match read(&path) {
            Ok(text) if text.len() > FILE_MAX_BYTES => {
                return Known::unknown(format!(
                    "{}: larger than {FILE_MAX_BYTES} bytes",
                    path.display()
                ));
            }
            Ok(text) => files.push(SysctlFile { path: path.display().to_string(), text }),
            Err(why) => return Known::Unknown(why),
        }
    }
    Known::Is(files)
}

fn in_order<'a>(folders: impl Iterator<Item = &'a Path>, last: &Path) -> Vec<PathBuf> {
    let mut by_name: BTreeMap<_, PathBuf> = BTreeMap::new();
    for folder in folders {
        for file in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            if file.path().extension().is_some_and(|extension| extension == "conf") {
                by_name.entry(file.file_name()).or_insert_with(|| file.path());
            }
        }
    }
    // A link to /dev/null masks a file of that name, and the last file is read once.
    let real = |path: &Path| path.canonicalize().ok();
    let mut paths: Vec<PathBuf> = by_name.into_values().take(FILES_MAX).collect();
    paths.retain(|path| match real(path) {
        Some(target) => target != Path::new("/dev/null") && Some(target) != real(last),
        None => false,
    });
    if last.exists() {
        paths.push(last.to_path_buf());
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_order_them_and_folders_decide_between_equals() {
        let root = std::env::temp_dir().join(format!("weir-sysctl-{}", std::process::id()));
        let (etc, lib) = (root.join("etc"), root.join("lib"));
        for folder in [&etc, &lib] {
            std::fs::create_dir_all(folder).unwrap();
        }
        let last = root.join("sysctl.conf");
        for path in [
            etc.join("60-own.conf"),
            etc.join("README"),
            lib.join("10-base.conf"),
            lib.join("60-own.conf"),
            lib.join("70-masked.conf"),
            last.clone(),
        ] {
            std::fs::write(path, "").unwrap();
        }
        std::os::unix::fs::symlink("/dev/null", etc.join("70-masked.conf")).unwrap();
        std::os::unix::fs::symlink(&last, etc.join("99-sysctl.conf")).unwrap();
        let order = in_order([etc.as_path(), lib.as_path()].into_iter(), &last);
        std::fs::remove_dir_all(&root).unwrap();
        assert_eq!(order, [lib.join("10-base.conf"), etc.join("60-own.conf"), last]);
    }
}
