//! Connections take whole seconds to open: SYNs or SYN-ACKs are retransmitted.
//!
//! **When.** The evidence shows that SYNs were retransmitted on more than 1 % of the connections
//! opened between the samples (`TcpExtTCPSynRetrans`), with at most one false alarm a month; 4 of 4
//! are enough. A connection counts once, however often its SYN is repeated. The counter contains
//! both the SYNs of this host and its SYN-ACKs; only the former also count in `TcpExtTCPTimeouts`.
//! SYNs that were retransmitted because the kernel dropped an ICMP refusal
//! (`TcpExtLockDroppedIcmps`) do not count. The finding is not reported if `loss` is reported and
//! explains it: up to four times its share.
//!
//! **Why.** A SYN is retransmitted after 1 s (3 s before Linux 3.1). Since Linux 6.5, SYNs are sent
//! at 0, 1, 2, 3, 4, 5, 7 and 11 s; before, at 0, 1, 3 and 7 s; before 3.1, at 0, 3 and 9 s.
//! Connect times that cluster at these values are a sign of SYN retransmissions.
//!
//! **What to do.** Find the affected destinations (`ss -tan state syn-sent`). If it is one server,
//! its accept queue is full, or it is down. If there are many, the cause is a firewall, or
//! connection tracking on this host or at the provider, which silently limits small instances.
//! `weir doctor` on the other host shows which.

use crate::evidence::Units;
use crate::facts::{Direction, SocketState};
use crate::finding::{Certainty, Evidence, Severity};
use crate::segments::Segments;
use crate::view::{Change, Out, View};
use crate::words;

const SHARE_MIN: f64 = 0.01;
/// Clients that leave handshakes unfinished are common on the Internet; from this rate on they matter.
const ANSWERS_PER_S_MIN: f64 = 1.0;
/// So many times the share of lost data, lost SYNs are still what loss explains.
const EXPLAINED_TIMES: f64 = 4.0;
const PEERS_SHOWN_MAX: usize = 3;

/// Seconds after the first at which Linux sends a SYN again, since 6.5 (`tcp_syn_linear_timeouts`).
const SYN_AGAIN_S: [f64; 10] = [1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 11.0, 19.0, 35.0, 67.0];
/// The same for the answer to a SYN.
const ANSWER_AGAIN_S: [f64; 5] = [1.0, 3.0, 7.0, 15.0, 31.0];

/// Connections whose SYN, or the answer to it, was sent again between the samples.
pub(super) struct Handshakes {
    /// Begun by this host.
    pub(super) begun: Units,
    /// Begun by clients.
    answered: Units,
    /// Repetitions of the second kind.
    answers_again: u64,
    again: Change,
}

impl Handshakes {
    /// `None`, and a note, when the counters are not known.
    pub(super) fn of(view: View<'_>, out: &mut Out) -> Option<Handshakes> {
        let again = view.counter("TcpExtTCPSynRetrans", out)?;
        let by = |name| view.counter_if_any(name).map(|one| one.by);
        let opens = |name| by(name).unwrap_or(0);
        let (active, passive) = (opens("TcpActiveOpens"), opens("TcpPassiveOpens"));
        // Those that were begun before the first sample have no part in ActiveOpens.
        let begun = active.max(words::sum(waiting_for(view).iter().map(|(count, _)| *count)));
        let repeated = if begun == 0 {
            0
        } else {
            let mostly_begun = if active >= passive { again.by } else { 0 };
            by("TcpExtTCPTimeouts").map_or(mostly_begun, |timeouts| timeouts.min(again.by))
        };
        let answers_again = again.by - repeated;
        // A refusal by ICMP that meets a locked socket is dropped, so that its SYN is sent again: that
        // server did answer.
        let repeated = repeated.saturating_sub(by("TcpExtLockDroppedIcmps").unwrap_or(0));
        let connections = |repeats: u64, moments: &[f64]| {
            let in_a_row = moments.iter().filter(|&&one| one <= view.seconds()).count().max(1);
            repeats.div_ceil(in_a_row as u64)
        };
        let unanswered = connections(answers_again, &ANSWER_AGAIN_S);
        // Those that wait now are listed one by one.
        let repeating = connections(repeated, &SYN_AGAIN_S).max(repeating_now(view));
        Some(Handshakes {
            begun: Units::new(repeating, begun),
            answered: Units::new(unanswered, passive.max(unanswered)),
            answers_again,
            again,
        })
    }

    /// Whether servers leave SYNs of this host unanswered.
    pub(super) fn are_unanswered(&self) -> bool {
        self.begun.exceeds(SHARE_MIN, 1)
    }

    fn do_clients_not_answer(&self) -> bool {
        self.answered.exceeds(SHARE_MIN, 1)
    }
}

pub(super) fn check(view: View<'_>, out: &mut Out) {
    let Some(handshakes) = Handshakes::of(view, out) else { return };
    let unanswered = handshakes.are_unanswered();
    if !unanswered && !handshakes.do_clients_not_answer() {
        return;
    }
    let units = if unanswered { handshakes.begun } else { handshakes.answered };
    // SYNs are lost like everything else; either direction counts.
    let explained = Segments::of(view, out).is_some_and(|segments| {
        super::loss::speaks(view, &segments).is_some_and(|one| one >= Severity::Warning)
            && units.share() <= EXPLAINED_TIMES * segments.share_lost()
    });
    if explained {
        return;
    }
    let answers_per_s = handshakes.answers_again as f64 / handshakes.again.seconds;
    let (severity, what) = if unanswered {
        let per_s = handshakes.again.per_s() - answers_per_s;
        (
            Severity::Warning,
            format!(
                "This host retransmits {} SYNs a second: servers do not answer.",
                words::number(per_s)
            ),
        )
    } else {
        let is_much = answers_per_s >= ANSWERS_PER_S_MIN;
        (
            if is_much { Severity::Warning } else { Severity::Advice },
            format!(
                "This host retransmits {} SYN-ACKs a second: clients do not answer.",
                words::number(answers_per_s)
            ),
        )
    };
    let opens = |name| view.counter_if_any(name).map_or(0, |one| one.by);
    out.push(
        out.finding("TcpExtTCPSynRetrans", severity, Certainty::Likely, what)
            .evidence(handshakes.again.evidence("TcpExtTCPSynRetrans"))
            .evidence(Evidence::count("TcpActiveOpens", opens("TcpActiveOpens"), "between the samples"))
            .evidence(Evidence::count("TcpPassiveOpens", opens("TcpPassiveOpens"), "between the samples"))
            .evidence(Evidence::text(
                "connections affected",
                format!("at least {} of {}", words::thousands(units.affected), words::thousands(units.of)),
            ))
            .evidences(waiting_for(view).into_iter().take(PEERS_SHOWN_MAX).map(|(count, server)| {
                Evidence::count(format!("SYN-SENT to {server}"), count, "sockets")
            }))
            .why("Each delays its connection by at least a second, whatever the server's response time.")
            .remedy(
                "Find the destinations, and run weir doctor there: a full accept queue, a firewall, or a provider's limit",
                &["ss -tan state syn-sent", "ss -tan state syn-recv"],
                "none",
            )
            .verify("nstat -az TcpExtTCPSynRetrans rises by less than 1 % of TcpActiveOpens")
            .source(&["/proc/net/netstat", "/proc/net/snmp", "sock_diag (state SYN-SENT)"]),
    );
}

/// Connections in SYN-SENT that have sent their SYN again.
fn repeating_now(view: View<'_>) -> u64 {
    let peers =
        view.last().and_then(|last| last.sockets.get()).map(|sockets| sockets.peers.as_slice());
    words::sum(
        peers.unwrap_or_default().iter().filter_map(|peer| peer.syn_sent_again.get().copied()),
    )
}

/// Servers whose answer is awaited now, most sockets first.
pub(super) fn waiting_for(view: View<'_>) -> Vec<(u64, std::net::SocketAddr)> {
    let Some(sockets) = view.last().and_then(|last| last.sockets.get()) else { return Vec::new() };
    let mut waiting: Vec<(u64, std::net::SocketAddr)> = sockets
        .peers
        .iter()
        .filter(|peer| peer.direction == Direction::Outbound)
        .filter_map(|peer| {
            let count = *peer.states.get(&SocketState::SynSent)?;
            (count > 0).then(|| (count, std::net::SocketAddr::new(peer.peer, peer.port)))
        })
        .collect();
    waiting.sort_by_key(|&(count, _)| std::cmp::Reverse(count));
    waiting
}
