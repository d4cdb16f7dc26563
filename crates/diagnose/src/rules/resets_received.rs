//! Peers reset established connections.
//!
//! **When.** The evidence shows that the peer reset more than 10 % of the connections that were
//! open or opened between the samples, with at most one false alarm a month. The count is
//! `TcpEstabResets` without the connections that this host aborted itself (`TCPAbortOnData`,
//! `TCPAbortOnClose`, `TCPAbortOnLinger`, `TCPAbortOnMemory`, `TCPAbortOnTimeout`). A warning from
//! ten a second.
//!
//! **Why.** The program at the other end crashed, was restarted, closed a connection with unread
//! data, or hit a timeout; or a firewall or balancer between the two reset the connection. Data in
//! flight is lost.
//!
//! **What to do.** Find out who sends the resets: a capture shows the peer. Check that program's
//! log and timeouts. Health checks of balancers often end with a reset: if they are most of the
//! connections, nothing is wrong.

use crate::evidence::Units;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Change, Out, View};
use crate::words;

const SHARE_MIN: f64 = 0.1;
const WARNING_PER_S: f64 = 10.0;

/// Connections that this host aborts. They count in `TcpEstabResets` as well.
pub(super) const ABORTS: [&str; 5] = [
    "TcpExtTCPAbortOnData",
    "TcpExtTCPAbortOnClose",
    "TcpExtTCPAbortOnLinger",
    "TcpExtTCPAbortOnMemory",
    "TcpExtTCPAbortOnTimeout",
];

pub(super) fn check(view: View<'_>, out: &mut Out) {
    let Some(reset) = view.counter("TcpEstabResets", out) else { return };
    let aborts: Vec<(&str, Change)> = ABORTS
        .into_iter()
        .filter_map(|name| Some((name, view.counter_if_any(name)?)))
        .filter(|(_, one)| one.is_rising())
        .collect();
    let own = words::sum(aborts.iter().map(|(_, one)| one.by));
    let any = |name| view.counter_if_any(name).map_or(0, |one| one.by);
    let opened = any("TcpActiveOpens").saturating_add(any("TcpPassiveOpens"));
    let units = Units::new(reset.by.saturating_sub(own), open_before(view).saturating_add(opened));
    if !units.exceeds(SHARE_MIN, 1) {
        return;
    }
    let per_s = units.affected as f64 / reset.seconds;
    out.push(
        out.finding(
            "TcpEstabResets",
            if per_s >= WARNING_PER_S { Severity::Warning } else { Severity::Advice },
            Certainty::Likely,
            format!("Peers reset {} established connections a second.", words::number(per_s)),
        )
        .evidence(reset.evidence("TcpEstabResets"))
        .evidences(aborts.iter().map(|(name, one)| one.evidence(name)))
        .evidence(Evidence::text(
            "reset by peers",
            format!("{} of {}", words::thousands(units.affected), words::plural(units.of, "connection")),
        ))
        .why("Data in flight is lost. Health checks that end with a reset look the same and are harmless.")
        .remedy(
            "Find out who sends the resets, and check that program's log and timeouts",
            &["tcpdump -nn -c 20 'tcp[tcpflags] & tcp-rst != 0'"],
            "a capture costs a little processor time while it runs",
        )
        .verify("nstat -az TcpEstabResets no longer rises")
        .source(&["/proc/net/snmp", "/proc/net/netstat"]),
    );
}

/// Connections that were established at the first sample.
fn open_before(view: View<'_>) -> u64 {
    let counters = view.namespace.samples.first().and_then(|first| first.counters.get());
    counters.and_then(|all| all.get("TcpCurrEstab")).copied().unwrap_or(0)
}
