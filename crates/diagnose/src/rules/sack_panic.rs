//! The kernel is not patched against SACK Panic: a remote attacker can crash this machine.
//!
//! **When.** The setting `net.ipv4.tcp_min_snd_mss` does not exist. Every patched kernel has it
//! (4.4.182, 4.9.182, 4.14.127, 4.19.52, 5.1.11 and later), including older kernels to which
//! distributions backported the patch. So the rule tests the setting, not the version.
//!
//! **Why.** CVE-2019-11477: a connection with a very small MSS and crafted SACKs crashes the kernel
//! (2.6.29 and later). CVE-2019-11478 and 11479 slow it down.
//!
//! **What to do.** Upgrade the kernel. Until then, drop SYNs with an MSS of 500 or less, which
//! works only with `tcp_mtu_probing = 0`, or turn SACK off, which costs throughput (`sack_off`).

use crate::facts::Setting;
use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Out, View};

pub(super) fn check(view: View<'_>, out: &mut Out) {
    const SETTING: &str = "net.ipv4.tcp_min_snd_mss";
    // The kernel is one for all namespaces.
    if !view.namespace.is_own {
        return;
    }
    let Some(settings) = view.settings(out) else { return };
    match settings.get(SETTING) {
        Setting::Absent => {}
        Setting::Is(_) => return,
        Setting::Unknown(reason) => {
            if !settings.unreadable.contains_key(SETTING) {
                out.could_not("the patch against SACK Panic", reason);
            }
            return;
        }
    }
    let sack = view.setting_if_any("net.ipv4.tcp_sack");
    let is_exposed = sack != Some(0);
    out.push(
        out.finding(
            SETTING,
            if is_exposed { Severity::Critical } else { Severity::Advice },
            Certainty::Likely,
            if is_exposed {
                "This kernel is not patched against SACK Panic: a remote attacker can crash the machine."
            } else {
                "This kernel is not patched against SACK Panic; SACK is off, which prevents the attack."
            },
        )
        .evidence(Evidence::text(SETTING, "does not exist"))
        .evidences(view.facts.host.kernel_release.get().map(|one| Evidence::text("kernel", one)))
        .evidences(sack.map(|value| Evidence::text("net.ipv4.tcp_sack", value.to_string())))
        .why("A single TCP connection from anywhere is enough (CVE-2019-11477).")
        .remedy("Upgrade the kernel", &[], "a reboot")
        .remedy(
            "Until then drop connections with a very small MSS",
            &[
                "nft add rule inet filter input tcp flags syn tcp option maxseg size 1-500 counter drop",
                "sysctl -w net.ipv4.tcp_mtu_probing=0",
            ],
            "the very few clients with a real MSS below 500 bytes cannot connect",
        )
        .verify("sysctl net.ipv4.tcp_min_snd_mss prints a number")
        .source(&["/proc/sys/net/ipv4"]),
    );
}
