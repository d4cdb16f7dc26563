//! How much was sent once more, and how much of that for nothing. Shared by the rules about loss
//! and reordering.

use crate::view::{Change, Out, View};

/// What was sent between the samples.
pub(crate) struct Segments {
    /// Data segments, each once.
    pub(crate) sent: Change,
    /// Data segments sent once more.
    pub(crate) again: Change,
    /// Of these, those that the peer had already (DSACK); 0 where nobody can tell.
    pub(crate) for_nothing: u64,
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
        (sent.by > 0).then_some(Segments { sent, again, for_nothing })
    }

    /// Of the segments sent, the share sent once more.
    pub(crate) fn share_again(&self) -> f64 {
        self.again.by as f64 / self.sent.by as f64
    }

    /// Of the segments sent, the share sent once more that the peer did not have.
    pub(crate) fn share_lost(&self) -> f64 {
        (self.again.by - self.for_nothing) as f64 / self.sent.by as f64
    }

    /// Of what was sent once more, the share that the peer had already.
    pub(crate) fn share_for_nothing(&self) -> f64 {
        self.for_nothing as f64 / self.again.by.max(1) as f64
    }
}

/// Whether SACK is off here, which makes loss and reordering look alike.
pub(crate) fn is_sack_off(view: View<'_>) -> bool {
    view.setting_if_any("net.ipv4.tcp_sack") == Some(0)
}
