//! Which Services were applied, so that none is applied again although nothing has changed. Pure: time is an argument.

use std::collections::BTreeMap;
use std::time::Duration;

use gateway::objects::Key;
use model::Moment;

use crate::text::is_older;

/// The same Service is applied again after this time at the earliest: the watch may not have reported it yet, or another
/// program may change it each time. One that was changed once is applied again at once.
const REPEAT_AFTER: Duration = Duration::from_secs(30);

/// A Service that was applied.
#[derive(Debug)]
pub(crate) struct Applied {
    /// A digest of what was wanted.
    pub(crate) digest: String,
    /// The version of the object afterwards.
    pub(crate) version: Box<str>,
}

/// What was applied last for each Gateway.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    last: BTreeMap<Key, Last>,
}

#[derive(Debug)]
struct Last {
    applied: Applied,
    at: Moment,
    /// Whether the watch has reported this version, or a newer one.
    is_seen: bool,
    /// Whether the one before was the same.
    is_repeated: bool,
}

impl Memory {
    /// Notes what was applied.
    pub(crate) fn note(&mut self, gateway: &Key, applied: Applied, now: Moment) {
        let before = self.last.get(gateway);
        let is_repeated = before.is_some_and(|before| before.applied.digest == applied.digest);
        let last = Last { applied, at: now, is_seen: false, is_repeated };
        self.last.insert(gateway.clone(), last);
    }

    /// Notes the version that the watch has reported.
    pub(crate) fn see(&mut self, gateway: &Key, version: &str) {
        if let Some(last) = self.last.get_mut(gateway) {
            last.is_seen |= !is_older(version, &last.applied.version);
        }
    }

    /// Returns for how long a Service that differs from what is wanted is not applied. Zero: it is applied now.
    pub(crate) fn wait(&self, gateway: &Key, digest: &str, now: Moment) -> Duration {
        let last = self.last.get(gateway).filter(|last| last.applied.digest == digest);
        match last {
            Some(last) if !last.is_seen || last.is_repeated => {
                REPEAT_AFTER.saturating_sub(now.since(last.at))
            }
            Some(_) | None => Duration::ZERO,
        }
    }

    /// Forgets Gateways.
    pub(crate) fn retain(&mut self, is_kept: impl Fn(&Key) -> bool) {
        self.last.retain(|gateway, _| is_kept(gateway));
    }
}
