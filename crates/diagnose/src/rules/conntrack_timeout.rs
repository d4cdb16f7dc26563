//! Connection tracking keeps entries of dead connections for five days.
//!
//! **When.** `nf_conntrack_tcp_timeout_established` is a day or more (the default is 432,000 s), and the table
//! is more than 25 % full.
//!
//! **Why.** If a peer disappears without closing its connection, the entry stays in the table until this
//! timeout. With many short-lived clients, such entries fill the table.
//!
//! **What to do.** Lower the timeout. A few hours are enough if programs send keep-alives. Stateful firewall
//! rules cut connections that are idle for longer.

use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Out, View};
use crate::words;

const TIMEOUT_MIN_S: u64 = 86_400;
const SHARE_MIN: f64 = 0.25;

pub(super) fn check(view: View<'_>, out: &mut Out) {
    const SETTING: &str = "net.netfilter.nf_conntrack_tcp_timeout_established";
    const WHAT: &str = "connection tracking";
    let Some(Some(table)) = view.last().and_then(|last| out.want(WHAT, &last.conntrack)) else {
        return;
    };
    let (Some(&count), Some(&max)) = (out.want(WHAT, &table.count), out.want(WHAT, &table.max))
    else {
        return;
    };
    let Some(timeout) = view.setting(SETTING, out) else { return };
    if timeout < TIMEOUT_MIN_S || (count as f64) <= SHARE_MIN * max as f64 {
        return;
    }
    out.push(
        out.finding(
            SETTING,
            Severity::Advice,
            Certainty::Possible,
            format!("Idle connections stay in the connection tracking table for {} hours.", words::number(timeout as f64 / 3600.0)),
        )
        .evidence(Evidence::count(SETTING, timeout, "s"))
        .evidence(Evidence::count("nf_conntrack_count", count, "entries"))
        .evidence(Evidence::count("nf_conntrack_max", max, "entries"))
        .why("Peers that disappear without closing their connections leave entries behind, which fill the table.")
        .remedy(
            "Reduce the timeout to two hours",
            &["sysctl -w net.netfilter.nf_conntrack_tcp_timeout_established=7200"],
            "stateful firewall rules cut connections that are idle for longer and send no keep-alives",
        )
        .verify("sysctl net.netfilter.nf_conntrack_count falls over the next hours")
        .source(&["/proc/sys/net/netfilter"]),
    );
}
