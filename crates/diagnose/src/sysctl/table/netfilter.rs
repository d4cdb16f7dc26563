//! `net.netfilter`: connection tracking.

use super::super::{Kernel, Unit, judge};
use super::{always, since};

settings! {
    /// Maximum number of tracked connections.
    ///
    /// Beyond it, packets of new connections are dropped: "nf_conntrack: table full". The default
    /// is computed from the memory, usually at most 262,144. An entry takes about 400 bytes.
    /// Inside a container it is read-only: change it on the host. The setting exists only after
    /// the module is loaded, so a sysctl file that is read earlier has no effect.
    "net.netfilter.nf_conntrack_max", Unit::Of("entries"), |_| None, judge::conntrack_max;
    /// An older name of net.netfilter.nf_conntrack_max.
    ///
    /// Use the longer name.
    "net.nf_conntrack_max", Unit::Of("entries"), |_| None, judge::conntrack_max;
    /// Number of buckets in the connection tracking table.
    ///
    /// Use at least a quarter of `nf_conntrack_max`; with fewer, each packet searches long lists.
    "net.netfilter.nf_conntrack_buckets", Unit::Of("buckets"), |_| None, judge::any;
    /// How long an idle, established connection stays tracked.
    ///
    /// Five days by default, so entries of peers that disappeared fill the table. A few hours are
    /// enough if programs send keep-alives.
    "net.netfilter.nf_conntrack_tcp_timeout_established", Unit::Seconds, always!("432000"), judge::conntrack_established;
    /// How long a closed connection stays tracked.
    ///
    /// The TIME_WAIT state of the socket protects more than this entry does; 30 s save entries if
    /// connections are short.
    "net.netfilter.nf_conntrack_tcp_timeout_time_wait", Unit::Seconds, always!("120"), judge::any;
    /// How long a connection that one side has closed stays tracked.
    ///
    /// A change is rarely useful.
    "net.netfilter.nf_conntrack_tcp_timeout_fin_wait", Unit::Seconds, always!("120"), judge::any;
    /// How long a connection that the other side has closed stays tracked.
    ///
    /// A change is rarely useful.
    "net.netfilter.nf_conntrack_tcp_timeout_close_wait", Unit::Seconds, always!("60"), judge::any;
    /// How long a UDP flow with packets in one direction stays tracked.
    ///
    /// Short flows such as DNS fill the table with their rate times this timeout; it is better not
    /// to track them.
    "net.netfilter.nf_conntrack_udp_timeout", Unit::Seconds, always!("30"), judge::any;
    /// How long a UDP flow with packets in both directions stays tracked.
    ///
    /// 120 s since Linux 5.0, 180 s before.
    "net.netfilter.nf_conntrack_udp_timeout_stream", Unit::Seconds, since!(5, 0, "120", before "180"), judge::any;
    /// Whether connections are tracked from the middle, without their handshake.
    ///
    /// 1, the default, lets connections survive a restart of the firewall.
    "net.netfilter.nf_conntrack_tcp_loose", Unit::Switch, always!("1"), judge::any;
    /// Whether segments outside of the window are accepted.
    ///
    /// 1 helps if a network card or a tunnel splits and joins segments; resets are still checked.
    "net.netfilter.nf_conntrack_tcp_be_liberal", Unit::Switch, always!("0"), judge::any;
    /// The table of tracked connections of old kernels.
    ///
    /// It is `net.netfilter.nf_conntrack_max` since Linux 2.6.20 or so.
    "net.ipv4.ip_conntrack_max", Unit::Of("entries"), |_| None, judge::unused,
        gone Kernel(3, 0), "use net.netfilter.nf_conntrack_max";
    /// The table of tracked connections of old kernels.
    ///
    /// It is `net.netfilter.nf_conntrack_max` now; the directory went in Linux 4.8.
    "net.ipv4.netfilter.ip_conntrack_max", Unit::Of("entries"), |_| None, judge::unused,
        gone Kernel(4, 8), "use net.netfilter.nf_conntrack_max";
}
