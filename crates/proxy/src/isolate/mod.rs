//! Isolates exchanges: a panic in one ends only that one, and all of them end when Weir stops.

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;

use model::Cause;

use crate::worker::Worker;

#[cfg(test)]
pub(crate) mod tests;

/// Runs `walk`, an exchange's steps, to their end. Fails with the cause if Weir stops first, or if
/// `walk` panics. What the walk has written to the exchange's record until then stays there, so
/// that the record can be closed like any other.
///
/// Neither an `async fn` nor the owner of `walk`: both would copy that future, by far the largest.
pub(crate) fn isolated<T, F: Future<Output = T>>(
    worker: &Worker,
    mut walk: Pin<&mut F>,
) -> impl Future<Output = Result<T, Cause>> {
    poll_fn(move |cx| {
        if worker.shared.stopped() {
            return Poll::Ready(Err(Cause::ShuttingDown));
        }
        let step = AssertUnwindSafe(|| {
            #[cfg(test)]
            tests::panic_if_armed(worker.shared.identity.id());
            walk.as_mut().poll(cx)
        });
        match catch_unwind(step) {
            Ok(polled) => polled.map(Ok),
            Err(_) => Poll::Ready(Err(Cause::ProxyInternalError)),
        }
    })
}
