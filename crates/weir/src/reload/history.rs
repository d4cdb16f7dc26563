//! The last reloads and how they ended, for whoever asks later.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use observe::exposition::ReloadGauges;
use serde_json::{Value, json};

/// Receipts that are kept; the oldest goes first.
const RECEIPTS_MAX: usize = 50;

/// How a reload ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Another configuration is in force.
    Applied,
    /// The file says what is in force already.
    Unchanged,
    /// The old one stays in force.
    Refused,
}

impl Ending {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Ending::Applied => "applied",
            Ending::Unchanged => "unchanged",
            Ending::Refused => "refused",
        }
    }
}

/// Written by the main thread, read by any.
#[derive(Debug, Default)]
pub(crate) struct History(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    receipts: VecDeque<Value>,
    gauges: ReloadGauges,
}

impl History {
    /// Keeps a receipt. `at` is the time since 1970-01-01 UTC.
    pub(crate) fn add(&self, ending: Ending, receipt: Value, at: std::time::Duration) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.receipts.len() == RECEIPTS_MAX {
            kept.receipts.pop_front();
        }
        kept.receipts.push_back(receipt);
        let gauges = &mut kept.gauges;
        match ending {
            Ending::Applied => gauges.applied += 1,
            Ending::Unchanged => gauges.unchanged += 1,
            Ending::Refused => gauges.refused += 1,
        }
        gauges.last_refused = ending == Ending::Refused;
        gauges.last_at = Some(at);
    }

    /// The receipts, the latest first.
    pub(crate) fn receipts(&self) -> Value {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        json!({ "reloads": kept.receipts.iter().rev().collect::<Vec<_>>() })
    }

    pub(crate) fn gauges(&self) -> ReloadGauges {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).gauges
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_last_ones_are_kept_and_all_are_counted() {
        let history = History::default();
        for n in 0..RECEIPTS_MAX as u64 + 10 {
            history.add(Ending::Applied, json!(n), Duration::from_secs(n));
        }
        history.add(Ending::Refused, json!("no"), Duration::from_secs(99));
        let receipts = history.receipts();
        let receipts = receipts["reloads"].as_array().unwrap();
        assert_eq!((receipts.len(), &receipts[0]), (RECEIPTS_MAX, &json!("no")));
        let gauges = history.gauges();
        assert_eq!((gauges.applied, gauges.unchanged, gauges.refused), (60, 0, 1));
        assert!(gauges.last_refused);
        assert_eq!(gauges.last_at, Some(Duration::from_secs(99)));
    }
}
