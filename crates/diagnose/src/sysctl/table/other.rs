//! `net.ipv4`, `net.ipv6` and others beside TCP.

use super::super::{Kernel, Unit, judge};
use super::always;

settings! {
    /// The ephemeral ports: local ports of outgoing connections.
    ///
    /// One local address can have as many connections to one server address and port as the range
    /// has ports: 28,232 by default. Load balancers benefit from a wider range; reserve the ports
    /// on which programs listen (`ip_local_reserved_ports`).
    "net.ipv4.ip_local_port_range", Unit::Of("port"), always!("32768 60999"), judge::port_range;
    /// Ports excluded from ip_local_port_range.
    ///
    /// For programs that listen on a port within the range.
    "net.ipv4.ip_local_reserved_ports", Unit::Word, always!(""), judge::any;
    /// Whether programs may bind to addresses that this host does not have.
    ///
    /// For load balancers whose address moves between hosts (VRRP) and for transparent proxies.
    "net.ipv4.ip_nonlocal_bind", Unit::Switch, always!("0"), judge::any;
    /// Whether this host forwards packets between interfaces (IP forwarding).
    ///
    /// Needed by containers and routers. Turning it on resets other settings of the interfaces.
    "net.ipv4.ip_forward", Unit::Switch, always!("0"), judge::any;
    /// Whether path MTU discovery is disabled.
    ///
    /// 0, the default, enables it. 1 and above send small packets or fragments.
    "net.ipv4.ip_no_pmtu_disc", Unit::Switch, always!("0"), judge::off;
    /// The first port on which unprivileged programs may listen.
    ///
    /// 80 lets a load balancer run without root or capabilities.
    "net.ipv4.ip_unprivileged_port_start", Unit::Of("port"), always!("1024"), judge::any;
    /// Memory of all UDP sockets together, in pages.
    ///
    /// The values are in pages, not bytes, as in `tcp_mem`; the default is computed from the
    /// machine's memory.
    "net.ipv4.udp_mem", Unit::Pages, |machine| {
        let base = machine.memory_bytes? / machine.page_bytes.max(1) / 8;
        Some(format!("{} {base} {}", base / 4 * 3, base / 4 * 3 * 2))
    }, judge::tcp_mem;
    /// The receive buffer that a UDP socket keeps under memory pressure.
    ///
    /// A change is rarely useful.
    "net.ipv4.udp_rmem_min", Unit::Bytes, always!("4096"), judge::any;
    /// The send buffer that a UDP socket keeps under memory pressure.
    ///
    /// A change is rarely useful.
    "net.ipv4.udp_wmem_min", Unit::Bytes, always!("4096"), judge::any;
    /// Number of neighbour (ARP) entries below which none is removed.
    ///
    /// Raise the three thresholds together if one network has hundreds of hosts or containers.
    "net.ipv4.neigh.default.gc_thresh1", Unit::Of("entries"), always!("128"), judge::gc_thresh;
    /// Number of neighbour (ARP) entries above which entries are removed after 5 s.
    ///
    /// Raise the three thresholds together if one network has hundreds of hosts or containers.
    "net.ipv4.neigh.default.gc_thresh2", Unit::Of("entries"), always!("512"), judge::gc_thresh;
    /// Maximum number of neighbour (ARP) entries; beyond it, packets to hosts on the local network
    /// are dropped.
    ///
    /// The kernel then logs "neighbour table overflow". Raise the three thresholds together.
    "net.ipv4.neigh.default.gc_thresh3", Unit::Of("entries"), always!("1024"), judge::gc_thresh;
    /// Reverse path filtering: whether packets are dropped if the reply would use another
    /// interface.
    ///
    /// 0 off, 1 strict, 2 loose. Strict breaks hosts with several uplinks. Distributions differ; 2
    /// is systemd's.
    "net.ipv4.conf.all.rp_filter", Unit::Switch, |_| None, judge::rp_filter;
    /// Whether this host accepts ICMP redirects from routers.
    ///
    /// A server should not accept them: 0.
    "net.ipv4.conf.all.accept_redirects", Unit::Switch, |_| None, judge::any;
    /// Whether this host sends ICMP redirects.
    ///
    /// A server has no reason to send them: 0.
    "net.ipv4.conf.all.send_redirects", Unit::Switch, |_| None, judge::any;
    /// Whether packets may specify their route (source routing).
    ///
    /// Keep it 0: source routing is not needed.
    "net.ipv4.conf.all.accept_source_route", Unit::Switch, |_| None, judge::off;
    /// Whether packets may specify their route (source routing), for new interfaces.
    ///
    /// 1 is the kernel's default and harmless: source routes are used only if
    /// `net.ipv4.conf.all.accept_source_route` is 1 as well, which is 0 by default.
    "net.ipv4.conf.default.accept_source_route", Unit::Switch, always!("1"), judge::any;
    /// Whether packets with impossible addresses are logged.
    ///
    /// Fills the log; use it only to debug a problem.
    "net.ipv4.conf.all.log_martians", Unit::Switch, |_| None, judge::any;
    /// Size of the route cache, which no longer exists.
    ///
    /// Linux 3.6 removed the IPv4 route cache.
    "net.ipv4.route.max_size", Unit::Of("entries"), always!("2147483647"), judge::unused,
        gone Kernel(3, 6), "the route cache was removed";
    /// Whether pings to broadcast addresses are ignored.
    ///
    /// 1, the default, is right.
    "net.ipv4.icmp_echo_ignore_broadcasts", Unit::Switch, always!("1"), judge::on;
}
