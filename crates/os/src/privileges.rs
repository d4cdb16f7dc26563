//! Drops root privileges after the ports are bound.

#![allow(unsafe_code, reason = "the C library alone changes ids in every thread at once")]

use std::ffi::{CString, c_char, c_int};
use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::ptr;

/// Switches to `user`, with `group` (default: the user's own) and the supplementary groups in the
/// system's databases, in every thread of the process, irrevocably. Call it before threads are
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
    change(user, uid, gid)
        .map_err(|source| SwitchError::Refused { user: user.to_owned(), source })?;
    if uid != 0 && can_return_to_root() {
        return Err(SwitchError::NotIrrevocable);
    }
    Ok(())
}

/// Returns the IDs of the user and the group that [`switch`] would switch to.
///
/// # Errors
/// When there is no such user or group, or the databases cannot be read.
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
/// When there is no such group, or the database cannot be read.
pub fn group_id(group: &str) -> Result<u32, SwitchError> {
    find_group(group)
}

/// Why the process could not switch users.
#[derive(Debug)]
pub enum SwitchError {
    /// No such user in the system's databases.
    UnknownUser(String),
    /// No such group in the system's databases.
    UnknownGroup(String),
    /// The databases could not be read.
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
            SwitchError::UnknownUser(name) => write!(
                f,
                "cannot run as user {name:?}: there is no such user; `getent passwd` lists them"
            ),
            SwitchError::UnknownGroup(name) => write!(
                f,
                "cannot run as group {name:?}: there is no such group; `getent group` lists them"
            ),
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
fn change(user: &str, uid: Uid, gid: Gid) -> io::Result<()> {
    let name = CString::new(user)?;
    // SAFETY: `name` is a NUL-terminated string that outlives the call.
    succeeded(unsafe { libc::initgroups(name.as_ptr(), gid) })?;
    // SAFETY: takes plain numbers. The C library applies it to all threads, where the bare
    // system call would change the calling one only.
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
    // SAFETY: `look_up` passes what getpwnam_r(3) asks for.
    let found = look_up::<libc::passwd>(user, |name, record, buffer, length, result| unsafe {
        libc::getpwnam_r(name, record, buffer, length, result)
    })?;
    let account = found.ok_or_else(|| SwitchError::UnknownUser(user.to_owned()))?;
    Ok((account.pw_uid, account.pw_gid))
}

fn find_group(group: &str) -> Result<Gid, SwitchError> {
    // SAFETY: `look_up` passes what getgrnam_r(3) asks for.
    let found = look_up::<libc::group>(group, |name, record, buffer, length, result| unsafe {
        libc::getgrnam_r(name, record, buffer, length, result)
    })?;
    Ok(found.ok_or_else(|| SwitchError::UnknownGroup(group.to_owned()))?.gr_gid)
}

/// Maximum length of a record's strings; a group may list many members.
const RECORD_MAX_BYTES: usize = 1 << 20;

/// Performs one call of the `getpwnam_r(3)` family, with a buffer that grows until the record fits.
/// The callback receives: a NUL-terminated name, room for the record, a buffer with its length, and
/// room for the result pointer; all valid during the call. Only the numbers of the result may be
/// read: its strings pointed into the buffer, which is gone.
fn look_up<T: Copy>(
    name: &str,
    call: impl Fn(*const c_char, *mut T, *mut c_char, usize, *mut *mut T) -> c_int,
) -> Result<Option<T>, SwitchError> {
    let fail = |source| SwitchError::Lookup { name: name.to_owned(), source };
    let c_name = CString::new(name).map_err(|e| fail(e.into()))?;
    let mut buffer: Vec<c_char> = vec![0; 4096];
    loop {
        let mut record = MaybeUninit::<T>::uninit();
        let mut result: *mut T = ptr::null_mut();
        let (room, length) = (buffer.as_mut_ptr(), buffer.len());
        match call(c_name.as_ptr(), record.as_mut_ptr(), room, length, &raw mut result) {
            0 if result.is_null() => return Ok(None),
            // SAFETY: success with a result that is not null says that the record was written.
            0 => return Ok(Some(unsafe { record.assume_init() })),
            // Documented as other ways to report "not found".
            libc::ENOENT | libc::ESRCH => return Ok(None),
            libc::EINTR => {}
            libc::ERANGE if buffer.len() < RECORD_MAX_BYTES => buffer.resize(length * 2, 0),
            error => return Err(fail(io::Error::from_raw_os_error(error))),
        }
    }
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
            "cannot run as user \"no-such-user\": there is no such user; `getent passwd` lists \
             them"
        );
        let error = switch("root", Some("no-such-group")).unwrap_err();
        assert!(matches!(error, SwitchError::UnknownGroup(_)), "{error}");
        assert!(matches!(switch("nul\0", None), Err(SwitchError::Lookup { .. })));
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
