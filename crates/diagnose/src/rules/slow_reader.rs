//! A program on this host reads from its connections too slowly.
//!
//! **When.** Between the samples, this host advertised a zero window to its peers
//! (`TcpExtTCPToZeroWindowAdv`), or dropped data because a receive buffer was full
//! (`TcpExtRcvPruned`, `TcpExtTCPRcvQDrop`). Or in every sample more than 64 KiB of data from one
//! peer was unread, and this host has advertised a zero window at some time. If `tcp_rmem` allows
//! less than 128 KiB, only unread data counts (from a quarter of the buffer), and
//! `receive_buffer_small` reports the rest. If at least as many segments arrived out of order
//! (`TcpExtTCPOFOQueue`) as zero windows were advertised and segments dropped, those segments may have
//! filled the buffers: then the finding is possible advice, and loss or reordering the likely cause.
//! `TcpExtTCPBacklogDrop` does not count: it also rises on a host that sends, when acknowledgements
//! arrive faster than the kernel can process them.
//!
//! **Why.** The network has delivered the data, and the peer waits for this host. To the peer it
//! looks like a slow network, and a balancer in between buffers the data in the meantime.
//!
//! **What to do.** Find the program (`ss -tnp`, Recv-Q above 0) and what it waits for: CPU, a disk,
//! a lock, or another server. Larger buffers only hide the problem for a while.

use super::receive_buffer_small::{dropped, small_buffer};
use crate::facts::{Direction, PeerSockets};
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Change, Out, View};
use crate::words;

/// Any busy program leaves less than this unread for a moment.
const UNREAD_MIN_BYTES: u64 = 64 << 10;
/// From this rate of stops on, the finding is a warning.
const WARNING_PER_S: f64 = 1.0;
const PEERS_SHOWN_MAX: usize = 3;

pub(super) fn check(view: View<'_>, out: &mut Out) {
    let Some(stops) = view.counter("TcpExtTCPToZeroWindowAdv", out) else { return };
    let drops = dropped(view);
    let small = small_buffer(view);
    let unread_min = small.map_or(UNREAD_MIN_BYTES, |bytes| UNREAD_MIN_BYTES.min(bytes / 4).max(1));
    let unread = if stops.in_all > 0 { unread(view, unread_min) } else { Vec::new() };
    let is_counted = small.is_none() && (stops.is_rising() || !drops.is_empty());
    if !is_counted && unread.is_empty() {
        return;
    }
    // Segments that arrive out of order fill the buffer too. No program can read them yet.
    let ahead = view.counter_if_any("TcpExtTCPOFOQueue");
    // Both counters may count one segment.
    let no_room = stops.by.saturating_add(drops.iter().map(|(_, one)| one.by).max().unwrap_or(0));
    let is_ahead = |one: &Change| one.is_rising() && one.by >= no_room;
    let ahead = ahead.filter(|one| unread.is_empty() && is_ahead(one));
    let is_heavy = ahead.is_none()
        && (stops.per_s() >= WARNING_PER_S || !drops.is_empty() || !unread.is_empty());
    let what = what(&stops, &drops, &unread, ahead.is_some());
    out.push(
        out.finding(
            "slow reader",
            if is_heavy { Severity::Warning } else { Severity::Advice },
            match unread.first() {
                Some(_) => Certainty::Certain,
                None if ahead.is_some() => Certainty::Possible,
                None => Certainty::Likely,
            },
            what,
        )
        .evidence(stops.evidence("TcpExtTCPToZeroWindowAdv"))
        .evidences(drops.iter().map(|(name, one)| one.evidence(name)))
        .evidences(ahead.map(|one| one.evidence("TcpExtTCPOFOQueue")))
        .evidences(unread.iter().take(PEERS_SHOWN_MAX).map(|(bytes, peer)| {
            Evidence::text(
                format!("unread from {}", server_or_client(peer)),
                format!(
                    "{} on {}",
                    words::bytes(*bytes),
                    words::plural(peer.tcp.get().map_or(0, |one| one.connections), "connection")
                ),
            )
        }))
        .why(if ahead.is_some() {
            "These segments wait in the buffer until the missing ones arrive; no program can read them earlier."
        } else {
            "The peers wait for this host; to them it looks like a slow network."
        })
        .remedy(
            if ahead.is_some() {
                "Look for loss or reordering on the path from the peers"
            } else {
                "Find the program whose Recv-Q stays above 0, and what it waits for"
            },
            &[if ahead.is_some() {
                "nstat -az TcpExtTCPOFOQueue TcpExtTCPOFOMerge"
            } else {
                "ss -tnp state established '( not sport = :22 )' | awk '$1 > 0'"
            }],
            "none",
        )
        .verify(if drops.is_empty() {
            "nstat shows that TcpExtTCPToZeroWindowAdv no longer rises; ss -tn shows Recv-Q near 0"
        } else {
            "nstat shows that TcpExtTCPToZeroWindowAdv, TcpExtRcvPruned and TcpExtTCPRcvQDrop no longer rise"
        })
        .source(&["/proc/net/netstat", "sock_diag (idiag_rqueue)"]),
    );
}

/// What is found. `is_ahead`: most of the buffer holds segments that arrived out of order.
fn what(
    stops: &Change,
    drops: &[(&str, Change)],
    unread: &[(u64, &PeerSockets)],
    is_ahead: bool,
) -> String {
    if let Some((bytes, peer)) = unread.first() {
        return format!(
            "A program does not read {} that have arrived from {}.",
            words::bytes(*bytes),
            server_or_client(peer)
        );
    }
    let symptom = if stops.is_rising() {
        format!("advertises a zero window {} times a second", words::number(stops.per_s()))
    } else {
        let per_s = drops.iter().map(|(_, one)| one.per_s()).fold(0.0, f64::max);
        format!("drops {} received segments a second", words::number(per_s))
    };
    if is_ahead {
        format!(
            "This host {symptom}, while segments that arrive out of order fill its receive buffers."
        )
    } else {
        format!("This host {symptom}: a program reads slowly, or has a small receive buffer.")
    }
}

/// `server 10.0.0.1:80`, `client 10.0.0.9`.
pub(super) fn server_or_client(peer: &PeerSockets) -> String {
    match peer.direction {
        Direction::Outbound => {
            format!("server {}", std::net::SocketAddr::new(peer.peer, peer.port))
        }
        Direction::Inbound => format!("client {}", peer.peer),
    }
}

/// Lists peers with too much unread data in every sample, the most first.
fn unread(view: View<'_>, min_bytes: u64) -> Vec<(u64, &PeerSockets)> {
    let of = |sockets: &[PeerSockets], peer: &PeerSockets| {
        sockets
            .iter()
            .find(|one| {
                (one.peer, one.direction, one.port) == (peer.peer, peer.direction, peer.port)
            })
            .and_then(|one| one.tcp.get())
            .map_or(0, |one| one.unread_bytes)
    };
    let samples: Vec<&[PeerSockets]> = view
        .namespace
        .samples
        .iter()
        .filter_map(|sample| sample.sockets.get())
        .map(|sockets| sockets.peers.as_slice())
        .collect();
    if samples.len() < 2 {
        return Vec::new();
    }
    let Some(last) = samples.last() else { return Vec::new() };
    let mut unread: Vec<(u64, &PeerSockets)> = last
        .iter()
        .map(|peer| (samples.iter().map(|one| of(one, peer)).min().unwrap_or(0), peer))
        .filter(|&(bytes, _)| bytes >= min_bytes)
        .collect();
    unread.sort_by_key(|&(bytes, _)| std::cmp::Reverse(bytes));
    unread
}
