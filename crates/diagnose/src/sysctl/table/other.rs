//! `net.ipv4`, `net.ipv6` and others beside TCP.

use super::super::{Kernel, Unit, judge};
use super::always;

settings! {
    /// The ports that outgoing connections use.
    ///
    /// One local address can have as many connections to one server address and port as this has
    /// numbers: 28,232 by default. Wider helps balancers; reserve ports on which programs listen
    /// (`ip_local_reserved_ports`).
    "net.ipv4.ip_local_port_range", Unit::Of("port"), always!("32768 60999"), judge::port_range;
    /// Ports that are left out of ip_local_port_range.
    ///
    /// For programs that listen on a port within the range.
    "net.ipv4.ip_local_reserved_ports", Unit::Word, always!(""), judge::any;
    /// Whether programs may bind to addresses that this host does not have.
    ///
    /// For balancers whose address moves between hosts (VRRP) and for transparent proxies.
    "net.ipv4.ip_nonlocal_bind", Unit::Switch, always!("0"), judge::any;
    /// Whether this host routes packets.
    ///
    /// Needed by containers and routers. Turning it on resets other settings of the interfaces.
    "net.ipv4.ip_forward", Unit::Switch, always!("0"), judge::any;
    /// Whether the path's packet size is not looked for.
    ///
    /// 0, the default, looks for it. 1 and above send small packets or fragments.
    "net.ipv4.ip_no_pmtu_disc", Unit::Switch, always!("0"), judge::off;
    /// From which port on programs without rights may listen.
    ///
    /// 80 lets a balancer run without root or capabilities.
    "net.ipv4.ip_unprivileged_port_start", Unit::Of("port"), always!("1024"), judge::any;
    /// Memory of all UDP sockets together, in pages.
    ///
    /// Counts pages, not bytes, as `tcp_mem` does; computed from the machine's memory.
    "net.ipv4.udp_mem", Unit::Pages, |machine| {
        let base = machine.memory_bytes? / machine.page_bytes.max(1) / 8;
        Some(format!("{} {base} {}", base / 4 * 3, base / 4 * 3 * 2))
    }, judge::tcp_mem;
    /// The receive buffer that a UDP socket keeps under pressure.
    ///
    /// Hardly ever worth a change.
    "net.ipv4.udp_rmem_min", Unit::Bytes, always!("4096"), judge::any;
    /// The send buffer that a UDP socket keeps under pressure.
    ///
    /// Hardly ever worth a change.
    "net.ipv4.udp_wmem_min", Unit::Bytes, always!("4096"), judge::any;
    /// Neighbours that are never thrown away.
    ///
    /// Raise the three thresholds together where one network has hundreds of hosts or containers.
    "net.ipv4.neigh.default.gc_thresh1", Unit::Of("entries"), always!("128"), judge::gc_thresh;
    /// Neighbours beyond which entries are thrown away after 5 s.
    ///
    /// Raise the three thresholds together where one network has hundreds of hosts or containers.
    "net.ipv4.neigh.default.gc_thresh2", Unit::Of("entries"), always!("512"), judge::gc_thresh;
    /// Neighbours at most: beyond, packets to hosts nearby are dropped.
    ///
    /// "neighbour table overflow" in the kernel's log is this. Raise the three thresholds together.
    "net.ipv4.neigh.default.gc_thresh3", Unit::Of("entries"), always!("1024"), judge::gc_thresh;
    /// Whether packets are dropped whose answer would leave by another interface.
    ///
    /// 0 off, 1 strict, 2 loose. Strict breaks hosts with several ways out. Distributions differ; 2
    /// is systemd's.
    "net.ipv4.conf.all.rp_filter", Unit::Switch, |_| None, judge::rp_filter;
    /// Whether routers may tell this host a better way (ICMP redirects).
    ///
    /// A server should not listen to them: 0.
    "net.ipv4.conf.all.accept_redirects", Unit::Switch, |_| None, judge::any;
    /// Whether this host tells others a better way.
    ///
    /// A server has none to tell: 0.
    "net.ipv4.conf.all.send_redirects", Unit::Switch, |_| None, judge::any;
    /// Whether packets may prescribe their route.
    ///
    /// 0; nobody needs it.
    "net.ipv4.conf.all.accept_source_route", Unit::Switch, |_| None, judge::off;
    /// Whether packets may prescribe their route, on interfaces to come.
    ///
    /// 1 is the kernel's default and harmless: a packet's route is followed only where
    /// `net.ipv4.conf.all.accept_source_route` is 1 as well, which is 0 by default.
    "net.ipv4.conf.default.accept_source_route", Unit::Switch, always!("1"), judge::any;
    /// Whether packets of impossible addresses are logged.
    ///
    /// Fills the log; for looking into one problem.
    "net.ipv4.conf.all.log_martians", Unit::Switch, |_| None, judge::any;
    /// Size of the cache of routes, which is gone.
    ///
    /// IPv4 has no cache of routes since Linux 3.6.
    "net.ipv4.route.max_size", Unit::Of("entries"), always!("2147483647"), judge::unused,
        gone Kernel(3, 6), "the cache of routes was removed";
    /// Whether pings to broadcast addresses are left unanswered.
    ///
    /// 1, the default, is right.
    "net.ipv4.icmp_echo_ignore_broadcasts", Unit::Switch, always!("1"), judge::on;
}
