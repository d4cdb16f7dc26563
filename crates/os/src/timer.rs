//! A timer with a descriptor (timerfd), so that it can be polled like a socket, with microsecond
//! precision.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

/// Readable once it has expired, until it is set again. Non-blocking, close-on-exec.
#[derive(Debug)]
pub struct Timer(OwnedFd);

impl Timer {
    /// Returns a timer that is not set.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn new() -> io::Result<Timer> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Ok(Timer(timerfd_create(TimerfdClockId::Monotonic, flags)?))
    }

    /// Makes it readable `after` from now, and not before; replaces an earlier setting.
    ///
    /// # Errors
    /// When the kernel refuses the time.
    pub fn set(&self, after: Duration) -> io::Result<()> {
        let none = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = Timespec {
            tv_sec: i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
            // Zero would disarm it.
            tv_nsec: i64::from(after.subsec_nanos()).max(i64::from(after.as_secs() == 0)),
        };
        let times = Itimerspec { it_interval: none, it_value: value };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &times)?;
        Ok(())
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_readable(timer: &Timer, wait: i32) -> bool {
        let mut fds = [rustix::event::PollFd::new(timer, rustix::event::PollFlags::IN)];
        let wait = rustix::time::Timespec { tv_sec: i64::from(wait), tv_nsec: 0 };
        rustix::event::poll(&mut fds, Some(&wait)).unwrap() > 0
    }

    #[test]
    fn it_is_readable_when_its_time_has_come_and_not_before() {
        let timer = Timer::new().unwrap();
        timer.set(Duration::from_secs(1000)).unwrap();
        assert!(!is_readable(&timer, 0));
        let begun = crate::clock::now();
        timer.set(Duration::from_micros(1500)).unwrap();
        assert!(is_readable(&timer, 20));
        assert!(crate::clock::now() - begun >= Duration::from_micros(1499));
        timer.set(Duration::from_secs(1000)).unwrap();
        assert!(!is_readable(&timer, 0), "set again");
        timer.set(Duration::ZERO).unwrap();
        assert!(is_readable(&timer, 20), "at once");
    }
}
