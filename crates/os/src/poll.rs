//! Readiness of many sockets (epoll, level-triggered), with timeouts of microsecond precision.
//!
//! For the load generator, whose requests must start on time: tokio's timer, and `epoll_wait`'s own
//! argument, count in milliseconds. And for idle connections, for which the runtime's registration
//! would use too much memory.

#![allow(unsafe_code, reason = "rustix offers epoll_pwait2 only to programs that need Linux 5.11")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::epoll;

/// Maximum number of events per wait.
const EVENTS_MAX: usize = 512;

/// Whether this kernel lacks `epoll_pwait2` (before Linux 5.11), or a filter forbids it.
static COARSE: AtomicBool = AtomicBool::new(false);

/// The events to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Data, the end of the stream, an error.
    Read,
    /// The same, and room for writing; also the end of a connection attempt.
    ReadWrite,
}

/// What a socket is ready for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ready {
    /// The token under which it was added.
    pub token: u64,
    /// A read would not block: data, the end of the stream, or an error.
    pub readable: bool,
    /// A write would not block, or the connection attempt has ended.
    pub writable: bool,
}

/// Sockets and the events they are waiting for.
#[derive(Debug)]
pub struct Poller {
    epoll: OwnedFd,
    events: Vec<libc::epoll_event>,
    ready: usize,
}

impl Poller {
    /// Returns a poller without sockets.
    ///
    /// # Errors
    /// When there is no descriptor left.
    pub fn new() -> io::Result<Poller> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let none = libc::epoll_event { events: 0, u64: 0 };
        Ok(Poller { epoll, events: vec![none; EVENTS_MAX], ready: 0 })
    }

    /// Waits for `socket` from now on, until it is closed.
    ///
    /// # Errors
    /// `AlreadyExists` when it was added before, `PermissionDenied` when it is a regular file; also
    /// when no memory is left, or `fs.epoll.max_user_watches` is reached.
    pub fn add(&self, socket: &impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token);
        Ok(epoll::add(&self.epoll, socket, data, flags(interest))?)
    }

    /// Changes the events to wait for.
    ///
    /// # Errors
    /// `NotFound` when it was not added.
    pub fn change(&self, socket: &impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token);
        Ok(epoll::modify(&self.epoll, socket, data, flags(interest))?)
    }

    /// Stops waiting for it.
    ///
    /// # Errors
    /// `NotFound` when it was not added.
    pub fn remove(&self, socket: &impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, socket)?)
    }

    /// Waits until a socket is ready, at most `time`; [`Poller::ready`] then returns which. A
    /// signal ends the wait, too.
    ///
    /// # Errors
    /// The kernel's error; a signal is no error.
    pub fn wait(&mut self, time: Duration) -> io::Result<()> {
        self.ready = 0;
        let room = self.events.len() as libc::c_int;
        let coarse = COARSE.load(Ordering::Relaxed);
        let result = if coarse {
            let millis = time.as_micros().div_ceil(1_000).min(1_000_000) as libc::c_int;
            // SAFETY: the descriptor is open for as long as `self` is borrowed, and `events` has
            // room for as many events as are requested from the kernel.
            let count = unsafe {
                libc::epoll_wait(self.epoll.as_raw_fd(), self.events.as_mut_ptr(), room, millis)
            };
            i64::from(count)
        } else {
            let time = libc::timespec {
                tv_sec: time.as_secs().min(1_000_000) as libc::time_t,
                tv_nsec: libc::c_long::from(time.subsec_nanos() as i32),
            };
            // SAFETY: as above; `time` lives across the call, and no signal mask is given.
            unsafe {
                libc::syscall(
                    libc::SYS_epoll_pwait2,
                    self.epoll.as_raw_fd(),
                    self.events.as_mut_ptr(),
                    room,
                    &raw const time,
                    std::ptr::null::<libc::sigset_t>(),
                    0_usize,
                )
            }
        };
        if let Ok(ready) = usize::try_from(result) {
            self.ready = ready.min(self.events.len());
            return Ok(());
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => Ok(()),
            Some(libc::ENOSYS | libc::EPERM) if !coarse => {
                COARSE.store(true, Ordering::Relaxed);
                self.wait(time)
            }
            _ => Err(error),
        }
    }

    /// Returns how many sockets the last wait found ready.
    pub fn len(&self) -> usize {
        self.ready
    }

    /// Returns whether the last wait found none.
    pub fn is_empty(&self) -> bool {
        self.ready == 0
    }

    /// Returns the `index`-th of them.
    pub fn ready(&self, index: usize) -> Ready {
        // A copy: the kernel's struct is packed on some architectures.
        let event = self.events[index];
        let (events, token) = (event.events, event.u64);
        let any = |bits: i32| events & bits.cast_unsigned() != 0;
        Ready {
            token,
            readable: any(libc::EPOLLIN | libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR),
            writable: any(libc::EPOLLOUT | libc::EPOLLHUP | libc::EPOLLERR),
        }
    }
}

/// Readable when one of its sockets is ready, so that pollers can be nested.
impl AsRawFd for Poller {
    fn as_raw_fd(&self) -> RawFd {
        self.epoll.as_raw_fd()
    }
}

fn flags(interest: Interest) -> epoll::EventFlags {
    let read = epoll::EventFlags::IN | epoll::EventFlags::RDHUP;
    match interest {
        Interest::Read => read,
        Interest::ReadWrite => read | epoll::EventFlags::OUT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn it_tells_what_is_ready_and_for_what() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut server = listener.accept().unwrap().0;
        let mut poller = Poller::new().unwrap();
        poller.add(&client, 7, Interest::Read).unwrap();
        poller.wait(Duration::ZERO).unwrap();
        assert!(poller.is_empty());
        poller.change(&client, 8, Interest::ReadWrite).unwrap();
        poller.wait(Duration::ZERO).unwrap();
        assert_eq!(poller.len(), 1);
        assert_eq!(poller.ready(0), Ready { token: 8, readable: false, writable: true });
        server.write_all(b"x").unwrap();
        poller.change(&client, 9, Interest::Read).unwrap();
        poller.wait(Duration::from_secs(5)).unwrap();
        assert_eq!(poller.ready(0), Ready { token: 9, readable: true, writable: false });
    }

    #[test]
    fn a_wait_of_less_than_a_millisecond_is_one() {
        let mut poller = Poller::new().unwrap();
        crate::threads::wake_precisely().unwrap();
        // The best of many: on a busy machine some take longer.
        let least = (0..200).map(|_| {
            let begun = crate::clock::nanos();
            poller.wait(Duration::from_micros(100)).unwrap();
            crate::clock::nanos() - begun
        });
        let least = least.min().unwrap();
        assert!((100_000..900_000).contains(&least), "{least} ns");
    }
}
