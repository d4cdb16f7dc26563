//! TUN devices: an interface whose packets a program reads and writes, starting with the IP header.
//!
//! The device belongs to the network namespace of the thread that opens it; its descriptor may be
//! read and written from anywhere, so one thread can connect two namespaces. The device is removed
//! when the descriptor is closed. Requests and flags are those of `include/uapi/linux/if_tun.h`.

#![allow(unsafe_code, reason = "TUN devices are asked for by ioctl")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// `TUNSETIFF`, `TUNSETOFFLOAD`.
const SET_INTERFACE: libc::Ioctl = 0x4004_54ca;
const SET_OFFLOAD: libc::Ioctl = 0x4004_54d0;
/// `IFF_TUN`, `IFF_NO_PI`, `IFF_VNET_HDR`.
const IS_TUN: i16 = 0x0001;
const NO_INFORMATION: i16 = 0x1000;
const WITH_HEADER: i16 = 0x4000;
/// `TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6`.
const OFFLOADS: libc::c_ulong = 0x01 | 0x02 | 0x04;

/// The header of each packet of a device with [`Packets::Large`]: struct `virtio_net_hdr`.
pub const HEADER_BYTES: usize = 10;
/// Room for the largest packet with its header.
pub const PACKET_BYTES_MAX: usize = HEADER_BYTES + 65_535;

/// The form of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packets {
    /// Packets as on a wire, at most of the device's MTU.
    Wire,
    /// TCP segments as the sender's kernel has them, up to 64 KiB, which it would have a network
    /// card split; each after a header of [`HEADER_BYTES`] that describes how, and that must be
    /// written with the packet.
    Large,
}

impl Packets {
    /// Returns the number of bytes before the IP header in what is read and written.
    pub fn header_bytes(self) -> usize {
        match self {
            Packets::Wire => 0,
            Packets::Large => HEADER_BYTES,
        }
    }
}

/// A TUN device, which exists as long as this value does.
#[derive(Debug)]
pub struct Tun {
    descriptor: OwnedFd,
}

impl Tun {
    /// Creates the device `name` in the calling thread's network namespace. Reads and writes do not
    /// block.
    ///
    /// # Errors
    /// Without `CAP_NET_ADMIN` in the namespace; when the kernel has no TUN (no `/dev/net/tun`), or
    /// the name is taken or too long (15 bytes at most).
    pub fn open(name: &str, packets: Packets) -> io::Result<Tun> {
        if name.is_empty() || name.len() >= libc::IFNAMSIZ || name.contains('\0') {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let descriptor = rustix::fs::open("/dev/net/tun", flags, Mode::empty())?;
        // SAFETY: a struct of numbers and a union of such, for which zero is a value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        let header = if packets == Packets::Large { WITH_HEADER } else { 0 };
        request.ifr_ifru.ifru_flags = IS_TUN | NO_INFORMATION | header;
        // SAFETY: the kernel reads and writes a struct ifreq, which `request` is.
        let made = unsafe { libc::ioctl(descriptor.as_raw_fd(), SET_INTERFACE, &raw mut request) };
        if made != 0 {
            return Err(io::Error::last_os_error());
        }
        if packets == Packets::Large {
            // SAFETY: the argument is a number.
            let set = unsafe { libc::ioctl(descriptor.as_raw_fd(), SET_OFFLOAD, OFFLOADS) };
            if set != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(Tun { descriptor })
    }

    /// Reads one packet that the namespace has sent; returns its length, or `None` when there is
    /// none.
    ///
    /// # Errors
    /// When the device has gone.
    pub fn read(&self, into: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.descriptor, into) {
            Ok(length) => Ok(Some(length)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Passes one packet to the namespace, which receives it.
    ///
    /// # Errors
    /// When the interface is down (`EIO`), or it is not a packet (`EINVAL`).
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        rustix::io::write(&self.descriptor, packet)?;
        Ok(())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_no_interface_has_are_refused() {
        for name in ["", "an-interface-of-too-long-a-name", "lo\0"] {
            let error = Tun::open(name, Packets::Wire).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name:?}");
        }
    }

    #[test]
    fn it_exists_where_it_was_opened_for_as_long_as_it_is_held_or_is_refused() {
        let name = format!("weirt{}", std::process::id() % 1_000_000);
        let exists = || {
            // In this thread's namespace.
            let socket = rustix::net::socket(
                rustix::net::AddressFamily::INET,
                rustix::net::SocketType::DGRAM,
                None,
            );
            rustix::net::netdevice::name_to_index(socket.unwrap(), &name).is_ok()
        };
        // A separate namespace would be better; a device that is down affects nothing.
        match Tun::open(&name, Packets::Large) {
            Ok(tun) => {
                assert!(exists());
                assert_eq!(tun.read(&mut [0; 64]).ok().flatten(), None);
                assert!(tun.write(&[0; 64]).is_err(), "it is down");
                drop(tun);
                assert!(!exists());
            }
            Err(error) => assert!(
                matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::NotFound),
                "{error}"
            ),
        }
    }
}
