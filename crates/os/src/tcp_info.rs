//! The kernel's information about a TCP connection (getsockopt `TCP_INFO`).

#![allow(unsafe_code, reason = "neither rustix nor socket2 reads the whole of TCP_INFO")]

use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// The state of a connection at one moment, according to the kernel. Older kernels provide less: a
/// missing field is `None` (or zero for those that all supported kernels have, which is Linux 4.9
/// and later for everything that is not an `Option`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// State of the connection.
    pub state: TcpState,
    /// State of congestion control.
    pub congestion: Congestion,
    /// Consecutive retransmission timeouts without an acknowledgement in between.
    pub retransmits: u8,
    /// Options negotiated in the SYNs.
    pub options: TcpOptions,
    /// Retransmission timeout in force.
    pub rto: Duration,
    /// Largest segment sent, in bytes.
    pub snd_mss_bytes: u32,
    /// Segments sent and not yet acknowledged.
    pub unacked: u32,
    /// How many of these are considered lost.
    pub lost: u32,
    /// How many of these were retransmitted and are still unacknowledged.
    pub retrans: u32,
    /// Time since data was last sent.
    pub last_data_sent: Duration,
    /// Time since data last arrived.
    pub last_data_recv: Duration,
    /// Time since an acknowledgement last arrived.
    pub last_ack_recv: Duration,
    /// Path MTU, in bytes.
    pub pmtu_bytes: u32,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Its variation.
    pub rttvar: Duration,
    /// Congestion window, in segments.
    pub snd_cwnd: u32,
    /// Retransmitted segments over the connection's life.
    pub total_retrans: u32,
    /// Bytes acknowledged by the peer.
    pub bytes_acked: u64,
    /// Bytes received.
    pub bytes_received: u64,
    /// Bytes written that have not left this machine.
    pub notsent_bytes: u32,
    /// Smallest round-trip time seen.
    pub min_rtt: Duration,
    /// Data segments sent, including retransmissions.
    pub data_segs_out: u32,
    /// Last measured delivery rate, in bytes per second.
    pub delivery_rate: u64,
    /// Time with data to send (Linux 4.10).
    pub busy: Option<Duration>,
    /// Time in which the peer's receive window held the sender back (Linux 4.10).
    pub rwnd_limited: Option<Duration>,
    /// Time in which this machine's send buffer held the sender back (Linux 4.10).
    pub sndbuf_limited: Option<Duration>,
    /// Retransmitted bytes (Linux 4.19).
    pub bytes_retrans: Option<u64>,
    /// Segments that the peer received twice (Linux 4.19).
    pub dsack_dups: Option<u32>,
    /// Segments seen out of order (Linux 4.20).
    pub reordering_seen: Option<u32>,
    /// The peer's receive window, in bytes (Linux 6.2).
    pub snd_wnd_bytes: Option<u32>,
}

/// TCP options that apply because both sides offered them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// RFC 7323 section 3.
    pub timestamps: bool,
    /// RFC 2018.
    pub sack: bool,
    /// RFC 7323 section 2.
    pub window_scaling: bool,
}

/// The states of RFC 9293, section 3.3.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are the RFC's")]
pub enum TcpState {
    Established,
    SynSent,
    SynReceived,
    FinWait1,
    FinWait2,
    TimeWait,
    Closed,
    CloseWait,
    LastAck,
    Listen,
    Closing,
    /// An unknown number.
    #[default]
    Unknown,
}

/// The sender's state of congestion control.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Congestion {
    /// Nothing unusual.
    #[default]
    Open,
    /// Duplicate or selective acknowledgements: loss or reordering, not yet clear which.
    Disorder,
    /// The window was reduced after a congestion mark.
    Reduced,
    /// Fast retransmission under way.
    Recovery,
    /// A retransmission timeout fired.
    Loss,
}

/// Reads `TCP_INFO` of a TCP socket. One system call.
///
/// # Errors
/// `EOPNOTSUPP` or `ENOPROTOOPT` when it is no TCP socket.
pub fn read(socket: &impl AsFd) -> io::Result<TcpInfo> {
    let mut bytes = [0_u8; INFO_MAX_BYTES];
    let mut length = INFO_MAX_BYTES as libc::socklen_t;
    // SAFETY: the descriptor is open for as long as it is borrowed; `bytes` and `length` are valid
    // for writes during the call, and `length` says how large `bytes` is, so that the kernel
    // writes within it. Bytes need no initialisation beyond that of the array.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(parse(bytes.get(..length as usize).unwrap_or(&bytes)))
}

/// More than the struct has in any kernel so far (Linux 6.18: 280 bytes); additions of later
/// kernels are at the end and cut off.
const INFO_MAX_BYTES: usize = 512;

/// Parses struct `tcp_info` of include/uapi/linux/tcp.h: fields are only ever appended to it, so
/// offsets are stable and a short struct is an old one.
pub(crate) fn parse(bytes: &[u8]) -> TcpInfo {
    let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let opt32 = |at: usize| read_array(bytes, at).map(u32::from_ne_bytes);
    let opt64 = |at: usize| read_array(bytes, at).map(u64::from_ne_bytes);
    let u32_at = |at| opt32(at).unwrap_or(0);
    let u64_at = |at| opt64(at).unwrap_or(0);
    let micros = |at| Duration::from_micros(u32_at(at).into());
    let millis = |at| Duration::from_millis(u32_at(at).into());
    TcpInfo {
        state: TcpState::from_kernel(byte(0)),
        congestion: Congestion::from_kernel(byte(1)),
        retransmits: byte(2),
        // `TCPI_OPT_TIMESTAMPS`, `TCPI_OPT_SACK`, `TCPI_OPT_WSCALE`.
        options: TcpOptions {
            timestamps: byte(5) & 1 != 0,
            sack: byte(5) & 2 != 0,
            window_scaling: byte(5) & 4 != 0,
        },
        rto: micros(8),
        snd_mss_bytes: u32_at(16),
        unacked: u32_at(24),
        lost: u32_at(32),
        retrans: u32_at(36),
        last_data_sent: millis(44),
        last_data_recv: millis(52),
        last_ack_recv: millis(56),
        pmtu_bytes: u32_at(60),
        rtt: micros(68),
        rttvar: micros(72),
        snd_cwnd: u32_at(80),
        total_retrans: u32_at(100),
        bytes_acked: u64_at(120),
        bytes_received: u64_at(128),
        notsent_bytes: u32_at(144),
        min_rtt: micros(148),
        data_segs_out: u32_at(156),
        delivery_rate: u64_at(160),
        busy: opt64(168).map(Duration::from_micros),
        rwnd_limited: opt64(176).map(Duration::from_micros),
        sndbuf_limited: opt64(184).map(Duration::from_micros),
        bytes_retrans: opt64(208),
        dsack_dups: opt32(216),
        reordering_seen: opt32(220),
        snd_wnd_bytes: opt32(228),
    }
}

fn read_array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

impl TcpState {
    pub(crate) fn from_kernel(number: u8) -> TcpState {
        match number {
            1 => TcpState::Established,
            2 => TcpState::SynSent,
            // 12 is NEW_SYN_RECV, an internal state of listeners.
            3 | 12 => TcpState::SynReceived,
            4 => TcpState::FinWait1,
            5 => TcpState::FinWait2,
            6 => TcpState::TimeWait,
            7 => TcpState::Closed,
            8 => TcpState::CloseWait,
            9 => TcpState::LastAck,
            10 => TcpState::Listen,
            11 => TcpState::Closing,
            _ => TcpState::Unknown,
        }
    }
}

impl Congestion {
    fn from_kernel(number: u8) -> Congestion {
        match number {
            1 => Congestion::Disorder,
            2 => Congestion::Reduced,
            3 => Congestion::Recovery,
            4 => Congestion::Loss,
            _ => Congestion::Open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn a_live_connection_reads_as_it_is() {
        let (mut client, mut server) = pair();
        client.write_all(&[1; 1000]).unwrap();
        server.read_exact(&mut [0; 1000]).unwrap();
        server.write_all(b"four").unwrap();
        client.read_exact(&mut [0; 4]).unwrap();

        let info = read(&client).unwrap();
        assert_eq!(info.state, TcpState::Established);
        assert_eq!(info.congestion, Congestion::Open);
        assert_eq!(info.bytes_received, 4);
        // The SYN counts as one.
        assert_eq!(info.bytes_acked, 1001);
        assert_eq!(info.data_segs_out, 1);
        assert_eq!((info.lost, info.total_retrans, info.notsent_bytes), (0, 0, 0));
        assert!(info.rtt > Duration::ZERO && info.rtt < Duration::from_secs(1), "{info:?}");
        assert!(info.min_rtt <= info.rtt * 2, "{info:?}");
        assert!(info.snd_mss_bytes >= 536 && info.pmtu_bytes >= info.snd_mss_bytes, "{info:?}");
        assert!(info.snd_cwnd > 0 && info.rto >= Duration::from_millis(1), "{info:?}");
        assert!(info.last_data_recv < Duration::from_mins(1), "{info:?}");
        let on = |name: &str| {
            let path = format!("/proc/sys/net/ipv4/{name}");
            std::fs::read_to_string(path).unwrap().trim() != "0"
        };
        assert_eq!(info.options.sack, on("tcp_sack"));
        assert_eq!(info.options.timestamps, on("tcp_timestamps"));
        assert_eq!(info.options.window_scaling, on("tcp_window_scaling"));
    }

    #[test]
    fn states_follow_the_connection() {
        let (client, server) = pair();
        client.shutdown(Shutdown::Write).unwrap();
        // The peer's kernel may delay the acknowledgement.
        let closing = [TcpState::FinWait1, TcpState::FinWait2];
        assert!(closing.contains(&read(&client).unwrap().state));
        assert_eq!(read(&server).unwrap().state, TcpState::CloseWait);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert_eq!(read(&listener).unwrap().state, TcpState::Listen);
        assert!(read(&UdpSocket::bind("127.0.0.1:0").unwrap()).is_err());
    }

    #[test]
    fn a_shorter_struct_of_an_older_kernel_leaves_the_rest_empty() {
        let mut bytes = [0xAB_u8; 280];
        bytes[0] = 1;
        bytes[68..72].copy_from_slice(&2_500_u32.to_ne_bytes());
        let old = parse(&bytes[..104]);
        assert_eq!(old.state, TcpState::Established);
        assert_eq!(old.rtt, Duration::from_micros(2_500));
        assert_ne!(old.total_retrans, 0);
        assert_eq!((old.bytes_acked, old.rwnd_limited, old.snd_wnd_bytes), (0, None, None));
        let cut_within_a_field = parse(&bytes[..102]);
        assert_eq!(cut_within_a_field.total_retrans, 0);
        assert!(parse(&bytes).snd_wnd_bytes.is_some());
        assert_eq!(parse(&[]), TcpInfo::default());
    }
}
