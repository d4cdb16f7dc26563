//! Information from a network interface's driver (ioctl `SIOCETHTOOL`): its name, statistics, rings
//! and queues. None of it needs privileges.

#![allow(unsafe_code, reason = "neither rustix nor socket2 speaks SIOCETHTOOL")]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::netlink::array;

/// Queries interfaces of the network namespace in which it was opened.
#[derive(Debug)]
pub struct Ethtool {
    socket: OwnedFd,
}

/// The driver of an interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Driver {
    /// `ena`, `virtio_net`, `veth`.
    pub name: String,
    /// Its version, often the kernel's.
    pub version: String,
    /// How many statistics it keeps.
    statistics: u32,
}

/// Descriptors in the rings between the driver and the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rings {
    /// Receive descriptors in use.
    pub rx: u32,
    /// The device's maximum.
    pub rx_max: u32,
    /// Transmit descriptors in use.
    pub tx: u32,
    /// The device's maximum.
    pub tx_max: u32,
}

/// Queues of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Channels {
    /// Receive queues in use, including combined ones.
    pub rx: u32,
    /// The maximum.
    pub rx_max: u32,
    /// Transmit queues in use, including combined ones.
    pub tx: u32,
}

/// Commands of include/uapi/linux/ethtool.h.
const GET_DRIVER: u32 = 0x03;
const GET_RINGS: u32 = 0x10;
const GET_STRINGS: u32 = 0x1b;
const GET_STATISTICS: u32 = 0x1d;
const GET_CHANNELS: u32 = 0x3c;
const GET_LINK: u32 = 0x4c;

/// `ETH_SS_STATS`.
const SET_OF_STATISTICS: u32 = 1;
/// `ETH_GSTRING_LEN`.
const NAME_BYTES: usize = 32;
/// A driver with queues for each of 1,000 CPUs keeps fewer.
const STATISTICS_MAX: u32 = 32_768;

impl Ethtool {
    /// Opens a socket for the queries; any socket works.
    ///
    /// # Errors
    /// When there is no descriptor left for it.
    pub fn open() -> io::Result<Ethtool> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
        Ok(Ethtool { socket })
    }

    /// Returns the driver of `interface`.
    ///
    /// # Errors
    /// `ENODEV` when there is no such interface, `EOPNOTSUPP` when its driver does not support
    /// this.
    pub fn driver(&self, interface: &str) -> io::Result<Driver> {
        // Struct ethtool_drvinfo.
        let mut reply = [0_u8; 196];
        self.ask(interface, GET_DRIVER, &mut reply)?;
        Ok(Driver {
            name: text(reply.get(4..36).unwrap_or_default()),
            version: text(reply.get(36..68).unwrap_or_default()),
            statistics: number(&reply, 45),
        })
    }

    /// Returns all statistics of `interface`, by the driver's names and in its order.
    ///
    /// # Errors
    /// As [`Ethtool::driver`]; and when there are more than this program reads.
    pub fn statistics(&self, interface: &str) -> io::Result<Vec<(String, u64)>> {
        let count = self.driver(interface)?.statistics;
        if count == 0 {
            return Ok(Vec::new());
        }
        if count > STATISTICS_MAX {
            let why = format!("its driver keeps {count} statistics, more than {STATISTICS_MAX}");
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        // The driver fills in as many as it has at that moment. Queues may be added between the two
        // calls; there is room for twice as many as it reported, and for a few more.
        let room = count as usize * 2 + 1024;
        let mut names = vec![0_u8; 12 + room * NAME_BYTES];
        put(&mut names, 1, SET_OF_STATISTICS);
        put(&mut names, 2, count);
        self.ask(interface, GET_STRINGS, &mut names)?;
        let mut values = vec![0_u8; 8 + room * 8];
        put(&mut values, 1, count);
        self.ask(interface, GET_STATISTICS, &mut values)?;
        // If queues were removed in between, only the shorter of the two is used.
        let count = number(&names, 2).min(number(&values, 1)) as usize;
        let names = names.get(12..).unwrap_or_default().chunks(NAME_BYTES).map(text);
        let values = values.get(8..).unwrap_or_default().chunks(8);
        let values = values.map(|value| array(value, 0).map_or(0, u64::from_ne_bytes));
        Ok(names.zip(values).take(count).collect())
    }

    /// Returns the rings of `interface`.
    ///
    /// # Errors
    /// `EOPNOTSUPP` when its driver has none.
    pub fn rings(&self, interface: &str) -> io::Result<Rings> {
        // Struct ethtool_ringparam.
        let mut reply = [0_u8; 36];
        self.ask(interface, GET_RINGS, &mut reply)?;
        let of = |index| number(&reply, index);
        Ok(Rings { rx_max: of(1), tx_max: of(4), rx: of(5), tx: of(8) })
    }

    /// Returns the queues of `interface`.
    ///
    /// # Errors
    /// `EOPNOTSUPP` when its driver does not support this.
    pub fn channels(&self, interface: &str) -> io::Result<Channels> {
        // Struct ethtool_channels: queues that only receive, and those that do both.
        let mut reply = [0_u8; 36];
        self.ask(interface, GET_CHANNELS, &mut reply)?;
        let of = |index| number(&reply, index);
        let [rx, tx] = [of(5), of(6)].map(|queues| queues.saturating_add(of(8)));
        Ok(Channels { rx_max: of(1).max(of(4)), rx, tx })
    }

    /// Returns the speed of `interface`, in megabits per second; `None` if its driver does not know
    /// it, as is usual in virtual machines.
    ///
    /// # Errors
    /// `EOPNOTSUPP` when its driver does not support this.
    pub fn speed_mbit(&self, interface: &str) -> io::Result<Option<u32>> {
        // Struct ethtool_link_settings, followed by three maps of modes. Queried with no maps, the
        // kernel answers with their length, negated; queried with that length, it fills everything
        // in. The length is 4 words as of Linux 6.18, and a byte at most.
        const LENGTH_AT: usize = 15;
        let mut reply = [0_u8; 48 + 3 * 4 * 127];
        self.ask(interface, GET_LINK, &mut reply)?;
        let words = reply.get(LENGTH_AT).map_or(0, |&byte| (byte as i8).unsigned_abs());
        reply.fill(0);
        if let Some(length) = reply.get_mut(LENGTH_AT) {
            *length = words.min(127);
        }
        self.ask(interface, GET_LINK, &mut reply)?;
        // SPEED_UNKNOWN is -1.
        Ok(Some(number(&reply, 1)).filter(|&speed| speed != u32::MAX && speed != 0))
    }

    /// Returns the largest packet that `interface` carries, in bytes.
    ///
    /// # Errors
    /// `ENODEV` when there is no such interface.
    pub fn mtu_bytes(&self, interface: &str) -> io::Result<u32> {
        let mut request = Request::about(interface)?;
        // SAFETY: the socket is open; `request` is laid out as struct ifreq and no smaller, and
        // valid for reads and writes during the call, which fills in a number and follows no
        // pointer.
        let result = unsafe {
            libc::ioctl(self.socket.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request)
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        // The number is the first in the union, where other requests have the pointer.
        Ok(array(&request.data.addr().to_ne_bytes(), 0).map_or(0, u32::from_ne_bytes))
    }

    fn ask(&self, interface: &str, command: u32, reply: &mut [u8]) -> io::Result<()> {
        put(reply, 0, command);
        let mut request = Request::about(interface)?;
        request.data = reply.as_mut_ptr();
        // SAFETY: the socket is open; `request` is laid out as struct ifreq and no smaller, and
        // valid for reads and writes during the call. `data` points to `reply`, which is valid for
        // writes during the call and at least as large as the struct of each command above; for
        // those that end in an array, callers make room for twice the length that the kernel
        // reported.
        let result = unsafe { libc::ioctl(self.socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

/// Struct ifreq: a name that ends in a zero, and a union, of which the pointer or the number at
/// its beginning is used.
#[repr(C)]
struct Request {
    name: [u8; libc::IFNAMSIZ],
    data: *mut u8,
    rest: [u8; 16],
}

impl Request {
    fn about(interface: &str) -> io::Result<Request> {
        if interface.len() >= libc::IFNAMSIZ || interface.contains('\0') {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        let mut name = [0; libc::IFNAMSIZ];
        for (to, from) in name.iter_mut().zip(interface.bytes()) {
            *to = from;
        }
        Ok(Request { name, data: std::ptr::null_mut(), rest: [0; 16] })
    }
}

/// `include/uapi/linux/sockios.h`.
const SIOCETHTOOL: libc::Ioctl = 0x8946;

/// Returns the `index`-th number of 32 bits.
fn number(bytes: &[u8], index: usize) -> u32 {
    array(bytes, index * 4).map_or(0, u32::from_ne_bytes)
}

fn put(bytes: &mut [u8], index: usize, value: u32) {
    if let Some(place) = bytes.get_mut(index * 4..index * 4 + 4) {
        place.copy_from_slice(&value.to_ne_bytes());
    }
}

/// Returns the text up to the first zero. Old drivers pad names with spaces.
fn text(bytes: &[u8]) -> String {
    let length = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..length).unwrap_or_default()).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_has_no_driver_to_ask_and_strangers_are_refused() {
        let ethtool = Ethtool::open().unwrap();
        assert!(ethtool.rings("lo").is_err());
        assert!(ethtool.mtu_bytes("lo").unwrap() >= 1280);
        assert!(ethtool.mtu_bytes("no-such-if").is_err());
        assert_eq!(ethtool.driver("no-such-if").unwrap_err().raw_os_error(), Some(libc::ENODEV));
        for name in ["an-interface-of-too-long-a-name", "lo\0"] {
            let error = ethtool.driver(name).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name:?}");
        }
    }

    #[test]
    fn names_end_at_their_zero() {
        assert_eq!(text(b"rx_drops\0\0garbage"), "rx_drops");
        assert_eq!(text(b"  padded  "), "padded");
        assert_eq!(text(b""), "");
        assert_eq!(number(&[1, 0, 0, 0, 2], 1), 0, "cut off");
    }
}
