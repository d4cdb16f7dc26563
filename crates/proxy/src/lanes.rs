//! Serves the streams of an HTTP/2 connection side by side, in the connection's own task.
//!
//! A task for each stream would allocate and move its state for each request. A lane is a future
//! that serves one stream after another, and there are as many as streams have been open at once.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Release};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use tokio::task::coop;
use transport::Stream;

/// The lanes of a connection.
#[derive(Default)]
pub(crate) struct Lanes {
    all: Vec<Lane>,
    free: Vec<usize>,
    queue: Arc<Queue>,
    /// The lanes being polled; kept for its storage.
    turn: Vec<usize>,
}

struct Lane {
    future: Pin<Box<dyn Future<Output = ()>>>,
    input: Rc<LaneInput>,
    call: Arc<Call>,
    waker: Waker,
}

/// Where a lane gets its streams.
#[derive(Default)]
pub(crate) struct LaneInput {
    next: Cell<Option<Stream>>,
    busy: Cell<bool>,
}

/// The lanes that are to be polled.
#[derive(Default)]
struct Queue {
    /// The connection's task, from its first turn on.
    task: OnceLock<Waker>,
    woken: Mutex<Woken>,
}

#[derive(Default)]
struct Woken {
    lanes: Vec<usize>,
    /// The connection's task is polling lanes: it looks at the queue before it waits.
    running: bool,
}

/// The waker of a lane.
struct Call {
    lane: usize,
    queued: AtomicBool,
    queue: Arc<Queue>,
}

impl LaneInput {
    /// Waits for a stream; the lane is free until then.
    pub(crate) async fn next(&self) -> Stream {
        poll_fn(|_| {
            let next = self.next.take();
            self.busy.set(next.is_some());
            next.map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

impl Lanes {
    /// Gives a stream to a free lane, or to a new one made by `lane`.
    pub(crate) fn begin<F>(&mut self, stream: Stream, lane: impl FnOnce(Rc<LaneInput>) -> F)
    where
        F: Future<Output = ()> + 'static,
    {
        let at = self.free.pop().unwrap_or_else(|| {
            let at = self.all.len();
            let input = Rc::<LaneInput>::default();
            let future = Box::pin(lane(Rc::clone(&input)));
            let queue = Arc::clone(&self.queue);
            let call = Arc::new(Call { lane: at, queued: AtomicBool::new(false), queue });
            let waker = Waker::from(Arc::clone(&call));
            self.all.push(Lane { future, input, call, waker });
            at
        });
        let lane = &self.all[at];
        lane.input.next.set(Some(stream));
        lane.input.busy.set(true);
        lane.waker.wake_by_ref();
    }

    /// Returns the number of streams being served.
    pub(crate) fn busy(&self) -> usize {
        self.all.len() - self.free.len()
    }

    /// Marks the connection's task as running, until [`Lanes::end_turn`].
    pub(crate) fn begin_turn(&self, cx: &Context<'_>) {
        // A task keeps its waker for life.
        self.queue.task.get_or_init(|| cx.waker().clone());
        self.queue.woken().running = true;
    }

    /// Returns whether any lane is to be polled.
    pub(crate) fn are_woken(&self) -> bool {
        !self.queue.woken().lanes.is_empty()
    }

    /// Marks the connection's task as waiting. Returns whether any lane is to be polled first.
    pub(crate) fn end_turn(&self) -> bool {
        let mut woken = self.queue.woken();
        woken.running = false;
        !woken.lanes.is_empty()
    }

    /// Polls each lane that was woken, once. Returns whether there was any.
    pub(crate) fn poll(&mut self) -> bool {
        std::mem::swap(&mut self.queue.woken().lanes, &mut self.turn);
        let any = !self.turn.is_empty();
        os::clock::held(|| self.poll_turn());
        any
    }

    fn poll_turn(&mut self) {
        for at in self.turn.drain(..) {
            // Lanes may have been dropped since they were woken.
            let Some(Lane { future, input, call, waker }) = self.all.get_mut(at) else { continue };
            call.queued.store(false, Release);
            let was_busy = input.busy.get();
            // The scheduler's budget is that of the connection: each lane's work is bounded by the
            // windows and the output of its stream.
            let polled = coop::unconstrained(future.as_mut());
            let _ = std::pin::pin!(polled).poll(&mut Context::from_waker(waker));
            if was_busy && !input.busy.get() {
                self.free.push(at);
            }
        }
    }

    /// Drops all lanes if none is busy.
    pub(crate) fn trim(&mut self) {
        if self.busy() == 0 {
            self.all = Vec::new();
            self.free = Vec::new();
            self.turn = Vec::new();
        }
    }
}

impl Queue {
    fn woken(&self) -> MutexGuard<'_, Woken> {
        // Nothing that could panic runs under the lock.
        self.woken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Call {
    fn wake(self: Arc<Call>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Call>) {
        if self.queued.swap(true, AcqRel) {
            return;
        }
        let running = {
            let mut woken = self.queue.woken();
            woken.lanes.push(self.lane);
            woken.running
        };
        if !running && let Some(task) = self.queue.task.get() {
            task.wake_by_ref();
        }
    }
}
