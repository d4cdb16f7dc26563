//! A peer reads too slowly: its receive window blocks data that this host wants to send.
//!
//! **When.** For more than a fifth of the time in which connections to a peer had data to send, the
//! peer's receive window did not allow it (`TCP_INFO`: `rwnd_limited` of `busy_time`), or some of
//! its connections have a zero window in the last sample. A warning for servers, and for clients if
//! a tenth of all connections is blocked; single slow clients are advice.
//!
//! **Why.** The data waits in this host's memory, and a balancer has to delay the server's response
//! too. The cause is neither loss nor a slow network: the peer's program does not read, or its
//! receive buffer is too small for the round-trip time.
//!
//! **What to do.** On the peer, find out what its program waits for (the rule `slow_reader` reports
//! it there), and check `tcp_rmem`. Write timeouts disconnect clients that read slowly on purpose.

use super::slow_reader::server_or_client;
use crate::facts::{Direction, PeerSockets, TcpSummary};
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Out, View};
use crate::words;

/// Of the time with data to send, from when the peer's window is what limits.
const SHARE_MIN: f64 = 0.2;
/// Of all connections, clients that stop this many are more than a few slow ones.
const CLIENTS_SHARE_MIN: f64 = 0.1;
/// Time with data to send that is enough to judge, in microseconds.
const BUSY_MIN_US: u64 = 100_000;

pub(super) fn check(view: View<'_>, out: &mut Out) {
    let Some(last) = view.last().and_then(|last| out.want("sockets by peer", &last.sockets)) else {
        return;
    };
    let before = view.namespace.samples.first().and_then(|first| first.sockets.get());
    let all =
        words::sum(last.peers.iter().filter_map(|one| one.tcp.get()).map(|one| one.connections));
    for peer in &last.peers {
        let Some(now) = peer.tcp.get() else { continue };
        let then = before.and_then(|sockets| {
            let same = |one: &&PeerSockets| {
                (one.peer, one.direction, one.port) == (peer.peer, peer.direction, peer.port)
            };
            sockets.peers.iter().find(same)?.tcp.get()
        });
        let (busy, limited) = since(now, then);
        let share = if busy >= BUSY_MIN_US { limited as f64 / busy as f64 } else { 0.0 };
        let stopped = now.zero_window.get().copied().unwrap_or(0);
        if share <= SHARE_MIN && stopped == 0 {
            continue;
        }
        let is_heavy = peer.direction == Direction::Outbound
            || stopped as f64 >= CLIENTS_SHARE_MIN * all.max(1) as f64 && stopped > 0;
        let severity = if is_heavy { Severity::Warning } else { Severity::Advice };
        let name = server_or_client(peer);
        // A window that is zero at one moment only may be that of a small buffer.
        let was_stopped =
            then.is_some_and(|then| then.zero_window.get().is_some_and(|&count| count > 0));
        let what = if stopped > 0 && was_stopped {
            format!(
                "The {name} does not read: {} cannot send to it.",
                words::plural(stopped, "connection")
            )
        } else if stopped > 0 {
            format!(
                "The {name} advertises a zero window on {}: it does not read, or its receive buffer is small.",
                words::plural(stopped, "connection")
            )
        } else {
            format!(
                "The receive window of {name} blocked data {} of the time: it reads slowly, or its buffer is small.",
                words::percent(share)
            )
        };
        out.push(
            out.finding(name, severity, Certainty::Certain, what)
                .evidence(Evidence::count("connections", now.connections, "established"))
                .evidences(
                    (stopped > 0)
                        .then(|| Evidence::count("zero window", stopped, "connections")),
                )
                .evidence(Evidence::text(
                    "blocked by its window",
                    format!("{} of the time with data to send", words::percent(share)),
                ))
                .evidence(Evidence::text(
                    "unsent or unacknowledged",
                    words::bytes(now.unsent_bytes),
                ))
                .why("The data waits on this host. The cause is neither loss nor a slow network.")
                .remedy(
                    "On the peer, find out what its program waits for, and check its receive buffer",
                    &["ss -tnp", "sysctl net.ipv4.tcp_rmem"],
                    "none",
                )
                .verify("ss -tin towards it shows that rwnd_limited no longer grows")
                .source(&["sock_diag (TCP_INFO: busy_time, rwnd_limited, snd_wnd)"]),
        );
    }
}

/// Microseconds busy and held back between the samples, or over the connections' lives where some
/// of them ended in between.
fn since(now: &TcpSummary, then: Option<&TcpSummary>) -> (u64, u64) {
    let between = then.and_then(|then| {
        Some((
            now.busy_us.checked_sub(then.busy_us)?,
            now.rwnd_limited_us.checked_sub(then.rwnd_limited_us)?,
        ))
    });
    between.unwrap_or((now.busy_us, now.rwnd_limited_us))
}
