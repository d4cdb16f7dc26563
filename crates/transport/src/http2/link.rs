//! A connection: its socket, its protocol engine, and what its streams have received.

use std::cell::{RefCell, RefMut};
use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice};
use std::task::{Context, Poll, ready};

use http2::{Config, Connection, Event, Refusal, Role, Scratch, StreamKey};
use model::Moment;
use tokio::io::ReadBuf;

use super::StreamError;
use super::slot::{HELD_MAX_BYTES, Slot, Waiter, held_bytes};
use crate::Stream;

/// Size of one read: four of the largest frames.
const READ_BYTES: usize = 64 * 1024;

/// Buffers that all connections of a thread share: they are only used while one receives.
struct Buffers {
    read: Box<[u8]>,
    scratch: Scratch,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::new(Buffers {
        read: vec![0; READ_BYTES].into_boxed_slice(),
        scratch: Scratch::default(),
    });
}

/// A connection.
pub(super) struct Link {
    pub(super) socket: Stream,
    state: RefCell<State>,
}

/// What has happened and concerns the task of the connection.
pub(super) enum Notice {
    /// A request arrived on a new stream.
    Request(StreamKey),
    Refused(Refusal),
}

/// The state of a connection.
pub(super) struct State {
    pub(super) engine: Connection,
    /// By the slots of the engine's streams.
    slots: Vec<Slot>,
    /// What the task that serves a client has not been told yet.
    pub(super) notices: VecDeque<Notice>,
    /// Why nothing more will be received.
    pub(super) ended: Option<StreamError>,
    /// Nothing more can be sent.
    broken: bool,
    /// The task that receives and sends. It waits only if no output is pending.
    task: Waiter,
    /// What is reserved of the send window for bodies that have begun, in bytes.
    pub(super) promised: i64,
    /// Bytes handed to the socket so far.
    pub(super) sent_bytes: u64,
    /// When the task ran last.
    pub(super) now: Moment,
}

impl Link {
    pub(super) fn new(socket: Stream, role: Role, config: Config) -> Link {
        let now = os::clock::now();
        let state = State {
            engine: Connection::new(role, config, now),
            slots: Vec::new(),
            notices: VecDeque::new(),
            ended: None,
            broken: false,
            task: Waiter::default(),
            promised: 0,
            sent_bytes: 0,
            now,
        };
        Link { socket, state: RefCell::new(state) }
    }

    pub(super) fn state(&self) -> RefMut<'_, State> {
        // Every borrow ends within its own call, and none of those calls re-enters.
        self.state.borrow_mut()
    }

    /// Processes bytes that were read from the socket before.
    pub(super) fn receive(&self, bytes: &[u8]) {
        BUFFERS.with_borrow_mut(|buffers| self.state().receive(bytes, &mut buffers.scratch));
    }

    /// Reads once and processes what came. Ready when there may be more, or nothing ever.
    pub(super) fn poll_receive(&self, cx: &mut Context<'_>) -> Poll<()> {
        BUFFERS.with_borrow_mut(|Buffers { read, scratch }| {
            let mut buf = ReadBuf::new(read);
            let result = ready!(self.socket.poll_read(cx, &mut buf));
            let mut state = self.state();
            match result {
                Ok(()) if !buf.filled().is_empty() => state.receive(buf.filled(), scratch),
                Ok(()) => state.breaks(ErrorKind::UnexpectedEof),
                Err(error) => state.breaks(error.kind()),
            }
            Poll::Ready(())
        })
    }

    /// Sends what there is. Ready when nothing is left; the task is woken when more is.
    pub(super) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<()> {
        let state = &mut *self.state();
        loop {
            state.wake_writers();
            if state.broken || !state.engine.has_output() {
                state.task.wait(cx);
                return Poll::Ready(());
            }
            let slices = state.engine.output().map(IoSlice::new);
            let mut used = slices.iter().filter(|slice| !slice.is_empty());
            let written = match (used.next(), used.next()) {
                (Some(only), None) => self.socket.poll_write(cx, only),
                _ => self.socket.poll_write_vectored(cx, &slices),
            };
            match written {
                Poll::Ready(Ok(count)) => {
                    state.engine.sent(count);
                    state.sent_bytes += count as u64;
                }
                Poll::Ready(Err(error)) => state.breaks(error.kind()),
                Poll::Pending => {
                    if self.socket.tls().is_some() {
                        state.engine.commit_output();
                    }
                    return Poll::Pending;
                }
            }
        }
    }
}

impl State {
    /// Returns the slot of a stream.
    pub(super) fn slot(&mut self, key: StreamKey) -> &mut Slot {
        let at = key.slot();
        if self.slots.len() <= at {
            self.slots.resize_with(at + 1, Slot::default);
        }
        &mut self.slots[at]
    }

    fn receive(&mut self, mut input: &[u8], scratch: &mut Scratch) {
        if held_bytes() > HELD_MAX_BYTES {
            self.engine.shrink_windows(self.now);
        }
        loop {
            let (count, event) = self.engine.receive(input, scratch, self.now);
            input = &input[count..];
            let Some(event) = event else { return };
            self.happened(event, scratch);
        }
    }

    fn happened(&mut self, event: Event<'_>, scratch: &Scratch) {
        match event {
            Event::Request { stream, ended } => {
                let slot = self.slot(stream);
                slot.received.put_head(scratch.text());
                slot.ended = ended;
                self.notices.push_back(Notice::Request(stream));
            }
            Event::Response { stream, ended } => {
                let slot = self.slot(stream);
                slot.received.put_head(scratch.text());
                slot.ended = ended;
                slot.reader.wake();
            }
            Event::Data { stream, data, ended } => {
                let slot = self.slot(stream);
                slot.received.put(data);
                slot.ended = ended;
                slot.reader.wake();
            }
            Event::Trailers { stream } => {
                let slot = self.slot(stream);
                slot.trailers.extend_from_slice(scratch.text());
                slot.ended = true;
                slot.reader.wake();
            }
            Event::Ended { stream, why } => self.slot(stream).fail(why.into()),
            Event::Refused(refusal) => self.notices.push_back(Notice::Refused(refusal)),
            Event::GoingAway(_) => {}
            Event::Violation(violation) => self.end(StreamError::Violation(violation)),
        }
    }

    /// Ends the connection, with all streams that are not complete.
    pub(super) fn end(&mut self, why: StreamError) {
        if self.ended.is_none() {
            self.ended = Some(why);
            for slot in &mut self.slots {
                slot.fail(why);
            }
        }
    }

    /// Ends the connection because its socket has: an HTTP/2 peer has no use for half of one.
    fn breaks(&mut self, kind: ErrorKind) {
        self.broken = true;
        self.end(StreamError::Connection(kind));
    }

    /// Wakes the writers that have a turn.
    fn wake_writers(&mut self) {
        while let Some(key) = self.engine.next_writable() {
            self.slot(key).writer.wake();
        }
    }

    /// Wakes the connection's task if there is something to send, or a stream that can send more.
    pub(super) fn sends(&mut self) {
        if self.engine.has_output() || self.engine.has_writable() {
            self.task.wake();
        }
    }

    /// Removes a stream whose exchange is over.
    pub(super) fn release(&mut self, key: StreamKey) {
        self.engine.release(key);
        let promised = self.slot(key).reset();
        self.promised -= promised;
        // The task may wait for the last stream.
        self.task.wake();
    }

    /// Wakes the connection's task.
    pub(super) fn wake(&mut self) {
        self.task.wake();
    }

    /// Marks the connection's task as running: what is written now will be sent by it.
    pub(super) fn begin_turn(&mut self, now: Moment) {
        self.now = now;
        self.task.runs();
    }

    /// Returns whether anything waits to be sent, and can be.
    pub(super) fn has_output(&self) -> bool {
        !self.broken && self.engine.has_output()
    }

    /// Frees memory that an idle connection does not need.
    pub(super) fn shrink(&mut self) {
        self.engine.shrink();
        self.notices = VecDeque::new();
        if self.engine.streams() == 0 {
            self.slots = Vec::new();
        }
    }
}
