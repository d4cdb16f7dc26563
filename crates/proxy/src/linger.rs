//! Lingering close: shut down the sending side, then read and discard what the peer still sends
//! until it closes too.

use std::future::poll_fn;
use std::time::Duration;

use model::Moment;
use transport::Stream;

use crate::buffer::Buffer;
use crate::watchdog::Watchdog;

/// Limits of a lingering close.
pub(crate) struct Patience {
    /// Overall deadline.
    pub(crate) until: Moment,
    /// Maximum silence of the peer.
    pub(crate) quiet_max: Duration,
    /// Maximum number of discarded bytes.
    pub(crate) bytes_max: u64,
}

/// Lingers until the peer has closed or a limit is reached. Returns whether it was silent for too
/// long: it may still be receiving.
pub(crate) async fn linger(
    stream: &Stream,
    buffer: &mut Buffer,
    watchdog: &mut Watchdog,
    patience: Patience,
) -> bool {
    let Patience { until, quiet_max, bytes_max } = patience;
    let closed = watchdog.until(until, poll_fn(|cx| stream.poll_close_write(cx))).await;
    match closed {
        Some(Ok(())) => {}
        Some(Err(_)) => return false,
        None => return true,
    }
    let mut left = bytes_max;
    // Checked here, too: a peer that always has something to read keeps the timer from being asked.
    while os::clock::now() < until {
        buffer.consume(buffer.len());
        let quiet_until = until.min(os::clock::now() + quiet_max);
        match watchdog.until(quiet_until, poll_fn(|cx| buffer.poll_fill(stream, cx))).await {
            Some(Ok(count)) if count > 0 && count as u64 <= left => left -= count as u64,
            Some(_) => return false,
            None => return true,
        }
    }
    true
}
