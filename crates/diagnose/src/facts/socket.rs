//! TCP sockets as `sock_diag` tells of them: listeners one by one, all others added up.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};

use super::Known;

/// A listening socket.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Listener {
    /// Where it listens. Several sockets may share an address (`SO_REUSEPORT`).
    pub address: SocketAddr,
    /// The socket's inode: tells sockets of one address apart, and finds one again in the next
    /// sample.
    #[serde(default)]
    pub inode: u64,
    /// The program that holds it (`comm`); several processes may, the first is named.
    #[serde(default)]
    pub program: Known<String>,
    /// Its process.
    #[serde(default)]
    pub pid: Known<u32>,
    /// When that process started, in milliseconds since the machine did.
    #[serde(default)]
    pub program_started_at_ms: Known<u64>,
    /// Connections that wait to be accepted (`idiag_rqueue`).
    pub waiting: u32,
    /// The backlog granted (`idiag_wqueue`): the smaller of what was asked for at `listen()` and
    /// of somaxconn at that time. One connection more than this can wait.
    pub backlog: u32,
    /// The backlog asked for, where it is known: the kernel does not keep it.
    #[serde(default)]
    pub backlog_asked: Known<u32>,
    /// Packets dropped by this socket since it was made (`sk_drops`).
    #[serde(default)]
    pub drops: Known<u64>,
}

impl Default for Listener {
    fn default() -> Listener {
        Listener {
            address: SocketAddr::from(([0, 0, 0, 0], 0)),
            inode: 0,
            program: Known::default(),
            pid: Known::default(),
            program_started_at_ms: Known::default(),
            waiting: 0,
            backlog: 0,
            backlog_asked: Known::default(),
            drops: Known::default(),
        }
    }
}

/// States of a TCP socket, as `ss` names them in filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs, reason = "the names are those of RFC 9293")]
pub enum SocketState {
    Established,
    SynSent,
    SynRecv,
    #[serde(rename = "fin-wait-1")]
    FinWait1,
    #[serde(rename = "fin-wait-2")]
    FinWait2,
    TimeWait,
    Close,
    CloseWait,
    LastAck,
    Listening,
    Closing,
}

/// Who began a connection.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// The peer: its local port is one that is listened on here.
    #[default]
    Inbound,
    /// This host.
    Outbound,
}

/// All TCP sockets but listeners.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sockets {
    /// How many are in each state.
    pub states: BTreeMap<SocketState, u64>,
    /// By peer, those with most sockets first; bounded by the collector.
    pub peers: Vec<PeerSockets>,
    /// Peers that are not listed.
    pub peers_left_out: u64,
    /// Local ports in use towards each destination, fullest first; bounded by the collector.
    pub ports: Vec<PortUse>,
    /// Whether `TCP_INFO` was asked of each socket, or why not.
    pub tcp_info: Known<bool>,
}

/// The sockets that one peer has with this host in one direction, on one port of the server side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PeerSockets {
    /// The peer's address, without its port.
    pub peer: IpAddr,
    /// Who began.
    #[serde(default)]
    pub direction: Direction,
    /// The server's port: this host's for [`Direction::Inbound`], the peer's for
    /// [`Direction::Outbound`].
    #[serde(default)]
    pub port: u16,
    /// How many sockets are in each state.
    #[serde(default)]
    pub states: BTreeMap<SocketState, u64>,
    /// Of those in SYN-SENT, how many have sent their SYN again.
    #[serde(default)]
    pub syn_sent_again: Known<u64>,
    /// What TCP knows of those established now.
    #[serde(default)]
    pub tcp: Known<TcpSummary>,
}

/// `TCP_INFO` of several established connections, added up over their lives so far. A connection
/// that ends takes its share with it, so two samples differ by more than what happened between.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TcpSummary {
    /// Connections.
    pub connections: u64,
    /// Median of their smoothed round-trip times, in microseconds.
    pub rtt_median_us: u64,
    /// The largest.
    pub rtt_max_us: u64,
    /// The smallest round-trip time that any has ever seen.
    pub rtt_min_us: u64,
    /// Median of the variation.
    pub rttvar_median_us: u64,
    /// Data segments sent, those sent again included.
    pub segments_sent: u64,
    /// Segments sent again.
    pub segments_sent_again: u64,
    /// Segments now taken for lost.
    pub lost: u64,
    /// Segments seen to have overtaken others; unknown before Linux 4.20.
    pub reordered: Known<u64>,
    /// Segments that arrived twice at the peer (DSACK): sent again for nothing.
    pub sent_again_for_nothing: Known<u64>,
    /// Time with data to send, in microseconds.
    pub busy_us: u64,
    /// Of it, time in which the peer's window held this host back.
    pub rwnd_limited_us: u64,
    /// Of it, time in which this host's send buffer did.
    pub sndbuf_limited_us: u64,
    /// Bytes written by the program that are not acknowledged yet.
    pub unsent_bytes: u64,
    /// Bytes received that the program has not read (`idiag_rqueue`).
    pub unread_bytes: u64,
    /// Connections whose peer shows a window of zero (Linux 6.2; else those with `rwnd_limited`
    /// running and nothing in flight, or unknown).
    pub zero_window: Known<u64>,
    /// Connections whose oldest segment was sent again by at least two timeouts in a row, with no
    /// acknowledgement since (`tcpi_retransmits`).
    pub stalled: Known<u64>,
    /// Of these, those on which no segment of full size was ever acknowledged, though data of that
    /// size waits.
    pub stalled_full: Known<u64>,
    /// Connections by congestion control (`cubic`, `bbr`).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub congestion_control: BTreeMap<String, u64>,
    /// Connections without SACK, because one side did not offer it.
    pub without_sack: Known<u64>,
    /// Connections without timestamps.
    pub without_timestamps: Known<u64>,
    /// Connections whose window is not scaled.
    pub without_window_scaling: Known<u64>,
}

/// Local ports that one source address uses towards one destination.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortUse {
    /// The local address.
    pub source: IpAddr,
    /// The destination.
    pub destination: SocketAddr,
    /// Ports in use, within the range of `ip_local_port_range`, in any state.
    pub used: u64,
    /// Of these, in TIME-WAIT.
    #[serde(default)]
    pub time_wait: u64,
}
