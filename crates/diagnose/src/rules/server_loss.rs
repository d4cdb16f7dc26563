//! Packets to servers are lost or reordered, on a path that the balancer can name.
//!
//! **When.** Loss episodes on the connections that the balancer sampled prove that more than 1 % of
//! the data segments to a server are retransmitted, or reordering events prove that more than 1 %
//! are overtaken, with at most one false alarm a month over all servers. The proof may come from the
//! time since the previous evaluation alone, or from up to three of these intervals together. The
//! finding ends when the share since the previous evaluation is below half of that, measured on
//! enough traffic. It says whether some servers, a zone or all servers are affected.
//!
//! **Why.** Loss and reordering on one path slow down only the requests on that path, which
//! averages hide.
//!
//! **What to do.** Drain the affected zone or server until its path is repaired, if the others can
//! carry the load.

use crate::evidence::Units;
use crate::facts::{Facts, ServerCounts};
use crate::finding::{Certainty, Evidence, Severity};
use crate::servers::{Place, Server, Spans, at_fault, mark, servers};
use crate::view::Out;
use crate::words;

const SHARE_MIN: f64 = 0.01;
const CRITICAL_SHARE: f64 = 0.05;
const SERVERS_SHOWN_MAX: usize = 5;

/// What is judged: its name, the units it counts, and whether they prove a share.
type Kind = (&'static str, fn(&Server<'_>) -> Units, fn(&Server<'_>, f64, usize) -> bool);

/// Returns the server's counts and whether it is affected. Uses the shortest time up to now that proves it, so
/// that a new fault is not diluted by earlier traffic; otherwise all samples.
fn judge<'a>(
    spans: &Spans<'a>,
    server: &Server<'a>,
    (_, units, exceeds): Kind,
    peers: usize,
) -> (Server<'a>, bool) {
    let own: Vec<Server<'_>> = spans.up_to(server.now).collect();
    // Each is a chance of a false alarm.
    let judgements = own.len() * peers;
    let proved = own.into_iter().find(|one| exceeds(one, SHARE_MIN, judgements));
    match proved.filter(|one| !spans.has_ended(one, units, SHARE_MIN)) {
        Some(proved) => (proved, true),
        None => (server.clone(), false),
    }
}

pub(super) fn check(facts: &Facts, out: &mut Out) {
    let spans = Spans::of(facts);
    let Some((servers, _)) = servers(facts, &spans) else {
        return super::balancer_unknown(facts, out);
    };
    let busy: Vec<&Server<'_>> = servers.iter().filter(|one| one.segments_sent > 0).collect();
    let kinds: [Kind; 2] = [
        ("lost", |one| one.lost(), |one, limit, peers| one.loses(limit, peers)),
        ("out of order", |one| one.overtaken(), |one, limit, peers| one.reorders(limit, peers)),
    ];
    for one in kinds {
        let (kind, units, _) = one;
        let share = |one: &Server<'_>| units(one).share();
        let judged: Vec<(Server<'_>, bool)> =
            busy.iter().map(|server| judge(&spans, server, one, busy.len())).collect();
        let judged: Vec<(&Server<'_>, bool)> = judged.iter().map(|(one, is)| (one, *is)).collect();
        let Some(place) = Place::of(&judged) else { continue };
        let worst = judged.iter().filter(|(_, is)| *is);
        let worst = worst.map(|(one, _)| share(one)).fold(0.0, f64::max);
        let at_fault = at_fault(&judged);
        let (action, commands, risk) = remedy(&place, &at_fault);
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        let is_critical = kind == "lost" && worst >= CRITICAL_SHARE;
        let finding = out
            .finding(
                format!("{kind}: {}", place.subject()),
                if is_critical { Severity::Critical } else { Severity::Warning },
                Certainty::Likely,
                format!(
                    "Up to {} of the segments to {} are {kind}.",
                    words::percent(worst),
                    place.subject()
                ),
            )
            .evidences(judged.iter().filter(|(_, is)| *is).take(SERVERS_SHOWN_MAX).map(
                |(one, _)| {
                    Evidence::text(
                        one.name(),
                        format!(
                            "{} of {} segments",
                            words::percent(share(one)),
                            words::thousands(one.segments_sent)
                        ),
                    )
                },
            ))
            .evidence(Evidence::count(
                "other servers without this problem",
                judged.iter().filter(|(_, is)| !is).count() as u64,
                "",
            ))
            .why(place.meaning())
            .remedy(action, &commands, risk)
            .verify("weir status shows the share of retransmitted segments by server")
            .source(&["the balancer's samples of TCP_INFO by server"]);
        out.push(mark(finding, &at_fault));
    }
}

/// What to do, commands for it, and its risk.
fn remedy(place: &Place, at_fault: &[&ServerCounts]) -> (&'static str, Vec<String>, &'static str) {
    let drain = "Drain them until the path is repaired, if others can carry the load";
    let risk = "the other servers take their load";
    match place {
        Place::Everywhere => (
            "Check this host's interface and its provider's limits",
            vec!["weir doctor".to_owned(), "ip -s link".to_owned()],
            "none",
        ),
        Place::Servers(_) if at_fault.len() <= SERVERS_SHOWN_MAX => {
            let command = |one: &&ServerCounts| words::drain(&one.service, one.address);
            (drain, at_fault.iter().map(command).collect(), risk)
        }
        Place::Zone(_) | Place::Servers(_) => {
            (drain, vec!["weir drain SERVICE SERVER".to_owned()], risk)
        }
    }
}
