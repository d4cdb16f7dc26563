//! An HTTP/2 client connection. Each stream carries one request and is served like a connection
//! that carries one exchange.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use model::{Cause, Moment};
use transport::Stream;
use transport::http2::{Code, Http2Server, Incoming, Refusal, ServerSettings, Violation};

use crate::account;
use crate::buffer::Buffer;
use crate::client::{self, Client, LAST_QUIET_MAX};
use crate::failure::{self, Reason};
use crate::head::Origin;
use crate::lanes::{LaneInput, Lanes};
use crate::linger::{Patience, linger};
use crate::parking::Held;
use crate::requests;
use crate::roster::Phase;
use crate::turns::Ticket;
use crate::via::Via;
use crate::watchdog::Watchdog;
use crate::worker::Worker;

/// How long Weir keeps reading after the last stream from a client that acknowledges nothing: closing
/// with unread bytes would reset the connection and lose the last frames sent.
const LINGER_MAX: Duration = Duration::from_secs(2);
/// How long Weir keeps sending to a client and reading from it after the last stream at most.
const END_MAX: Duration = Duration::from_secs(30);
/// How long requests that cross with GOAWAY are served, if the client does not acknowledge that.
const CROSSING_MAX: Duration = Duration::from_secs(1);
/// A connection without streams for this long gives up the memory that it would need for the next.
const SHRINKS_AFTER: Duration = Duration::from_secs(1);
/// How often streams are polled in a turn at most: what is sent makes room for more.
const ROUNDS_MAX: usize = 16;

/// A connection being served.
struct Serving {
    worker: Rc<Worker>,
    /// Counts the connection.
    _held: Held,
    origin: Rc<Origin>,
    via: Via,
    connection: Http2Server,
    lanes: Lanes,
    stage: Stage,
    /// When the current turn began.
    now: Moment,
    /// When the last stream ended.
    idle_since: Moment,
    /// When to look at the connection again, whatever happens.
    due: Rc<Cell<Moment>>,
    /// When the frame or header block with this number must have arrived.
    frame_due: Option<(u32, Moment)>,
    /// Its place among the transfers that wait for a turn.
    ticket: Ticket,
    /// Memory that is not needed while idle has been freed.
    shrunk: bool,
    /// Bytes that the client had acknowledged when it was last checked.
    acknowledged: u64,
}

/// How far a connection is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The client's settings have not arrived.
    Greeting {
        until: Moment,
    },
    Open,
    /// GOAWAY was sent, because the connection was idle, or because the worker or the listener ends.
    /// Requests that cross with it are still served.
    Leaving {
        until: Moment,
    },
    /// Later requests are refused. `until`: how long the client may take to read what is left.
    Left {
        until: Moment,
    },
}

/// Serves the connection in a task of its own, which is smaller than one for HTTP/1.1: each stream
/// brings what its request needs. `client` may have read some bytes already.
pub(crate) fn begin(worker: &Rc<Worker>, mut client: Client, held: Held) {
    let listener = client.settings();
    let Some(http2) = listener.http2 else { return };
    let head_max_bytes = listener.head_max_bytes;
    let settings = ServerSettings { streams_max: http2.streams_max, head_max_bytes };
    let now = os::clock::now();
    let stage = Stage::Greeting { until: now + listener.timeouts.head };
    let before = client.buffer.to_vec();
    client.buffer.release();
    let Client { stream, origin, via, watchdog, .. } = client;
    let serving = Serving {
        worker: Rc::clone(worker),
        _held: held,
        origin,
        via,
        connection: Http2Server::new(stream, &before, settings),
        lanes: Lanes::default(),
        stage,
        now,
        idle_since: now,
        due: Rc::new(Cell::new(now)),
        frame_due: None,
        ticket: Ticket::default(),
        shrunk: false,
        acknowledged: 0,
    };
    tokio::task::spawn_local(serving.serve(watchdog));
}

impl Serving {
    /// Serves the connection to its end.
    async fn serve(mut self, mut watchdog: Watchdog) {
        let entry = self.worker.roster.enter().await;
        entry.set(Phase::Idle);
        self.run(&mut watchdog).await;
        // Allocated when it is needed.
        Box::pin(self.end(&mut watchdog)).await;
    }

    /// Serves streams until there will be no more: the client is done or idle for too long, or the
    /// listener is closing.
    async fn run(&mut self, watchdog: &mut Watchdog) {
        let due = Rc::clone(&self.due);
        loop {
            let turns = poll_fn(|cx| self.poll_turn(cx));
            if watchdog.until_due(|| due.get(), turns).await.is_some() || !self.goes_on() {
                return;
            }
        }
    }

    /// Receives, lets the streams work, sends. Ready when the connection has ended.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.now = os::clock::now();
        self.lanes.begin_turn(cx);
        self.connection.begin_turn(self.now);
        if self.is_last() {
            match self.stage {
                Stage::Open => self.leave(),
                Stage::Greeting { until } => {
                    self.stage = Stage::Greeting { until: until.min(self.now + CROSSING_MAX) };
                }
                Stage::Leaving { .. } | Stage::Left { .. } => {}
            }
        }
        client::follow(&self.worker, &mut self.via, &mut self.origin, self.connection.connection());
        let before = self.connection.sent_bytes();
        for _ in 0..ROUNDS_MAX {
            while let Poll::Ready(next) = self.connection.poll_next(cx) {
                match next {
                    Some(incoming) => self.takes(incoming),
                    None => return Poll::Ready(()),
                }
            }
            self.poll_lanes();
            let _ = self.connection.poll_flush(cx);
            let moved = self.connection.sent_bytes() - before;
            if !self.lanes.are_woken() || self.worker.buffers.turns.share(moved) == 0 {
                break;
            }
        }
        if matches!(self.stage, Stage::Greeting { .. }) && self.connection.is_established() {
            self.stage = Stage::Open;
        }
        if self.connection.has_left() {
            return Poll::Ready(());
        }
        self.watch_incomplete_frame();
        self.due.set(self.deadline());
        if self.lanes.end_turn() {
            self.worker.buffers.turns.wait(&mut self.ticket, cx);
        }
        Poll::Pending
    }

    fn poll_lanes(&mut self) {
        let before = self.lanes.busy();
        if self.lanes.poll() && before > 0 && self.lanes.busy() == 0 {
            self.idle_since = self.now;
            self.shrunk = false;
            if let Stage::Left { until } = &mut self.stage {
                *until = self.now + LINGER_MAX;
            }
        }
    }

    fn takes(&mut self, incoming: Incoming) {
        match incoming {
            Incoming::Request(stream) => {
                let (worker, origin, via) = (&self.worker, &self.origin, &self.via);
                self.lanes.begin(stream, |input| {
                    lane(Rc::clone(worker), (Rc::clone(origin), via.clone()), input)
                });
            }
            Incoming::Refused(refusal) => self.record_refusal(refusal),
            Incoming::Violation(violation) => self.record_violation(violation),
        }
    }

    /// Returns whether the connection must not wait for further requests.
    fn is_last(&self) -> bool {
        self.worker.shared.leaving() || self.via.live.is_closing()
    }

    fn leave(&mut self) {
        self.stage = Stage::Leaving { until: self.now + CROSSING_MAX };
        self.connection.go_away();
    }

    /// Starts the timeout of a frame or header block that has begun to arrive: that of a head.
    fn watch_incomplete_frame(&mut self) {
        let incomplete = self.connection.incomplete_frame();
        if self.frame_due.map(|(number, _)| number) != incomplete {
            let due = self.now + self.via.settings().timeouts.head;
            self.frame_due = incomplete.map(|number| (number, due));
        }
    }

    /// Returns when to look at the connection again.
    fn deadline(&self) -> Moment {
        let due = match self.stage {
            Stage::Greeting { until } | Stage::Leaving { until } => until,
            _ if self.lanes.busy() > 0 => self.now + self.idle_max(),
            Stage::Left { until } => until,
            _ if !self.shrunk => self.idle_since + self.idle_max().min(SHRINKS_AFTER),
            Stage::Open => self.idle_since + self.idle_max(),
        };
        self.frame_due.map_or(due, |(_, frame_due)| due.min(frame_due))
    }

    fn idle_max(&self) -> Duration {
        self.via.settings().timeouts.idle
    }

    /// Called when the deadline has passed. Returns whether the connection stays.
    fn goes_on(&mut self) -> bool {
        self.now = os::clock::now();
        if self.frame_due.is_some_and(|(_, due)| self.now >= due) {
            let rule = "a frame or a header block was not complete in time";
            self.connection.fail(Violation { code: Code::PROTOCOL_ERROR, rule });
            self.record_end(Reason { cause: Cause::HttpRequestTimeout, detail: rule });
            return false;
        }
        let is_busy = self.lanes.busy() > 0;
        let stage = self.stage;
        match stage {
            Stage::Leaving { .. } => {
                self.connection.go_away_finally();
                self.stage = Stage::Left { until: self.now + LINGER_MAX };
            }
            Stage::Open | Stage::Left { .. } if is_busy => {}
            Stage::Open if self.now < self.idle_since + self.idle_max() => {
                self.shrunk = true;
                self.progresses();
                self.lanes.trim();
                self.connection.shrink();
            }
            // All streams are answered but not fully sent: wait as long as the client acknowledges
            // data.
            Stage::Open if self.connection.has_unsent() && self.progresses() => {
                self.idle_since = self.now;
            }
            Stage::Left { .. } if self.connection.has_unsent() && self.progresses() => {
                self.stage = Stage::Left { until: self.now + LINGER_MAX };
            }
            Stage::Open => self.leave(),
            // A client whose settings did not arrive in time has sent no request.
            Stage::Greeting { .. } | Stage::Left { .. } => return false,
        }
        true
    }

    /// Returns whether the client has acknowledged more since the last call. Over a Unix socket, whose
    /// buffer is full as long as something is unsent, that is what could be sent.
    fn progresses(&mut self) -> bool {
        let info = self.connection.connection().tcp_info();
        let taken = info.map_or_else(|_| self.connection.sent_bytes(), |info| info.bytes_acked);
        taken > std::mem::replace(&mut self.acknowledged, taken)
    }

    /// Ends the streams that are left, sends the last frames, and closes.
    async fn end(&mut self, watchdog: &mut Watchdog) {
        // From here on each wake of a lane wakes this task.
        self.lanes.end_turn();
        self.progresses();
        let ends = os::clock::now() + END_MAX;
        loop {
            let last_words = poll_fn(|cx| {
                let sent = self.connection.poll_flush(cx);
                if self.poll_last_lanes().is_ready() { sent } else { Poll::Pending }
            });
            let now = os::clock::now();
            let sent = watchdog.until(now + LINGER_MAX, last_words).await;
            if sent.is_some() || now >= ends || !self.progresses() {
                break;
            }
        }
        self.linger(watchdog, ends).await;
        poll_fn(|_| self.poll_last_lanes()).await;
    }

    /// Waits for the client to close, as long as it takes what the kernel holds for it.
    async fn linger(&mut self, watchdog: &mut Watchdog, ends: Moment) {
        let mut buffer = Buffer::new(Rc::clone(&self.worker.buffers));
        loop {
            let now = os::clock::now();
            let until = now + LINGER_MAX;
            let quiet_max = if self.is_last() { LAST_QUIET_MAX } else { LINGER_MAX };
            let patience = Patience { until, quiet_max, bytes_max: u64::MAX };
            let connection = self.connection.connection();
            let is_silent = linger(connection, &mut buffer, watchdog, patience).await;
            if !is_silent || now >= ends || !self.progresses() {
                return;
            }
        }
    }

    /// Lets the streams see that the connection has ended, so that their requests are recorded.
    fn poll_last_lanes(&mut self) -> Poll<()> {
        self.lanes.poll();
        if self.lanes.busy() == 0 { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Records a request that was refused before it was complete.
    fn record_refusal(&self, refusal: Refusal) {
        let (cause, status, detail) = match refusal {
            Refusal::Malformed(rule) => (Cause::Http2ProtocolError, 0, rule),
            Refusal::HeadTooLarge => {
                (Cause::HttpRequestHeadTooLarge, Cause::HttpRequestHeadTooLarge.status(), "")
            }
            Refusal::TooManyStreams => (Cause::Http2StreamsExceeded, 0, ""),
        };
        let reason = Reason { cause, detail };
        account::refused_stream(&self.worker, &self.via, self.origin.peer, (reason, status));
    }

    /// Records that Weir has ended the connection because of its client.
    fn record_violation(&self, violation: Violation) {
        self.record_end(failure::of_violation(violation));
    }

    fn record_end(&self, reason: Reason) {
        account::ended_before_exchange(&self.worker, &self.via, self.origin.peer, reason);
    }
}

/// Serves one stream after another.
async fn lane(worker: Rc<Worker>, (mut origin, mut via): (Rc<Origin>, Via), input: Rc<LaneInput>) {
    let mut entry = worker.roster.enter().await;
    let mut watchdog = Watchdog::new();
    loop {
        entry.set(Phase::Idle);
        let stream: Stream = input.next().await;
        entry.set(Phase::Busy);
        let mut client = Client::of_stream(&worker, stream, (origin, via), entry, watchdog);
        // Dropping the stream then resets what is not complete.
        pin!(requests::serve_one(&worker, &mut client)).await;
        Client { origin, via, entry, watchdog, .. } = client;
    }
}
