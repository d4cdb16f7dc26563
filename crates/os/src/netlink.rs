//! Requests a table from the kernel over netlink: one request, and its replies one by one.
//!
//! Only dumps, for callers that interpret the replies: [`crate::sock_diag`] and
//! [`crate::conntrack`].

use std::io;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::sockopt::set_socket_timeout;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto,
    socket_with,
};

/// Maximum length of one reply. A dump's messages grow with the reader's buffer, up to 32 KiB
/// (`netlink_dump` of `net/netlink/af_netlink.c`).
const BUFFER_BYTES: usize = 32 * 1024;

/// How long the kernel may be silent in the middle of a dump.
const SILENCE_MAX: std::time::Duration = std::time::Duration::from_secs(10);

/// Struct `nlmsghdr` of include/uapi/linux/netlink.h.
const HEADER_BYTES: usize = 16;

const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// `NLM_F_REQUEST | NLM_F_ROOT | NLM_F_MATCH`.
const REQUEST_DUMP: u16 = 0x1 | 0x100 | 0x200;
/// The table changed while it was read: some of it may be missing or reported twice.
const NLM_F_DUMP_INTR: u16 = 0x10;

/// A netlink socket of one protocol, in the network namespace of the thread that opened it.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

impl Netlink {
    pub(crate) fn open(protocol: Protocol) -> io::Result<Netlink> {
        let kind = SocketType::RAW;
        let socket =
            socket_with(AddressFamily::NETLINK, kind, SocketFlags::CLOEXEC, Some(protocol))?;
        let which = rustix::net::sockopt::Timeout::Recv;
        set_socket_timeout(&socket, which, Some(SILENCE_MAX))?;
        Ok(Netlink { socket, sequence: 0, buffer: vec![0; BUFFER_BYTES] })
    }

    /// Sends one request of `kind` with `payload` and passes the payload of each reply to `each`.
    /// Returns whether the table was unchanged meanwhile. If `each` breaks, the remaining replies
    /// are unread, and this socket cannot be used for another request; the caller must drop it
    /// then.
    pub(crate) fn dump(
        &mut self,
        kind: u16,
        payload: &[u8],
        each: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> io::Result<bool> {
        self.sequence += 1;
        let mut request = Vec::with_capacity(HEADER_BYTES + payload.len());
        let length = u32::try_from(HEADER_BYTES + payload.len())
            .map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
        request.extend(length.to_ne_bytes());
        request.extend(kind.to_ne_bytes());
        request.extend(REQUEST_DUMP.to_ne_bytes());
        request.extend(self.sequence.to_ne_bytes());
        request.extend(0_u32.to_ne_bytes());
        request.extend(payload);
        let kernel = SocketAddrNetlink::new(0, 0);
        sendto(&self.socket, &request, SendFlags::empty(), &kernel)?;

        let mut still = true;
        loop {
            let (length, whole) = recv(&self.socket, &mut self.buffer[..], RecvFlags::TRUNC)?;
            if whole > length {
                return Err(invalid("an answer of the kernel is larger than its bound"));
            }
            let mut rest = self.buffer.get(..length).unwrap_or_default();
            while let Some((message, after)) = split(rest) {
                rest = after;
                if message.sequence != self.sequence {
                    continue;
                }
                still &= message.flags & NLM_F_DUMP_INTR == 0;
                match message.kind {
                    NLMSG_DONE => return ended(message.payload).map(|()| still),
                    NLMSG_ERROR => return refused(message.payload).map(|()| still),
                    _ if each(message.payload).is_break() => return Ok(still),
                    _ => {}
                }
            }
        }
    }
}

struct Message<'a> {
    kind: u16,
    flags: u16,
    sequence: u32,
    payload: &'a [u8],
}

/// Returns the first message of `bytes` and what follows it; `None` at the end, or if lengths do
/// not match.
fn split(bytes: &[u8]) -> Option<(Message<'_>, &[u8])> {
    let length = u32::from_ne_bytes(array(bytes, 0)?) as usize;
    let payload = bytes.get(HEADER_BYTES..length)?;
    let message = Message {
        kind: u16::from_ne_bytes(array(bytes, 4)?),
        flags: u16::from_ne_bytes(array(bytes, 6)?),
        sequence: u32::from_ne_bytes(array(bytes, 8)?),
        payload,
    };
    Some((message, bytes.get(aligned(length)..).unwrap_or_default()))
}

/// `NLMSG_DONE` contains an error number since Linux 4.9; zero or nothing is success.
fn ended(payload: &[u8]) -> io::Result<()> {
    match array(payload, 0).map(i32::from_ne_bytes) {
        Some(error) if error < 0 => Err(io::Error::from_raw_os_error(-error)),
        _ => Ok(()),
    }
}

fn refused(payload: &[u8]) -> io::Result<()> {
    match array(payload, 0).map(i32::from_ne_bytes) {
        Some(0) => Ok(()),
        Some(error) => Err(io::Error::from_raw_os_error(error.checked_neg().unwrap_or(0))),
        None => Err(invalid("the kernel refused in a way that cannot be read")),
    }
}

/// Returns the attributes of a message: number and value of each.
pub(crate) fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(array(rest, 0)?));
        // The two highest bits tell whether it nests and the byte order of its numbers.
        let number = u16::from_ne_bytes(array(rest, 2)?) & 0x3FFF;
        let value = rest.get(4..length)?;
        rest = rest.get(aligned(length)..).unwrap_or_default();
        Some((number, value))
    })
}

/// Messages and attributes begin at multiples of four.
fn aligned(length: usize) -> usize {
    length.div_ceil(4) * 4
}

/// Returns `N` bytes of `bytes`, from `at`.
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_ends_the_walk_and_harms_nothing() {
        for bytes in [&[][..], &[4, 0], &[3, 0, 1, 0], &[0, 0, 0, 0], &[200, 0, 1, 0, 9]] {
            assert_eq!(attributes(bytes).count(), 0, "{bytes:?}");
            assert!(split(bytes).is_none(), "{bytes:?}");
        }
        let two = [5, 0, 7, 0, 9, 0, 0, 0, 8, 0, 8, 0x80, 1, 2, 3, 4];
        let read: Vec<_> = attributes(&two).collect();
        assert_eq!(read, [(7, &[9][..]), (8, &[1, 2, 3, 4][..])]);
    }

    #[test]
    fn a_kernel_error_is_returned_unchanged() {
        let mut netlink = Netlink::open(rustix::net::netlink::SOCK_DIAG).unwrap();
        // SOCK_DIAG_BY_FAMILY with a family that does not exist.
        let mut request = [0; 56];
        request[0] = 255;
        assert!(netlink.dump(20, &request, &mut |_| panic!("an answer")).is_err());
    }
}
