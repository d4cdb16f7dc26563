//! `tcp_mem` allows TCP more than half of the machine's memory; it is in pages, not in bytes.
//!
//! **When.** The last value of `net.ipv4.tcp_mem`, in pages, is more than half of the machine's
//! memory. The kernel's default is about a tenth.
//!
//! **Why.** The values are in pages, usually of 4 KiB: 8388608, meant as 8 MiB, allows 32 GiB. The
//! limit then no longer protects the machine: it runs out of memory instead of slowing down a few
//! connections.
//!
//! **What to do.** Remove the line. The default fits the machine's memory.

use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Out, View};
use crate::words;

const SHARE_MIN: f64 = 0.5;

pub(super) fn check(view: View<'_>, out: &mut Out) {
    const SETTING: &str = "net.ipv4.tcp_mem";
    // The machine's; other namespaces do not have it.
    if !view.namespace.is_own {
        return;
    }
    let Some(settings) = view.settings(out) else { return };
    let Some(limits) = out.want(SETTING, &settings.numbers(SETTING)).cloned() else { return };
    let host = &view.facts.host;
    let (Some(&page), Some(&memory)) = (
        out.want("the size of a page", &host.page_size_bytes),
        out.want("the machine's memory", &host.memory_bytes),
    ) else {
        return;
    };
    let Some(&max) = limits.get(2) else { return };
    let bytes = max.saturating_mul(page);
    if (bytes as f64) <= SHARE_MIN * memory as f64 {
        return;
    }
    out.push(
        out.finding(
            SETTING,
            Severity::Warning,
            Certainty::Likely,
            format!(
                "tcp_mem allows TCP {} of the machine's {}: it counts pages, not bytes.",
                words::bytes(bytes),
                words::bytes(memory)
            ),
        )
        .evidence(Evidence::text(
            SETTING,
            format!(
                "{} ({} pages = {})",
                limits.iter().map(u64::to_string).collect::<Vec<_>>().join(" "),
                words::thousands(max),
                words::bytes(bytes)
            ),
        ))
        .evidence(Evidence::text("memory", words::bytes(memory)))
        .why("Sockets can use up the machine's memory: it runs out of memory instead of slowing down.")
        .remedy(
            "Remove the line that sets it, and set the kernel's default until the next boot",
            &[&default_command(memory, page), "grep -rs tcp_mem /etc/sysctl.conf /etc/sysctl.d"],
            "none: almost all machines use the default",
        )
        .verify("sysctl net.ipv4.tcp_mem prints about a tenth of the memory, in pages")
        .source(&["/proc/sys/net/ipv4/tcp_mem", "/proc/meminfo"]),
    );
}

/// As the kernel computes it (`tcp_init_mem`): a sixteenth of the free memory at the start, of
/// which three quarters, all, and one and a half.
fn default_command(memory: u64, page: u64) -> String {
    let base = memory / page.max(1) / 16;
    format!("sysctl -w net.ipv4.tcp_mem='{} {} {}'", base * 3 / 4, base, base * 3 / 2)
}
