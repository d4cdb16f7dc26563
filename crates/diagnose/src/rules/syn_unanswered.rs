//! Connections take whole seconds to come about: SYNs, or the answers to them, have to be sent
//! again.
//!
//! **When.** More than 1 % of the connections begun between the samples had a SYN sent again
//! (`TcpExtTCPSynRetrans`), at least ten and one a second. The counter holds both SYNs of this host
//! and its answers to others' SYNs. Not said where `loss` explains it: up to four times its share.
//!
//! **Why.** A SYN is sent again after 1 s (3 s before Linux 3.1). Since Linux 6.5 SYNs leave at 0,
//! 1, 2, 3, 4, 5, 7 and 11 s, before that at 0, 1, 3 and 7 s, before 3.1 at 0, 3 and 9 s; connect
//! times that gather at such values are this.
//!
//! **What to do.** Find out towards whom (`ss -tan state syn-sent`). One server: its accept queue
//! is full, or it is down. Many at once: a firewall, connection tracking here or at the provider,
//! which limits small instances without a word. `weir doctor` on the other side tells which.

use crate::facts::{Direction, SocketState};
use crate::finding::{Certainty, Evidence, Severity};
use crate::segments::Segments;
use crate::view::{Out, View};
use crate::words;

const SHARE_MIN: f64 = 0.01;
const COUNT_MIN: u64 = 10;
const PER_S_MIN: f64 = 1.0;
/// So many times the share of lost data, lost SYNs are still what loss explains.
const EXPLAINED_TIMES: f64 = 4.0;
const PEERS_SHOWN_MAX: usize = 3;

pub(super) fn check(view: View<'_>, out: &mut Out) {
    let Some(again) = view.counter("TcpExtTCPSynRetrans", out) else { return };
    let opens = |name| view.counter_if_any(name).map_or(0, |one| one.by);
    let (active, passive) = (opens("TcpActiveOpens"), opens("TcpPassiveOpens"));
    let share = again.by as f64 / active.saturating_add(passive).max(1) as f64;
    if again.by < COUNT_MIN || again.per_s() < PER_S_MIN || share <= SHARE_MIN {
        return;
    }
    // SYNs are lost like everything else; either direction counts, and so does each repetition.
    let lost = Segments::of(view, out).map_or(0.0, |one| one.share_lost());
    if lost > SHARE_MIN && share <= EXPLAINED_TIMES * lost {
        return;
    }
    // Without any connection begun here, only answers to others' SYNs can have been sent again.
    let what = if active > 0 && active >= passive {
        format!("This host sends {} SYNs a second again: servers do not answer.", words::number(again.per_s()))
    } else {
        format!("{} SYNs or answers to SYNs a second are sent again.", words::number(again.per_s()))
    };
    out.push(
        out.finding("TcpExtTCPSynRetrans", Severity::Warning, Certainty::Likely, what)
            .evidence(again.evidence("TcpExtTCPSynRetrans"))
            .evidence(Evidence::count("TcpActiveOpens", active, "between the samples"))
            .evidence(Evidence::count("TcpPassiveOpens", passive, "between the samples"))
            .evidences(waiting_for(view))
            .why("Each costs its connection a second at least, whatever the response time of the server.")
            .remedy(
                "See towards whom, and run weir doctor there: a full accept queue, a firewall, or a limit of the provider",
                &["ss -tan state syn-sent", "ss -tan state syn-recv"],
                "none",
            )
            .verify("nstat -az TcpExtTCPSynRetrans rises by less than 1 % of TcpActiveOpens")
            .source(&["/proc/net/netstat", "/proc/net/snmp", "sock_diag (state SYN-SENT)"]),
    );
}

/// Servers whose answer is awaited now.
fn waiting_for(view: View<'_>) -> Vec<Evidence> {
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
    let evidence = |(count, server)| Evidence::count(format!("SYN-SENT to {server}"), count, "sockets");
    waiting.into_iter().take(PEERS_SHOWN_MAX).map(evidence).collect()
}
