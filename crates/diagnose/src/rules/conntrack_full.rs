//! The connection tracking table is nearly full.
//!
//! **When.** `nf_conntrack_count` is above 75 % (warning) or 90 % (critical) of `nf_conntrack_max`.
//!
//! **Why.** When the table is full, the kernel evicts entries that have seen no reply yet. If there
//! are none, it drops packets of new connections. To clients, the server does not respond. Only the
//! kernel log (`nf_conntrack: table full, dropping packet`) and the table's own counters show the
//! cause.
//!
//! **What to do.** Exclude traffic that needs no tracking (`notrack` for the balancer's own traffic
//! and for DNS), shorten timeouts, or enlarge the table together with its number of buckets. An
//! entry takes about 400 bytes.
//!
//! **See also.** `conntrack_drops` reports evictions and drops. `conntrack_timeout` reports entries
//! that are kept for five days. In a container `nf_conntrack_max` is read-only: change it on the
//! host.

use crate::facts::Conntrack;
use crate::finding::{Certainty, Evidence, Finding, Severity};
use crate::view::{Out, View};
use crate::words;

const WARNING_SHARE: f64 = 0.75;
pub(super) const CRITICAL_SHARE: f64 = 0.9;

pub(super) fn check(view: View<'_>, out: &mut Out) {
    const WHAT: &str = "connection tracking";
    let Some(sample) = view.last() else { return };
    let Some(Some(table)) = out.want(WHAT, &sample.conntrack) else { return };
    let (Some(&count), Some(&max)) = (out.want(WHAT, &table.count), out.want(WHAT, &table.max))
    else {
        return;
    };
    let share = count as f64 / max.max(1) as f64;
    if share <= WARNING_SHARE {
        return;
    }
    let severity = if share > CRITICAL_SHARE { Severity::Critical } else { Severity::Warning };
    let finding = out
        .finding(
            "nf_conntrack",
            severity,
            Certainty::Certain,
            format!("The connection tracking table is {} full.", words::percent(share)),
        )
        .why("When it is full and has no entry without a reply to evict, packets of new connections are dropped.");
    out.push(with_remedies(finding.evidences(figures(table))));
}

/// Lists how full the table is.
pub(super) fn figures(table: &Conntrack) -> Vec<Evidence> {
    let count = |name, fact: &crate::facts::Known<u64>, unit| {
        fact.get().map(|&figure| Evidence::count(name, figure, unit))
    };
    [
        count("nf_conntrack_count", &table.count, "entries"),
        count("nf_conntrack_max", &table.max, "entries"),
        count("nf_conntrack_buckets", &table.buckets, "buckets"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Adds the remedies for a table that is too small.
pub(super) fn with_remedies(finding: Finding) -> Finding {
    finding
        .remedy(
            "Exclude traffic that needs no tracking, such as DNS and the balancer's own traffic",
            &[
                "nft add table inet untracked",
                "nft add chain inet untracked out '{ type filter hook output priority raw; }'",
                "nft add rule inet untracked out udp dport 53 notrack",
                "nft add chain inet untracked in '{ type filter hook prerouting priority raw; }'",
                "nft add rule inet untracked in udp sport 53 notrack",
            ],
            "rules that match on connection state (ct state), and NAT, no longer see that traffic",
        )
        .remedy(
            "Enlarge the table and its number of buckets",
            &["sysctl -w net.netfilter.nf_conntrack_max=1048576 net.netfilter.nf_conntrack_buckets=262144"],
            "about 400 bytes an entry: 1,048,576 entries take 400 MiB when full",
        )
        .verify("sysctl net.netfilter.nf_conntrack_count stays below three quarters of the maximum")
        .source(&[
            "/proc/sys/net/netfilter/nf_conntrack_count",
            "/proc/sys/net/netfilter/nf_conntrack_max",
            "/proc/net/stat/nf_conntrack",
        ])
}
