//! TCP sockets use so much memory that the kernel is under memory pressure.
//!
//! **When.** The memory of all TCP sockets (`mem` in `/proc/net/sockstat`, in pages) is above the
//! middle value of `tcp_mem` (warning) or above 90 % of the last value (critical). Both apply to
//! the whole machine, including its containers.
//!
//! **Why.** Above the middle value, the kernel shrinks windows and buffers, so all connections get
//! slower. At the last value, it drops packets and closes orphaned sockets ("TCP: out of memory" in
//! its log).
//!
//! **What to do.** Find the sockets that use the memory: slow readers, very large buffers, a very
//! large number of connections. Lower the maximum of `tcp_rmem` and `tcp_wmem`, or raise `tcp_mem`,
//! which is in pages of 4 KiB, not in bytes.

use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Out, View};
use crate::words;

const CRITICAL_SHARE: f64 = 0.9;

pub(super) fn check(view: View<'_>, out: &mut Out) {
    const SETTING: &str = "net.ipv4.tcp_mem";
    // One for the whole machine: said once.
    if !view.namespace.is_own {
        return;
    }
    let Some(stat) =
        view.last().and_then(|last| out.want("TCP memory and TIME-WAIT", &last.sockstat))
    else {
        return;
    };
    let Some(settings) = view.settings(out) else { return };
    let Some(limits) = out.want(SETTING, &settings.numbers(SETTING)).cloned() else { return };
    let Some(&page) = out.want("the size of a page", &view.facts.host.page_size_bytes) else {
        return;
    };
    let [_, pressure, max] = limits[..] else { return };
    let used = stat.memory_pages;
    let is_critical = used as f64 > CRITICAL_SHARE * max as f64;
    if used <= pressure && !is_critical {
        return;
    }
    let size = |pages: u64| words::bytes(pages.saturating_mul(page));
    out.push(
        out.finding(
            SETTING,
            if is_critical { Severity::Critical } else { Severity::Warning },
            Certainty::Certain,
            format!("TCP sockets use {} of at most {}.", size(used), size(max)),
        )
        .evidence(Evidence::text("memory of TCP sockets", format!("{} pages, {}", words::thousands(used), size(used))))
        .evidence(Evidence::text("pressure begins at", format!("{} pages, {}", words::thousands(pressure), size(pressure))))
        .evidence(Evidence::text("maximum", format!("{} pages, {}", words::thousands(max), size(max))))
        .evidences(view.counter_if_any("TcpExtTCPMemoryPressures").map(|one| one.evidence("TcpExtTCPMemoryPressures")))
        .evidences(log_line(view).map(|line| Evidence::text("kernel log", line)))
        .why("The kernel shrinks windows and buffers, and at the maximum drops packets.")
        .remedy(
            "Find the sockets that use it",
            &["ss -tnm | grep -o 'r[0-9]*,rb[0-9]*' | sort | uniq -c | sort -rn | head"],
            "none",
        )
        .remedy(
            "Lower the maximum per socket",
            &["sysctl -w net.ipv4.tcp_rmem='4096 131072 4194304' net.ipv4.tcp_wmem='4096 16384 4194304'"],
            "long, fast paths get slower: a window caps throughput at its size per round trip",
        )
        .verify("`mem` in /proc/net/sockstat falls below the middle value of tcp_mem")
        .source(&["/proc/net/sockstat", "/proc/sys/net/ipv4/tcp_mem"]),
    );
}

fn log_line(view: View<'_>) -> Option<&str> {
    let lines = view.facts.host.kernel_log.get()?;
    lines
        .iter()
        .rev()
        .map(|line| line.text.as_str())
        .find(|text| text.contains("TCP: out of memory"))
}
