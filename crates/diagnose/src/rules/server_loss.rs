//! Packets to servers are lost, or overtake each other, and the balancer knows where.
//!
//! **When.** Of the data segments that the balancer sent to a server between the samples (over
//! 1,000, on connections it asked about), more than 1 % were sent again, or for more than 1 % the
//! kernel saw reordering. The finding says whether it is some servers, a zone, or all.
//!
//! **Why.** Loss and reordering towards one place slow down its share of the requests only, which
//! hides in averages.
//!
//! **What to do.** Take the zone or the server out until its way is mended, if others can carry the
//! load.

use crate::facts::Facts;
use crate::finding::{Certainty, Evidence, Severity};
use crate::servers::{Place, Server, servers};
use crate::view::Out;
use crate::words;

const SHARE_MIN: f64 = 0.01;
const CRITICAL_SHARE: f64 = 0.05;
const SEGMENTS_MIN: u64 = 1_000;
const SERVERS_SHOWN_MAX: usize = 5;

pub(super) fn check(facts: &Facts, out: &mut Out) {
    let Some((servers, _)) = servers(facts) else { return super::balancer_unknown(facts, out) };
    let busy: Vec<&Server<'_>> =
        servers.iter().filter(|one| one.segments_sent >= SEGMENTS_MIN).collect();
    let again = |one: &Server<'_>| one.segments_sent_again as f64 / one.segments_sent.max(1) as f64;
    let order = |one: &Server<'_>| one.reordered as f64 / one.segments_sent.max(1) as f64;
    for (kind, share) in [("lost", &again as &dyn Fn(&Server<'_>) -> f64), ("out of order", &order)] {
        let judged: Vec<(&Server<'_>, bool)> =
            busy.iter().map(|one| (*one, share(one) > SHARE_MIN)).collect();
        let Some(place) = Place::of(&judged) else { continue };
        let worst = judged.iter().map(|(one, _)| share(one)).fold(0.0, f64::max);
        let (action, commands, risk): (_, &[&str], _) = match place {
            Place::Everywhere => (
                "Look at this host's interface and its provider's limits",
                &["weir doctor", "ip -s link"],
                "none",
            ),
            Place::Zone(_) | Place::Servers(_) => (
                "Take them out until the way is mended, if others can carry the load",
                &["weir drain SERVICE SERVER"],
                "the other servers get their load",
            ),
        };
        let is_critical = kind == "lost" && worst >= CRITICAL_SHARE;
        out.push(
            out.finding(
                format!("{kind}: {}", place.subject()),
                if is_critical { Severity::Critical } else { Severity::Warning },
                Certainty::Likely,
                format!("Up to {} of the segments to {} are {kind}.", words::percent(worst), place.subject()),
            )
            .evidences(judged.iter().filter(|(_, is)| *is).take(SERVERS_SHOWN_MAX).map(|(one, _)| {
                Evidence::text(
                    one.name(),
                    format!("{} of {} segments", words::percent(share(one)), words::thousands(one.segments_sent)),
                )
            }))
            .evidence(Evidence::count("other servers reached well", judged.iter().filter(|(_, is)| !is).count() as u64, ""))
            .why(place.meaning())
            .remedy(action, commands, risk)
            .verify("weir status shows the share of segments sent again by server")
            .source(&["the balancer's samples of TCP_INFO by server"]),
        );
    }
}
