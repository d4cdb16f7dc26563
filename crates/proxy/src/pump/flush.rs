//! Writes pending body bytes to the other connection.

use std::io::{self, ErrorKind, IoSlice};
use std::task::{Context, Poll, ready};

use transport::Stream;

use super::framing::Framing;
use super::{Blocked, Pump};
use crate::buffer::Buffer;

impl Pump {
    /// Returns whether the stream ends with what is pending and the run.
    fn is_last(&self) -> bool {
        self.ended && self.framing == Framing::Stream && self.trailers().is_empty()
    }

    /// Writes what is pending, then the run, then signals the end of a stream.
    pub(super) fn poll_flush(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut Buffer,
        to: &Stream,
    ) -> Poll<io::Result<()>> {
        while self.run > 0 || !self.pending.is_empty() {
            let had_run = self.run > 0;
            let last = self.is_last();
            let pending = &self.pending[self.pending_sent..];
            let sent = match (pending.is_empty(), self.run) {
                (false, 0) if last => ready!(to.poll_write_last(cx, pending))?,
                (true, run) if last => ready!(to.poll_write_last(cx, &buffer[..run]))?,
                (false, 0) => ready!(to.poll_write(cx, pending))?,
                (true, run) => ready!(to.poll_write(cx, &buffer[..run]))?,
                (false, run) => {
                    let parts = [IoSlice::new(pending), IoSlice::new(&buffer[..run])];
                    ready!(to.poll_write_vectored(cx, &parts))?
                }
            };
            if sent == 0 {
                return Poll::Ready(Err(ErrorKind::WriteZero.into()));
            }
            self.blocked = Blocked::No;
            self.sent(sent, buffer);
            self.finished = last && self.run == 0 && self.pending.is_empty();
            if had_run && self.run == 0 && !self.ended {
                // What ends this chunk is sent together with what comes next.
                break;
            }
        }
        if self.ended && !self.finished && self.framing == Framing::Stream && self.run == 0 {
            to.finish(&self.trailers_to_send())?;
            self.finished = true;
            self.has_sent = true;
        }
        Poll::Ready(Ok(()))
    }

    fn sent(&mut self, sent: usize, buffer: &mut Buffer) {
        self.has_sent = true;
        self.turn_bytes += sent as u64;
        let of_pending = sent.min(self.pending.len() - self.pending_sent);
        self.pending_sent += of_pending;
        if self.pending_sent == self.pending.len() {
            self.pending.clear();
            self.pending_sent = 0;
        }
        let of_run = sent - of_pending;
        if of_run > 0 {
            buffer.consume(of_run);
            self.run -= of_run;
            if self.run == 0 && self.framing == Framing::Chunked {
                self.pending.extend_from_slice(b"\r\n");
                if self.ended {
                    self.end_framing();
                }
            }
        }
    }
}
