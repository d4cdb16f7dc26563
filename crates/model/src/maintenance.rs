//! Maintenance of a route or a service: Weir answers in place of its servers.

use std::time::Duration;

/// Maintenance of a route or a service: no new request reaches a server, and clients are answered
/// with the cause `maintenance`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Maintenance {
    /// When clients should come back (`Retry-After`), from one second to
    /// [`Maintenance::RETRY_AFTER_MAX`].
    pub retry_after: Option<Duration>,
}

impl Maintenance {
    /// The longest `retry_after`: a week.
    pub const RETRY_AFTER_MAX: Duration = Duration::from_hours(7 * 24);
}

crate::words! {
    /// What can be in maintenance.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Maintained {
        /// A service.
        Service = "service",
        /// All routes of one name.
        Route = "route",
    }
}
