//! One HTTP/2 stream: a request and its response, presented as bytes.

use std::io::{self, ErrorKind, IoSlice};
use std::rc::Rc;
use std::sync::LazyLock;
use std::task::{Context, Poll, ready};

use http2::StreamKey;
use memchr::memmem::Finder;
use tokio::io::ReadBuf;

use super::StreamError;
use super::link::{Link, State};
use crate::Stream;

/// Maximum length of an incomplete head: heads written here were read within limits, and extended
/// by configured fields.
const HEAD_MAX_BYTES: usize = 1024 * 1024;

/// Finds the empty line after a head.
static HEAD_END: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\r\n\r\n"));

/// A stream of either role. Dropping it before its end resets the stream, so that the peer does not
/// take any of it for complete.
pub(crate) struct Exchange {
    link: Rc<Link>,
    key: StreamKey,
}

impl Exchange {
    pub(super) fn new(link: Rc<Link>, key: StreamKey) -> Exchange {
        Exchange { link, key }
    }

    /// Returns the underlying connection.
    pub(crate) fn connection(&self) -> &Stream {
        &self.link.socket
    }

    /// Reads head text, then body; an empty read is the end of the stream.
    pub(crate) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let state = &mut *self.link.state();
        let slot = state.slot(self.key);
        ready!(slot.poll_unread(cx))?;
        let content = slot.received.read(buf);
        if content > 0 {
            state.engine.consumed(self.key, content, state.now);
            state.sends();
        }
        Poll::Ready(Ok(()))
    }

    /// Ready when a read would not block.
    pub(crate) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.link.state().slot(self.key).poll_unread(cx).map_err(io::Error::from)
    }

    /// Writes head text or, once the final head is complete, body; returns how much was taken.
    pub(crate) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.write(cx, bytes, false)
    }

    /// Like `poll_write`; if all of these bytes are taken, the stream ends.
    pub(crate) fn poll_write_last(
        &self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write(cx, bytes, true)
    }

    /// Writes from the first non-empty slice only: each write is a frame anyway.
    pub(crate) fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = slices.iter().find(|slice| !slice.is_empty());
        self.write(cx, first.map_or(&[], |slice| slice), false)
    }

    fn write(&self, cx: &mut Context<'_>, bytes: &[u8], last: bool) -> Poll<io::Result<usize>> {
        let state = &mut *self.link.state();
        if let Some(why) = state.slot(self.key).failed {
            return Poll::Ready(Err(why.into()));
        }
        let of_head = if state.engine.awaits_head(self.key) {
            write_head(state, self.key, bytes, last)?
        } else {
            0
        };
        let body = &bytes[of_head..];
        let written = match body {
            [] => Poll::Ready(Ok(0)),
            _ => poll_write_body(state, self.key, cx, body, last),
        };
        state.sends();
        match written {
            Poll::Ready(Ok(taken)) => Poll::Ready(Ok(of_head + taken)),
            // If it is an error, it will be returned again.
            _ if of_head > 0 => Poll::Ready(Ok(of_head)),
            other => other,
        }
    }

    /// Ends the sending side with these trailer lines.
    pub(crate) fn finish(&self, trailers: &[u8]) -> io::Result<()> {
        let state = &mut *self.link.state();
        let slot = state.slot(self.key);
        if slot.sent {
            return Ok(());
        }
        if let Some(why) = slot.failed {
            return Err(why.into());
        }
        let sent = if trailers.is_empty() {
            state.engine.send_data(self.key, &[], true, state.now).map(|_| ())
        } else {
            state.engine.send_trailers(self.key, trailers)
        };
        sent.map_err(StreamError::from)?;
        state.slot(self.key).sent = true;
        state.sends();
        Ok(())
    }

    /// Ends the sending side; an exchange that has not reached its body has nothing to end.
    pub(crate) fn poll_close_write(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.link.state().engine.awaits_head(self.key) {
            return Poll::Ready(Ok(()));
        }
        Poll::Ready(self.finish(&[]))
    }

    /// Returns whether data or the end has arrived, or an error.
    pub(crate) fn closed_or_readable_hint(&self) -> bool {
        let state = &mut *self.link.state();
        let slot = state.slot(self.key);
        slot.is_readable() || slot.failed.is_some()
    }

    /// Returns whether nothing more will arrive, including trailers.
    pub(crate) fn is_ended(&self) -> bool {
        self.link.state().slot(self.key).is_over()
    }

    /// Returns the trailer lines that followed the body, once it was read to its end.
    pub(crate) fn take_trailers(&self) -> Vec<u8> {
        std::mem::take(&mut self.link.state().slot(self.key).trailers)
    }

    /// Ready when the stream has ended early, with the reason.
    pub(crate) fn poll_abandoned(&self, cx: &mut Context<'_>) -> Poll<StreamError> {
        let state = &mut *self.link.state();
        let slot = state.slot(self.key);
        if let Some(why) = slot.failed {
            return Poll::Ready(why);
        }
        slot.reader.wait(cx);
        Poll::Pending
    }

    /// Returns why the stream has ended early.
    pub(crate) fn abandoned(&self) -> Option<StreamError> {
        self.link.state().slot(self.key).failed
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.link.state().release(self.key);
    }
}

/// Takes the bytes that belong to the head, and sends it when it is complete and it is known
/// whether a body follows; returns how many.
fn write_head(state: &mut State, key: StreamKey, bytes: &[u8], last: bool) -> io::Result<usize> {
    let mut head = std::mem::take(&mut state.slot(key).head);
    let before = head.len();
    if before == 0
        && let Some(end) = HEAD_END.find(bytes)
    {
        send_head(state, key, &bytes[..end + 4], last && end + 4 == bytes.len())?;
        return Ok(end + 4);
    }
    // The empty line may be split over two writes.
    let from = before.saturating_sub(3);
    head.extend_from_slice(bytes);
    let Some(end) = HEAD_END.find(&head[from..]) else {
        if head.len() > HEAD_MAX_BYTES {
            return Err(ErrorKind::InvalidData.into());
        }
        state.slot(key).head = head;
        return Ok(bytes.len());
    };
    let end = from + end + 4;
    let taken = end - before;
    send_head(state, key, &head[..end], last && taken == bytes.len())?;
    Ok(taken)
}

fn send_head(state: &mut State, key: StreamKey, text: &[u8], ends: bool) -> io::Result<()> {
    let sent = state.engine.send_head(key, text, ends).map_err(StreamError::from);
    let is_final = !state.engine.awaits_head(key);
    let slot = state.slot(key);
    match sent {
        Ok(()) => slot.sent = ends && is_final,
        // There will be no response.
        Err(why) => slot.fail(why),
    }
    Ok(sent?)
}

fn poll_write_body(
    state: &mut State,
    key: StreamKey,
    cx: &mut Context<'_>,
    body: &[u8],
    last: bool,
) -> Poll<io::Result<usize>> {
    let count = state.engine.send_data(key, body, last, state.now).map_err(StreamError::from)?;
    let slot = state.slot(key);
    if count == 0 {
        slot.writer.wait(cx);
        return Poll::Pending;
    }
    slot.sent = last && count == body.len();
    if slot.promised > 0 {
        let kept = slot.promised.min(i64::from(count as u32));
        slot.promised -= kept;
        state.promised -= kept;
    }
    Poll::Ready(Ok(count))
}
