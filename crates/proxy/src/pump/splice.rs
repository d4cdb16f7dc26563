//! Splicing: a body that is forwarded unchanged is moved inside the kernel. Requires that neither
//! side uses TLS and that a length delimits it.

use std::task::{Context, Poll};

use transport::Stream;

use super::{Blocked, Framing, Pump, PumpError, Source};
use crate::buffer::Buffer;
use crate::watchdog::Limits;

/// Remaining body length from which on a pipe costs less than copying: two calls for each run of
/// bytes, as for a copy, and one more that finds the socket empty.
const SPLICED_BYTES_MIN: u64 = 24 * 1024;

impl Pump {
    /// Returns whether the rest of the body can go through a pipe. Call when none of it is
    /// buffered.
    pub(super) fn may_splice(&self, from: &Stream, to: &Stream) -> bool {
        let Source::Length(left) = self.source else { return false };
        left >= SPLICED_BYTES_MIN
            && self.framing == Framing::Raw
            && self.kept.is_none()
            && !self.copied.as_ref().is_some_and(|copied| copied.is_some())
            && self.filter.is_none()
            // A body that is too large is left to the copying path to refuse.
            && self.bytes.saturating_add(left) <= self.bytes_max
            && from.can_splice()
            && to.can_splice()
    }

    /// Moves what the pipe can carry. Ready when no pipe is in use (any more): the body is
    /// complete, or the rest is copied. The turn began with `before` bytes.
    pub(super) fn poll_splice(
        &mut self,
        cx: &mut Context<'_>,
        (from, to): (&Stream, &Stream),
        buffer: &Buffer,
        limits: &Limits,
        before: u64,
    ) -> Poll<Result<(), PumpError>> {
        while let Some(lent) = &mut self.pipe {
            let Source::Length(left) = &mut self.source else { return Poll::Ready(Ok(())) };
            if !lent.pipe.is_empty() {
                match to.poll_splice_out(cx, &mut lent.pipe, false) {
                    Poll::Pending => {
                        self.wait(Blocked::OnWrite, limits);
                        return Poll::Pending;
                    }
                    Poll::Ready(Err(e)) => return Poll::Ready(Err(PumpError::write(e))),
                    Poll::Ready(Ok(sent)) => self.turn_bytes += sent as u64,
                }
            } else if *left == 0 {
                if let Some(lent) = self.pipe.take() {
                    lent.give_back();
                }
            } else {
                let share = buffer.turns().share(self.turn_bytes - before);
                if share == 0 {
                    return self.wait_for_turn(cx, buffer, limits);
                }
                let max = usize::try_from(share.min(*left)).unwrap_or(usize::MAX);
                match from.poll_splice_in(cx, &mut lent.pipe, max) {
                    Poll::Pending => {
                        self.wait(Blocked::OnRead, limits);
                        return Poll::Pending;
                    }
                    Poll::Ready(Err(e)) => return Poll::Ready(Err(PumpError::read(e))),
                    Poll::Ready(Ok(0)) => return Poll::Ready(Err(PumpError::Incomplete)),
                    Poll::Ready(Ok(taken)) => {
                        *left -= taken as u64;
                        self.bytes += taken as u64;
                    }
                }
            }
            self.unblock();
        }
        Poll::Ready(Ok(()))
    }
}
