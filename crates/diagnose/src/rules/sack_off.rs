//! Selective acknowledgements (SACK) are off, so loss and reordering cost far more throughput.
//!
//! **When.** `net.ipv4.tcp_sack` is 0. The finding also says whether the kernel is patched against
//! SACK Panic (`net.ipv4.tcp_min_snd_mss` exists). Because of SACK Panic, many administrators
//! turned SACK off in 2019 and never turned it on again.
//!
//! **Why.** Without SACK, a sender cannot distinguish late segments from lost ones, and retransmits
//! much data that has already arrived. Measured with 200 MB over a path of 70 ms on which 2 % of
//! the packets arrive 3 ms late: cubic takes 4.4 s with SACK and 5.8 s without; without SACK and
//! timestamps about 130 s; BBR 5.6 s in both cases. At one company, uploads were 22 times slower
//! (130 s instead of 5.7 s) until SACK was on again. Both sides negotiate SACK: if one side has it
//! off, the connection does not use it.
//!
//! **What to do.** On a patched kernel, turn SACK on. On an unpatched kernel, upgrade; until then,
//! drop SYNs with an MSS of 500 or less and turn SACK on. This blocks the attack too.
//!
//! **Not to be confused with.** Without SACK, retransmissions caused by reordering look like loss,
//! so the figures of `loss` mean little until SACK is on.

use crate::finding::{Certainty, Evidence, Finding, Severity};
use crate::view::{Out, View};

const SETTING: &str = "net.ipv4.tcp_sack";

pub(super) fn check(view: View<'_>, out: &mut Out) {
    if view.setting(SETTING, out) != Some(0) {
        return;
    }
    let control = view
        .namespace
        .settings
        .get()
        .and_then(|settings| settings.values.get("net.ipv4.tcp_congestion_control"));
    let timestamps = view.setting_if_any("net.ipv4.tcp_timestamps");
    let is_patched = view.has_setting("net.ipv4.tcp_min_snd_mss");
    let reordered = ["TcpExtTCPRenoReorder", "TcpExtTCPTSReorder"]
        .into_iter()
        .filter_map(|name| Some((name, view.counter_if_any(name)?)));
    let retransmitted = view.counter_if_any("TcpRetransSegs").filter(|one| one.is_rising());
    let finding = out
        .finding(
            SETTING,
            Severity::Warning,
            Certainty::Certain,
            match is_patched {
                Some(true) => "SACK is off, although this kernel is patched against SACK Panic.",
                _ => "SACK is off: loss and reordering cost far more throughput than necessary.",
            },
        )
        .evidence(Evidence::text(SETTING, "0"))
        .evidences(is_patched.map(|is| {
            Evidence::text(
                "SACK Panic",
                if is { "patched (net.ipv4.tcp_min_snd_mss exists)" } else { "not patched" },
            )
        }))
        .evidences(control.map(|name| Evidence::text("net.ipv4.tcp_congestion_control", name)))
        .evidences(
            timestamps.map(|value| Evidence::text("net.ipv4.tcp_timestamps", value.to_string())),
        )
        .evidences(retransmitted.map(|one| one.evidence("TcpRetransSegs")))
        .evidences(
            reordered.filter(|(_, one)| one.is_rising()).map(|(name, one)| one.evidence(name)),
        )
        .why(why(control.map(String::as_str), timestamps));
    let finding = with_remedy(finding, is_patched);
    out.push(
        finding
            .verify("ss -tin shows `sack` on new connections; both sides must have it on")
            .source(&["/proc/sys/net/ipv4/tcp_sack", "/proc/net/netstat"]),
    );
}

/// What SACK's absence costs under a congestion control, with timestamps on (1) or off (0).
fn why(control: Option<&str>, timestamps: Option<u64>) -> &'static str {
    match (control, timestamps) {
        (Some("bbr"), _) => {
            "Late segments are taken for lost and retransmitted; BBR, which this host uses, tolerates it \
             better than cubic, but the peers' side of it counts too."
        }
        (_, Some(0)) => {
            "Late segments are taken for lost, and with timestamps off as well the mistake is never \
             undone: over a path of 70 ms with a little reordering, 200 MB took about 130 s instead \
             of 4.4 s."
        }
        _ => {
            "Late segments are taken for lost and retransmitted, and the sending rate is cut; loss costs \
             a round trip for each lost segment."
        }
    }
}

/// Adds what to do, by whether the kernel is patched against the attack of June 2019.
fn with_remedy(finding: Finding, is_patched: Option<bool>) -> Finding {
    if is_patched == Some(false) {
        finding
            .remedy("Upgrade the kernel, then turn SACK on", &[], "a reboot")
            .remedy(
                "Until then drop connections with a very small MSS, and turn SACK on",
                &[
                    "nft add rule inet filter input tcp flags syn tcp option maxseg size 1-500 counter drop",
                    "sysctl -w net.ipv4.tcp_mtu_probing=0",
                    "sysctl -w net.ipv4.tcp_sack=1",
                ],
                "the very few clients with a real MSS below 500 bytes cannot connect",
            )
    } else {
        finding.remedy(
            "Turn SACK on; this applies to new connections",
            &[
                "sysctl -w net.ipv4.tcp_sack=1",
                "grep -rs tcp_sack /etc/sysctl.conf /etc/sysctl.d /usr/lib/sysctl.d /run/sysctl.d",
            ],
            match is_patched {
                Some(true) => "none known on a patched kernel",
                _ => "on a kernel before June 2019 SACK lets an attacker crash the machine",
            },
        )
    }
}
