//! Signals to a child process, and resource usage of this process.

use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// A signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// SIGTERM: finish and exit.
    Terminate,
    /// SIGHUP: reload the configuration and reopen the log.
    HangUp,
    /// SIGSTOP: pause.
    Pause,
    /// SIGCONT: continue.
    GoOn,
    /// SIGKILL: end at once.
    Kill,
}

/// Sends the signal to the process with this ID. Only for a child that has not been waited for yet:
/// its ID cannot have been reused.
///
/// # Errors
/// When there is no such process, or it belongs to another user.
pub fn signal(pid: u32, ask: Ask) -> io::Result<()> {
    Ok(kill_process(id(pid)?, number(ask))?)
}

/// Sends the signal to all processes of the group with this ID. Only for the group of a child that has not been waited
/// for yet.
///
/// # Errors
/// As [`signal`].
pub fn signal_group(pid: u32, ask: Ask) -> io::Result<()> {
    Ok(kill_process_group(id(pid)?, number(ask))?)
}

fn id(pid: u32) -> io::Result<Pid> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    Ok(pid.ok_or(io::ErrorKind::InvalidInput)?)
}

fn number(ask: Ask) -> Signal {
    match ask {
        Ask::Terminate => Signal::TERM,
        Ask::HangUp => Signal::HUP,
        Ask::Pause => Signal::STOP,
        Ask::GoOn => Signal::CONT,
        Ask::Kill => Signal::KILL,
    }
}

/// CPU time of this process, over all its threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// In the program itself.
    pub user: Duration,
    /// In the kernel, for it.
    pub system: Duration,
}

/// Returns the CPU time used so far.
#[allow(unsafe_code, reason = "rustix has no getrusage")]
pub fn cpu_time() -> CpuTime {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is valid for writing a whole rusage; all zeroes is a valid one, too.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let time = |time: libc::timeval| {
        Duration::new(time.tv_sec.max(0) as u64, time.tv_usec.max(0) as u32 * 1_000)
    };
    CpuTime { user: time(usage.ru_utime), system: time(usage.ru_stime) }
}

/// Returns the kernel's release, such as `6.18.0-1-amd64`.
pub fn kernel_release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Returns this machine's name.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use super::*;

    #[test]
    fn work_shows_as_cpu_time() {
        let before = cpu_time();
        let mut sum = 0_u64;
        while cpu_time() == before {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let after = cpu_time();
        assert!(after.user + after.system > before.user + before.system, "{sum}");
        assert!(kernel_release().starts_with(|first: char| first.is_ascii_digit()));
        assert!(!host_name().is_empty());
    }

    #[test]
    fn a_process_gets_what_it_is_sent() {
        // Not a hang-up: under nohup(1) it is ignored, and children inherit that.
        for (ask, number) in [(Ask::Terminate, libc::SIGTERM), (Ask::Kill, libc::SIGKILL)] {
            let mut child = Command::new("sleep").arg("60").spawn().unwrap();
            signal(child.id(), ask).unwrap();
            assert_eq!(child.wait().unwrap().signal(), Some(number));
        }
        assert!(signal(0, Ask::Terminate).is_err(), "that would be every process of the group");
        assert!(signal(u32::MAX, Ask::Terminate).is_err());
    }
}
