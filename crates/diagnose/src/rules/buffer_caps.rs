//! A socket buffer limit caps the throughput of a connection below the link's speed.
//!
//! **When.** The maximum of `tcp_rmem` or `tcp_wmem` was lowered below the kernel's default (6 MiB
//! and 4 MiB), and with the longest round-trip time seen to a peer it allows less than half of the
//! fastest interface's speed. About half of a receive buffer becomes the window (the rest is the
//! kernel's overhead).
//!
//! **Why.** A connection can have no more data in flight than its window. Its throughput is at most
//! one window per round trip, whatever the link's speed.
//!
//! **What to do.** Raise the maximum to the bandwidth-delay product (bandwidth times round-trip
//! time), plus half as much again. Sockets use only what they need. Short paths need no change.

use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Out, View};
use crate::words;

/// Of the link's speed, what a connection must be able to reach.
const SHARE_MIN: f64 = 0.5;
/// Of a receive buffer, what becomes window.
const WINDOW_SHARE: f64 = 0.5;

pub(super) fn check(view: View<'_>, out: &mut Out) {
    let Some(settings) = view.settings(out) else { return };
    for (name, default_max) in [("net.ipv4.tcp_rmem", 6 << 20), ("net.ipv4.tcp_wmem", 4 << 20)] {
        let numbers = settings.numbers(name);
        let Some(&max) = out.want(name, &numbers).and_then(|numbers| numbers.get(2)) else {
            continue;
        };
        if max >= default_max {
            continue;
        }
        let Some((rtt_us, peer)) = longest(view, out) else { return };
        let Some((mbit, interface)) = fastest(view, out) else { return };
        let cap_mbit = max as f64 * WINDOW_SHARE * 8.0 / rtt_us as f64;
        if cap_mbit >= SHARE_MIN * mbit as f64 {
            continue;
        }
        let needed = (mbit as f64 * rtt_us as f64 / 8.0 / WINDOW_SHARE) as u64;
        let whole = settings.values.get(name).map_or("", String::as_str);
        let mut parts: Vec<String> = whole.split_ascii_whitespace().map(str::to_owned).collect();
        if let Some(last) = parts.last_mut() {
            *last = needed.to_string();
        }
        out.push(
            out.finding(
                name,
                Severity::Advice,
                Certainty::Likely,
                format!(
                    "{name} limits a connection to {} Mbit/s over {} ms; the link has {}.",
                    words::number(cap_mbit),
                    words::number(rtt_us as f64 / 1000.0),
                    words::thousands(mbit)
                ),
            )
            .evidence(Evidence::text(name, format!("{whole} (maximum {})", words::bytes(max))))
            .evidence(Evidence::number(
                format!("round-trip time to {peer}"),
                rtt_us as f64 / 1000.0,
                "ms",
            ))
            .evidence(Evidence::count(format!("speed of {interface}"), mbit, "Mbit/s"))
            .why("A connection carries at most one window per round trip, however fast the link.")
            .remedy(
                "Raise the maximum",
                &[&format!("sysctl -w {name}='{}'", parts.join(" "))],
                "each socket that needs it may use that much memory",
            )
            .verify("ss -tin shows a larger rcv_space or cwnd on long transfers")
            .source(&["/proc/sys/net/ipv4", "sock_diag (TCP_INFO: rtt)", "ethtool"]),
        );
    }
}

fn longest(view: View<'_>, out: &mut Out) -> Option<(u64, std::net::IpAddr)> {
    let sockets = view.last().and_then(|last| out.want("sockets by peer", &last.sockets))?;
    let far =
        sockets.peers.iter().filter_map(|peer| Some((peer.tcp.get()?.rtt_median_us, peer.peer)));
    far.max_by_key(|&(rtt, _)| rtt).filter(|&(rtt, _)| rtt > 0)
}

fn fastest<'a>(view: View<'a>, out: &mut Out) -> Option<(u64, &'a str)> {
    let interfaces = view.last().and_then(|last| out.want("interfaces", &last.interfaces))?;
    let speeds =
        interfaces.iter().filter_map(|one| Some((*one.speed_mbit.get()?, one.name.as_str())));
    let fastest = speeds.max_by_key(|&(speed, _)| speed);
    if fastest.is_none() {
        out.could_not("whether buffers fit the link", "no interface reports its speed");
    }
    fastest
}
