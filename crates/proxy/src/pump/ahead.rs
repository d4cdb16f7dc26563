//! Reads a body before a server has been chosen.

use std::task::{Context, Poll, ready};

use transport::Stream;

use super::{Copied, Pump, PumpError};
use crate::budget::Charge;
use crate::buffer::Buffer;
use crate::watchdog::Limits;

impl Pump {
    /// Reads the body, of at most `length` bytes, to its end or as far as `charge` covers it, and
    /// holds it until it is sent. Must be called before anything else.
    pub(crate) fn poll_read_ahead(
        &mut self,
        cx: &mut Context<'_>,
        (from, buffer): (&Stream, &mut Buffer),
        limits: &Limits,
        length: usize,
        charge: &mut Charge,
    ) -> Poll<Result<(), PumpError>> {
        if !self.unframed {
            self.unframed = true;
            self.sent_once = self.kept.is_none();
            self.kept_max = length;
        }
        loop {
            let kept = self.kept.get_or_insert_default();
            let needed = (kept.len() + buffer.len()).min(length);
            if !charge.make_room(kept, needed, length) {
                break;
            }
            let starved = self.gather(buffer)?;
            // All of it is kept, and follows the head once there is one.
            buffer.consume(self.run);
            self.run = 0;
            self.pending.clear();
            if self.ended {
                break;
            }
            if starved {
                ready!(self.poll_fill(cx, from, buffer, limits))?;
            }
        }
        self.unblock();
        limits.clear(self.patience.direction);
        Poll::Ready(Ok(()))
    }

    /// Makes it send `body`, once, and read nothing. Must be called before anything else.
    pub(crate) fn hold(&mut self, body: Vec<u8>) {
        self.bytes = body.len() as u64;
        self.kept_max = body.len();
        self.kept = Some(body);
        self.unframed = true;
        self.sent_once = true;
        self.ended = true;
    }

    /// Copies the body as it is read. Must be called before anything else.
    pub(crate) fn copy(&mut self, copied: Copied) {
        self.copied = Some(Box::new(copied));
    }

    /// Takes the copy of the whole body; `None`: there is none, or the body is not complete.
    pub(crate) fn take_copied(&mut self) -> Option<Copied> {
        let copied = self.copied.take()?;
        // The end of an HTTP/2 stream may come after the last byte.
        let is_whole = self.ended || self.bytes_said == Some(self.bytes);
        is_whole.then_some(*copied)
    }

    /// Returns whether the body has been read completely.
    pub(crate) fn has_read_all(&self) -> bool {
        self.ended && self.run == 0
    }

    /// Takes the bytes read, of a message that is not sent.
    pub(crate) fn take_kept(&mut self) -> Vec<u8> {
        self.kept.take().unwrap_or_default()
    }

    /// Frees the kept bytes: the message will not be sent again.
    pub(crate) fn keep_no_more(&mut self) {
        self.kept = None;
    }
}
