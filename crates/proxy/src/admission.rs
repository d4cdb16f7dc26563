//! A place at a server: at once, after a wait in the service's queue, or not at all.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use decide::{Admission, Ask, LiveService, Refusal, Slot};
use model::{Cause, Moment, Service};
use transport::Stream;

use crate::account::Record;
use crate::blame::client_failed;
use crate::buffer::Buffer;
use crate::watchdog::Watchdog;
use crate::worker::Worker;

/// Who asks: a client that may leave while it waits.
pub(crate) struct Place<'a> {
    pub(crate) stream: &'a Stream,
    pub(crate) buffer: &'a mut Buffer,
    pub(crate) watchdog: &'a mut Watchdog,
    pub(crate) record: &'a mut Record,
    /// A client that has said all it has to say still waits for what it hears: in tcp mode, where
    /// each direction ends by itself.
    pub(crate) half_close: bool,
}

/// Why there is no place.
pub(crate) struct Refused {
    pub(crate) cause: Cause,
    /// When it would be worth asking again, as far as can be predicted.
    pub(crate) retry_after: Option<Duration>,
}

/// Asks for a slot at a server of `live`, and yields it with the moment at which it was there; waits for one if the service lets requests wait. A
/// client that closes meanwhile leaves the queue. A wait is told to its record.
pub(crate) async fn admit(
    worker: &Rc<Worker>,
    live: &Arc<LiveService>,
    spec: &Service,
    ask: &Ask<'_>,
    client: Place<'_>,
    now: Moment,
) -> Result<(Slot, Moment), Refused> {
    let admission = live.admit(ask, &mut worker.rng.borrow_mut(), now);
    let mut waiter = match admission {
        Admission::Go(slot) => return Ok((slot, now)),
        Admission::Wait(waiter) => waiter,
        Admission::Refused(Refusal::NoServerReady) => {
            // Only names that never resolved leave a service without a single server.
            let unknown = live.endpoints().all.is_empty();
            let cause = if unknown { Cause::DnsError } else { Cause::DestinationUnavailable };
            return Err(Refused { cause, retry_after: None });
        }
        Admission::Refused(Refusal::Full { retry_after }) => {
            return Err(Refused { cause: Cause::QueueFull, retry_after: Some(retry_after) });
        }
    };
    let Place { stream, buffer, watchdog, record, half_close } = client;
    let waiting = poll_fn(|cx| {
        // Asked first: nobody would wait for what the slot is given to.
        if let Poll::Ready(cause) = client_gone(stream, buffer, false, cx)
            && !(half_close && cause == Cause::ClientClosed)
        {
            return Poll::Ready(Err(cause));
        }
        waiter.poll_slot(cx).map(Ok)
    });
    let wait_ends = now + spec.queue.wait_max;
    let total_ends = record.to_end;
    let (ends, cause) = match total_ends {
        Some((total_ends, cause)) if total_ends < wait_ends => (total_ends, cause),
        _ => (wait_ends, Cause::QueueWaitExceeded),
    };
    let waited = watchdog.until(ends, waiting).await;
    let until = os::clock::now();
    record.queued(until - now);
    match waited {
        Some(Ok(slot)) => Ok((slot, until)),
        Some(Err(cause)) => Err(Refused { cause, retry_after: None }),
        None => {
            let retry_after = Some(waiter.retry_after(until));
            Err(Refused { cause, retry_after })
        }
    }
}

/// Ready when the client has gone while it waits, with what that is called. What it sends
/// meanwhile is kept for its turn, as long as there is room: beyond that nobody listens, and the
/// kernel holds the sender back.
pub(crate) fn client_gone(
    stream: &Stream,
    buffer: &mut Buffer,
    looks_again: bool,
    cx: &mut Context<'_>,
) -> Poll<Cause> {
    if let Poll::Ready(kind) = stream.poll_abandoned(cx) {
        return Poll::Ready(client_failed(kind));
    }
    // A response that comes soon makes it needless to have this connection watched; if it does not,
    // the watchdog looks again.
    if looks_again && stream.is_first_wait() {
        return Poll::Pending;
    }
    // The end of what a stream's client sends is no sign that it has left.
    while buffer.has_room() && !stream.is_exchange() {
        // Asked first, so that no memory is taken for a client that only waits.
        let filled = match ready!(stream.poll_read_ready(cx)) {
            Ok(()) => ready!(buffer.poll_fill(stream, cx)),
            Err(error) => Err(error),
        };
        match filled {
            Ok(0) => return Poll::Ready(Cause::ClientClosed),
            Ok(_) => {}
            Err(error) => return Poll::Ready(client_failed(error.kind())),
        }
    }
    Poll::Pending
}
