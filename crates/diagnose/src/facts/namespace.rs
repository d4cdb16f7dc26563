//! A network namespace: its settings, counters, sockets and interfaces.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Known, Listener, Settings, Sockets};

/// A network namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Namespace {
    /// Its inode, as in `net:[4026531840]`.
    pub inode: u64,
    /// A name for people: that of /run/netns, the container's or the program's; empty for the
    /// namespace that the program itself runs in.
    pub name: String,
    /// Whether the program that looks runs in it.
    pub is_own: bool,
    /// Whether it is the machine's first, where softnet, `tcp_mem` and `netdev_max_backlog` are
    /// to be seen.
    pub is_first: Known<bool>,
    /// Its settings.
    pub settings: Known<Settings>,
    /// Oldest first.
    pub samples: Vec<NamespaceSample>,
}

/// A network namespace at one moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NamespaceSample {
    /// Milliseconds since the machine started.
    pub at_ms: u64,
    /// /proc/net/snmp, snmp6 and netstat by the names that `nstat` prints: `TcpRetransSegs`,
    /// `TcpExtListenOverflows`. Negative ones (`TcpMaxConn`) are left out.
    pub counters: Known<BTreeMap<String, u64>>,
    /// Listening TCP sockets.
    pub listeners: Known<Vec<Listener>>,
    /// All other TCP sockets, added up.
    pub sockets: Known<Sockets>,
    /// /proc/net/sockstat.
    pub sockstat: Known<SockStat>,
    /// Connection tracking; `None` within: the kernel does not track here.
    pub conntrack: Known<Option<Conntrack>>,
    /// Interfaces but loopback.
    pub interfaces: Known<Vec<Interface>>,
}

/// The line `TCP` of /proc/net/sockstat.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SockStat {
    /// Sockets in use, in this namespace.
    pub in_use: u64,
    /// Closed by their program and still sending, or waiting for the peer. Of the whole machine.
    pub orphans: u64,
    /// In TIME-WAIT, in this namespace.
    pub time_wait: u64,
    /// Allocated in any state. Of the whole machine.
    pub allocated: u64,
    /// Memory of all TCP sockets, in pages. Of the whole machine.
    pub memory_pages: u64,
}

/// Connection tracking.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conntrack {
    /// Entries now (`nf_conntrack_count`).
    pub count: Known<u64>,
    /// Entries at most (`nf_conntrack_max`).
    pub max: Known<u64>,
    /// Buckets of its table, of the whole machine.
    pub buckets: Known<u64>,
    /// `/proc/net/stat/nf_conntrack` by header name, added up over processors since the start, but
    /// for `entries`, which each row repeats: `drop`, `early_drop`, `insert_failed`.
    pub stats: Known<BTreeMap<String, u64>>,
}

/// An interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// The driver (`ena`, `virtio_net`, `veth`), by ethtool.
    pub driver: Known<String>,
    /// The driver's version, by ethtool.
    pub driver_version: Known<String>,
    /// In megabits per second; unknown for virtual ones.
    pub speed_mbit: Known<u64>,
    /// In bytes.
    pub mtu_bytes: Known<u64>,
    /// /proc/net/dev (or netlink's 64-bit counters): packets received since the start.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Packets received and dropped.
    pub rx_dropped: u64,
    /// Packets received with errors.
    pub rx_errors: u64,
    /// Packets that found the card's ring full, or were missed otherwise (`rx_missed`, `fifo`).
    pub rx_missed: u64,
    /// Packets sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Packets dropped before they were sent.
    pub tx_dropped: u64,
    /// Packets not sent for errors.
    pub tx_errors: u64,
    /// Receive queues.
    pub rx_queues: Known<u32>,
    /// Transmit queues.
    pub tx_queues: Known<u32>,
    /// Rings, by ethtool.
    pub rings: Known<EthtoolRings>,
    /// The driver's own statistics, by ethtool: `bw_in_allowance_exceeded`.
    pub statistics: Known<BTreeMap<String, u64>>,
}

/// Sizes of an interface's rings, in packets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EthtoolRings {
    /// Receive ring.
    pub rx: u32,
    /// The largest it can be.
    pub rx_max: u32,
    /// Transmit ring.
    pub tx: u32,
    /// The largest it can be.
    pub tx_max: u32,
}

/// A neighbour table (ARP, NDP), of the whole machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Neighbours {
    /// `ipv4` or `ipv6`.
    pub family: String,
    /// Entries now.
    pub entries: Known<u64>,
    /// `gc_thresh2` of `net.<family>.neigh.default`: above it, entries older than 5 s are removed.
    pub gc_thresh2: Known<u64>,
    /// `gc_thresh3`: no more than these.
    pub gc_thresh3: Known<u64>,
    /// Entries refused because the table was full, since the start.
    pub table_fulls: Known<u64>,
}
