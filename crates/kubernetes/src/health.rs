//! How the connection to the API server is, for status pages.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use model::Moment;

/// How the connection to the API server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Health {
    /// Whether the API server answers. While it does not, Weir serves what it knows.
    pub is_connected: bool,
    /// Since when `is_connected` has this value.
    pub since: Moment,
    /// The last failure, one line.
    pub last_error: Option<Arc<str>>,
    /// What cannot be read at the moment, such as `httproutes`, with the reason.
    pub failing: BTreeMap<String, Arc<str>>,
    /// What the API server forbids: `list HTTPRoutes`, `write the status of Gateways`.
    pub forbidden: BTreeSet<String>,
    /// The kinds of the Gateway API that are not installed.
    pub absent: BTreeSet<&'static str>,
    /// What has not been read yet at the start. Empty once [`Served::is_complete`].
    pub awaited: BTreeSet<String>,
    /// Objects that Weir cannot read, as `Kind namespace/name`, with the reason. They are treated as absent.
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
