//! Keeps the receipts of the last reloads, for the admin API and metrics.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use admin_api::receipt::{Reload, ReloadResult, Reloads};
use decide::FirstUse;
use model::Moment;
use observe::exposition::ReloadGauges;

/// Maximum number of receipts; the oldest is dropped first.
const RECEIPTS_MAX: usize = 50;

/// When a reload was requested, and when its configuration was first used.
#[derive(Clone, Debug)]
pub(crate) struct Use {
    pub(crate) asked: Moment,
    pub(crate) first: Arc<FirstUse>,
}

/// The receipts: written by the main thread, read by any thread.
#[derive(Debug, Default)]
pub(crate) struct History(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    receipts: VecDeque<(Reload, Option<Use>)>,
    gauges: ReloadGauges,
}

impl History {
    /// Adds a receipt, and the handle that learns when its configuration is first used. `at` is the
    /// time since 1970-01-01 UTC.
    pub(crate) fn add(
        &self,
        result: ReloadResult,
        receipt: Reload,
        used: Option<Use>,
        at: Duration,
    ) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.receipts.len() == RECEIPTS_MAX {
            kept.receipts.pop_front();
        }
        kept.receipts.push_back((receipt, used));
        let gauges = &mut kept.gauges;
        match result {
            ReloadResult::Applied => gauges.applied += 1,
            ReloadResult::Unchanged => gauges.unchanged += 1,
            ReloadResult::Refused => gauges.refused += 1,
        }
        gauges.last_refused = result == ReloadResult::Refused;
        gauges.last_at = Some(at);
    }

    /// Returns the receipts, the latest first.
    pub(crate) fn receipts(&self) -> Reloads {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let receipts = kept.receipts.iter().rev().map(|(receipt, used)| {
            let mut receipt = receipt.clone();
            receipt.first_used_after_ms = used.as_ref().and_then(Use::first_after_ms);
            receipt
        });
        Reloads { reloads: receipts.collect() }
    }

    pub(crate) fn gauges(&self) -> ReloadGauges {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).gauges
    }
}

impl Use {
    /// Returns the time from the request to the first connection or request served with the new
    /// configuration, in milliseconds.
    fn first_after_ms(&self) -> Option<f64> {
        let after = self.first.at()?.since(self.asked);
        Some((after.as_secs_f64() * 1e6).round() / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_kept_and_all_are_counted() {
        let history = History::default();
        let receipt = |generation| Reload { generation, ..Reload::default() };
        for n in 0..RECEIPTS_MAX as u64 + 10 {
            history.add(ReloadResult::Applied, receipt(n), None, Duration::from_secs(n));
        }
        history.add(ReloadResult::Refused, receipt(99), None, Duration::from_secs(99));
        let receipts = history.receipts().reloads;
        assert_eq!((receipts.len(), &receipts[0]), (RECEIPTS_MAX, &receipt(99)));
        let gauges = history.gauges();
        assert_eq!((gauges.applied, gauges.unchanged, gauges.refused), (60, 0, 1));
        assert!(gauges.last_refused);
        assert_eq!(gauges.last_at, Some(Duration::from_secs(99)));
    }
}
