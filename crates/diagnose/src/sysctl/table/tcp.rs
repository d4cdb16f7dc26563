//! `net.ipv4.tcp_*`: handshakes, timeouts, recovery from loss, options.

use super::super::{Kernel, Unit, judge};
use super::{always, since};

settings! {
    /// Whether SYNs are answered with SYN cookies when the SYN queue is full.
    ///
    /// 1, the default, is right: a burst beyond the backlog loses no connection. 0 drops its SYNs.
    /// 2 answers every SYN with a cookie, which is for tests. "possible SYN flooding" in the
    /// kernel log usually means that a program's backlog is small (nginx: 511).
    "net.ipv4.tcp_syncookies", Unit::Switch, always!("1"), judge::syncookies;
    /// Whether connections that overflow an accept queue are reset instead of dropped.
    ///
    /// If the packet is dropped, the client retransmits it within a second and usually succeeds;
    /// after a reset, it fails. Use 1 only for a server behind a load balancer that retries
    /// another server immediately.
    "net.ipv4.tcp_abort_on_overflow", Unit::Switch, always!("0"), judge::off;
    /// How often a SYN is retransmitted before `connect()` fails.
    ///
    /// 6 take about 67 s on current kernels (since Linux 6.5 the first four are a second apart),
    /// 127 s before. A load balancer's own connect timeout is the better place for this limit: it
    /// knows how long the client can wait.
    "net.ipv4.tcp_syn_retries", Unit::Of("retries"), always!("6"), judge::syn_retries;
    /// How many of the first SYN retransmissions are a second apart, before the interval doubles.
    ///
    /// Since Linux 6.5: SYNs are sent at 0, 1, 2, 3, 4, 5, 7, 11 s.
    "net.ipv4.tcp_syn_linear_timeouts", Unit::Of("retries"), always!("4"), judge::any;
    /// How often a SYN-ACK is retransmitted before a half-open connection is dropped.
    ///
    /// 5 take 63 s. 2 free the SYN queue after 7 s, which helps in a SYN flood.
    "net.ipv4.tcp_synack_retries", Unit::Of("retries"), always!("5"), judge::synack_retries;
    /// How long a socket that no program holds waits for its peer's FIN (FIN-WAIT-2).
    ///
    /// It has nothing to do with TIME-WAIT, which is 60 s and fixed, though most lists on the web
    /// believe so. Lowering it frees a little memory where many clients vanish while they close.
    "net.ipv4.tcp_fin_timeout", Unit::Seconds, always!("60"), judge::fin_timeout;
    /// Whether new outgoing connections may take over a port in TIME-WAIT.
    ///
    /// 1: after a second, with timestamps; 2, the default since Linux 4.19: on loopback only; 0:
    /// never. It is safe, and for a balancer that makes many connections to one server worth
    /// having. It does nothing for incoming connections.
    "net.ipv4.tcp_tw_reuse", Unit::Switch, since!(4, 19, "2", before "0"), judge::tw_reuse;
    /// Fast recycling of TIME-WAIT, which broke clients behind NAT.
    ///
    /// It dropped SYNs with older timestamps than the last from the same address, and behind one
    /// address of a NAT are many clocks. Removed in Linux 4.12. There has never been a good reason
    /// to set it.
    "net.ipv4.tcp_tw_recycle", Unit::Switch, always!("0"), judge::off,
        gone Kernel(4, 12), "it broke clients behind NAT. The line does nothing and should go";
    /// Whether sockets forget what was learnt about a peer when they close.
    ///
    /// By default round-trip time and reordering are kept by address (`ip tcp_metrics show`). What
    /// used to hurt, a slow-start threshold kept from one bad connection, is not kept any more
    /// since Linux 5.6 (`tcp_no_ssthresh_metrics_save`), so on current kernels this hardly matters.
    "net.ipv4.tcp_no_metrics_save", Unit::Switch, always!("0"), judge::no_metrics_save;
    /// Whether the slow-start threshold is not kept when a socket closes.
    ///
    /// On since Linux 5.6, which is right: one bad connection should not slow down the next.
    "net.ipv4.tcp_no_ssthresh_metrics_save", Unit::Switch, always!("1"), judge::on;
    /// Whether a kept connection begins slowly again after a pause.
    ///
    /// 0 lets it go on at its old speed, which helps responses over kept connections far away. The
    /// path may have changed meanwhile; a burst is then lost.
    "net.ipv4.tcp_slow_start_after_idle", Unit::Switch, always!("1"), judge::idle_start;
    /// Selective acknowledgements (RFC 2018).
    ///
    /// Without them a sender can't tell late from lost, and both cost far more: an upload over 70
    /// ms with a little reordering took 130 s instead of 5.7 s. It was turned off in 2019 against
    /// SACK Panic; kernels that have `tcp_min_snd_mss` are patched.
    "net.ipv4.tcp_sack", Unit::Switch, always!("1"), judge::on;
    /// Reports of segments that came twice (RFC 2883).
    ///
    /// They let a sender undo what it did for a false alarm. They need SACK.
    "net.ipv4.tcp_dsack", Unit::Switch, always!("1"), judge::on;
    /// Forward acknowledgements, an old way to tell loss.
    ///
    /// Removed in Linux 4.15 in favour of RACK; the name remains and does nothing.
    "net.ipv4.tcp_fack", Unit::Switch, always!("0"), judge::unused,
        gone Kernel(4, 15), "RACK replaced it (tcp_recovery)";
    /// TCP timestamps (RFC 7323).
    ///
    /// They let the kernel undo false retransmissions, distinguish old segments from new ones on
    /// fast links, and keep options with SYN cookies. They cost 12 bytes per segment. They do not
    /// reveal the uptime: since Linux 4.10 each connection starts at a random offset. 2 leaves the
    /// offset out.
    "net.ipv4.tcp_timestamps", Unit::Switch, always!("1"), judge::on;
    /// Window scaling: windows larger than 64 KiB (RFC 7323).
    ///
    /// Without it, a connection carries at most 64 KiB per round trip: 0.94 MB/s over 70 ms.
    "net.ipv4.tcp_window_scaling", Unit::Switch, always!("1"), judge::on;
    /// Fast loss detection: bits, 1 for RACK.
    ///
    /// RACK detects loss by time instead of by counting duplicate acknowledgements, so it
    /// tolerates reordering. 0 disables it.
    "net.ipv4.tcp_recovery", Unit::Switch, always!("1"), judge::on;
    /// How many segments may be out of order before loss is assumed, initially.
    ///
    /// The kernel adapts it for each connection, up to `tcp_max_reordering`. Raising it delays
    /// real recovery.
    "net.ipv4.tcp_reordering", Unit::Of("segments"), always!("3"), judge::any;
    /// The largest reordering distance to which the kernel adapts.
    ///
    /// A change is useful only on networks that reorder by hundreds of segments.
    "net.ipv4.tcp_max_reordering", Unit::Of("segments"), always!("300"), judge::any;
    /// Tail loss probes: 3 is on.
    ///
    /// 0 turns them off: the loss of a last segment then costs a whole timeout, 200 ms or more.
    "net.ipv4.tcp_early_retrans", Unit::Switch, always!("3"), judge::on;
    /// Detection of spurious timeouts (F-RTO, RFC 5682): 2 is on.
    ///
    /// It needs no support from the peer, and helps on wireless links.
    "net.ipv4.tcp_frto", Unit::Switch, always!("2"), judge::on;
    /// The congestion control algorithm of new connections.
    ///
    /// cubic is the default. BBR tolerates loss and deep buffers better, and takes more than its
    /// share where it competes with cubic. `net.ipv4.tcp_available_congestion_control` lists the
    /// loaded algorithms. New namespaces inherit it.
    "net.ipv4.tcp_congestion_control", Unit::Word, always!("cubic"), judge::congestion;
    /// Explicit congestion notification: 0 off, 1 requests it, 2 accepts it if the peer requests
    /// it.
    ///
    /// 2 is the default. With 1, routers that mark instead of dropping save retransmissions.
    "net.ipv4.tcp_ecn", Unit::Switch, always!("2"), judge::ecn;
    /// TCP Fast Open: bits, 1 for clients, 2 for servers.
    ///
    /// Data in the SYN saves a round trip, may be delivered twice, and is dropped by many
    /// firewalls. Programs have to enable it too.
    "net.ipv4.tcp_fastopen", Unit::Switch, always!("1"), judge::any;
    /// MTU probing: finding a smaller packet size if routers silently drop large packets: 0, 1 or
    /// 2.
    ///
    /// 1 probes when a connection hangs, which helps behind tunnels and VPNs whose ICMP is
    /// filtered. Leave it 0 while low-MSS filters protect a kernel that is not patched against
    /// SACK Panic.
    "net.ipv4.tcp_mtu_probing", Unit::Switch, always!("0"), |value| match value.text {
        "1" => judge::Judgement::new(judge::Effect::Helps, "Connections through tunnels that drop large packets recover by themselves."),
        _ => judge::depends(value),
    };
    /// How long a connection is idle before the first keep-alive probe.
    ///
    /// Applies only to sockets that enable keep-alive. Two hours exceed the idle timeout of any
    /// firewall; 300 to 600 s suit servers.
    "net.ipv4.tcp_keepalive_time", Unit::Seconds, always!("7200"), judge::keepalive_time;
    /// Time between unanswered keep-alive probes.
    ///
    /// With `tcp_keepalive_probes` it determines how soon a dead peer is detected: 9 × 75 s by
    /// default.
    "net.ipv4.tcp_keepalive_intvl", Unit::Seconds, always!("75"), judge::any;
    /// How many keep-alive probes may go unanswered before a connection is closed.
    ///
    /// With `tcp_keepalive_intvl` it determines how soon a dead peer is detected.
    "net.ipv4.tcp_keepalive_probes", Unit::Of("probes"), always!("9"), judge::any;
    /// How many timeouts pass before the network layer looks for another route.
    ///
    /// RFC 1122 requires at least 3.
    "net.ipv4.tcp_retries1", Unit::Of("retries"), always!("3"), judge::any;
    /// How many timeouts pass before an established connection is closed.
    ///
    /// 15 take about 15 minutes; RFC 1122 requires at least 100 s, which is 8. Programs that want
    /// less set `TCP_USER_TIMEOUT`.
    "net.ipv4.tcp_retries2", Unit::Of("retries"), always!("15"), judge::retries2;
    /// How often an orphaned socket retransmits before it is closed.
    ///
    /// 0 means 8. Servers with very many clients that disappear may use 3.
    "net.ipv4.tcp_orphan_retries", Unit::Of("retries"), always!("0"), judge::any;
    /// Ignores resets for sockets in TIME_WAIT (RFC 1337).
    ///
    /// 1 is stricter than the default and does no harm.
    "net.ipv4.tcp_rfc1337", Unit::Switch, always!("0"), judge::any;
    /// A latency switch that no longer has an effect.
    ///
    /// It selected a receive path that was removed in Linux 4.14.
    "net.ipv4.tcp_low_latency", Unit::Switch, always!("0"), judge::unused,
        gone Kernel(4, 14), "the receive path that it disabled was removed";
    /// Whether small writes are delayed briefly while packets are queued.
    ///
    /// On by default; it saves packets and costs almost no time.
    "net.ipv4.tcp_autocorking", Unit::Switch, always!("1"), judge::any;
    /// Challenge acknowledgements to unexpected segments, per second.
    ///
    /// Raised in 2016 against CVE-2016-5696 (100 before), and unlimited on current kernels, which
    /// limit per socket.
    "net.ipv4.tcp_challenge_ack_limit", Unit::Of("per second"),
        since!(4, 7, "2147483647", before "100"), judge::any;
    /// The minimum time between acknowledgements to out-of-window segments of one connection.
    ///
    /// Protects against loops of acknowledgements.
    "net.ipv4.tcp_invalid_ratelimit", Unit::Milliseconds, always!("500"), judge::any;
    /// Fast retransmission for connections with few segments in flight.
    ///
    /// Removed in Linux 4.11: RACK does it for all connections.
    "net.ipv4.tcp_thin_dupack", Unit::Switch, always!("0"), judge::unused,
        gone Kernel(4, 11), "RACK does it for all connections";
    /// Timeouts that do not double, for connections with few segments in flight.
    ///
    /// For games and other thin streams; it has no other cost.
    "net.ipv4.tcp_thin_linear_timeouts", Unit::Switch, always!("0"), judge::any;
    /// How the urgent pointer is interpreted.
    ///
    /// Urgent data is practically unused.
    "net.ipv4.tcp_stdurg", Unit::Switch, always!("0"), judge::any;
    /// The minimum retransmission timeout (RTO).
    ///
    /// 200 ms by default. Within a data centre, a lower value detects the loss of a last segment
    /// sooner; below the delay of acknowledgements (40 ms) it causes spurious retransmissions.
    "net.ipv4.tcp_rto_min_us", Unit::Microseconds, always!("200000"), judge::depends;
}
