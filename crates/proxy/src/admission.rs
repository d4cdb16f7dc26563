//! A place at a server: at once, after a wait in the service's queue, or not at all.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use decide::{Admission, Ask, LiveService, Refusal, Slot};
use model::{Cause, Moment, Service};
use transport::Stream;

use crate::account::Record;
use crate::buffer::Buffer;
use crate::watchdog::Watchdog;
use crate::worker::Worker;

/// Who asks: a client that may leave while it waits.
pub(crate) struct Place<'a> {
    pub(crate) stream: &'a Stream,
    pub(crate) buffer: &'a mut Buffer,
    pub(crate) watchdog: &'a mut Watchdog,
    pub(crate) record: &'a mut Record,
}

/// Why there is no place.
pub(crate) struct Refused {
    pub(crate) cause: Cause,
    /// When it would be worth asking again, as far as can be predicted.
    pub(crate) retry_after: Option<Duration>,
}

/// Asks for a slot at a server of `live`; waits for one if the service lets requests wait. A
/// client that closes meanwhile leaves the queue. A wait is told to its record.
pub(crate) async fn admit(
    worker: &Rc<Worker>,
    live: &Arc<LiveService>,
    spec: &Service,
    ask: &Ask<'_>,
    client: Place<'_>,
    now: Moment,
) -> Result<Slot, Refused> {
    let admission = live.admit(ask, &mut worker.rng.borrow_mut(), now);
    let mut waiter = match admission {
        Admission::Go(slot) => return Ok(slot),
        Admission::Wait(waiter) => waiter,
        Admission::Refused(Refusal::NoServerReady) => {
            return Err(Refused { cause: Cause::DestinationUnavailable, retry_after: None });
        }
        Admission::Refused(Refusal::Full { retry_after }) => {
            return Err(Refused { cause: Cause::QueueFull, retry_after: Some(retry_after) });
        }
    };
    let Place { stream, buffer, watchdog, record } = client;
    let waiting = poll_fn(|cx| {
        // Asked first: nobody would wait for what the slot is given to.
        if client_gone(stream, buffer, cx) {
            return Poll::Ready(None);
        }
        waiter.poll_slot(cx).map(Some)
    });
    let waited = watchdog.until(now + spec.queue.wait_max, waiting).await;
    record.queued(os::clock::now() - now);
    match waited {
        Some(Some(slot)) => Ok(slot),
        Some(None) => Err(Refused { cause: Cause::ClientClosed, retry_after: None }),
        None => {
            let retry_after = Some(waiter.retry_after(os::clock::now()));
            Err(Refused { cause: Cause::QueueWaitExceeded, retry_after })
        }
    }
}

/// Whether the client has closed while it waits; wakes the task when it does. What it sends
/// meanwhile is kept for its turn, as long as there is room: beyond that nobody listens, and the
/// kernel holds the sender back.
pub(crate) fn client_gone(stream: &Stream, buffer: &mut Buffer, cx: &mut Context<'_>) -> bool {
    while buffer.has_room() {
        // Asked first, so that no memory is taken for a client that only waits.
        match stream.poll_read_ready(cx) {
            Poll::Pending => return false,
            Poll::Ready(Err(_)) => return true,
            Poll::Ready(Ok(())) => {}
        }
        match buffer.poll_fill(stream, cx) {
            Poll::Pending => return false,
            Poll::Ready(Ok(0) | Err(_)) => return true,
            Poll::Ready(Ok(_)) => {}
        }
    }
    false
}
