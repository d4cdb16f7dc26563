//! A body that is read before there is anybody to send it to.

use std::task::{Context, Poll, ready};

use transport::Stream;

use super::{Pump, PumpError};
use crate::buffer::Buffer;
use crate::request_buffers::Charge;
use crate::watchdog::Limits;

impl Pump {
    /// Reads the body to its end, or as far as `charge` covers, and keeps it until it is sent. To be
    /// called before anything else, with [`Pump::keep`] set to hold all of it.
    pub(crate) fn poll_read_ahead(
        &mut self,
        cx: &mut Context<'_>,
        from: &Stream,
        buffer: &mut Buffer,
        limits: &Limits,
        charge: &mut Charge,
    ) -> Poll<Result<(), PumpError>> {
        self.is_ahead = true;
        loop {
            let kept = self.kept.get_or_insert_default();
            let needed = (kept.len() + buffer.len()).min(self.kept_max);
            if needed > kept.capacity() {
                let room = needed.max(kept.capacity() * 2).min(self.kept_max);
                if !charge.covers(room as u64) {
                    break;
                }
                kept.reserve_exact(room - kept.len());
            }
            let starved = self.gather(buffer)?;
            // All of it is kept, and goes behind the head when there is one.
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

    /// Whether the body has been read to its end, and nothing of it is left with the sender.
    pub(crate) fn has_read_all(&self) -> bool {
        self.ended && self.run == 0
    }

    /// It will not be sent again: nothing is kept any more.
    pub(crate) fn keep_no_more(&mut self) {
        self.kept = None;
    }
}
