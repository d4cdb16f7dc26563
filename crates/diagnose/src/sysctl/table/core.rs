//! `net.core`: what all protocols share.

use super::super::{Unit, judge};
use super::{always, since};

settings! {
    /// The largest listen backlog that the kernel grants.
    ///
    /// What a program asks for at `listen()` is silently cut to this, at that moment: sockets that
    /// are open keep what they have, so restart the program after a change. 4,096 since Linux 5.4,
    /// 128 before. Many programs ask for less themselves (nginx: 511), and then this changes
    /// nothing.
    ///
    /// `weir doctor` shows for every listener what was granted.
    "net.core.somaxconn", Unit::Of("connections"), since!(5, 4, "4096", before "128"), judge::more;
    /// Packets that may wait for a processor between the interface and the protocols.
    ///
    /// Used by interfaces without NAPI (veth, tunnels, loopback) and by RPS, not by the queues of
    /// ordinary cards, whose rings ethtool sets. Raise it only if the second column of
    /// `/proc/net/softnet_stat` rises.
    "net.core.netdev_max_backlog", Unit::Of("packets"), always!("1000"), judge::netdev_backlog;
    /// Packets that one round of receiving may process before other work has its turn.
    ///
    /// The third column of `/proc/net/softnet_stat` counts rounds that were broken off. Doubling it
    /// trades a little latency of programs for throughput.
    "net.core.netdev_budget", Unit::Of("packets"), always!("300"), judge::more;
    /// Time that one round of receiving may take.
    ///
    /// The default depends on the kernel's timer frequency: 2,000 µs at 1,000 Hz, 8,000 µs at 250
    /// Hz.
    "net.core.netdev_budget_usecs", Unit::Microseconds, |_| None, judge::any;
    /// Packets that a queue without NAPI, and the transmit side, handle in one go.
    ///
    /// Hardly ever worth a change.
    "net.core.dev_weight", Unit::Of("packets"), always!("64"), judge::any;
    /// The largest receive buffer that a program may ask for itself (`SO_RCVBUF`).
    ///
    /// TCP's own tuning goes up to the last value of `tcp_rmem` whatever stands here. A program
    /// that sets `SO_RCVBUF` turns that tuning off for its socket. 4 MiB on current kernels (6.18),
    /// 208 KiB before.
    "net.core.rmem_max", Unit::Bytes, since!(6, 18, "4194304", before "212992"), judge::socket_max;
    /// The largest send buffer that a program may ask for itself (`SO_SNDBUF`).
    ///
    /// TCP's own tuning goes up to the last value of `tcp_wmem` whatever stands here. 4 MiB on
    /// current kernels (6.18), 208 KiB before.
    "net.core.wmem_max", Unit::Bytes, since!(6, 18, "4194304", before "212992"), judge::socket_max;
    /// The receive buffer that sockets of other protocols than TCP begin with.
    ///
    /// Counts for UDP: a DNS server or QUIC under bursts. TCP has `tcp_rmem`.
    "net.core.rmem_default", Unit::Bytes, always!("212992"), judge::socket_default;
    /// The send buffer that sockets of other protocols than TCP begin with.
    ///
    /// Counts for UDP. TCP has `tcp_wmem`.
    "net.core.wmem_default", Unit::Bytes, always!("212992"), judge::socket_default;
    /// Memory for ancillary data of a socket, such as filters and control messages.
    ///
    /// Zero-copy sending and large filters may need more. 128 KiB since Linux 6.9, 20 KiB before.
    "net.core.optmem_max", Unit::Bytes, since!(6, 9, "131072", before "20480"), judge::any;
    /// The queueing discipline that interfaces get.
    ///
    /// `fq` paces packets as BBR wants it (since Linux 4.13 BBR also paces by itself); `fq_codel`
    /// keeps queues short and is what systemd sets. Interfaces that exist keep theirs.
    "net.core.default_qdisc", Unit::Word, |_| None, judge::any;
    /// Time for which `poll()` asks the card itself before it sleeps.
    ///
    /// Trades a processor for a few microseconds of latency; 0 is off.
    "net.core.busy_poll", Unit::Microseconds, always!("0"), judge::depends;
    /// Time for which a blocking read asks the card itself before it sleeps.
    ///
    /// Trades a processor for a few microseconds of latency; 0 is off.
    "net.core.busy_read", Unit::Microseconds, always!("0"), judge::depends;
    /// Size of the table by which packets are steered to the processor of their program (RFS).
    ///
    /// 0 is off. With several processors and few queues 32,768, together with `rps_flow_cnt` of
    /// each queue, spreads the load.
    "net.core.rps_sock_flow_entries", Unit::Of("flows"), always!("0"), judge::depends;
    /// Whether a socket whose peer does not answer tries another path by another hash.
    ///
    /// On since Linux 5.18. It helps on networks that spread flows over several links by hash.
    "net.core.txrehash", Unit::Switch, always!("1"), judge::on;
}
