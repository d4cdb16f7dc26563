//! The kernel answers SYNs with SYN cookies: a burst exceeded the backlog, or a SYN flood.
//!
//! **When.** `TcpExtTCPReqQFullDoCookies` rises: a socket had more half-open connections than its
//! backlog (since Linux 4.4 the backlog limits the SYN queue too; `tcp_max_syn_backlog` applies
//! only if `tcp_syncookies` is 0). The share of cookies that come back distinguishes clients from
//! attackers: if half or more come back, they are real clients; if almost none do, it is a flood
//! from forged addresses.
//!
//! **Why.** In both cases the kernel logs "Possible SYN flooding", which is misleading: at one
//! company the cause was nginx's backlog of 511. With a cookie no connection is lost, but without
//! timestamps it loses window scaling and SACK. If the accept queue is full too, the connection is
//! dropped after all. A full accept queue of a stopped program alone sends no cookies.
//!
//! **What to do.** For real clients, raise the backlog of the program, then restart it. For a
//! flood, leave SYN cookies on, because they protect the host, and filter upstream of it. If you
//! turn cookies off, the log is silent and the SYNs are dropped.
//!
//! **Source.** `TcpExtSyncookiesSent`, `SyncookiesRecv` and `SyncookiesFailed` count cookies that
//! were sent, that came back right, and that came back wrong.

use crate::backlog::raise_backlog;
use crate::finding::{Certainty, Evidence, Finding, Severity};
use crate::view::{Change, Listening, Out, View};
use crate::words;

/// The share of cookies that come back from which they went to real clients.
const CLIENTS_SHARE_MIN: f64 = 0.5;
/// The share below which the handshakes do not come from clients.
const FLOOD_SHARE_MAX: f64 = 0.05;

pub(super) fn check(view: View<'_>, out: &mut Out) {
    let Some(cookies) = view.counter("TcpExtTCPReqQFullDoCookies", out) else { return };
    if cookies.in_all == 0 {
        return;
    }
    let listeners = view.listeners(out).unwrap_or_default();
    let culprit = culprit(view, &listeners);
    let subject = culprit.map_or("SYN queue".to_owned(), |one| one.address.to_string());
    let finding = if cookies.is_rising() {
        now(view, &subject, culprit, cookies, out)
    } else {
        past(&subject, cookies, out)
    };
    out.push(
        finding
            .evidences(
                log_lines(view)
                    .filter(|line| is_about(line, &listeners))
                    .map(|line| Evidence::text("kernel log", line)),
            )
            .evidences(culprit.map(|one| {
                let backlog = words::thousands(one.backlog().into());
                Evidence::text(
                    "smallest backlog",
                    format!("{backlog} connections, at {}", one.address),
                )
            }))
            .verify("nstat -az TcpExtTCPReqQFullDoCookies no longer rises under the same load")
            .source(&["/proc/net/netstat", "sock_diag (idiag_wqueue)", "/dev/kmsg"]),
    );
}

fn now(
    view: View<'_>,
    subject: &str,
    culprit: Option<&Listening<'_>>,
    cookies: Change,
    out: &mut Out,
) -> Finding {
    let sent = view.counter("TcpExtSyncookiesSent", out);
    let received = view.counter("TcpExtSyncookiesRecv", out);
    let share = match (sent, received) {
        (Some(sent), Some(received)) if sent.by > 0 => Some(received.by as f64 / sent.by as f64),
        _ => None,
    };
    let at = culprit.map_or(String::new(), |one| format!(" to {}", one.name()));
    let is_flood = share.is_some_and(|share| share < FLOOD_SHARE_MAX);
    let (certainty, what) = match share {
        Some(share) if share >= CLIENTS_SHARE_MIN => (
            Certainty::Likely,
            format!("Bursts of new connections{at} exceed its backlog; this is not an attack."),
        ),
        Some(_) if is_flood => (
            Certainty::Likely,
            format!("SYN flood{at}: almost none of the senders answers the cookies."),
        ),
        _ => (
            Certainty::Possible,
            format!("More connections{at} are half open than its backlog allows."),
        ),
    };
    let finding = out
        .finding(subject, Severity::Warning, certainty, what)
        .evidence(cookies.evidence("TcpExtTCPReqQFullDoCookies"))
        .evidences(sent.map(|one| one.evidence("TcpExtSyncookiesSent")))
        .evidences(received.map(|one| one.evidence("TcpExtSyncookiesRecv")))
        .evidences(
            view.counter_if_any("TcpPassiveOpens").map(|one| one.evidence("TcpPassiveOpens")),
        )
        .evidences(
            share.map(|share| Evidence::text("cookies that came back", words::percent(share))),
        )
        .why(
            "SYN cookies save the connection only until it is established: if the accept queue is full as \
             well, it is dropped. The kernel log calls this an attack.",
        );
    match culprit {
        _ if is_flood => finding.remedy(
            "Leave SYN cookies on, and filter upstream of this host",
            &["sysctl net.ipv4.tcp_syncookies", "tcpdump -nn -c 100 'tcp[tcpflags] == tcp-syn'"],
            "none; turning cookies off would drop the SYNs of real clients too",
        ),
        Some(listening) => raise_backlog(finding, listening, view),
        None => finding.remedy(
            "Raise the backlog of the program that listens, then restart it",
            &[],
            "a restart closes the socket",
        ),
    }
}

fn past(subject: &str, cookies: Change, out: &Out) -> Finding {
    out.finding(
        subject,
        Severity::Note,
        Certainty::Possible,
        format!(
            "{} SYNs were answered with cookies since boot, none during this measurement.",
            words::thousands(cookies.in_all)
        ),
    )
    .evidence(cookies.evidence("TcpExtTCPReqQFullDoCookies"))
    .why("The usual cause is a burst beyond a small backlog, not an attack.")
}

/// What the kernel's log says, which it does once per socket.
fn log_lines(view: View<'_>) -> impl Iterator<Item = &str> {
    let lines = view.facts.host.kernel_log.get().map(Vec::as_slice).unwrap_or_default();
    lines.iter().map(|line| line.text.as_str()).filter(|text| text.contains("SYN flooding on port"))
}

/// The port in `Possible SYN flooding on port [::]:80. Sending cookies.`
fn logged_port(line: &str) -> Option<u16> {
    let (_, rest) = line.split_once("on port ")?;
    let word = rest.split_ascii_whitespace().next()?.trim_end_matches('.');
    word.rsplit(':').next()?.parse().ok()
}

/// The log is the whole machine's: whether a line is about a socket of this namespace.
fn is_about(line: &str, listeners: &[Listening<'_>]) -> bool {
    logged_port(line).is_some_and(|port| listeners.iter().any(|one| one.address.port() == port))
}

/// The listener that it is about: the one that the log names, else that of the smallest backlog.
fn culprit<'a, 'b>(view: View<'_>, listeners: &'b [Listening<'a>]) -> Option<&'b Listening<'a>> {
    let ports: Vec<u16> = log_lines(view).filter_map(logged_port).collect();
    let named = listeners.iter().find(|one| ports.contains(&one.address.port()));
    named.or_else(|| listeners.iter().min_by_key(|one| (!is_dropping(one), one.backlog())))
}

fn is_dropping(listening: &Listening<'_>) -> bool {
    listening.drops.is_some_and(Change::is_rising)
}

#[cfg(test)]
mod tests {
    use super::logged_port;

    #[test]
    fn old_kernels_and_new_name_the_port() {
        let cases = [
            (
                "TCP: request_sock_TCP: Possible SYN flooding on port 80. Sending cookies.  Check SNMP counters.",
                Some(80),
            ),
            (
                "TCP: request_sock_TCP: Possible SYN flooding on port [::]:8080. Sending cookies.",
                Some(8080),
            ),
            ("possible SYN flooding on port 443. Sending cookies.", Some(443)),
            (
                "TCP: request_sock_TCP: Possible SYN flooding on port 10.0.0.1:80. Dropping request.",
                Some(80),
            ),
            ("on port none", None),
        ];
        for (line, port) in cases {
            assert_eq!(logged_port(line), port, "{line}");
        }
    }
}
