//! Lists the network namespaces and their names.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use os::folder::Folder;
use os::namespace::Namespace;

use crate::file::{read, reason};

/// Which network namespaces are looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Which {
    /// Every one that this process may enter; its own at least.
    #[default]
    All,
    /// The one it is in.
    Own,
    /// One: a name of /run/netns, or the number of a process.
    Named(String),
}

/// A host of thousands of containers is looked at in part, and it is said so.
const NAMESPACES_MAX: usize = 256;

/// Where `ip netns` keeps its names.
const NAMED: &str = "/run/netns";

/// Longer than `net:[18446744073709551615]`.
const LINK_BYTES: usize = 64;

/// A namespace that will be looked at.
#[derive(Debug)]
pub(crate) struct Place {
    /// Held open; `None` for the own.
    pub(crate) entrance: Option<Namespace>,
    pub(crate) inode: u64,
    /// Empty for the own.
    pub(crate) name: String,
}

/// What is to be looked at, the own first; and why not all of the others are among them.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) places: Vec<Place>,
    /// The own, for who comes back from others; `None` where there are none.
    pub(crate) home: Option<Namespace>,
    pub(crate) left_out: Option<String>,
}

/// Finds them. Fails when a named one is not there, or may not be entered.
pub(crate) fn find(which: &Which) -> Result<Found, String> {
    let own = Namespace::current()
        .map_err(|error| format!("this program's own network namespace: {}", reason(&error)))?;
    match which {
        Which::Own => Ok(Found::alone(&own, None)),
        Which::Named(name) => named(name, own),
        Which::All => Ok(all(own)),
    }
}

impl Found {
    /// The own and no other.
    fn alone(own: &Namespace, left_out: Option<String>) -> Found {
        Found { places: vec![own_place(own)], home: None, left_out }
    }
}

fn own_place(own: &Namespace) -> Place {
    Place { entrance: None, inode: own.inode(), name: String::new() }
}

fn named(name: &str, own: Namespace) -> Result<Found, String> {
    let path = match name.parse::<u32>() {
        Ok(pid) => PathBuf::from(format!("/proc/{pid}/ns/net")),
        Err(_) if name.contains('/') => PathBuf::from(name),
        Err(_) => Path::new(NAMED).join(name),
    };
    let namespace = Namespace::open(&path)
        .and_then(|namespace| namespace.inside(|| ()).map(|()| namespace))
        .map_err(|error| {
            format!("network namespace {name}: {}: {}", path.display(), reason(&error))
        })?;
    if namespace.inode() == own.inode() {
        return Ok(Found::alone(&own, None));
    }
    let inode = namespace.inode();
    let place = Place { entrance: Some(namespace), inode, name: name.to_owned() };
    Ok(Found { places: vec![place], home: Some(own), left_out: None })
}

fn all(own: Namespace) -> Found {
    // One that may be entered at all is entered without harm; who may not, learns it here once.
    if let Err(error) = own.enter() {
        let why = format!(
            "entering another takes root (CAP_SYS_ADMIN): {}; only the own was looked at",
            reason(&error)
        );
        return Found::alone(&own, Some(why));
    }
    let mut places = vec![own_place(&own)];
    let mut entrances: BTreeMap<u64, (PathBuf, String)> = BTreeMap::new();
    let hidden = through_processes(&mut entrances);
    // Names that people gave count more than those of programs.
    for file in std::fs::read_dir(NAMED).into_iter().flatten().flatten() {
        if let Ok(namespace) = Namespace::open(&file.path()) {
            let name = file.file_name().to_string_lossy().into_owned();
            entrances.insert(namespace.inode(), (file.path(), name));
        }
    }
    entrances.remove(&own.inode());
    let more = entrances.len().saturating_sub(NAMESPACES_MAX);
    let mut failed = Vec::new();
    for (inode, (path, name)) in entrances.into_iter().take(NAMESPACES_MAX) {
        match Namespace::open(&path) {
            // A process may have ended and its number been given to another.
            Ok(namespace) if namespace.inode() == inode => {
                places.push(Place { entrance: Some(namespace), inode, name });
            }
            Ok(_) => {}
            Err(error) => failed.push(format!("{name}: {}", reason(&error))),
        }
    }
    let mut left_out = Vec::new();
    if hidden > 0 {
        let processes = if hidden == 1 { "process is" } else { "processes are" };
        left_out.push(format!("those of {hidden} {processes} not shown to this user"));
    }
    if more > 0 {
        left_out.push(format!("{more} more than the {NAMESPACES_MAX} that are looked at"));
    }
    if !failed.is_empty() {
        left_out.push(failed.join(", "));
    }
    let home = (places.len() > 1).then_some(own);
    Found { places, home, left_out: (!left_out.is_empty()).then(|| left_out.join("; ")) }
}

/// Those in which processes are, by inode, named after the first one; yields how many processes do
/// not show theirs.
fn through_processes(entrances: &mut BTreeMap<u64, (PathBuf, String)>) -> usize {
    let mut hidden = 0;
    let Ok(proc) = Folder::open("/proc") else { return hidden };
    for pid in crate::programs::pids(&proc) {
        let path = format!("{pid}/ns/net");
        match proc.link(&path, &mut [0; LINK_BYTES]).map(inode_of) {
            Ok(inode) => {
                let Some(inode) = inode else { continue };
                entrances.entry(inode).or_insert_with(|| {
                    let comm = read(format!("/proc/{pid}/comm")).unwrap_or_default();
                    let name = format!("{} (process {pid})", comm.trim());
                    (Path::new("/proc").join(path), name)
                });
            }
            // It has ended meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(_) => hidden += 1,
        }
    }
    hidden
}

/// The number in `net:[4026531840]`.
fn inode_of(link: &OsStr) -> Option<u64> {
    link.to_str()?.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()
}

impl Place {
    /// Does `work` in it. The calling thread stays there: who has seen all goes `home`, which is
    /// that of [`Found`].
    pub(crate) fn inside<R>(
        &self,
        home: Option<&Namespace>,
        work: impl FnOnce() -> R,
    ) -> Result<R, String> {
        if let Some(entrance) = self.entrance.as_ref().or(home) {
            entrance.enter().map_err(|error| {
                format!("entering network namespace {}: {}", self.name, reason(&error))
            })?;
        }
        Ok(work())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_is_first_and_named_by_nothing() {
        for which in [Which::Own, Which::All] {
            let found = find(&which).unwrap();
            assert!(found.places[0].entrance.is_none() && found.places[0].name.is_empty());
            assert_eq!(found.places[0].inode, Namespace::current().unwrap().inode());
        }
    }

    #[test]
    fn one_that_is_not_there_is_said_to_be_so() {
        let error = find(&Which::Named("no-such".to_owned())).unwrap_err();
        assert_eq!(
            error,
            "network namespace no-such: /run/netns/no-such: No such file or directory"
        );
    }

    #[test]
    fn inodes_are_read_from_links() {
        let inode_of = |link| inode_of(OsStr::new(link));
        assert_eq!(inode_of("net:[4026531840]"), Some(4_026_531_840));
        assert_eq!(inode_of("mnt:[1]"), None);
        assert_eq!(inode_of("net:[]"), None);
    }
}
