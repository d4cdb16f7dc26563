//! Finds the programs that hold sockets (inode → process) in one pass over the descriptors of all
//! processes, which ends once all requested sockets are found.

use std::collections::BTreeSet;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;

use diagnose::facts::{Known, ProcessLimit};
use os::folder::Folder;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::file::{read, reason};
use crate::text::process::{open_files_max, socket_inode, started_ticks};

/// Descriptors looked at in one process in the first walk. Programs open their listening sockets
/// early, and a balancer may have 100,000 more behind them.
const FIRST_LOOK_MAX: usize = 512;

/// Descriptors looked at in all, in the second walk, which is for those that open late. Each takes
/// some five microseconds, and a listener that is a container's or the kernel's is never found.
const SECOND_LOOK_MAX: usize = 8_192;

/// Longer than `socket:[18446744073709551615]`.
const LINK_BYTES: usize = 64;

/// A process that holds a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) pid: u32,
    pub(crate) name: String,
    /// Milliseconds since the machine started.
    pub(crate) started_at_ms: Option<u64>,
}

/// Who holds what.
#[derive(Debug, Default)]
pub(crate) struct Holders {
    found: FxHashMap<u64, Program>,
    /// Processes whose descriptors are not shown to this user.
    hidden: usize,
    /// Whether some descriptors of those that are shown were not looked at.
    is_cut: bool,
}

/// The numbers of all processes, ascending.
pub(crate) fn pids(proc: &Folder) -> Vec<u32> {
    let mut pids: Vec<u32> = Vec::new();
    // Where it ends early, those seen so far are those that are shown.
    let _ = proc.each(|entry| {
        pids.extend(entry.name.to_str().and_then(|name| name.parse::<u32>().ok()));
        ControlFlow::Continue(())
    });
    pids.sort_unstable();
    pids
}

/// Finds the processes that hold the sockets `inodes`, the one of the lowest number for each.
pub(crate) fn holders(inodes: impl IntoIterator<Item = u64>) -> Holders {
    let mut wanted: FxHashSet<u64> = inodes.into_iter().filter(|&inode| inode != 0).collect();
    let mut holders = Holders::default();
    if wanted.is_empty() {
        return holders;
    }
    // Without it, no owner is shown.
    let Ok(proc) = Folder::open("/proc") else { return holders };
    let mut longer = Vec::new();
    for pid in pids(&proc) {
        if wanted.is_empty() {
            return holders;
        }
        match walk(&proc, pid, 0..FIRST_LOOK_MAX, &mut wanted, &mut holders.found) {
            Ok(looked) if looked >= FIRST_LOOK_MAX => longer.push(pid),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                holders.hidden += 1;
            }
            // Looked through, or ended meanwhile.
            _ => {}
        }
    }
    let mut left = SECOND_LOOK_MAX;
    for pid in longer {
        if wanted.is_empty() {
            break;
        }
        if left == 0 {
            holders.is_cut = true;
            break;
        }
        let part = FIRST_LOOK_MAX..FIRST_LOOK_MAX + left;
        let looked = walk(&proc, pid, part, &mut wanted, &mut holders.found);
        left = left.saturating_sub(looked.unwrap_or(0));
        holders.is_cut |= left == 0 && !wanted.is_empty();
    }
    holders
}

/// Looks at descriptors of one process, those of `part` in the order of the kernel; yields at how
/// many. A process that does not show the first shows none.
fn walk(
    proc: &Folder,
    pid: u32,
    part: std::ops::Range<usize>,
    wanted: &mut FxHashSet<u64>,
    found: &mut FxHashMap<u64, Program>,
) -> io::Result<usize> {
    let descriptors = proc.folder(format!("{pid}/fd"))?;
    let mut program = None;
    let mut seen = 0;
    let mut hidden = None;
    descriptors.each(|descriptor| {
        if seen >= part.end {
            return ControlFlow::Break(());
        }
        seen += 1;
        if seen <= part.start {
            return ControlFlow::Continue(());
        }
        match descriptors.link(descriptor.name, &mut [0; LINK_BYTES]) {
            Ok(link) => {
                if let Some(inode) = socket_inode(link.as_bytes())
                    && wanted.remove(&inode)
                {
                    let program = program.get_or_insert_with(|| self::program(pid));
                    found.insert(inode, program.clone());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => hidden = Some(error),
            // Closed meanwhile.
            Err(_) => {}
        }
        if wanted.is_empty() || hidden.is_some() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    })?;
    hidden.map_or(Ok(seen.saturating_sub(part.start)), Err)
}

fn program(pid: u32) -> Program {
    let name = read(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned();
    let ticks = read(format!("/proc/{pid}/stat")).ok().and_then(|stat| started_ticks(&stat));
    let started_at_ms =
        ticks.map(|ticks| ticks.saturating_mul(1000) / os::clock::ticks_per_second().max(1));
    Program { pid, name, started_at_ms }
}

impl Holders {
    /// Who holds the socket `inode`, or why that is not known.
    pub(crate) fn of(&self, inode: u64) -> Result<&Program, String> {
        self.found.get(&inode).ok_or_else(|| match self.hidden {
            0 if self.is_cut => {
                "not among the first open files of any process, and there are too many to look at"
                    .to_owned()
            }
            0 => "no process that is shown here holds it".to_owned(),
            1 => "the descriptors of one process are not shown to this user".to_owned(),
            hidden => {
                format!("{hidden} processes show their descriptors to root or to their owner only")
            }
        })
    }

    /// Limits on open files of those found, a line a process.
    pub(crate) fn limits(&self) -> Vec<ProcessLimit> {
        let processes: BTreeSet<(u32, &str)> =
            self.found.values().map(|program| (program.pid, &*program.name)).collect();
        let limit = |(pid, name): (u32, &str)| {
            let limits = read(format!("/proc/{pid}/limits")).ok()?;
            Some(ProcessLimit {
                program: name.to_owned(),
                pid,
                open_files_max: open_files_max(&limits)?,
                open_files: open_files(pid),
            })
        };
        processes.into_iter().filter_map(limit).collect()
    }
}

/// How many descriptors a process has open: the size of the folder since Linux 6.2, its entries
/// before.
fn open_files(pid: u32) -> Known<u64> {
    let path = format!("/proc/{pid}/fd");
    let counted = std::fs::metadata(&path).and_then(|folder| match folder.len() {
        0 => std::fs::read_dir(&path).map(|entries| entries.count() as u64),
        count => Ok(count),
    });
    match counted {
        Ok(count) => Known::Is(count),
        Err(error) => Known::unknown(format!("{path}: {}", reason(&error))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::fd::AsRawFd;

    #[test]
    fn a_listener_is_found_with_its_program() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let link = std::fs::read_link(format!("/proc/self/fd/{}", listener.as_raw_fd())).unwrap();
        let inode = socket_inode(link.as_os_str().as_bytes()).unwrap();
        let holders = holders([inode, 0]);
        let program = holders.of(inode).unwrap();
        assert_eq!(program.pid, std::process::id());
        let now_ms = os::clock::since_boot().as_millis() as u64;
        assert!(program.started_at_ms.is_some_and(|at| at > 0 && at <= now_ms), "{program:?}");
        let limits = holders.limits();
        assert_eq!(limits.len(), 1);
        assert_eq!(limits[0].open_files_max, os::limits::nofile().0);
        assert!(limits[0].open_files.get().is_some_and(|&open| open >= 4), "{limits:?}");
    }

    #[test]
    fn a_socket_that_nobody_holds_is_nobodys() {
        let holders = holders([u64::MAX]);
        assert!(holders.of(u64::MAX).is_err());
        assert!(holders.limits().is_empty());
    }
}
