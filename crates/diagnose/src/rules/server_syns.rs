//! Connections from this balancer to servers take seconds, because SYNs are not answered at once.
//!
//! **When.** Connections prove that more than 1 % of those that the balancer began to a server between
//! the samples had a SYN sent again, with at most one false alarm a month over all servers. It ends when,
//! since the last look, less than half of that is seen and connections were enough to see it. The finding
//! says whether it is some servers, a zone, or all of them. SYNs are counted as in
//! `weir_server_syn_retries_total`.
//!
//! **Why.** Each costs a request a second or more. Some servers: their accept queue is full, or a
//! host is overloaded. A zone: the way there. All alike: this host, its connection tracking, or its
//! provider, which drops SYNs of small instances beyond a limit, so that one or two connections get
//! through every 1 or 3 s.
//!
//! **What to do.** On the server `weir doctor`, or `nstat -az TcpExtListenOverflows`; on this host
//! `ethtool -S` for allowances of the provider. Kept connections need no SYN.

use crate::evidence::Units;
use crate::facts::Facts;
use crate::finding::{Certainty, Evidence, Severity};
use crate::servers::{Place, Server, has_ended, servers};
use crate::view::Out;
use crate::words;

const SHARE_MIN: f64 = 0.01;
const SERVERS_SHOWN_MAX: usize = 5;

fn handshakes(server: &Server<'_>) -> Units {
    server.handshakes()
}

pub(super) fn check(facts: &Facts, out: &mut Out) {
    let Some((servers, seconds)) = servers(facts) else {
        return super::balancer_unknown(facts, out);
    };
    // A server to which nothing was sent says nothing.
    let busy: Vec<&Server<'_>> = servers
        .iter()
        .filter(|one| one.connects.unwrap_or(one.attempts) > 0 || one.syn_retries > 0)
        .collect();
    let is_affected = |one: &Server<'_>| {
        one.handshakes().exceeds(SHARE_MIN, busy.len())
            && !has_ended(facts, one, handshakes, SHARE_MIN)
    };
    let judged: Vec<(&Server<'_>, bool)> =
        busy.iter().map(|one| (*one, is_affected(one))).collect();
    let Some(place) = Place::of(&judged) else { return };
    let again = words::sum(judged.iter().filter(|(_, is)| *is).map(|(one, _)| one.syn_retries));
    out.push(
        out.finding(
            place.subject(),
            Severity::Warning,
            Certainty::Likely,
            format!("{} SYNs a second to {} are not answered at once.", words::number(again as f64 / seconds), place.subject()),
        )
        .evidences(judged.iter().filter(|(_, is)| *is).take(SERVERS_SHOWN_MAX).map(|(one, _)| {
            Evidence::text(
                one.name(),
                format!(
                    "{} SYNs sent again, on {} of {} connections",
                    words::thousands(one.syn_retries),
                    words::thousands(one.handshakes().affected),
                    words::thousands(one.handshakes().of)
                ),
            )
        }))
        .evidence(Evidence::count("other servers reached well", judged.iter().filter(|(_, is)| !is).count() as u64, ""))
        .why(format!("Each costs a request a second or more. {}", place.meaning()))
        .remedy(
            "Run weir doctor on a server, for its accept queue, and on this host, for its provider's limits",
            &["weir doctor", "nstat -az TcpExtListenOverflows TcpExtTCPSynRetrans"],
            "none",
        )
        .remedy("Keep connections to servers alive", &[], "a server that closes kept connections early has to be known for it")
        .verify("weir status shows no further SYNs sent again")
        .source(&["the balancer's counters by server"]),
    );
}
