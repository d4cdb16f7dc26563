//! Servers answer some SYNs and not others: their accept queue may overflow.
//!
//! **When.** The evidence shows that SYNs of this host are retransmitted, as in `syn_unanswered`,
//! and a server that has not answered yet has other, working connections with this host. Or servers
//! repeated a SYN-ACK that this host had already answered (`TcpExtTCPSYNChallenge`), as Linux does
//! if the accept queue was full when the handshake's last packet arrived.
//!
//! **Why.** A listener whose accept queue is full silently drops further SYNs and completed
//! handshakes. From this host it looks like a path that loses SYNs: the finding is *possible*, and
//! only the server can confirm it.
//!
//! **What to do.** On the server, run `weir doctor` or `nstat -az TcpExtListenOverflows`. If that
//! counter does not rise, look for a firewall or a limit on new connections between the two hosts.

use std::net::SocketAddr;

use super::syn_unanswered::{Handshakes, waiting_for};
use crate::facts::{Direction, PeerSockets};
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Change, Out, View};
use crate::words;

const SERVERS_SHOWN_MAX: usize = 3;

pub(super) fn check(view: View<'_>, out: &mut Out) {
    let Some(handshakes) = Handshakes::of(view, out) else { return };
    let challenged = view.counter_if_any("TcpExtTCPSYNChallenge").filter(|one| one.is_rising());
    let partly: Vec<(u64, SocketAddr, u64)> = waiting_for(view)
        .into_iter()
        .filter_map(|(waiting, server)| Some((waiting, server, working(view, server)?)))
        .collect();
    if !handshakes.are_unanswered() || partly.is_empty() && challenged.is_none() {
        return;
    }
    let names: Vec<String> = partly.iter().map(|(_, server, _)| server.to_string()).collect();
    let (subject, what) = if names.is_empty() {
        (
            "servers".to_owned(),
            "The accept queue of a server may overflow: it retransmits SYN-ACKs.".to_owned(),
        )
    } else {
        let named = words::list(&names, SERVERS_SHOWN_MAX);
        let what = format!(
            "The accept queue of {named} may overflow: some SYNs are answered, others are not."
        );
        (named, what)
    };
    out.push(
        out.finding(subject, Severity::Warning, Certainty::Possible, what)
            .evidences(partly.iter().take(SERVERS_SHOWN_MAX).map(|(waiting, server, working)| {
                Evidence::text(
                    server.to_string(),
                    format!(
                        "{} in SYN-SENT, {} established",
                        words::plural(*waiting, "socket"),
                        words::thousands(*working)
                    ),
                )
            }))
            .evidence(Evidence::text(
                "connections with repeated SYNs",
                format!(
                    "at least {} of {}",
                    words::thousands(handshakes.begun.affected),
                    words::thousands(handshakes.begun.of)
                ),
            ))
            .evidences(challenged.map(|one: Change| one.evidence("TcpExtTCPSYNChallenge")))
            .why("A full accept queue silently drops SYNs; a path that loses SYNs looks the same from here.")
            .remedy(
                "On the server, check whether its accept queue overflows",
                &["weir doctor", "nstat -az TcpExtListenOverflows", "ss -ltn"],
                "none",
            )
            .verify("nstat -az TcpExtTCPSynRetrans no longer rises under the same load")
            .source(&["/proc/net/netstat", "/proc/net/snmp", "sock_diag"]),
    );
}

/// Established connections to `server` on which data is acknowledged; `None` where there is none.
fn working(view: View<'_>, server: SocketAddr) -> Option<u64> {
    let sockets = view.last()?.sockets.get()?;
    let is_it = |one: &&PeerSockets| {
        one.direction == Direction::Outbound && (one.peer, one.port) == (server.ip(), server.port())
    };
    let tcp = sockets.peers.iter().find(is_it)?.tcp.get()?;
    let stalled = tcp.stalled.get().copied().unwrap_or(0);
    tcp.connections.checked_sub(stalled).filter(|&working| working > 0)
}
