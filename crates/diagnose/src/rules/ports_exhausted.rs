//! Ephemeral port exhaustion: few local ports are left for connections to one server.
//!
//! **When.** More than 70 % (warning) or 90 % (critical) of the ephemeral ports are used by sockets
//! from one local address to one destination address and port. The range is `ip_local_port_range`
//! (32768–60999: 28,232 ports) without `ip_local_reserved_ports`. Ports in TIME-WAIT count, unless
//! `tcp_tw_reuse` allows their reuse.
//!
//! **Why.** A connection is identified by its two addresses and two ports, so one address can have
//! only as many connections to one server as it has ports. When none is left, `connect()` fails
//! with "Cannot assign requested address" (EADDRNOTAVAIL). Long before that, it spends much time
//! searching for a free port.
//!
//! **What to do.** Use keep-alive connections: usually most of these ports are in TIME-WAIT for 60
//! s after a connection that carried one request. Then add source or destination addresses, widen
//! the range, and set `IP_BIND_ADDRESS_NO_PORT` in programs that bind before they connect.

use crate::facts::PortUse;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Out, View};
use crate::words;

const WARNING_SHARE: f64 = 0.7;
const CRITICAL_SHARE: f64 = 0.9;

pub(super) fn check(view: View<'_>, out: &mut Out) {
    let Some(sockets) = view.last().and_then(|last| out.want("sockets by peer", &last.sockets))
    else {
        return;
    };
    if sockets.ports.is_empty() {
        return;
    }
    let Some(ports) = ports(view, out) else { return };
    let reuse = view.setting_if_any("net.ipv4.tcp_tw_reuse").unwrap_or(0);
    for used in &sockets.ports {
        // 1: TIME-WAIT is no obstacle after a second; 2: the same on loopback only.
        let is_reused = reuse == 1 || reuse == 2 && used.destination.ip().is_loopback();
        let taken = if is_reused { used.used.saturating_sub(used.time_wait) } else { used.used };
        let share = taken as f64 / ports.max(1) as f64;
        if share > WARNING_SHARE {
            push(view, used, taken, ports, out);
        }
    }
}

/// Local ports that may be given to connections.
pub(super) fn ports(view: View<'_>, out: &mut Out) -> Option<u64> {
    let settings = view.settings(out)?;
    let name = "net.ipv4.ip_local_port_range";
    let range = out.want(name, &settings.numbers(name))?.clone();
    let (&first, &last) = (range.first()?, range.get(1)?);
    let reserved =
        settings.values.get("net.ipv4.ip_local_reserved_ports").map_or("", String::as_str);
    let reserved = reserved.split(',').filter_map(|part| {
        let (from, to) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        let (from, to): (u64, u64) = (from.parse().ok()?, to.parse().ok()?);
        let (from, to) = (from.max(first), to.min(last));
        (to >= from).then(|| (to - from).saturating_add(1))
    });
    let reserved = words::sum(reserved);
    Some(last.saturating_add(1).saturating_sub(first).saturating_sub(reserved))
}

fn push(view: View<'_>, used: &PortUse, taken: u64, ports: u64, out: &mut Out) {
    let share = taken as f64 / ports.max(1) as f64;
    let severity = if share > CRITICAL_SHARE { Severity::Critical } else { Severity::Warning };
    let range = view
        .namespace
        .settings
        .get()
        .and_then(|settings| settings.values.get("net.ipv4.ip_local_port_range"));
    out.push(
        out.finding(
            used.destination.to_string(),
            severity,
            Certainty::Certain,
            format!(
                "{} of the ephemeral ports for {} are in use; {} are left.",
                words::percent(share),
                used.destination,
                words::thousands(ports.saturating_sub(taken))
            ),
        )
        .evidence(Evidence::count("ports in use", taken, format!("of {}", words::thousands(ports))))
        .evidence(Evidence::count("of these in TIME-WAIT", used.time_wait, "ports"))
        .evidence(Evidence::text("from", used.source.to_string()))
        .evidences(range.map(|one| Evidence::text("net.ipv4.ip_local_port_range", one)))
        .evidences(failures(view))
        .why("When none is left, connections to that server fail immediately (EADDRNOTAVAIL).")
        .remedy(
            "Keep connections to that server alive and use them again, so that none waits in TIME-WAIT",
            &[],
            "a server that closes idle connections early can cause failed requests",
        )
        .remedy(
            "Widen the ephemeral port range",
            &["sysctl -w net.ipv4.ip_local_port_range='10240 65535'"],
            "programs that listen on a port in the range may find it in use; reserve it with \
             net.ipv4.ip_local_reserved_ports",
        )
        .remedy(
            "Reuse ports in TIME_WAIT for new connections of this host",
            &["sysctl -w net.ipv4.tcp_tw_reuse=1"],
            "needs timestamps on both sides; safe for connections that this host opens",
        )
        .remedy("Add addresses to this host or to the server", &[], "needs routing and firewall rules")
        .verify(format!("ss -tan dst {} | wc -l falls", used.destination))
        .source(&["sock_diag", "/proc/sys/net/ipv4/ip_local_port_range"]),
    );
}

/// How often a new connection found its four-tuple taken, where the kernel says.
fn failures(view: View<'_>) -> Option<Evidence> {
    let change = view.counter_if_any("TcpAttemptFails").filter(|one| one.is_rising())?;
    Some(change.evidence("TcpAttemptFails"))
}
