//! Builds raw packets from unused source addresses, as in a flood. Only for a test's private networks:
//! everything is sent from the namespace of the calling thread.

use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, SendFlags, SocketFlags, SocketType, ipproto, sendto, socket_with,
};

/// Sends IPv4 packets with a header of its own making.
pub struct Raw {
    socket: OwnedFd,
}

impl Default for Raw {
    fn default() -> Raw {
        Raw::open()
    }
}

impl Raw {
    /// Opens one; takes root.
    pub fn open() -> Raw {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET, SocketType::RAW, flags, Some(ipproto::RAW));
        Raw { socket: socket.expect("a raw socket, which takes root") }
    }

    /// A SYN to `to`, as if from `from`: RFC 9293 section 3.1, no options.
    pub fn syn(&self, from: SocketAddrV4, to: SocketAddrV4) {
        let mut segment = [0; 20];
        segment[0..2].copy_from_slice(&from.port().to_be_bytes());
        segment[2..4].copy_from_slice(&to.port().to_be_bytes());
        segment[4..8].copy_from_slice(&0x1234_5678_u32.to_be_bytes());
        // Header length in words, then SYN.
        segment[12] = 5 << 4;
        segment[13] = 0x02;
        segment[14..16].copy_from_slice(&64_240_u16.to_be_bytes());
        let sum = checksum(*from.ip(), *to.ip(), 6, &segment);
        segment[16..18].copy_from_slice(&sum.to_be_bytes());
        self.send(6, *from.ip(), to, &segment);
    }

    /// A datagram without content, RFC 768.
    pub fn datagram(&self, from: SocketAddrV4, to: SocketAddrV4) {
        let mut datagram = [0; 8];
        datagram[0..2].copy_from_slice(&from.port().to_be_bytes());
        datagram[2..4].copy_from_slice(&to.port().to_be_bytes());
        datagram[4..6].copy_from_slice(&8_u16.to_be_bytes());
        // A checksum of zero says that there is none.
        self.send(17, *from.ip(), to, &datagram);
    }

    fn send(&self, protocol: u8, from: Ipv4Addr, to: SocketAddrV4, payload: &[u8]) {
        // RFC 791 section 3.1; the kernel fills in the length, the identification and the checksum.
        let mut packet = Vec::with_capacity(20 + payload.len());
        packet.extend([0x45, 0, 0, 0, 0, 0, 0, 0, 64, protocol, 0, 0]);
        packet.extend(from.octets());
        packet.extend(to.ip().octets());
        packet.extend(payload);
        // A full queue of the device drops the packet, as a wire would.
        let _ = sendto(&self.socket, &packet, SendFlags::empty(), &to);
    }
}

/// RFC 9293 section 3.1: over a pseudo header and the segment.
fn checksum(from: Ipv4Addr, to: Ipv4Addr, protocol: u8, segment: &[u8]) -> u16 {
    let length = u16::try_from(segment.len()).expect("a short segment").to_be_bytes();
    let pseudo = [&from.octets()[..], &to.octets(), &[0, protocol], &length, segment].concat();
    let words = pseudo
        .chunks(2)
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])));
    let mut sum: u32 = words.sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}
