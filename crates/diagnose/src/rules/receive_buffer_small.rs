//! Receive buffers are so small that peers have to stop sending, however fast programs read.
//!
//! **When.** The maximum of `net.ipv4.tcp_rmem` is below 128 KiB, and between the samples this host
//! advertised a zero window (`TcpExtTCPToZeroWindowAdv`) or dropped received data because the
//! buffer was full (`TcpExtRcvPruned`, `TcpExtTCPRcvQDrop`).
//!
//! **Why.** A connection carries at most one window per round trip, and the window is at most about
//! half the buffer. A few segments fill a very small buffer before any program can read them.
//!
//! **What to do.** Set `tcp_rmem` to the kernel's default, 4096 131072 6291456: the kernel uses
//! only as much as a connection needs. A program that sets `SO_RCVBUF` itself keeps that size,
//! whatever the setting.

use crate::finding::{Certainty, Evidence, Severity};
use crate::view::{Change, Out, View};
use crate::words;

const SETTING: &str = "net.ipv4.tcp_rmem";
/// The kernel's default size at the start of a connection: below it no window grows to 64 KiB.
const SMALL_BELOW_BYTES: u64 = 128 << 10;

/// The largest receive buffer that the settings allow, in bytes, where it is small.
pub(super) fn small_buffer(view: View<'_>) -> Option<u64> {
    let max = *view.namespace.settings.get()?.numbers(SETTING).get()?.get(2)?;
    (max < SMALL_BELOW_BYTES).then_some(max)
}

/// Returns the rising counters of data dropped because a receive buffer was full. A segment may be counted by
/// both. `TCPBacklogDrop` is not one of them: it also counts acknowledgements.
pub(super) fn dropped(view: View<'_>) -> Vec<(&'static str, Change)> {
    ["TcpExtRcvPruned", "TcpExtTCPRcvQDrop"]
        .into_iter()
        .filter_map(|name| Some((name, view.counter_if_any(name)?)))
        .filter(|(_, one)| one.is_rising())
        .collect()
}

pub(super) fn check(view: View<'_>, out: &mut Out) {
    let Some(stops) = view.counter("TcpExtTCPToZeroWindowAdv", out) else { return };
    let Some(max) = small_buffer(view) else { return };
    let drops = dropped(view);
    if !stops.is_rising() && drops.is_empty() {
        return;
    }
    out.push(
        out.finding(
            SETTING,
            Severity::Warning,
            Certainty::Certain,
            format!(
                "Receive buffers hold at most {}, so peers have to stop sending.",
                words::bytes(max)
            ),
        )
        .evidence(stops.evidence("TcpExtTCPToZeroWindowAdv"))
        .evidences(drops.iter().map(|(name, one)| one.evidence(name)))
        .evidence(Evidence::count("net.ipv4.tcp_rmem, its maximum", max, "bytes"))
        .why("A connection carries at most one window per round trip, however fast programs read.")
        .remedy(
            "Let the kernel choose the size, as by default",
            &["sysctl -w net.ipv4.tcp_rmem='4096 131072 6291456'"],
            "more memory for connections whose program reads slowly",
        )
        .verify("nstat -az TcpExtTCPToZeroWindowAdv no longer rises under the same load")
        .source(&["/proc/sys/net/ipv4/tcp_rmem", "/proc/net/netstat"]),
    );
}
