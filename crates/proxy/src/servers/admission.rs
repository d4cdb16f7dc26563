//! Admission: a slot at a server at once, after waiting in the service's queue, or not at all.

use std::future::poll_fn;
use std::task::{Context, Poll};

use decide::{Admission, Ask, Refusal, Slot, Waiter};
use model::{Cause, Maintained, Maintenance, Moment, Service};

use transport::Stream;

use super::{NoServer, Place, Servers};
use crate::buffer::Buffer;
use crate::client::client_gone;
use crate::failure::client_failed;
use crate::roster::Phase;

impl Servers<'_> {
    /// Returns a slot at a server and when it was granted: at once, or after waiting in the queue
    /// if the service has one. A client that closes meanwhile leaves the queue.
    pub(crate) async fn admit(
        &self,
        mut client: Place<'_>,
        now: Moment,
    ) -> Result<(Slot, Moment), NoServer> {
        let ask = Ask { key: self.key, affinity: self.affinity, avoid: &self.tries.failed };
        // A request that was cancelled before it was sent does no harm; one that is sent and reset at
        // once may be taken for an attack by the server, at the expense of others on its connection.
        if let Some(why) = client.stream.abandoned() {
            return Err(client_failed(why).into());
        }
        client.entry.set(Phase::Queued);
        client.record.considers(self.live, &ask, now);
        let elsewhere = self.tries.elsewhere(self.worker, self.live, self.key);
        let is_elsewhere = elsewhere.is_some();
        let admitted = match elsewhere {
            Some(slot) => Ok((slot, now)),
            None => self.slot_or_wait(&ask, &mut client, now).await,
        };
        client.record.decided(admitted.as_ref().ok(), is_elsewhere, now);
        match &admitted {
            Ok((slot, granted)) => {
                if *granted > now {
                    slot.endpoint().state.latency.queue.record(*granted - now);
                }
                client.record.server(slot, *granted);
                client.entry.attempt(slot.endpoint().row.address);
            }
            Err(_) => client.entry.set(Phase::Busy),
        }
        admitted
    }

    /// Refuses a request or connection that has not reached a server, if the service is in
    /// maintenance according to the file (`in_file`) or an operator.
    pub(super) fn refuse_in_maintenance(
        &self,
        in_file: Option<Maintenance>,
    ) -> Result<(), NoServer> {
        let switched = self.worker.shared.registry.maintenance();
        match switched.in_force(Maintained::Service, &self.service.name, in_file) {
            None => Ok(()),
            Some(Maintenance { retry_after }) => {
                Err(NoServer { reason: Cause::Maintenance.into(), retry_after })
            }
        }
    }

    async fn slot_or_wait(
        &self,
        ask: &Ask<'_>,
        client: &mut Place<'_>,
        now: Moment,
    ) -> Result<(Slot, Moment), NoServer> {
        let admission = self.live.admit(ask, &mut self.worker.rng.borrow_mut(), now);
        match admission {
            Admission::Go(slot) => Ok((slot, now)),
            Admission::Wait(waiter) => {
                let admitted = wait(waiter, self.service, client, now).await?;
                // It may have begun meanwhile, also by a reload.
                self.refuse_in_maintenance(self.live.spec().maintenance)?;
                Ok(admitted)
            }
            Admission::Refused(Refusal::NoServerReady) => {
                Err(self.live.cause_without_server().into())
            }
            Admission::Refused(Refusal::Full { retry_after }) => {
                Err(NoServer { reason: Cause::QueueFull.into(), retry_after: Some(retry_after) })
            }
        }
    }
}

/// Waits until `until` before another attempt, and returns when that was.
pub(super) async fn pause(client: Place<'_>, until: Moment) -> Result<Moment, NoServer> {
    let Place { stream, buffer, watchdog, half_close, .. } = client;
    let leaving = poll_fn(|cx| poll_left(stream, buffer, half_close, cx));
    match watchdog.until(until, leaving).await {
        Some(cause) => Err(cause.into()),
        None => Ok(os::clock::now()),
    }
}

/// Completes when the client has gone while it waits, with the cause.
fn poll_left(
    stream: &Stream,
    buffer: &mut Buffer,
    half_close: bool,
    cx: &mut Context<'_>,
) -> Poll<Cause> {
    match client_gone(stream, buffer, false, cx) {
        Poll::Ready(Cause::ClientClosed) if half_close => Poll::Pending,
        polled => polled,
    }
}

/// Waits in the queue, as long as the service's and the request's own timeouts allow.
async fn wait(
    mut waiter: Waiter,
    service: &Service,
    client: &mut Place<'_>,
    now: Moment,
) -> Result<(Slot, Moment), NoServer> {
    let Place { stream, buffer, watchdog, record, half_close, .. } = client;
    let waiting = poll_fn(|cx| {
        // Checked first: a slot must not go to a client that has left.
        if let Poll::Ready(cause) = poll_left(stream, buffer, *half_close, cx) {
            return Poll::Ready(Err(cause));
        }
        waiter.poll_slot(cx).map(Ok)
    });
    let wait_ends = now + service.queue.wait_max;
    let (ends, cause) = match record.to_end {
        Some((total_ends, cause)) if total_ends < wait_ends => (total_ends, cause),
        _ => (wait_ends, Cause::QueueWaitExceeded),
    };
    let waited = watchdog.until(ends, waiting).await;
    let until = os::clock::now();
    record.queued(until - now);
    match waited {
        Some(Ok(slot)) => Ok((slot, until)),
        Some(Err(cause)) => Err(cause.into()),
        None => {
            let retry_after = Some(waiter.retry_after(until));
            Err(NoServer { reason: cause.into(), retry_after })
        }
    }
}
