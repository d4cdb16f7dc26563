//! Notifications to the service manager, whose failure never stops a balancer.

use std::io;

/// Logs that the service manager could not be notified.
pub(crate) fn notify(sent: io::Result<()>) {
    if let Err(error) = sent {
        tracing::warn!(%error, "cannot notify the service manager");
    }
}
