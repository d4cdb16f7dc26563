//! Signals to a process that this one has started.

use std::io;

use rustix::process::{Pid, Signal, kill_process};

/// What a process may be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// SIGTERM: to finish and to end.
    Terminate,
    /// SIGHUP: to load its configuration and to open its log anew.
    HangUp,
}

/// Sends the signal to the process of that number. Only for one whose end has not been waited for
/// yet: its number cannot have become another's.
///
/// # Errors
/// When there is no such process, or it is somebody else's.
pub fn signal(pid: u32, ask: Ask) -> io::Result<()> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or(io::ErrorKind::InvalidInput)?;
    let signal = match ask {
        Ask::Terminate => Signal::TERM,
        Ask::HangUp => Signal::HUP,
    };
    Ok(kill_process(pid, signal)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_gets_what_it_is_sent() {
        for (ask, number) in [(Ask::Terminate, libc::SIGTERM), (Ask::HangUp, libc::SIGHUP)] {
            let mut child = Command::new("sleep").arg("60").spawn().unwrap();
            signal(child.id(), ask).unwrap();
            assert_eq!(child.wait().unwrap().signal(), Some(number));
        }
        assert!(signal(0, Ask::Terminate).is_err(), "that would be every process of the group");
        assert!(signal(u32::MAX, Ask::Terminate).is_err());
    }
}
