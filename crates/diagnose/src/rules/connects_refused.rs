//! Connections that this host opens are refused: nothing listens at their destination.
//!
//! **When.** The evidence shows that more than 5 % of the connections opened between the samples
//! failed immediately (`TcpAttemptFails` of `TcpActiveOpens`), with at most one false alarm a
//! month; 6 of 6 are enough. Connections that timed out (`TcpExtTCPAbortOnTimeout`) are not
//! counted, because nothing answered them. Critical from 50 % on.
//!
//! **Why.** The server's host answers with a reset, or a firewall answers with ICMP: the program is
//! not running, listens elsewhere, or is blocked. A program that retries immediately can make tens
//! of thousands of attempts a second.
//!
//! **What to do.** Find the destination of the attempts, and check whether a program listens there.
//! Let the client wait between attempts.
//!
//! **Not to be confused with.** Handshakes that clients abort on this host count in
//! `TcpAttemptFails` too. If this host also accepts connections, the finding is *possible*.

use crate::evidence::Units;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Out, View};
use crate::words;

const SHARE_MIN: f64 = 0.05;
const CRITICAL_SHARE: f64 = 0.5;

pub(super) fn check(view: View<'_>, out: &mut Out) {
    let Some(failed) = view.counter("TcpAttemptFails", out) else { return };
    let Some(begun) = view.counter("TcpActiveOpens", out) else { return };
    let any = |name| view.counter_if_any(name).map_or(0, |one| one.by);
    let refused = failed.by.saturating_sub(any("TcpExtTCPAbortOnTimeout"));
    let units = Units::new(refused, begun.by);
    if !units.exceeds(SHARE_MIN, 1) {
        return;
    }
    let is_critical = units.share() >= CRITICAL_SHARE;
    let accepts = any("TcpPassiveOpens") > 0;
    let icmp = view.counter_if_any("IcmpInDestUnreachs").filter(|one| one.is_rising());
    let per_s = units.affected as f64 / begun.seconds;
    out.push(
        out.finding(
            "TcpAttemptFails",
            if is_critical { Severity::Critical } else { Severity::Warning },
            if accepts { Certainty::Possible } else { Certainty::Likely },
            format!(
                "{} connections a second are refused, {} of those that this host opens.",
                words::number(per_s),
                words::percent(units.share())
            ),
        )
        .evidence(failed.evidence("TcpAttemptFails"))
        .evidence(begun.evidence("TcpActiveOpens"))
        .evidences(icmp.map(|one| one.evidence("IcmpInDestUnreachs")))
        .evidences(accepts.then(|| Evidence::count("TcpPassiveOpens", any("TcpPassiveOpens"), "between the samples")))
        .why("The other host answers immediately that nothing listens there, or a firewall rejects the connection.")
        .remedy(
            "Find the destination of the attempts, and start the program that should listen there",
            &["tcpdump -nn -c 20 'tcp[tcpflags] & tcp-rst != 0 or icmp[0] == 3'", "ss -ltn"],
            "a capture costs a little processor time while it runs",
        )
        .verify("nstat -az TcpAttemptFails no longer rises")
        .source(&["/proc/net/snmp", "/proc/net/netstat"]),
    );
}
