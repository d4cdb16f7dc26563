//! Packet loss: segments are lost on the path and retransmitted.
//!
//! **When.** Loss episodes prove that more than 0.33 % of the segments are lost. An episode is a
//! fast recovery (`TcpExtTCPSackRecovery`, `TCPRenoRecovery`, `TCPLossProbeRecovery`) or a series
//! of timeouts of one connection, without those that the kernel has undone (`TCPFullUndo`,
//! `TCPLossUndo`, `TCPDSACKUndo`). The bound allows one false alarm a month and needs no minimum
//! number of segments. A warning from 1 %, critical from 5 % of all transmissions. The lost
//! segments are `TcpRetransSegs` without repeated SYNs and without the segments that peers reported
//! as duplicates (`TcpExtTCPDSACKRecvSegs`).
//!
//! **Why.** Each lost segment costs at least a round trip; if it is the last of a response, it
//! costs a timeout of 200 ms or more. cubic roughly halves its speed for each episode. With 1 %
//! loss, a cubic connection over 70 ms carries about 2 MB/s, however fast the link.
//!
//! **What to do.** The finding lists the worst peers: check whether one peer, one zone or all peers
//! are affected. If it is one peer, examine its path and its host. If it is all peers, examine this
//! host's interface, its instance's limits (`ena_shaped`, `nic_drops`) or its provider. BBR
//! tolerates loss better than cubic.
//!
//! **Not to be confused with.** Reordering, which makes senders retransmit segments that were not
//! lost: then `reordering` is reported instead of this rule.

use crate::facts::{Direction, PeerSockets};
use crate::finding::{Certainty, Evidence, Severity};
use crate::segments::{Segments, is_sack_off};
use crate::view::{Out, View};
use crate::words;

/// A third of a per cent: what a healthy path rarely exceeds.
const SHARE_MIN: f64 = 0.01 / 3.0;
const WARNING_SHARE: f64 = 0.01;
const CRITICAL_SHARE: f64 = 0.05;
/// The same for one peer, whose share is only compared.
const PEER_SEGMENTS_MIN: u64 = 100;
const PEERS_SHOWN_MAX: usize = 3;

/// The severity with which this rule speaks about `segments`; `None` where it is silent. Other rules
/// leave to this one only what it says.
pub(super) fn speaks(view: View<'_>, segments: &Segments) -> Option<Severity> {
    let share = segments.share_lost();
    if share <= SHARE_MIN || !segments.units().exceeds(SHARE_MIN, 1) {
        return None;
    }
    // Without SACK, lost and late segments cannot be distinguished.
    Some(if share >= CRITICAL_SHARE && !is_sack_off(view) {
        Severity::Critical
    } else if share >= WARNING_SHARE {
        Severity::Warning
    } else {
        Severity::Advice
    })
}

pub(super) fn check(view: View<'_>, out: &mut Out) {
    let Some(segments) = Segments::of(view, out) else { return };
    let (sent, again, share) = (segments.sent, segments.again, segments.share_lost());
    let Some(severity) = speaks(view, &segments) else { return };
    let counters = ["TcpExtTCPTimeouts", "TcpExtTCPFastRetrans", "TcpExtTCPLossProbes"];
    out.push(
        out.finding(
            "TcpRetransSegs",
            severity,
            if is_sack_off(view) { Certainty::Possible } else { Certainty::Likely },
            format!("Packet loss: {} of the segments sent were lost and retransmitted.", words::percent(share)),
        )
        .evidence(again.evidence("TcpRetransSegs"))
        .evidence(sent.evidence("TcpExtTCPOrigDataSent"))
        .evidence(Evidence::count("loss episodes", segments.episodes, "between the samples"))
        .evidences((segments.for_nothing > 0).then(|| {
            Evidence::text("of these unnecessary", words::percent(segments.share_for_nothing()))
        }))
        .evidences(
            counters
                .into_iter()
                .filter_map(|name| Some((name, view.counter_if_any(name)?)))
                .filter(|(_, one)| one.is_rising())
                .map(|(name, one)| one.evidence(name)),
        )
        .evidences(worst_peers(view))
        .why("Each costs at least a round trip, and the sender slows down; the last segment of a response costs 200 ms or more.")
        .remedy(
            "Check whether one peer, one zone or all peers are affected, and look for drops there",
            &["ss -tin state established | grep -B1 retrans", "ip -s link"],
            "none",
        )
        .remedy(
            "If the path cannot be repaired, use a congestion control that tolerates loss",
            &["sysctl -w net.ipv4.tcp_congestion_control=bbr"],
            "BBR takes more than its share on links that it shares with cubic; it needs Linux 4.9",
        )
        .verify("nstat TcpRetransSegs TcpExtTCPOrigDataSent: the first below 0.3 % of the second")
        .source(&["/proc/net/snmp", "/proc/net/netstat", "sock_diag (TCP_INFO)"]),
    );
}

/// The peers to which most is sent again, by what their open connections say between the samples.
fn worst_peers(view: View<'_>) -> Vec<Evidence> {
    let peers = |at: usize| view.namespace.samples.get(at).and_then(|sample| sample.sockets.get());
    let Some(last) = peers(view.namespace.samples.len().saturating_sub(1)) else {
        return Vec::new();
    };
    let before = peers(0).map(|sockets| sockets.peers.as_slice()).unwrap_or_default();
    let mut shares: Vec<(f64, u64, &PeerSockets)> = last
        .peers
        .iter()
        .filter_map(|peer| {
            let now = peer.tcp.get()?;
            let then = before
                .iter()
                .find(|one| {
                    (one.peer, one.direction, one.port) == (peer.peer, peer.direction, peer.port)
                })
                .and_then(|one| one.tcp.get());
            // Connections that ended take their counts along: then their whole lives are compared.
            let since = |now: u64, then: Option<u64>| {
                then.and_then(|then| now.checked_sub(then)).unwrap_or(now)
            };
            let sent = since(now.segments_sent, then.map(|one| one.segments_sent));
            let again = since(now.segments_sent_again, then.map(|one| one.segments_sent_again));
            (sent >= PEER_SEGMENTS_MIN).then(|| (again as f64 / sent as f64, sent, peer))
        })
        .filter(|&(share, ..)| share > SHARE_MIN)
        .collect();
    shares.sort_by(|one, other| other.0.total_cmp(&one.0));
    let evidence = |(share, sent, peer): (f64, u64, &PeerSockets)| {
        let way = if peer.direction == Direction::Outbound {
            format!("to server {}", std::net::SocketAddr::new(peer.peer, peer.port))
        } else {
            format!("to client {}", peer.peer)
        };
        Evidence::text(
            way,
            format!("{} of {} segments", words::percent(share), words::thousands(sent)),
        )
    };
    shares.into_iter().take(PEERS_SHOWN_MAX).map(evidence).collect()
}
