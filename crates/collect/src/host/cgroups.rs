//! Reads cgroups (v1 and v2) with a CPU quota, as the file system shows them: in a container, those of
//! the container.

use std::path::{Path, PathBuf};

use diagnose::facts::{Cgroup, CgroupVersion, Known};

use crate::file::read;
use crate::text::cgroup::{self, Files};

/// Folders looked at. A host of thousands of containers is looked at in part.
const FOLDERS_MAX: usize = 4096;

/// Program names reported for each.
const PROGRAMS_MAX: usize = 5;

/// Those to look at, found once: others are not worth a read at each sample.
#[derive(Debug)]
pub(crate) struct Cgroups {
    /// Or why there is nothing to look at.
    found: Result<Vec<Group>, String>,
}

#[derive(Debug)]
struct Group {
    folder: PathBuf,
    path: String,
    version: CgroupVersion,
    is_own: bool,
}

impl Cgroups {
    /// Walks the tree of the CPU controller.
    pub(crate) fn find() -> Cgroups {
        Cgroups { found: find() }
    }

    /// What those found say now.
    pub(crate) fn read(&self) -> Known<Vec<Cgroup>> {
        match &self.found {
            Ok(groups) => Known::Is(groups.iter().map(read_group).collect()),
            Err(why) => Known::unknown(why.clone()),
        }
    }
}

fn find() -> Result<Vec<Group>, String> {
    let (root, version) = mounted(&read("/proc/self/mounts")?)
        .ok_or("no cgroup file system with the CPU controller is mounted")?;
    let own = own_path(&read("/proc/self/cgroup").unwrap_or_default(), version);
    let mut groups = Vec::new();
    let mut looked = 0;
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        looked += 1;
        if looked > FOLDERS_MAX {
            break;
        }
        let below = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        folders.extend(
            below.filter(|file| file.file_type().is_ok_and(|kind| kind.is_dir())).map(|f| f.path()),
        );
        let below_root = folder.strip_prefix(&root).unwrap_or(&folder);
        let path = Path::new("/").join(below_root).display().to_string();
        let is_own = is_above(&path, &own);
        let group = Group { folder, path, version, is_own };
        if cgroup::is_limited(&files(&group)) {
            groups.push(group);
        }
    }
    groups.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(groups)
}

/// Where the CPU controller is mounted, out of `/proc/self/mounts`.
fn mounted(mounts: &str) -> Option<(PathBuf, CgroupVersion)> {
    let mut second = None;
    for line in mounts.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [_, at, kind, options, ..] = words.as_slice() else { continue };
        match *kind {
            "cgroup" if options.split(',').any(|option| option == "cpu") => {
                return Some((PathBuf::from(at), CgroupVersion::V1));
            }
            "cgroup2" => second = Some((PathBuf::from(at), CgroupVersion::V2)),
            _ => {}
        }
    }
    second
}

/// This process's own, out of `/proc/self/cgroup`: `1:cpu,cpuacct:/path`, or `0::/path`.
fn own_path(text: &str, version: CgroupVersion) -> String {
    let of_cpu = |line: &&str| {
        let mut parts = line.splitn(3, ':');
        let (number, controllers) = (parts.next(), parts.next().unwrap_or_default());
        match version {
            CgroupVersion::V1 => controllers.split(',').any(|name| name == "cpu"),
            CgroupVersion::V2 => number == Some("0") && controllers.is_empty(),
        }
    };
    let line = text.lines().find(of_cpu).unwrap_or_default();
    line.splitn(3, ':').nth(2).unwrap_or("/").to_owned()
}

/// Whether what is in `own` is bound by the quota of `path`.
fn is_above(path: &str, own: &str) -> bool {
    path == "/" || own == path || own.strip_prefix(path).is_some_and(|rest| rest.starts_with('/'))
}

fn files(group: &Group) -> Cgroup {
    let file = |name: &str| read(group.folder.join(name));
    let (quota, period) = match group.version {
        CgroupVersion::V1 => (file("cpu.cfs_quota_us"), file("cpu.cfs_period_us")),
        CgroupVersion::V2 => (file("cpu.max"), Ok(String::new())),
    };
    let stat = file("cpu.stat");
    let files = Files {
        quota: quota.as_deref().map_err(String::as_str),
        period: period.as_deref().map_err(String::as_str),
        stat: stat.as_deref().map_err(String::as_str),
    };
    cgroup::read(group.version, &files)
}

fn read_group(group: &Group) -> Cgroup {
    let pids = read(group.folder.join("cgroup.procs")).unwrap_or_default();
    let mut programs = Vec::new();
    for pid in pids.lines().take(100) {
        if let Ok(name) = read(format!("/proc/{pid}/comm")) {
            let name = name.trim().to_owned();
            if !programs.contains(&name) && programs.len() < PROGRAMS_MAX {
                programs.push(name);
            }
        }
    }
    Cgroup { path: group.path.clone(), programs, is_own: group.is_own, ..files(group) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
        cgroup /sys/fs/cgroup/cpuacct cgroup rw,cpuacct 0 0\n\
        cgroup /sys/fs/cgroup/cpu cgroup rw,relatime,cpu 0 0\n\
        cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";

    #[test]
    fn the_controller_is_found_where_it_is_mounted() {
        let first = (PathBuf::from("/sys/fs/cgroup/cpu"), CgroupVersion::V1);
        assert_eq!(mounted(FIRST), Some(first));
        let second = mounted("cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n").unwrap();
        assert_eq!(second, (PathBuf::from("/sys/fs/cgroup"), CgroupVersion::V2));
        assert_eq!(mounted("proc /proc proc rw 0 0\nodd\n"), None);
    }

    #[test]
    fn the_own_one_and_those_above_it_bind_this_process() {
        let text = "4:memory:/m\n1:cpu,cpuacct:/a/b\n0::/c\n";
        assert_eq!(own_path(text, CgroupVersion::V1), "/a/b");
        assert_eq!(own_path(text, CgroupVersion::V2), "/c");
        assert_eq!(own_path("", CgroupVersion::V2), "/");
        assert!(is_above("/a", "/a/b") && is_above("/", "/a") && is_above("/a/b", "/a/b"));
        assert!(!is_above("/a/bc", "/a/b") && !is_above("/a/b", "/a"));
    }
}
