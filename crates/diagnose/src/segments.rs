//! How much was sent once more, how much of that for nothing, and in how many loss episodes. Shared by
//! the rules about loss and reordering.

use crate::evidence::Units;
use crate::view::{Change, Out, View};

/// The smallest retransmission timeout of Linux, in seconds (`TCP_RTO_MIN`). Each further timeout
/// without an answer waits twice as long.
const TIMEOUT_MIN_S: f64 = 0.2;
/// Segments that one loss episode repeats at most, where the kernel does not count episodes: the
/// initial window (RFC 6928).
const EPISODE_SEGMENTS: u64 = 10;

/// What was sent between the samples.
pub(crate) struct Segments {
    /// Data segments, each once.
    pub(crate) sent: Change,
    /// Data segments sent once more.
    pub(crate) again: Change,
    /// Of these, those that the peer had already (DSACK); 0 where that is unknown.
    pub(crate) for_nothing: u64,
    /// How often a sender began to repair a loss, less what it then took back as a mistake. A run of
    /// timeouts of one connection counts once. These are independent of each other; segments are not.
    pub(crate) episodes: u64,
}

impl Segments {
    /// From the kernel's counters; a note when they are not known. `None` also when nothing was
    /// sent.
    pub(crate) fn of(view: View<'_>, out: &mut Out) -> Option<Segments> {
        let sent = view.counter("TcpExtTCPOrigDataSent", out)?;
        let again = view.counter("TcpRetransSegs", out)?;
        // SYNs count as retransmitted segments, but not as data.
        let syns = view.counter_if_any("TcpExtTCPSynRetrans").map_or(0, |one| one.by);
        let again = Change { by: again.by.saturating_sub(syns), ..again };
        // Linux 5.5 counts segments; before, reports, of which one may tell of several.
        let reported = view
            .counter_if_any("TcpExtTCPDSACKRecvSegs")
            .or_else(|| view.counter_if_any("TcpExtTCPDSACKRecv"));
        let for_nothing = reported.map_or(0, |one| one.by).min(again.by);
        let episodes = episodes(view, syns).unwrap_or(again.by / EPISODE_SEGMENTS);
        let episodes = episodes.min(again.by - for_nothing);
        (sent.by > 0).then_some(Segments { sent, again, for_nothing, episodes })
    }

    /// Loss episodes of the segments sent.
    pub(crate) fn units(&self) -> Units {
        Units::new(self.episodes, self.transmissions())
    }

    /// Everything sent, each time it was.
    fn transmissions(&self) -> u64 {
        self.sent.by.saturating_add(self.again.by)
    }

    /// Of the segments sent, the share sent once more that the peer did not have.
    pub(crate) fn share_lost(&self) -> f64 {
        (self.again.by - self.for_nothing) as f64 / self.transmissions().max(1) as f64
    }

    /// Of what was sent once more, the share that the peer had already.
    pub(crate) fn share_for_nothing(&self) -> f64 {
        self.for_nothing as f64 / self.again.by.max(1) as f64
    }
}

/// Loss episodes by the kernel's counters; `None` where it does not keep them.
fn episodes(view: View<'_>, syns: u64) -> Option<u64> {
    let by = |name| view.counter_if_any(name).map(|one| one.by);
    let any = |name| by(name).unwrap_or(0);
    let recoveries = by("TcpExtTCPSackRecovery")?
        .saturating_add(any("TcpExtTCPRenoRecovery"))
        .saturating_add(any("TcpExtTCPLossProbeRecovery"));
    // Timeouts of SYNs count among them.
    let timeouts = any("TcpExtTCPTimeouts").saturating_sub(syns);
    let stalls = timeouts.div_ceil(timeouts_in_a_row(view.seconds()));
    let undone = any("TcpExtTCPFullUndo")
        .saturating_add(any("TcpExtTCPLossUndo"))
        .saturating_add(any("TcpExtTCPDSACKUndo"));
    Some(recoveries.saturating_add(stalls).saturating_sub(undone))
}

/// How many timeouts one connection can have in `seconds` while nothing is acknowledged.
fn timeouts_in_a_row(seconds: f64) -> u64 {
    ((seconds / TIMEOUT_MIN_S + 1.0).log2().floor() as u64).max(1)
}

/// Whether SACK is off here, which makes loss and reordering look alike.
pub(crate) fn is_sack_off(view: View<'_>) -> bool {
    view.setting_if_any("net.ipv4.tcp_sack") == Some(0)
}
