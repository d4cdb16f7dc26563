//! Drops root privileges after the ports are bound.

#![allow(unsafe_code, reason = "the C library alone changes ids in every thread at once")]

use std::ffi::c_int;
use std::fmt;
use std::io;

use crate::accounts;

/// Switches to `user`, with `group` (default: the user's own) and the supplementary groups in
/// /etc/group, in every thread of the process, irrevocably. Call it before threads are
/// started, so that none temporarily has more rights than the others. A process that has these IDs
/// already keeps the supplementary groups that it has.
///
/// Afterwards, ports below 1024 can no longer be bound, unless the program's file has
/// `CAP_NET_BIND_SERVICE`: a reload that adds such a listener fails with the message of
/// [`crate::listen`].
///
/// # Errors
/// [`SwitchError`] contains the step that failed. With [`SwitchError::Refused`] or
/// [`SwitchError::NotIrrevocable`] the process may have some of the new IDs: stop it.
pub fn switch(user: &str, group: Option<&str>) -> Result<(), SwitchError> {
    let (uid, gid) = ids(user, group)?;
    if uid != 0 && has_only(uid, gid) {
        return Ok(());
    }
    let groups = accounts::groups_of(user, gid)
        .map_err(|source| SwitchError::Lookup { name: user.to_owned(), source })?;
    change(uid, gid, &groups)
        .map_err(|source| SwitchError::Refused { user: user.to_owned(), source })?;
    if uid != 0 && can_return_to_root() {
        return Err(SwitchError::NotIrrevocable);
    }
    Ok(())
}

/// Returns the IDs of the user and the group that [`switch`] would switch to.
///
/// # Errors
/// When there is no such user or group, or /etc/passwd or /etc/group cannot be read.
pub fn ids(user: &str, group: Option<&str>) -> Result<(u32, u32), SwitchError> {
    let (uid, own_gid) = find_user(user)?;
    let gid = match group {
        Some(name) => find_group(name)?,
        None => own_gid,
    };
    Ok((uid, gid))
}

/// Returns the ID of a group.
///
/// # Errors
/// When there is no such group, or /etc/group cannot be read.
pub fn group_id(group: &str) -> Result<u32, SwitchError> {
    find_group(group)
}

/// Why the process could not switch users.
#[derive(Debug)]
pub enum SwitchError {
    /// No such user in /etc/passwd.
    UnknownUser(String),
    /// No such group in /etc/group.
    UnknownGroup(String),
    /// The file could not be read.
    Lookup {
        /// The requested user or group.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// The kernel refused.
    Refused {
        /// The requested user.
        user: String,
        /// The system's error.
        source: io::Error,
    },
    /// The change was made, but root can be regained.
    NotIrrevocable,
}

impl fmt::Display for SwitchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SwitchError::UnknownUser(name) => {
                write!(f, "cannot run as user {name:?}: /etc/passwd has no such user")
            }
            SwitchError::UnknownGroup(name) => {
                write!(f, "cannot run as group {name:?}: /etc/group has no such group")
            }
            SwitchError::Lookup { name, source } => {
                write!(f, "cannot look up {name:?} in the system's users and groups: {source}")
            }
            SwitchError::Refused { user, source } => write!(
                f,
                "cannot become user {user:?}: {source}; only root, or CAP_SETUID with CAP_SETGID, \
                 may"
            ),
            SwitchError::NotIrrevocable => {
                f.write_str("privileges were dropped but could be taken back; refusing to go on")
            }
        }
    }
}

impl std::error::Error for SwitchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SwitchError::Lookup { source, .. } | SwitchError::Refused { source, .. } => {
                Some(source)
            }
            _ => None,
        }
    }
}

type Uid = libc::uid_t;
type Gid = libc::gid_t;

/// Sets all IDs. Groups first: without root the process may no longer change them.
fn change(uid: Uid, gid: Gid, groups: &[Gid]) -> io::Result<()> {
    // SAFETY: the list is valid for reading during the call. The C library applies it to all
    // threads, where the bare system call would change the calling one only.
    succeeded(unsafe { libc::setgroups(groups.len(), groups.as_ptr()) })?;
    // SAFETY: takes plain numbers; applied to all threads, too.
    succeeded(unsafe { libc::setresgid(gid, gid, gid) })?;
    // SAFETY: as above.
    succeeded(unsafe { libc::setresuid(uid, uid, uid) })
}

/// Returns whether all IDs of the process are these: real, effective and saved.
fn has_only(uid: Uid, gid: Gid) -> bool {
    let (mut uids, mut gids) = ([0; 3], [0; 3]);
    let [real, effective, saved] = &mut uids;
    // SAFETY: the three numbers are valid for writing during the call.
    let users = succeeded(unsafe { libc::getresuid(real, effective, saved) });
    let [real, effective, saved] = &mut gids;
    // SAFETY: as above.
    let groups = succeeded(unsafe { libc::getresgid(real, effective, saved) });
    users.is_ok() && groups.is_ok() && uids == [uid; 3] && gids == [gid; 3]
}

fn can_return_to_root() -> bool {
    // SAFETY: takes a plain number; when it succeeds the caller stops the program.
    unsafe { libc::setuid(0) == 0 }
}

fn succeeded(result: c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn find_user(user: &str) -> Result<(Uid, Gid), SwitchError> {
    let found = accounts::user(user);
    let found = found.map_err(|source| SwitchError::Lookup { name: user.to_owned(), source })?;
    found.ok_or_else(|| SwitchError::UnknownUser(user.to_owned()))
}

fn find_group(group: &str) -> Result<Gid, SwitchError> {
    let found = accounts::group(group);
    let found = found.map_err(|source| SwitchError::Lookup { name: group.to_owned(), source })?;
    found.ok_or_else(|| SwitchError::UnknownGroup(group.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn users_and_groups_are_found_by_name() {
        assert_eq!(find_user("root").unwrap(), (0, 0));
        assert_eq!(find_group("root").unwrap(), 0);
        let error = switch("no-such-user", None).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot run as user \"no-such-user\": /etc/passwd has no such user"
        );
        let error = switch("root", Some("no-such-group")).unwrap_err();
        assert!(matches!(error, SwitchError::UnknownGroup(_)), "{error}");
        assert!(matches!(switch("nul\0", None), Err(SwitchError::UnknownUser(_))));
    }

    const CHILD: &str = "WEIR_TEST_SWITCH_CHILD";

    /// IDs belong to the whole process, so the change is made in a child: this test again.
    #[test]
    fn it_changes_every_thread_irrevocably_or_reports_missing_privilege() {
        if std::env::var_os(CHILD).is_some() {
            return child();
        }
        let child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "privileges::tests::it_changes_every_thread_irrevocably_or_reports_missing_privilege",
            ])
            .arg("--nocapture")
            .env(CHILD, "1")
            .output()
            .unwrap();
        let output = String::from_utf8_lossy(&child.stdout);
        assert!(child.status.success(), "{output}");
        assert!(output.contains("child has run"), "{output}");
    }

    fn child() {
        let as_root = rustix::process::geteuid().is_root();
        let (change_now, changed) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            let _ = changed.recv();
            std::fs::read_to_string("/proc/thread-self/status").unwrap()
        });
        let result = switch("nobody", None);
        change_now.send(()).unwrap();
        let status = other.join().unwrap();
        if as_root {
            result.unwrap();
            let (uid, gid) = find_user("nobody").unwrap();
            assert!(status.contains(&format!("Uid:\t{uid}\t{uid}\t{uid}")), "{status}");
            assert!(status.contains(&format!("Gid:\t{gid}\t{gid}\t{gid}")), "{status}");
        } else {
            let message = result.unwrap_err().to_string();
            assert!(message.contains("only root"), "{message}");
        }
        println!("child has run");
    }
}
