//! Hands descriptors over to a program that this one starts: listening sockets, a file in memory.
//!
//! The caller decides what is handed over, and when. The started program finds a descriptor under
//! the same number as here; the numbers are passed in whatever the caller lets it read.

#![allow(unsafe_code, reason = "a descriptor that comes by number has no owner the compiler knows")]

use std::fs::File;
use std::io::{self, PipeWriter, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::process::{Child, Command};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};

/// Standard input, output and error: never handed over by number.
const STANDARD_STREAMS: RawFd = 3;

/// Returns a file in memory that contains `bytes` and cannot be changed any more. It has no path
/// and is gone with its last descriptor.
///
/// # Errors
/// When there is no descriptor or no memory left, or `name` is longer than the 249 bytes that the
/// kernel takes.
pub fn memory_file(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    let descriptor = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    let mut file = File::from(descriptor);
    file.write_all(bytes)?;
    file.seek(SeekFrom::Start(0))?;
    let seals = SealFlags::WRITE | SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
    fcntl_add_seals(&file, seals)?;
    Ok(file.into())
}

/// Returns the contents of a file in memory, at most `max_bytes`.
///
/// # Errors
/// `FileTooLarge` when it contains more than `max_bytes`, else the read error.
pub fn read_memory_file(descriptor: OwnedFd, max_bytes: u64) -> io::Result<Vec<u8>> {
    let file = File::from(descriptor);
    if file.metadata()?.len() > max_bytes {
        return Err(io::Error::from(io::ErrorKind::FileTooLarge));
    }
    let mut bytes = Vec::new();
    file.take(max_bytes).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns whether another end of this pipe is still open for reading, in any process.
///
/// # Errors
/// The kernel has no memory for it.
pub fn is_read(pipe: &PipeWriter) -> io::Result<bool> {
    let mut watched = [PollFd::new(pipe, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut watched, Some(&at_once))?;
    let [pipe] = watched;
    Ok(!pipe.revents().contains(PollFlags::ERR))
}

/// Starts `command` with these descriptors open in it, under the numbers that they have here.
/// Every other descriptor of this program is close-on-exec and stays behind.
///
/// # Errors
/// When the program is not there or cannot be run, or there is no process or memory left for it.
pub fn spawn(mut command: Command, descriptors: &[BorrowedFd<'_>]) -> io::Result<Child> {
    use std::os::unix::process::CommandExt as _;
    let numbers: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let keep_open = move || {
        for &number in &numbers {
            // SAFETY: `spawn` borrows the descriptors until the child has been made, and the child
            // has a copy of each; it is not closed while it is borrowed here.
            let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
            fcntl_setfd(descriptor, FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec only async-signal-safe calls may be made. The closure makes one
    // system call a descriptor, reads memory that was there before the fork, and allocates nothing;
    // an error becomes an `io::Error` of its number, without allocation too.
    unsafe { command.pre_exec(keep_open) };
    // `command`, and the closure with it, ends here: it cannot be run again without them.
    command.spawn()
}

/// Takes ownership of a descriptor that the process which started this program left open under
/// `number`. Must be called before anything else could take it; a second call for the same one
/// fails.
///
/// # Errors
/// `InvalidInput` for a standard stream, `AlreadyExists` when this program opened or took it
/// itself, `EBADF` when no descriptor is open under `number`.
pub fn inherited(number: RawFd) -> io::Result<OwnedFd> {
    if number < STANDARD_STREAMS {
        return Err(io::Error::from(io::ErrorKind::InvalidInput));
    }
    // SAFETY: borrowed for the two calls below, which fail if no such descriptor is open; nothing
    // closes it meanwhile, see the next comment.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    let flags = fcntl_getfd(borrowed)?;
    if flags.contains(FdFlags::CLOEXEC) {
        // One that this program opened itself, or that was taken before.
        return Err(io::Error::from(io::ErrorKind::AlreadyExists));
    }
    fcntl_setfd(borrowed, FdFlags::CLOEXEC)?;
    // SAFETY: it is open. All that this program opens is close-on-exec from its first moment (the
    // standard library's rule, and this project's), and this one was not, so it came by
    // inheritance and has no owner here; now that it is close-on-exec, it is not given out twice.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsFd, IntoRawFd};
    use std::process::Stdio;

    #[test]
    fn a_file_in_memory_holds_what_was_written_and_changes_no_more() {
        let file = memory_file("test", b"some bytes").unwrap();
        let mut writer = File::from(file.try_clone().unwrap());
        assert!(writer.write_all(b"more").is_err());
        assert_eq!(read_memory_file(file.try_clone().unwrap(), 10).unwrap(), b"some bytes");
        assert!(read_memory_file(file, 9).is_err());
    }

    #[test]
    fn a_child_finds_what_was_handed_over_and_nothing_else() {
        let handed = memory_file("handed", b"for the child").unwrap();
        let kept = memory_file("kept", b"not for the child").unwrap();
        let mut shell = Command::new("sh");
        let (one, other) = (handed.as_raw_fd(), kept.as_raw_fd());
        shell.arg("-c").arg(format!("cat <&{one}; cat <&{other} || echo -n ' alone'"));
        shell.stdout(Stdio::piped()).stderr(Stdio::null());
        let child = spawn(shell, &[handed.as_fd()]).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "for the child alone");
        // Here nothing has changed: the next child does not inherit it.
        assert!(fcntl_getfd(&handed).unwrap().contains(FdFlags::CLOEXEC));
    }

    #[test]
    fn only_what_was_inherited_can_be_taken_and_only_once() {
        let own = memory_file("own", b"").unwrap();
        assert!(inherited(own.as_raw_fd()).is_err());
        for number in [-1, 0, 2, 1_000_000] {
            assert!(inherited(number).is_err(), "{number}");
        }
        // As after an exec.
        let left_open = own.try_clone().unwrap();
        fcntl_setfd(&left_open, FdFlags::empty()).unwrap();
        let number = left_open.into_raw_fd();
        let taken = inherited(number).unwrap();
        assert!(inherited(number).is_err());
        drop(taken);
    }
}
