//! Connections to servers: pooled ones first, new ones otherwise.
//!
//! A worker has its own pool, by server address, last in, first out, so that a burst's surplus ages
//! and closes. The learner (`decide::reuse`) decides which connections may be kept for how long and
//! used for what; this file reports its observations to it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use decide::reuse::{self, Learner, Promise};
use decide::{Endpoint, Slots};
use model::{HttpVersion, Moment};
use rustc_hash::FxHashMap;

use crate::buffer::BufferPool;
use crate::multiplex::Multiplexed;
use crate::server_connection::{Key, NoConnection, Reach, ServerConnection, Want, dial};

/// Maximum number of pooled connections examined before a new one is opened.
const LOOKED_AT_MAX: usize = 16;

struct Idle {
    connection: Box<ServerConnection>,
    rest: reuse::Idle,
    /// The longest keep-alive of the service that used it last.
    keep_alive: Duration,
}

impl Idle {
    fn take_up(self, learner: &Learner, now: Moment) -> Box<ServerConnection> {
        let mut connection = self.connection;
        connection.busy = learner.take(self.rest, now);
        connection.reused = true;
        connection
    }
}

/// The idle connections to one server.
struct Kept {
    slots: Arc<Slots>,
    /// The newest last.
    idle: VecDeque<Idle>,
    /// How many there were when the slots were last updated.
    reported: u32,
}

/// A worker's idle server connections, and its HTTP/2 connections, which are shared.
#[derive(Default)]
pub(crate) struct Pool {
    // Keys come from the configuration, so no one can choose them to collide.
    kept: RefCell<FxHashMap<Key, Kept>>,
    /// Idle connections over all servers.
    idle: Cell<usize>,
    multiplexed: Multiplexed,
}

impl Pool {
    /// Takes a pooled connection to `endpoint` on which such a request may be sent.
    pub(crate) fn take(
        &self,
        reach: &Reach<'_>,
        endpoint: &Endpoint,
        want: Want<'_>,
        buffers: &Rc<BufferPool>,
        now: Moment,
    ) -> Option<Box<ServerConnection>> {
        if !reach.is_shared() || want.private {
            return None;
        }
        let key = reach.key(endpoint);
        if reach.service.http == HttpVersion::Http2 {
            return self.multiplexed.take(&key, want, buffers, now);
        }
        let repeatable = want.repeatable;
        let keep_alive = reach.service.timeouts.keep_alive;
        let mut kept = self.kept.borrow_mut();
        let idle = &mut kept.get_mut(&key)?.idle;
        let learner = &endpoint.slots.learner;
        // The newest first; a request that may not be sent again needs one that has been idle for a
        // little while.
        let rested = |entry: &Idle| repeatable || learner.has_settled(&entry.rest, now);
        let newest = idle.partition_point(rested);
        for at in (newest.saturating_sub(LOOKED_AT_MAX)..newest).rev() {
            let entry = &idle[at];
            let closed = entry.connection.stream.closed_or_readable_hint();
            if !closed && !learner.may_reuse(&entry.rest, repeatable, keep_alive, now) {
                continue;
            }
            let entry = idle.remove(at)?;
            self.idle.set(self.idle.get().saturating_sub(1));
            // The kernel is asked last, and only if the request could not be sent again.
            if !closed && (repeatable || entry.connection.stream.is_silent()) {
                return Some(entry.take_up(learner, now));
            }
            learner.saw_closed(entry.rest, now);
        }
        None
    }

    /// Opens a connection, or a stream on one that others may share, unless it must be private.
    pub(crate) async fn open(
        &self,
        reach: &Reach<'_>,
        endpoint: &Endpoint,
        want: Want<'_>,
        buffers: &Rc<BufferPool>,
    ) -> Result<Box<ServerConnection>, NoConnection> {
        match reach.service.http {
            HttpVersion::Http2 => self.multiplexed.open(reach, endpoint, want, buffers).await,
            HttpVersion::Http11 => Ok(dial(reach, endpoint, buffers).await?),
        }
    }

    /// Returns a connection whose exchange is complete to the pool, if the learner allows it and
    /// this worker keeps fewer than `idle_max` in total.
    pub(crate) fn give(
        &self,
        reach: &Reach<'_>,
        endpoint: &Endpoint,
        connection: Box<ServerConnection>,
        promise: Promise,
        idle_max: usize,
        now: Moment,
    ) {
        let ServerConnection { stream, buffer, busy, .. } = &*connection;
        if stream.is_exchange() || !reach.is_shared() {
            return;
        }
        let keep_alive = reach.service.timeouts.keep_alive;
        // Bytes after a complete response were not asked for; such a server is not trusted to frame
        // the next response either.
        if !buffer.is_empty() {
            return;
        }
        let learner = &endpoint.slots.learner;
        let Some(rest) = learner.rest(*busy, promise, keep_alive, now) else { return };
        if stream.closed_or_readable_hint() {
            learner.saw_closed(rest, now);
            return;
        }
        let mut kept = self.kept.borrow_mut();
        let kept = kept.entry(reach.key(endpoint)).or_insert_with(|| Kept {
            slots: Arc::clone(&endpoint.slots),
            idle: VecDeque::new(),
            reported: 0,
        });
        let has_room = kept.idle.len() < reach.service.idle_connections_max as usize;
        if has_room && self.idle.get() < idle_max {
            kept.idle.push_back(Idle { connection, rest, keep_alive });
            self.idle.set(self.idle.get() + 1);
        }
    }

    /// Closes connections that the server closed or that are too old, and reports all of them to
    /// the learner.
    pub(crate) fn sweep(&self, now: Moment) {
        self.multiplexed.sweep(now);
        let mut all = 0;
        self.kept.borrow_mut().retain(|_, kept| {
            let learner = &kept.slots.learner;
            let mut at = 0;
            while at < kept.idle.len() {
                let entry = &mut kept.idle[at];
                if entry.connection.stream.closed_or_readable_hint() {
                    if let Some(closed) = kept.idle.remove(at) {
                        learner.saw_closed(closed.rest, now);
                    }
                } else if learner.saw_open(&mut entry.rest, entry.keep_alive, now) {
                    at += 1;
                } else {
                    kept.idle.remove(at);
                }
            }
            let count = kept.idle.len() as u32;
            kept.slots.idle_changed(kept.reported, count);
            kept.reported = count;
            all += kept.idle.len();
            count > 0
        });
        self.idle.set(all);
    }
}
