//! Connections between their requests. A task that serves requests takes kilobytes, most of them for
//! the request; a connection that has been silent for a while waits in a small task instead, and
//! goes on in a new one when it speaks.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use crate::accept::Held;
use crate::client;
use crate::connection::{self, Silent};
use crate::roster::Phase;
use crate::worker::Worker;

/// A connection that is silent for longer is parked. Long beside the pauses of a busy client, so
/// that its requests never pay for a task.
pub(crate) const PARKED_AFTER: Duration = Duration::from_millis(100);

/// Waits, in a task of its own, until the connection speaks or its time is over.
pub(crate) fn park(worker: Rc<Worker>, silent: Silent, held: Held) {
    tokio::task::spawn_local(async move {
        if speaks(&worker, &silent).await {
            resume(worker, silent, held);
        } else {
            client::close(&silent.accepted.stream);
        }
    });
}

/// Goes on, in a task that is large enough to serve requests.
fn resume(worker: Rc<Worker>, silent: Silent, held: Held) {
    tokio::task::spawn_local(async move {
        if let Some(silent) = connection::resume(&worker, silent).await {
            park(worker, silent, held);
        }
    });
}

/// Whether there is something to read, before the time that a listener allows between requests is
/// over and before its connections are to end.
async fn speaks(worker: &Rc<Worker>, silent: &Silent) -> bool {
    let Silent { accepted, until, .. } = silent;
    let entry = worker.roster.enter().await;
    entry.set(Phase::Idle);
    entry.wake_after(*until);
    poll_fn(|cx| {
        // What has arrived is still answered while draining; an error is for the reader to find.
        if accepted.stream.poll_read_ready(cx).is_ready() {
            return Poll::Ready(true);
        }
        let last = worker.shared.draining() || accepted.live.is_closing();
        if last || os::clock::now() >= *until { Poll::Ready(false) } else { Poll::Pending }
    })
    .await
}
