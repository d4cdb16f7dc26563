//! `net.core`: what all protocols share.

use super::super::{Unit, judge};
use super::{always, since};

settings! {
    /// The largest listen backlog that the kernel allows.
    ///
    /// The kernel silently reduces the backlog that a program passes to `listen()` to this value.
    /// Open sockets keep their backlog, so restart the program after a change. 4,096 since Linux
    /// 5.4, 128 before. Many programs request less themselves (nginx: 511); then this setting has
    /// no effect on them.
    ///
    /// `weir doctor` shows the actual backlog of every listener.
    "net.core.somaxconn", Unit::Of("connections"), since!(5, 4, "4096", before "128"), judge::more;
    /// Packets that may wait for a processor between the interface and the protocol stack.
    ///
    /// Used by interfaces without NAPI (veth, tunnels, loopback) and by RPS, but not by the
    /// receive rings of ordinary network cards, which ethtool sets. Raise it only if the second
    /// column of `/proc/net/softnet_stat` rises.
    "net.core.netdev_max_backlog", Unit::Of("packets"), always!("1000"), judge::netdev_backlog;
    /// Packets that one receive round (NAPI) may process before other work runs.
    ///
    /// The third column of `/proc/net/softnet_stat` (`time_squeeze`) counts rounds that ended
    /// early. Doubling the value trades a little latency of programs for throughput.
    "net.core.netdev_budget", Unit::Of("packets"), always!("300"), judge::more;
    /// Time that one receive round (NAPI) may take.
    ///
    /// The default depends on the kernel's timer frequency: 2,000 µs at 1,000 Hz, 8,000 µs at 250
    /// Hz.
    "net.core.netdev_budget_usecs", Unit::Microseconds, |_| None, judge::any;
    /// Packets that a queue without NAPI, and the transmit side, process at once.
    ///
    /// A change is rarely useful.
    "net.core.dev_weight", Unit::Of("packets"), always!("64"), judge::any;
    /// The largest receive buffer that a program may request (`SO_RCVBUF`).
    ///
    /// TCP autotuning uses up to the last value of `tcp_rmem`, whatever this value is. A program
    /// that sets `SO_RCVBUF` disables autotuning for its socket. 4 MiB on current kernels (6.18),
    /// 208 KiB before.
    "net.core.rmem_max", Unit::Bytes, since!(6, 18, "4194304", before "212992"), judge::socket_max;
    /// The largest send buffer that a program may request (`SO_SNDBUF`).
    ///
    /// TCP autotuning uses up to the last value of `tcp_wmem`, whatever this value is. 4 MiB on
    /// current kernels (6.18), 208 KiB before.
    "net.core.wmem_max", Unit::Bytes, since!(6, 18, "4194304", before "212992"), judge::socket_max;
    /// The initial receive buffer of sockets that are not TCP.
    ///
    /// Applies to UDP, for example to a DNS server or QUIC under bursts. TCP uses `tcp_rmem`.
    "net.core.rmem_default", Unit::Bytes, always!("212992"), judge::socket_default;
    /// The initial send buffer of sockets that are not TCP.
    ///
    /// Applies to UDP. TCP uses `tcp_wmem`.
    "net.core.wmem_default", Unit::Bytes, always!("212992"), judge::socket_default;
    /// Memory for ancillary data of a socket, such as filters and control messages.
    ///
    /// Zero-copy sending and large filters may need more. 128 KiB since Linux 6.9, 20 KiB before.
    "net.core.optmem_max", Unit::Bytes, since!(6, 9, "131072", before "20480"), judge::any;
    /// The default queueing discipline of interfaces.
    ///
    /// `fq` paces packets for BBR (since Linux 4.13 BBR also paces by itself); `fq_codel` keeps
    /// queues short and is the default of systemd. Existing interfaces keep theirs.
    "net.core.default_qdisc", Unit::Word, |_| None, judge::any;
    /// Time for which `poll()` polls the network card before it sleeps.
    ///
    /// Trades processor time for a few microseconds of latency; 0 is off.
    "net.core.busy_poll", Unit::Microseconds, always!("0"), judge::depends;
    /// Time for which a blocking read polls the network card before it sleeps.
    ///
    /// Trades processor time for a few microseconds of latency; 0 is off.
    "net.core.busy_read", Unit::Microseconds, always!("0"), judge::depends;
    /// Size of the table that steers packets to the processor of the receiving program (RFS).
    ///
    /// 0 is off. With several processors and few queues, 32,768 together with `rps_flow_cnt` of
    /// each queue spreads the load.
    "net.core.rps_sock_flow_entries", Unit::Of("flows"), always!("0"), judge::depends;
    /// Whether a socket changes its flow hash, to try another path, if its peer does not answer.
    ///
    /// On since Linux 5.18. It helps on networks that distribute flows over several links by hash
    /// (ECMP).
    "net.core.txrehash", Unit::Switch, always!("1"), judge::on;
}
