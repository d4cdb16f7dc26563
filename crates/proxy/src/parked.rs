//! Connections between their requests. A task that serves requests takes kilobytes, most of them for
//! the request; a connection that has been silent for a while waits in a small task instead, and
//! goes on in a new one when it speaks.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use crate::accept::{self, Held};
use crate::client::{After, Client};
use crate::connection::Silent;
use crate::roster::Phase;
use crate::watchdog::{Watchdog, instant_of};
use crate::worker::Worker;

/// A connection that is silent for longer is parked. Long beside the pauses of a busy client, so
/// that its requests never pay for a task.
pub(crate) const PARKED_AFTER: Duration = Duration::from_millis(100);

/// Waits, in a task of its own, until the connection speaks or its time is over.
pub(crate) fn park(worker: Rc<Worker>, silent: Silent, held: Held) {
    tokio::task::spawn_local(async move {
        if speaks(&worker, &silent).await {
            accept::resume(worker, silent, held);
        } else {
            let client = Client::new(&worker, silent.accepted, Watchdog::new()).await;
            client.end(&worker, After::Close).await;
        }
    });
}

/// Whether there is something to read, before the time that a listener allows between requests is
/// over and before its connections are to end.
async fn speaks(worker: &Rc<Worker>, silent: &Silent) -> bool {
    let accepted = &silent.accepted;
    let idle = accepted.settings().timeouts.idle;
    let until = os::clock::now() + idle.saturating_sub(PARKED_AFTER);
    let entry = worker.roster.enter().await;
    entry.set(Phase::Idle);
    let mut timer = pin!(tokio::time::sleep_until(instant_of(until)));
    poll_fn(|cx| {
        // What has arrived is still answered while draining; an error is for the reader to find.
        if accepted.stream.poll_read_ready(cx).is_ready() {
            return Poll::Ready(true);
        }
        let last = worker.shared.draining() || accepted.live.is_closing();
        if last || timer.as_mut().poll(cx).is_ready() {
            return Poll::Ready(false);
        }
        Poll::Pending
    })
    .await
}
