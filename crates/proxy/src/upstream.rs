//! Connections to servers: kept ones first, fresh ones otherwise.
//!
//! A worker keeps its own, by server address, newest on top, so that a burst's surplus ages and
//! closes. Which may be kept for how long, and used for what, is the learner's to say
//! (`decide::reuse`); here it is told what was seen.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use decide::reuse::{self, Busy, Learner, Promise};
use decide::{Endpoint, Slots};
use model::{Cause, Moment, ServiceTimeouts};
use transport::Stream;
use transport::dial::{self, DialOptions};

use crate::buffer::{Buffer, BufferPool};
use crate::tcp_sample::{self, Told};

/// How long the kernel keeps sending to a server that acknowledges nothing, beyond the response
/// timeout: a server whose host vanished is noticed by `TCP_USER_TIMEOUT`, not by keep-alives.
const USER_TIMEOUT_MIN: Duration = Duration::from_secs(5);
/// Looked at from either end of the pool before a fresh connection is made.
const LOOKED_AT_MAX: usize = 16;

/// An open connection to a server, while an exchange uses it.
pub(crate) struct ServerConnection {
    pub(crate) stream: Stream,
    pub(crate) buffer: Buffer,
    /// What the learner needs to know of it.
    pub(crate) busy: Busy,
    /// What has been counted of it.
    pub(crate) told: Told,
}

struct Idle {
    stream: Stream,
    rest: reuse::Idle,
    told: Told,
    /// The longest that the service which used it last keeps one.
    keep_alive: Duration,
}

impl Idle {
    fn take_up(self, learner: &Learner, buffers: &Rc<BufferPool>, now: Moment) -> ServerConnection {
        let buffer = Buffer::new(Rc::clone(buffers));
        let busy = learner.take(self.rest, now);
        ServerConnection { stream: self.stream, buffer, busy, told: self.told }
    }
}

/// The idle connections to one server.
struct Kept {
    slots: Arc<Slots>,
    idle: Vec<Idle>,
    /// How many there were when the slots were last told.
    told: u32,
}

/// A worker's idle server connections.
#[derive(Default)]
pub(crate) struct Pool {
    kept: RefCell<HashMap<SocketAddr, Kept>>,
}

impl Pool {
    /// A kept connection to `endpoint` on which a request may be sent that may be sent again
    /// (`repeatable`), or may not.
    pub(crate) fn take(
        &self,
        endpoint: &Endpoint,
        repeatable: bool,
        keep_alive: Duration,
        buffers: &Rc<BufferPool>,
        now: Moment,
    ) -> Option<ServerConnection> {
        let mut kept = self.kept.borrow_mut();
        let idle = &mut kept.get_mut(&endpoint.row.address)?.idle;
        let learner = &endpoint.slots.learner;
        // The kernel itself is asked last, and only where a request could not be sent again.
        let usable = |entry: &Idle| learner.may_reuse(&entry.rest, repeatable, keep_alive, now);
        let sound = |entry: &Idle| repeatable || entry.stream.is_silent();
        // The newest first. What may not be sent again needs one that has rested a little: under
        // load those are the older ones.
        for at in (idle.len().saturating_sub(LOOKED_AT_MAX)..idle.len()).rev() {
            let closed = idle[at].stream.closed_or_readable_hint();
            if !closed && !usable(&idle[at]) {
                continue;
            }
            let entry = idle.remove(at);
            if !closed && sound(&entry) {
                return Some(entry.take_up(learner, buffers, now));
            }
            learner.saw_closed(entry.rest, now);
        }
        let mut at = 0;
        for _ in 0..LOOKED_AT_MAX.min(idle.len().saturating_sub(LOOKED_AT_MAX)) {
            let closed = idle[at].stream.closed_or_readable_hint();
            if !closed && !usable(&idle[at]) {
                at += 1;
                continue;
            }
            let entry = idle.remove(at);
            if !closed && sound(&entry) {
                return Some(entry.take_up(learner, buffers, now));
            }
            learner.saw_closed(entry.rest, now);
        }
        None
    }

    /// Keeps a connection whose exchange is complete, as far as the learner allows.
    pub(crate) fn give(
        &self,
        endpoint: &Endpoint,
        connection: ServerConnection,
        promise: Promise,
        keep_alive: Duration,
        idle_max: u32,
        now: Moment,
    ) {
        let ServerConnection { stream, buffer, busy, told } = connection;
        // What follows a complete response was never asked for; such a server is not trusted to
        // frame the next response either.
        if !buffer.is_empty() {
            return;
        }
        let learner = &endpoint.slots.learner;
        let Some(rest) = learner.rest(busy, promise, keep_alive, now) else { return };
        if stream.closed_or_readable_hint() {
            learner.saw_closed(rest, now);
            return;
        }
        let mut kept = self.kept.borrow_mut();
        let kept = kept.entry(endpoint.row.address).or_insert_with(|| Kept {
            slots: Arc::clone(&endpoint.slots),
            idle: Vec::new(),
            told: 0,
        });
        if kept.idle.len() < idle_max as usize {
            kept.idle.push(Idle { stream, rest, told, keep_alive });
        }
    }

    /// Closes what its server closed or what is too old, and tells the learner of all.
    pub(crate) fn sweep(&self, now: Moment) {
        self.kept.borrow_mut().retain(|_, kept| {
            let learner = &kept.slots.learner;
            let mut at = 0;
            while at < kept.idle.len() {
                let entry = &mut kept.idle[at];
                if entry.stream.closed_or_readable_hint() {
                    learner.saw_closed(kept.idle.remove(at).rest, now);
                } else if learner.saw_open(&mut entry.rest, entry.keep_alive, now) {
                    at += 1;
                } else {
                    kept.idle.remove(at);
                }
            }
            let count = kept.idle.len() as u32;
            kept.slots.idle_changed(kept.told, count);
            kept.told = count;
            count > 0
        });
    }
}

/// Opens a fresh connection.
pub(crate) async fn dial(
    endpoint: &Endpoint,
    timeouts: &ServiceTimeouts,
    buffers: &Rc<BufferPool>,
) -> Result<ServerConnection, Cause> {
    let options = DialOptions {
        connect_timeout: timeouts.connect,
        user_timeout: Some(timeouts.response.max(USER_TIMEOUT_MIN)),
    };
    let begun = os::clock::now();
    let dialled = dial::dial(endpoint.row.address, &options).await;
    let now = os::clock::now();
    let learner = &endpoint.slots.learner;
    match dialled {
        Ok(stream) => {
            let buffer = Buffer::new(Rc::clone(buffers));
            let told = tcp_sample::connected(&stream, endpoint, now - begun);
            Ok(ServerConnection { stream, buffer, busy: learner.connected(now - begun), told })
        }
        Err(error) => {
            if error.cause == Cause::ConnectionRefused {
                learner.restarted(now);
            }
            endpoint.state.tcp.note_syn_retries(error.syn_retries);
            Err(error.cause)
        }
    }
}
