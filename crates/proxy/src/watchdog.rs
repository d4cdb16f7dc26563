//! Timeouts of an exchange at next to no cost: the limits are cells that its two directions set as
//! they go; one timer per connection wakes it, and is moved only when it must fire earlier or has
//! fired too early.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use model::{Cause, Moment};
use tokio::time::{Instant, Sleep};

/// The part of an exchange that a limit covers.
#[derive(Clone, Copy)]
pub(crate) enum Direction {
    /// Client to server.
    Up = 0,
    /// Server to client.
    Down = 1,
    /// The exchange as a whole.
    Whole = 2,
}

/// The current limits, one per direction, each with the cause reported when it passes.
#[derive(Default)]
pub(crate) struct Limits {
    ends: [Cell<Option<(Moment, Cause)>>; 3],
    poll_again: Cell<Option<Moment>>,
}

impl Limits {
    /// Sets a direction's limit.
    pub(crate) fn set(&self, direction: Direction, at: Moment, cause: Cause) {
        self.ends[direction as usize].set(Some((at, cause)));
    }

    /// Clears a direction's limit.
    pub(crate) fn clear(&self, direction: Direction) {
        self.ends[direction as usize].set(None);
    }

    /// Schedules another poll at this moment, unless the work ends before.
    pub(crate) fn poll_again_at(&self, at: Moment) {
        self.poll_again.set(Some(at));
    }

    /// Cancels the scheduled poll.
    pub(crate) fn clear_poll_again(&self) {
        self.poll_again.set(None);
    }

    /// Returns what is due first, with the cause reported then.
    fn next(&self) -> Option<(Moment, Option<Cause>)> {
        let ends = self.ends.iter().filter_map(Cell::get).map(|(at, cause)| (at, Some(cause)));
        ends.chain(self.poll_again.get().map(|at| (at, None))).min_by_key(|(at, _)| *at)
    }
}

/// The first wait of a connection is interrupted once after this long: work skipped in the hope of
/// a quick response, such as watching for a client that leaves, is done then.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A connection's one timer.
pub(crate) struct Watchdog {
    /// Created at the first wait; most requests never wait long enough to move it.
    timer: Option<(Pin<Box<Sleep>>, Moment)>,
}

impl Watchdog {
    pub(crate) fn new() -> Watchdog {
        Watchdog { timer: None }
    }

    /// Returns whether the next guarded wait will be interrupted once, soon: the first is.
    pub(crate) fn will_look_again(&self) -> bool {
        self.timer.is_none()
    }

    /// Runs `work` until it ends or one of `limits` passes, which returns that limit's cause.
    ///
    /// Not an `async fn`: one would hold its future twice, as its argument and pinned, and every
    /// task that serves a connection would grow by that much.
    pub(crate) fn guard<T, E: From<Cause>>(
        &mut self,
        limits: &Limits,
        work: impl Future<Output = Result<T, E>> + Unpin,
    ) -> impl Future<Output = Result<T, E>> {
        self.guard_from(false, limits, work)
    }

    /// As [`Watchdog::guard`], for work that goes on: what can be done without waiting is done even
    /// if no time is left.
    pub(crate) fn guard_rest<T, E: From<Cause>>(
        &mut self,
        limits: &Limits,
        work: impl Future<Output = Result<T, E>> + Unpin,
    ) -> impl Future<Output = Result<T, E>> {
        self.guard_from(true, limits, work)
    }

    fn guard_from<T, E: From<Cause>>(
        &mut self,
        mut has_begun: bool,
        limits: &Limits,
        mut work: impl Future<Output = Result<T, E>> + Unpin,
    ) -> impl Future<Output = Result<T, E>> {
        poll_fn(move |cx| {
            if !std::mem::replace(&mut has_begun, true)
                && let Some((at, cause)) = limits.ends[Direction::Whole as usize].get()
                && os::clock::now() >= at
            {
                // Nothing is started when no time is left.
                return Poll::Ready(Err(cause.into()));
            }
            loop {
                if let Poll::Ready(result) = Pin::new(&mut work).poll(cx) {
                    return Poll::Ready(result);
                }
                let Some((at, cause)) = limits.next() else { return Poll::Pending };
                match self.poll_timer(at, cx) {
                    Fired::No => return Poll::Pending,
                    Fired::Early => {}
                    Fired::Due => match cause {
                        Some(cause) => return Poll::Ready(Err(cause.into())),
                        None => limits.clear_poll_again(),
                    },
                }
            }
        })
    }

    /// Runs `work` until it ends, or returns `None` once `at` has passed.
    pub(crate) fn until<T>(
        &mut self,
        at: Moment,
        work: impl Future<Output = T> + Unpin,
    ) -> impl Future<Output = Option<T>> {
        self.until_due(move || at, work)
    }

    /// Runs `work` until it ends, or returns `None` once the moment that `due` returns has passed.
    pub(crate) fn until_due<T>(
        &mut self,
        due: impl Fn() -> Moment,
        mut work: impl Future<Output = T> + Unpin,
    ) -> impl Future<Output = Option<T>> {
        poll_fn(move |cx| {
            loop {
                if let Poll::Ready(result) = Pin::new(&mut work).poll(cx) {
                    return Poll::Ready(Some(result));
                }
                match self.poll_timer(due(), cx) {
                    Fired::No => return Poll::Pending,
                    Fired::Early => {}
                    Fired::Due => return Poll::Ready(None),
                }
            }
        })
    }

    /// Returns whether `at` has passed; if not, the task is woken no later than that.
    fn poll_timer(&mut self, at: Moment, cx: &mut Context<'_>) -> Fired {
        let (timer, armed) = self.timer.get_or_insert_with(|| {
            let first = at.min(os::clock::now() + LOOK_AGAIN);
            (Box::pin(tokio::time::sleep_until(instant_of(first))), first)
        });
        if at < *armed {
            timer.as_mut().reset(instant_of(at));
            *armed = at;
        }
        if timer.as_mut().poll(cx).is_pending() {
            return Fired::No;
        }
        if os::clock::now() >= at {
            return Fired::Due;
        }
        // It fired for the extra poll, or for a limit that has moved since.
        timer.as_mut().reset(instant_of(at));
        *armed = at;
        Fired::Early
    }
}

/// What a connection's timer has done.
enum Fired {
    No,
    /// Before the limit: the work may be polled again.
    Early,
    Due,
}

/// The runtime's timer counts whole milliseconds; rounding up keeps a limit from firing early.
fn instant_of(at: Moment) -> Instant {
    Instant::now() + at.since(os::clock::now()) + Duration::from_micros(500)
}
