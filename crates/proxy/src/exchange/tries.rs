//! What a request remembers from one attempt to the next.

use std::net::SocketAddr;
use std::sync::Arc;

use decide::retry::Failed;
use decide::{Endpoint, LiveService, Slot};
use model::{Cause, Service};

use crate::worker::Worker;

/// What a request has been through, and what is left to it.
pub(super) struct Tries {
    /// Servers that have failed it.
    pub(super) failed: Vec<SocketAddr>,
    /// Attempts that may still be made.
    pub(super) left: u32,
    /// Repetitions that did not count.
    pub(super) replays: u32,
    /// The next attempt takes no kept connection.
    pub(super) fresh: bool,
    /// The last server could not be reached, and neither may be others of its zone.
    unreachable: Option<Arc<Endpoint>>,
}

impl Tries {
    pub(super) fn new(service: &Service) -> Tries {
        let left = service.retries.attempts_max;
        Tries { failed: Vec::new(), left, replays: 0, fresh: false, unreachable: None }
    }

    pub(super) fn again(
        &mut self,
        endpoint: &Arc<Endpoint>,
        failed: &Failed,
        fresh: bool,
        avoid: bool,
        counts: bool,
    ) {
        self.fresh = fresh;
        if avoid {
            self.failed.push(endpoint.row.address);
        }
        if counts {
            self.left -= 1;
        } else {
            self.replays += 1;
        }
        let unreachable = matches!(
            failed.cause,
            Cause::ConnectionTimeout
                | Cause::ConnectSynUnanswered
                | Cause::DestinationIpUnroutable
                | Cause::ServerMarkedDown
        );
        self.unreachable = unreachable.then(|| Arc::clone(endpoint));
    }

    /// A place outside the zone whose server could not be reached, if there is one at once.
    pub(super) fn elsewhere(&self, worker: &Worker, live: &LiveService) -> Option<Slot> {
        let zone = self.unreachable.as_ref()?.row.zone.as_deref();
        live.elsewhere(&self.failed, zone, &mut worker.rng.borrow_mut())
    }

    /// Whether a server is left that has not failed this request.
    pub(super) fn another_server(&self, live: &LiveService, last: &Endpoint) -> bool {
        live.endpoints().all.iter().any(|endpoint| {
            endpoint.row.address != last.row.address
                && endpoint.state.is_ready()
                && !self.failed.contains(&endpoint.row.address)
        })
    }
}
