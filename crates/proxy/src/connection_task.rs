//! Connections as tasks: a task starts when a connection is accepted or a parked one becomes
//! readable, and ends when the connection is parked or closed.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use model::Moment;
use transport::Stream;

use crate::buffer::Buffer;
use crate::parking::{Held, Parked};
use crate::shared::Counted;
use crate::via::{Accepted, Via};
use crate::worker::Worker;
use crate::{client, connection};

/// Connections closed in a row before yielding to other tasks.
const BATCH_MAX: usize = 256;

/// Serves a connection that was just accepted, until it ends or is parked.
pub(crate) async fn begin(worker: &Rc<Worker>, stream: Stream, peer: SocketAddr, counted: Counted) {
    let via = Via::new(worker, Arc::clone(&counted.listener));
    let held = Held::new(counted, Arc::clone(via.counters()));
    let buffer = Buffer::new(Rc::clone(&worker.buffers));
    let accepted = Accepted { stream, peer, tls_before: false, buffer, via };
    if let Some(parked) = connection::serve(worker, accepted, held).await {
        park(worker, parked);
    }
}

/// Parks a connection until it becomes readable or its timeout passes.
fn park(worker: &Rc<Worker>, parked: Parked) {
    // One that the poller cannot watch waits in a task, for a short time each.
    if let Some(parked) = worker.parking.enter(parked) {
        resume_in_task(worker, parked);
    }
}

/// Resumes every connection that becomes readable, for the lifetime of the worker.
pub(crate) async fn attend(worker: Rc<Worker>) {
    let error = loop {
        match worker.parking.speaking().await {
            Ok(places) => resume_places(&worker, places),
            Err(error) => break error,
        }
    };
    tracing::error!(worker = worker.id, %error, "cannot poll idle connections any more");
    worker.parking.give_up();
    resume_places(&worker, worker.parking.places(usize::MAX, |_| true));
}

/// Closes connections whose timeout has passed.
pub(crate) fn close_due(worker: &Rc<Worker>, now: Moment) {
    close(worker, move |_, parked| parked.until <= now);
}

/// Closes connections that must not wait any longer, because the worker or their listener ends.
pub(crate) fn close_last(worker: &Rc<Worker>) {
    close(worker, |worker, parked| worker.shared.draining() || parked.held.listener().is_closing());
}

/// Closes matching connections, a batch at a time in a task of its own; requests that have arrived
/// are still answered.
fn close(worker: &Rc<Worker>, such: impl Fn(&Worker, &Parked) -> bool + 'static) {
    let worker = Rc::clone(worker);
    tokio::task::spawn_local(async move {
        while close_some(&worker, &such) > 0 {
            tokio::task::yield_now().await;
        }
    });
}

/// Closes the first batch of matching connections; returns how many.
fn close_some(worker: &Rc<Worker>, such: impl Fn(&Worker, &Parked) -> bool) -> usize {
    let places = worker.parking.places(BATCH_MAX, |parked| such(worker, parked));
    let count = places.len();
    for parked in places.into_iter().filter_map(|place| worker.parking.leave(place)) {
        if parked.stream.is_silent() {
            client::close(&parked.stream);
        } else {
            resume_in_task(worker, parked);
        }
    }
    count
}

/// Resumes the connections at these places.
fn resume_places(worker: &Rc<Worker>, places: Vec<usize>) {
    for parked in places.into_iter().filter_map(|place| worker.parking.leave(place)) {
        resume_in_task(worker, parked);
    }
}

/// Resumes a connection, in a task that is large enough to serve requests.
fn resume_in_task(worker: &Rc<Worker>, parked: Parked) {
    let worker = Rc::clone(worker);
    tokio::task::spawn_local(async move {
        if let Some(parked) = connection::resume(&worker, parked).await {
            park(&worker, parked);
        }
    });
}
