//! `net.netfilter`: connection tracking.

use super::super::{Kernel, Unit, judge};
use super::{always, since};

settings! {
    /// Connections tracked at most.
    ///
    /// Beyond it new ones are dropped: "nf_conntrack: table full". The default is computed from the
    /// memory, 262,144 at most mostly. An entry takes about 400 bytes. Inside a container it is
    /// read-only: change it on the host. It exists only once the module is loaded, so a file of
    /// settings that is read before has no effect.
    "net.netfilter.nf_conntrack_max", Unit::Of("entries"), |_| None, judge::conntrack_max;
    /// The same as net.netfilter.nf_conntrack_max, by an older name.
    ///
    /// Use the longer name.
    "net.nf_conntrack_max", Unit::Of("entries"), |_| None, judge::conntrack_max;
    /// Buckets of the table of tracked connections.
    ///
    /// As many as a quarter of `nf_conntrack_max` or more, else each packet searches long lists.
    "net.netfilter.nf_conntrack_buckets", Unit::Of("buckets"), |_| None, judge::any;
    /// How long a silent, established connection stays tracked.
    ///
    /// Five days by default, so entries of peers that vanished fill the table. A few hours suffice
    /// where programs send keep-alives.
    "net.netfilter.nf_conntrack_tcp_timeout_established", Unit::Seconds, always!("432000"), judge::conntrack_established;
    /// How long a closed connection stays tracked.
    ///
    /// It protects less than TIME-WAIT of the socket itself; 30 s save entries where connections
    /// are short.
    "net.netfilter.nf_conntrack_tcp_timeout_time_wait", Unit::Seconds, always!("120"), judge::any;
    /// How long a connection stays tracked of which one side has closed.
    ///
    /// Hardly ever worth a change.
    "net.netfilter.nf_conntrack_tcp_timeout_fin_wait", Unit::Seconds, always!("120"), judge::any;
    /// How long a connection stays tracked of which the other side has closed.
    ///
    /// Hardly ever worth a change.
    "net.netfilter.nf_conntrack_tcp_timeout_close_wait", Unit::Seconds, always!("60"), judge::any;
    /// How long a UDP flow of one direction stays tracked.
    ///
    /// Short flows such as DNS fill the table at this length times their rate; better not to track
    /// them.
    "net.netfilter.nf_conntrack_udp_timeout", Unit::Seconds, always!("30"), judge::any;
    /// How long a UDP flow of both directions stays tracked.
    ///
    /// 120 s since Linux 5.0, 180 s before.
    "net.netfilter.nf_conntrack_udp_timeout_stream", Unit::Seconds, since!(5, 0, "120", before "180"), judge::any;
    /// Whether connections are taken up in their middle.
    ///
    /// 1, the default, lets connections survive a restart of the firewall.
    "net.netfilter.nf_conntrack_tcp_loose", Unit::Switch, always!("1"), judge::any;
    /// Whether segments outside of the window are let through.
    ///
    /// 1 helps where a card or a tunnel splits and joins segments; resets are still checked.
    "net.netfilter.nf_conntrack_tcp_be_liberal", Unit::Switch, always!("0"), judge::any;
    /// The table of tracked connections of old kernels.
    ///
    /// It is `net.netfilter.nf_conntrack_max` since Linux 2.6.20 or so.
    "net.ipv4.ip_conntrack_max", Unit::Of("entries"), |_| None, judge::unused,
        gone Kernel(3, 0), "it is net.netfilter.nf_conntrack_max now";
    /// The table of tracked connections of old kernels.
    ///
    /// It is `net.netfilter.nf_conntrack_max` now; the directory went in Linux 4.8.
    "net.ipv4.netfilter.ip_conntrack_max", Unit::Of("entries"), |_| None, judge::unused,
        gone Kernel(4, 8), "it is net.netfilter.nf_conntrack_max now";
}
