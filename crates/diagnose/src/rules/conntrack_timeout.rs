//! Connection tracking keeps dead connections for five days.
//!
//! **When.** `nf_conntrack_tcp_timeout_established` is a day or more (the default is 432,000 s),
//! and the table is above a quarter of its maximum.
//!
//! **Why.** Connections whose peers vanish without a word stay in the table that long, and with
//! many short-lived clients it fills up with them.
//!
//! **What to do.** A few hours suffice where programs send keep-alives; a connection that is silent
//! for longer is cut by a firewall that follows state.

use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Out, View};
use crate::words;

const TIMEOUT_MIN_S: u64 = 86_400;
const SHARE_MIN: f64 = 0.25;

pub(super) fn check(view: View<'_>, out: &mut Out) {
    const SETTING: &str = "net.netfilter.nf_conntrack_tcp_timeout_established";
    const WHAT: &str = "connection tracking";
    let Some(Some(table)) = view.last().and_then(|last| out.want(WHAT, &last.conntrack)) else { return };
    let (Some(&count), Some(&max)) = (out.want(WHAT, &table.count), out.want(WHAT, &table.max)) else {
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
            format!("Silent connections stay tracked for {} hours.", words::number(timeout as f64 / 3600.0)),
        )
        .evidence(Evidence::count(SETTING, timeout, "s"))
        .evidence(Evidence::count("nf_conntrack_count", count, "entries"))
        .evidence(Evidence::count("nf_conntrack_max", max, "entries"))
        .why("Peers that vanish leave entries behind, and the table fills up with them.")
        .remedy(
            "Keep them for two hours",
            &["sysctl -w net.netfilter.nf_conntrack_tcp_timeout_established=7200"],
            "connections silent for longer, and without keep-alive, are cut by rules that follow state",
        )
        .verify("sysctl net.netfilter.nf_conntrack_count falls over the next hours")
        .source(&["/proc/sys/net/netfilter"]),
    );
}
