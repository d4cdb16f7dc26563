//! The SYN queue is full and SYN cookies are off, so SYNs are dropped.
//!
//! **When.** `TcpExtTCPReqQFullDrop` rises, or `net.ipv4.tcp_syncookies` is 0. Without SYN cookies,
//! a full SYN queue drops SYNs. Once it is three quarters full (`tcp_max_syn_backlog`), it already
//! drops SYNs of unknown clients, which only `TcpExtListenDrops` counts.
//!
//! **Why.** Each dropped SYN costs its client a second or more, in every burst beyond the backlog.
//! With SYN cookies, the same burst loses no connection.
//!
//! **What to do.** Set `net.ipv4.tcp_syncookies = 1`, the kernel's default: cookies are sent only
//! when the queue is full. Then raise the backlog, so that cookies are rarely needed.

use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Change, Out, View};
use crate::words;

const SETTING: &str = "net.ipv4.tcp_syncookies";

pub(super) fn check(view: View<'_>, out: &mut Out) {
    let cookies = view.setting(SETTING, out);
    let dropped = view.counter("TcpExtTCPReqQFullDrop", out);
    let unsaid = (cookies == Some(0)).then(|| beyond_overflows(view)).flatten();
    let lost = [dropped, unsaid].into_iter().flatten().max_by_key(|one| one.by);
    let lost = lost.filter(|one| one.is_rising());
    let (severity, what) = match (lost, cookies) {
        (Some(lost), _) => (
            Severity::Critical,
            format!(
                "{} SYNs a second are dropped: the SYN queue is full.",
                words::number(lost.per_s())
            ),
        ),
        (None, Some(0)) => (
            Severity::Advice,
            "SYN cookies are off, so SYNs beyond the backlog are dropped.".to_owned(),
        ),
        _ => return,
    };
    out.push(
        out.finding(SETTING, severity, Certainty::Certain, what)
            .evidences(dropped.map(|one| one.evidence("TcpExtTCPReqQFullDrop")))
            .evidences(
                unsaid.map(|one| one.evidence("TcpExtListenDrops less TcpExtListenOverflows")),
            )
            .evidences(cookies.map(|value| Evidence::text(SETTING, value.to_string())))
            .evidences(
                view.setting_if_any("net.ipv4.tcp_max_syn_backlog")
                    .map(|max| Evidence::count("net.ipv4.tcp_max_syn_backlog", max, "connections")),
            )
            .why("A client whose SYN is dropped waits a second before it retransmits, then longer.")
            .remedy(
                "Turn SYN cookies on; they are used only when the queue is full",
                &[
                    "sysctl -w net.ipv4.tcp_syncookies=1",
                    "echo 'net.ipv4.tcp_syncookies = 1' > /etc/sysctl.d/60-syncookies.conf",
                ],
                "none known; connections from a cookie without timestamps have no window scaling",
            )
            .verify("nstat -az TcpExtTCPReqQFullDrop no longer rises under the same load")
            .source(&["/proc/net/netstat", "/proc/sys/net/ipv4/tcp_syncookies"]),
    );
}

/// Drops that no overflow of an accept queue explains.
fn beyond_overflows(view: View<'_>) -> Option<Change> {
    let drops = view.counter_if_any("TcpExtListenDrops")?;
    let overflows = view.counter_if_any("TcpExtListenOverflows")?;
    let (by, in_all) =
        (drops.by.checked_sub(overflows.by)?, drops.in_all.checked_sub(overflows.in_all)?);
    Some(Change { by, in_all, seconds: drops.seconds })
}
