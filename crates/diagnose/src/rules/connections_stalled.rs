//! Established connections are dead: data sent on them is never acknowledged.
//!
//! **When.** The evidence shows that more than 1 % of the connections to a server are stalled, or
//! more than 20 % of those from clients, some of which always disappear. A connection is stalled if
//! its oldest segment was retransmitted by two timeouts in a row, with no acknowledgement since
//! (`TCP_INFO`). Each connection counts once; the bound allows one false alarm a month.
//!
//! **Why.** The peer, or the path to it, is gone, and no reset arrives. Programs wait until their
//! own timeout, or about 15 minutes (`net.ipv4.tcp_retries2`). If only full-size segments are lost,
//! the path's MTU is smaller than both ends assume, and the ICMP messages that report it are
//! dropped: an MTU black hole. The finding calls this possible if no full-size segment was ever
//! acknowledged on most of these connections.
//!
//! **What to do.** Check whether the peer answers at all (`ping`), then with large packets (`ping
//! -M do -s 1472`). Look for a firewall that lost its state, a host that crashed, or a route that
//! changed. For an MTU black hole, allow ICMP type 3 code 4, or set `net.ipv4.tcp_mtu_probing = 1`.

use std::net::SocketAddr;

use model::Address;

use crate::evidence::Units;
use crate::facts::{Direction, Facts, PeerSockets, ServerCounts};
use crate::finding::{Certainty, Evidence, Severity};
use crate::rules::slow_reader::server_or_client;
use crate::servers::mark;
use crate::view::{Out, View};
use crate::words;

const SERVERS_SHARE_MIN: f64 = 0.01;
const CLIENTS_SHARE_MIN: f64 = 0.2;
/// Of the connections to a server, from when hardly anything gets through.
const CRITICAL_SHARE: f64 = 0.5;
const PEERS_SHOWN_MAX: usize = 3;

/// A peer's connections: all, stalled, and stalled at the first segment of full size.
struct Peer<'a> {
    sockets: &'a PeerSockets,
    units: Units,
    full: u64,
}

pub(super) fn check(view: View<'_>, out: &mut Out) {
    let Some(last) = view.last().and_then(|last| out.want("sockets by peer", &last.sockets)) else {
        return;
    };
    let all: Vec<Peer<'_>> = last.peers.iter().filter_map(known).collect();
    let (servers, clients): (Vec<Peer<'_>>, Vec<Peer<'_>>) =
        all.into_iter().partition(|one| one.sockets.direction == Direction::Outbound);
    let judged = servers.len();
    let dead: Vec<Peer<'_>> =
        servers.into_iter().filter(|one| one.units.exceeds(SERVERS_SHARE_MIN, judged)).collect();
    // If all are dead, the cause may be near this host.
    let is_theirs = dead.len() < judged || judged == 1;
    let at_fault = if is_theirs { servers_at(view.facts, &dead) } else { Vec::new() };
    push(dead, &at_fault, out);
    if sum(&clients).exceeds(CLIENTS_SHARE_MIN, 1) {
        let dead = clients.into_iter().filter(|one| one.units.affected > 0).collect();
        push(dead, &[], out);
    }
}

/// `None` where TCP was not asked about its connections.
fn known(sockets: &PeerSockets) -> Option<Peer<'_>> {
    let tcp = sockets.tcp.get()?;
    let units = Units::new(*tcp.stalled.get()?, tcp.connections);
    Some(Peer { sockets, units, full: tcp.stalled_full.get().copied().unwrap_or(0) })
}

fn sum(peers: &[Peer<'_>]) -> Units {
    let of = |figure: fn(&Peer<'_>) -> u64| words::sum(peers.iter().map(figure));
    Units::new(of(|one| one.units.affected), of(|one| one.units.of))
}

/// Returns the balancer's servers at these peers. Empty if a peer is not a server, or serves several services.
fn servers_at<'a>(facts: &'a Facts, peers: &[Peer<'_>]) -> Vec<&'a ServerCounts> {
    let Some(last) = facts.balancer.get().and_then(|balancer| balancer.samples.last()) else {
        return Vec::new();
    };
    let server = |peer: &Peer<'_>| {
        let PeerSockets { peer, port, direction, .. } = *peer.sockets;
        let address = Address::from(SocketAddr::new(peer, port));
        let mut same = last.servers.iter().filter(|one| one.address == address);
        let one = same.next().filter(|_| direction == Direction::Outbound)?;
        same.next().is_none().then_some(one)
    };
    peers.iter().map(server).collect::<Option<_>>().unwrap_or_default()
}

fn push(mut peers: Vec<Peer<'_>>, at_fault: &[&ServerCounts], out: &mut Out) {
    if peers.is_empty() {
        return;
    }
    peers.sort_by_key(|one| std::cmp::Reverse(one.units.affected));
    let all = sum(&peers);
    let full = words::sum(peers.iter().map(|one| one.full));
    let names: Vec<String> = peers.iter().map(|one| server_or_client(one.sockets)).collect();
    let named = words::list(&names, PEERS_SHOWN_MAX);
    let is_critical = all.share() >= CRITICAL_SHARE;
    // No segment of full size has ever got through on most of them, though the handshake did.
    let is_size = full.saturating_mul(2) > all.affected;
    let what = if is_size {
        format!(
            "{} with {named} are stalled at their first large segment: possibly an MTU black hole.",
            words::plural(all.affected, "connection")
        )
    } else {
        format!(
            "{} with {named} are dead: data sent on them is never acknowledged.",
            words::plural(all.affected, "connection")
        )
    };
    let finding = out
        .finding(
            named,
            if is_critical { Severity::Critical } else { Severity::Warning },
            if is_size { Certainty::Possible } else { Certainty::Likely },
            what,
        )
        .evidences(peers.iter().take(PEERS_SHOWN_MAX).map(|one| {
            Evidence::text(
                server_or_client(one.sockets),
                format!(
                    "{} of {} stalled",
                    words::thousands(one.units.affected),
                    words::plural(one.units.of, "connection")
                ),
            )
        }))
        .evidence(Evidence::count("never had a full segment acknowledged", full, "connections"))
        .why("No reset arrives, so programs wait until their own timeout, or for about 15 minutes.")
        .remedy(
            "Check whether the peer answers at all, and with large packets",
            &["ping -c 3 ADDRESS", "ping -c 3 -M do -s 1472 ADDRESS", "ss -tino state established | grep -B1 backoff"],
            "none",
        )
        .remedy(
            "If only large packets are lost, let the kernel probe for the path's MTU",
            &["sysctl -w net.ipv4.tcp_mtu_probing=1"],
            "probing starts only after several timeouts; it is better to allow ICMP type 3 code 4 on the path",
        )
        .verify("ss -tino state established shows no connection with backoff")
        .source(&["sock_diag (TCP_INFO: retransmits, unacked)"]);
    // The path may be at fault for large segments, as well as the server.
    out.push(if is_size { finding } else { mark(finding, at_fault) });
}
