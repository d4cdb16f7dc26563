//! How the connection to the API server is, for status pages. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::Moment;

use crate::failure::Failure;

/// How the connection to the API server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Whether the API server can be used. It cannot if no kind at all can be listed, twice in a row, or if three requests
    /// in a row for the Lease had no answer or were not accepted (401). A kind that fails alone is in `failing`. During an
    /// outage, Weir serves what it knows.
    pub is_connected: bool,
    /// Since when `is_connected` has this value.
    pub since: Moment,
    /// The last failure, one line.
    pub last_error: Option<Arc<str>>,
    /// What cannot be read or followed at the moment, with the reason: `httproutes`, `Secret namespace/name`, `the Lease`.
    /// Of single Secrets and ConfigMaps, the first ones.
    pub failing: BTreeMap<String, Arc<str>>,
    /// Since when something has not been followed without interruption, even if the API server can be used: the earliest
    /// of what is in `failing`, and of what is in `awaited`. Without the Lease, everything is followed, and so it is if
    /// objects are beyond a limit.
    pub not_followed_since: Option<Moment>,
    /// What the API server forbids: `list httproutes`, `patch gateways/status`.
    pub forbidden: BTreeSet<String>,
    /// The kinds of the Gateway API that are not installed.
    pub absent: BTreeSet<&'static str>,
    /// What has not been read yet at the start. Empty once [`Served::is_complete`].
    pub awaited: BTreeSet<String>,
    /// Objects that Weir cannot read, as `Kind namespace/name`, with the reason. They are treated as absent,
    /// except RoutePolicies.
    pub unreadable: BTreeMap<String, Arc<str>>,
    /// Whether this instance holds the Lease.
    pub is_leading: bool,
    /// How often all or some objects were resolved.
    pub resolved: u64,
    /// How many writes of statuses and Services are waiting or under way.
    pub writes_waiting: usize,
}

impl Health {
    pub(crate) fn new(now: Moment) -> Health {
        Health {
            is_connected: false,
            since: now,
            last_error: None,
            failing: BTreeMap::new(),
            not_followed_since: None,
            forbidden: BTreeSet::new(),
            absent: BTreeSet::new(),
            awaited: BTreeSet::new(),
            unreadable: BTreeMap::new(),
            is_leading: false,
            resolved: 0,
            writes_waiting: 0,
        }
    }
}

/// Returns why the API server cannot be used, as far as it is so: see [`Health::is_connected`]. `watches` has what each
/// watch fails with, and `lease` what the requests for the Lease have failed with several times in a row.
pub(crate) fn outage<'a>(
    watches: impl IntoIterator<Item = Option<&'a Failure>>,
    lease: Option<&'a Failure>,
) -> Option<&'a Failure> {
    let mut found: Option<&Failure> = None;
    for failure in watches {
        let Some(failure) = failure else { return lease };
        // The reason of an outage comes before those of single kinds.
        if found.is_none_or(|found| !found.is_outage()) {
            found = Some(failure);
        }
    }
    lease.or(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Cause;

    #[test]
    fn an_outage_concerns_everything() {
        let broken = Failure::new(Cause::Connection, "refused");
        let late = Failure::new(Cause::Timeout, "late");
        let forbidden = Failure::new(Cause::Forbidden, "403");
        let (broken, late, forbidden) = (Some(&broken), Some(&late), Some(&forbidden));
        for (watches, lease, expected) in [
            (&[][..], None, None),
            (&[None, None], None, None),
            // One connection that breaks is none.
            (&[broken, None], None, None),
            (&[broken, broken], None, broken),
            (&[late, late], None, late),
            (&[forbidden, broken, late], None, broken),
            (&[forbidden, forbidden], None, forbidden),
            // Watches that hang see nothing.
            (&[None, None], late, late),
            (&[broken, None], late, late),
        ] {
            assert_eq!(outage(watches.iter().copied(), lease), expected, "{watches:?}");
        }
    }
}
