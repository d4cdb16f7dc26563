//! The cloud provider limits this instance's traffic, which no kernel counter shows.
//!
//! **When.** One of the ENA driver's `*_allowance_exceeded` statistics rises (driver 2.2.10 and
//! later): `bw_in`, `bw_out` bandwidth; `pps` packets per second; `conntrack` tracked connections;
//! `linklocal` packets to the provider's own services (DNS, metadata, time).
//!
//! **Why.** These statistics count packets that were queued or dropped outside this machine. If
//! `conntrack_` rises, SYNs are dropped: new connections stall until a retransmitted SYN gets
//! through. A company saw this across a whole zone: its health checks opened about 500 connections
//! a second to a small instance.
//!
//! **What to do.** Larger instances have larger allowances. For `conntrack_`: security-group rules
//! that allow all traffic in both directions are not tracked; use fewer, longer connections (share
//! health checks: `weir doctor checks`). For `linklocal_`: cache DNS on this machine. For `bw_` and
//! `pps_`: spread the load over more instances.

use crate::finding::{Certainty, Finding, Severity};
use crate::view::{Change, Out, View};

pub(super) fn check(view: View<'_>, out: &mut Out) {
    let (Some(first), Some(last)) = (view.namespace.samples.first(), view.last()) else { return };
    let (Some(before), Some(after)) =
        (out.want("interfaces", &first.interfaces), out.want("interfaces", &last.interfaces))
    else {
        return;
    };
    for now in after.iter().filter(|one| one.driver.get().is_some_and(|driver| driver == "ena")) {
        let what = format!("allowances of {}", now.name);
        let Some(statistics) = out.want(&what, &now.statistics) else { continue };
        let then =
            before.iter().find(|one| one.name == now.name).and_then(|one| one.statistics.get());
        let exceeded = statistics.iter().filter(|(name, _)| name.ends_with("_allowance_exceeded"));
        let mut rising: Vec<(&str, Change)> = Vec::new();
        let mut is_told = false;
        for (name, &count) in exceeded {
            is_told = true;
            let Some(&before) = then.and_then(|then| then.get(name)) else { continue };
            let change = Change::between(before, count, view.seconds()).ok();
            rising.extend(change.filter(|one| one.is_rising()).map(|one| (name.as_str(), one)));
        }
        if !is_told {
            out.could_not(&what, "the ENA driver reports them from version 2.2.10 on");
        }
        for (name, change) in rising {
            out.push(finding(&now.name, name, change, out));
        }
    }
}

fn finding(interface: &str, name: &str, change: Change, out: &Out) -> Finding {
    let kind = name.trim_end_matches("_allowance_exceeded");
    let (of, action, command) = match kind {
        "conntrack" => (
            "tracked connections, so new ones are dropped",
            "Allow all traffic both ways in the security group, so that it is not tracked, and make fewer connections",
            "weir doctor checks /etc/haproxy/haproxy.cfg",
        ),
        "linklocal" => (
            "packets to the provider's DNS, metadata and time services",
            "Cache DNS on this machine",
            "resolvectl statistics",
        ),
        "pps" => ("packets per second", "Use a larger instance, or spread the load", ""),
        "bw_in" => ("incoming bandwidth", "Use a larger instance, or spread the load", ""),
        "bw_out" => ("outgoing bandwidth", "Use a larger instance, or spread the load", ""),
        _ => ("an allowance", "Use a larger instance, or spread the load", ""),
    };
    let commands: &[&str] = if command.is_empty() { &[] } else { &[command] };
    let severity = if kind == "conntrack" { Severity::Critical } else { Severity::Warning };
    out.finding(
        format!("{interface} {name}"),
        severity,
        Certainty::Certain,
        format!("The provider limits {of} on {interface}."),
    )
    .evidence(change.evidence(name))
    .why("The packets are queued or dropped outside this machine, where netstat and tcpdump see nothing.")
    .remedy(action, commands, "a larger instance costs more; an open security group protects less")
    .verify(format!("ethtool -S {interface} | grep {name} no longer rises"))
    .source(&["ethtool statistics"])
}
