//! The slow way to close: say that nothing more will come, then read and drop what the other side
//! still sends until it closes too.

use std::future::poll_fn;
use std::io;
use std::task::{Poll, ready};

use model::Moment;
use transport::Stream;

use crate::buffer::Buffer;
use crate::watchdog::Watchdog;

/// Of what nobody wants, this much is read; who sends more is cut off.
const DROPPED_BYTES_MAX: usize = 1024 * 1024;

/// Lingers until the other side has closed, has sent too much, or `until`.
pub(crate) async fn linger(
    stream: &Stream,
    buffer: &mut Buffer,
    watchdog: &mut Watchdog,
    until: Moment,
) {
    let mut left = DROPPED_BYTES_MAX;
    let mut said = false;
    let closing = poll_fn(|cx| {
        if !said {
            ready!(stream.poll_close_write(cx))?;
            said = true;
        }
        loop {
            buffer.consume(buffer.len());
            let count = ready!(buffer.poll_fill(stream, cx))?;
            if count == 0 || count > left {
                return Poll::Ready(io::Result::Ok(()));
            }
            left -= count;
        }
    });
    // Whatever came of it, the connection ends here.
    let _ = watchdog.until(until, closing).await;
}
