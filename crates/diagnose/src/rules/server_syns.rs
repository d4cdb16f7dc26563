//! Connections from this balancer to servers take seconds, because SYNs are not answered
//! immediately.
//!
//! **When.** The evidence shows that SYNs were retransmitted on more than 1 % of the connections
//! that the balancer opened to a server between the samples, with at most one false alarm a month
//! over all servers. The finding ends when the share since the last evaluation is below half of
//! that, measured on enough connections. It says whether some servers, a zone or all servers are
//! affected. SYN retransmissions are counted as in `weir_server_syn_retries_total`.
//!
//! **Why.** Each retransmitted SYN delays a request by a second or more. If some servers are
//! affected, their accept queues are full, or a host is overloaded. If a zone is affected, the path
//! to it is at fault. If all servers are affected, the cause is this host, its connection tracking,
//! or its provider: providers drop SYNs of small instances beyond a limit, so that one or two
//! connections get through every 1 or 3 s.
//!
//! **What to do.** On the server, run `weir doctor` or `nstat -az TcpExtListenOverflows`. On this
//! host, check the provider's allowances with `ethtool -S`. Keep-alive connections need no SYN.

use crate::evidence::Units;
use crate::facts::Facts;
use crate::finding::{Certainty, Evidence, Severity};
use crate::servers::{Place, Server, Spans, at_fault, mark, servers};
use crate::view::Out;
use crate::words;

const SHARE_MIN: f64 = 0.01;
const SERVERS_SHOWN_MAX: usize = 5;

fn handshakes(server: &Server<'_>) -> Units {
    server.handshakes()
}

pub(super) fn check(facts: &Facts, out: &mut Out) {
    let spans = Spans::of(facts);
    let Some((servers, seconds)) = servers(facts, &spans) else {
        return super::balancer_unknown(facts, out);
    };
    // A server to which nothing was sent says nothing.
    let busy: Vec<&Server<'_>> = servers
        .iter()
        .filter(|one| one.connects.unwrap_or(one.attempts) > 0 || one.syn_retries > 0)
        .collect();
    let is_affected = |one: &Server<'_>| {
        one.handshakes().exceeds(SHARE_MIN, busy.len())
            && !spans.has_ended(one, handshakes, SHARE_MIN)
    };
    let judged: Vec<(&Server<'_>, bool)> =
        busy.iter().map(|one| (*one, is_affected(one))).collect();
    let Some(place) = Place::of(&judged) else { return };
    let again = words::sum(judged.iter().filter(|(_, is)| *is).map(|(one, _)| one.syn_retries));
    let finding = out
        .finding(
            place.subject(),
            Severity::Warning,
            Certainty::Likely,
            format!(
                "{} SYNs a second to {} are retransmitted.",
                words::number(again as f64 / seconds),
                place.subject()
            ),
        )
        .evidences(judged.iter().filter(|(_, is)| *is).take(SERVERS_SHOWN_MAX).map(|(one, _)| {
            Evidence::text(
                one.name(),
                format!(
                    "{} SYNs retransmitted, on {} of {} connections",
                    words::thousands(one.syn_retries),
                    words::thousands(one.handshakes().affected),
                    words::thousands(one.handshakes().of)
                ),
            )
        }))
        .evidence(Evidence::count(
            "other servers without this problem",
            judged.iter().filter(|(_, is)| !is).count() as u64,
            "",
        ))
        .why(format!("Each delays a request by a second or more. {}", place.meaning()))
        .remedy(
            "Run weir doctor on a server (accept queue) and on this host (provider's limits)",
            &["weir doctor", "nstat -az TcpExtListenOverflows TcpExtTCPSynRetrans"],
            "none",
        )
        .remedy(
            "Keep connections to servers alive",
            &[],
            "a server that closes idle connections early can cause failed requests",
        )
        .verify("weir status shows no further retransmitted SYNs")
        .source(&["the balancer's counters by server"]);
    out.push(mark(finding, &at_fault(&judged)));
}
