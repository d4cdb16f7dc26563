//! Packet capture on an interface: an `AF_PACKET` ring (`TPACKET_V3`) shared with the kernel, so
//! that a packet costs no system call and none is copied twice.
//!
//! Packets are not interpreted here. The layouts are those of `include/uapi/linux/if_packet.h` and
//! of the kernel's `Documentation/networking/packet_mmap.rst`.

#![allow(
    unsafe_code,
    reason = "memory that is shared with the kernel, and options of packet sockets"
)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use socket2::SockFilter;

/// Block size: the kernel hands over packets by the block.
const BLOCK_BYTES: usize = 1 << 20;
/// Number of blocks in the ring: 16 MiB that may wait while this program is busy.
const BLOCKS: usize = 16;
/// A block that is not full is handed over after this, in milliseconds.
const BLOCK_WAIT_MS: u32 = 50;
/// A packet is handed over after this at the latest, in milliseconds: the kernel checks a partial
/// block twice before it releases it.
pub const LATE_MS: u32 = 2 * BLOCK_WAIT_MS;
/// Each packet is bounded by a block; this only divides the block.
const FRAME_BYTES: usize = 2_048;

/// Bytes kept of a packet. Ethernet with two tags, a tunnel over IPv6, and IPv6 and TCP with all
/// options inside it are 200; what follows is data, and keeping less makes the ring hold more
/// packets.
const KEPT_BYTES: u32 = 256;
/// Bytes kept of a fragment: all of it, since fragments have to be reassembled.
const FRAGMENT_BYTES: u32 = 262_144;

/// Struct `tpacket3_hdr`; followed by struct `sockaddr_ll`.
const HEADER_BYTES: usize = 48;
/// `PACKET_OUTGOING` of `include/uapi/linux/if_packet.h`.
const OUTGOING: u8 = 4;
/// `ARPHRD_*` of `include/uapi/linux/if_arp.h`: Ethernet, loopback.
const ETHERNET: u16 = 1;
const LOOPBACK: u16 = 772;

/// One packet.
#[derive(Clone, Copy, Debug)]
pub struct Packet<'a> {
    /// When the kernel captured it: nanoseconds since 1970.
    pub time_ns: i64,
    /// Its length on the wire, in bytes.
    pub wire_bytes: u32,
    /// Its bytes, as far as they are kept: its headers, or all of a fragment.
    pub data: &'a [u8],
}

/// The ring of one interface of the calling thread's network namespace.
#[derive(Debug)]
pub struct Ring {
    socket: OwnedFd,
    memory: *mut u8,
    /// The block to be read next.
    block: usize,
    hardware: u16,
}

impl Ring {
    /// Starts to capture on `interface`.
    ///
    /// # Errors
    /// Without `CAP_NET_RAW` (`PermissionDenied`), or when there is no such interface.
    pub fn open(interface: &str) -> io::Result<Ring> {
        // With no protocol yet: no packets arrive before the ring exists.
        let socket =
            socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
        let index = name_to_index(&socket, interface)?;
        socket2::SockRef::from(&socket).attach_filter(&kept())?;
        // Packets are timestamped where they arrive and leave, once for all capturing sockets.
        // Otherwise each socket's copy is timestamped when it is put into the ring: later, and each
        // at a different time.
        set(&socket, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &(1 as libc::c_int))?;
        set(
            &socket,
            libc::SOL_PACKET,
            libc::PACKET_VERSION,
            &(libc::tpacket_versions::TPACKET_V3 as libc::c_int),
        )?;
        let wanted = libc::tpacket_req3 {
            tp_block_size: BLOCK_BYTES as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: FRAME_BYTES as u32,
            tp_frame_nr: (BLOCK_BYTES / FRAME_BYTES * BLOCKS) as u32,
            tp_retire_blk_tov: BLOCK_WAIT_MS,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set(&socket, libc::SOL_PACKET, libc::PACKET_RX_RING, &wanted)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping of a descriptor that is open; the kernel chooses where.
        let memory = unsafe {
            let length = BLOCK_BYTES * BLOCKS;
            libc::mmap(
                std::ptr::null_mut(),
                length,
                access,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if memory == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let mut ring = Ring { socket, memory: memory.cast(), block: 0, hardware: 0 };
        ring.hardware = ring.bind(index)?;
        Ok(ring)
    }

    /// Binds to the interface; returns its hardware type.
    fn bind(&self, index: u32) -> io::Result<u16> {
        let mut address = libc::sockaddr_ll {
            sll_family: libc::AF_PACKET as u16,
            sll_protocol: (libc::ETH_P_ALL as u16).to_be(),
            sll_ifindex: index as i32,
            sll_hatype: 0,
            sll_pkttype: 0,
            sll_halen: 0,
            sll_addr: [0; 8],
        };
        let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        let descriptor = self.socket.as_raw_fd();
        let pointer = (&raw mut address).cast::<libc::sockaddr>();
        // SAFETY: the address is one of AF_PACKET and lives for both calls, which read and write
        // no more than its length.
        let failed = unsafe {
            libc::bind(descriptor, pointer, length) != 0
                || libc::getsockname(descriptor, pointer, &raw mut length) != 0
        };
        if failed { Err(io::Error::last_os_error()) } else { Ok(address.sll_hatype) }
    }

    /// Returns whether packets begin with an Ethernet header; otherwise with an IP header.
    pub fn is_ethernet(&self) -> bool {
        matches!(self.hardware, ETHERNET | LOOPBACK)
    }

    /// Waits up to `wait_ms` for packets and passes those available to `each`.
    ///
    /// # Errors
    /// When the interface has gone.
    pub fn take(&mut self, wait_ms: u32, mut each: impl FnMut(Packet<'_>)) -> io::Result<()> {
        if !self.is_ready() {
            let mut asked = [PollFd::new(&self.socket, PollFlags::IN | PollFlags::ERR)];
            let wait = Timespec {
                tv_sec: i64::from(wait_ms / 1_000),
                tv_nsec: i64::from(wait_ms % 1_000) * 1_000_000,
            };
            match poll(&mut asked, Some(&wait)) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if asked[0].revents().contains(PollFlags::ERR)
                && let Err(error) = rustix::net::sockopt::socket_error(self.socket.as_fd())?
            {
                return Err(error.into());
            }
        }
        // Each block at most once, so that a flood leaves time for other work.
        for _ in 0..BLOCKS {
            if !self.is_ready() {
                break;
            }
            let is_loopback = self.hardware == LOOPBACK;
            read_block(self.bytes(), is_loopback, &mut each);
            self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
            self.block = (self.block + 1) % BLOCKS;
        }
        Ok(())
    }

    /// Returns the number of packets dropped since the last call because the ring was full.
    ///
    /// # Errors
    /// None that are known of.
    pub fn dropped(&self) -> io::Result<u64> {
        let mut figures = libc::tpacket_stats_v3 { tp_packets: 0, tp_drops: 0, tp_freeze_q_cnt: 0 };
        let mut length = size_of::<libc::tpacket_stats_v3>() as libc::socklen_t;
        // SAFETY: the kernel writes no more than `length` into a struct of that size.
        let result = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut figures).cast(),
                &raw mut length,
            )
        };
        if result == 0 { Ok(figures.tp_drops.into()) } else { Err(io::Error::last_os_error()) }
    }

    fn is_ready(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    /// Returns the owner of the current block: the third word of struct `tpacket_block_desc`.
    fn status(&self) -> &AtomicU32 {
        // SAFETY: within the mapping, aligned, and shared with the kernel as an atomic word is.
        unsafe { AtomicU32::from_ptr(self.memory.add(self.block * BLOCK_BYTES + 8).cast()) }
    }

    /// Returns the current block. This program owns it until its status is given back.
    fn bytes(&self) -> &[u8] {
        // SAFETY: within the mapping; the kernel does not write to a block that it has handed out.
        unsafe {
            std::slice::from_raw_parts(self.memory.add(self.block * BLOCK_BYTES), BLOCK_BYTES)
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: what `open` mapped, and nothing borrows from it any more.
        unsafe { libc::munmap(self.memory.cast(), BLOCK_BYTES * BLOCKS) };
    }
}

/// Returns how much of a packet is kept, as a filter program (classic BPF, `linux/filter.h`): loads
/// are relative to the IP header, whatever the link.
fn kept() -> [SockFilter; 11] {
    const BYTE: u16 = (libc::BPF_LD | libc::BPF_B | libc::BPF_ABS) as u16;
    const HALF: u16 = (libc::BPF_LD | libc::BPF_H | libc::BPF_ABS) as u16;
    const SHIFT: u16 = (libc::BPF_ALU | libc::BPF_RSH | libc::BPF_K) as u16;
    const EQUALS: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const HAS: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
    const KEEP: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let ip = |at: u32| (libc::SKF_NET_OFF as u32).wrapping_add(at);
    [
        // The version. A packet without a byte of it is not kept.
        SockFilter::new(BYTE, 0, 0, ip(0)),
        SockFilter::new(SHIFT, 0, 0, 4),
        SockFilter::new(EQUALS, 0, 3, 4),
        // IPv4: more fragments follow, or it is not the first.
        SockFilter::new(HALF, 0, 0, ip(6)),
        SockFilter::new(HAS, 5, 0, 0x3fff),
        SockFilter::new(KEEP, 0, 0, KEPT_BYTES),
        // IPv6: its fragment header comes first.
        SockFilter::new(EQUALS, 0, 2, 6),
        SockFilter::new(BYTE, 0, 0, ip(6)),
        SockFilter::new(EQUALS, 1, 0, 44),
        SockFilter::new(KEEP, 0, 0, KEPT_BYTES),
        SockFilter::new(KEEP, 0, 0, FRAGMENT_BYTES),
    ]
}

/// Sets an option of the packet socket, at `level`.
fn set<T>(socket: &OwnedFd, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes of a value that is there.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads the packets of a block. On the loopback interface each passes twice; only the second is
/// used.
fn read_block(block: &[u8], is_loopback: bool, each: &mut impl FnMut(Packet<'_>)) {
    let word = |at: usize| {
        block.get(at..).and_then(|rest| rest.first_chunk()).map(|four| u32::from_ne_bytes(*four))
    };
    let (Some(count), Some(first)) = (word(12), word(16)) else { return };
    let mut at = first as usize;
    for _ in 0..count {
        let header =
            [word(at), word(at + 4), word(at + 8), word(at + 12), word(at + 16), word(at + 24)];
        let [Some(next), Some(seconds), Some(fraction), Some(captured), Some(wire_bytes), Some(_)] =
            header
        else {
            return;
        };
        let begin = block.get(at + 24..).and_then(|rest| rest.first_chunk());
        let begin = begin.map_or(0, |two| usize::from(u16::from_ne_bytes(*two)));
        let Some(data) = block.get(at + begin..at + begin + captured as usize) else { return };
        let is_outgoing = block.get(at + HEADER_BYTES + 10) == Some(&OUTGOING);
        if !(is_loopback && is_outgoing) {
            let time_ns = i64::from(seconds) * 1_000_000_000 + i64::from(fraction);
            each(Packet { time_ns, wire_bytes, data });
        }
        if next == 0 {
            return;
        }
        at += next as usize;
    }
}
