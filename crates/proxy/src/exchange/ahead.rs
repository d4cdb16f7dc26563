//! A small body is read before a slot is taken: a client that sends it slowly then costs memory, and
//! no place at a server that others could use.

use std::future::poll_fn;
use std::rc::Rc;

use health::blame::{Ended, Outcome, Sent, WaitingFor, cause_to_report};
use model::{Cause, HttpVersion, Service};
use wire::http1::{RequestBody, RequestHead, Version};

use super::attempt::request_failure;
use super::forward::Request;
use crate::client::Client;
use crate::pump::Pump;
use crate::request_buffers::Charge;
use crate::scratch::Scratch;
use crate::worker::{Plane, Worker};

/// RFC 9110 section 15.2.1.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Reads the body of `request` if that spares a slot. Yields what it takes of the memory for such
/// bodies; `None` if nothing was read. Fails with the cause and a detail.
pub(super) async fn read_ahead(
    worker: &Rc<Worker>,
    plane: &Plane,
    request: &mut Request<'_>,
    client: &mut Client,
    scratch: &Scratch,
    upload: &mut Pump,
) -> Result<Option<Charge>, (Cause, &'static str)> {
    let head = &*scratch.request;
    let Some(length) = length_to_read(head, request.service, client) else { return Ok(None) };
    let max = plane.published.snapshot.request_buffers_max_bytes;
    if max == 0 {
        return Ok(None);
    }
    // Who has sent some of it already does not wait to be asked (RFC 9110 section 10.1.1).
    let waits = head.expects_continue() && client.buffer.is_empty();
    request.continued = head.expects_continue();
    if waits && head.version() != Version::Http10 {
        client.send(CONTINUE).await.map_err(|cause| (cause, ""))?;
    }
    let mut charge = Charge::new(&worker.shared.request_buffers, max);
    let mut detail = "";
    let Client { stream, buffer, watchdog, .. } = client;
    let reading = poll_fn(|cx| {
        let (from, limits) = ((&*stream, &mut *buffer), &request.limits);
        let read = upload.poll_read_ahead(cx, from, limits, length as usize, &mut charge);
        read.map_err(|error| {
            let (cause, why) = request_failure(&error);
            detail = why;
            cause
        })
    });
    let read = watchdog.guard(&request.limits, reading).await;
    read.map_err(|cause| {
        let ended = Ended::alone(Outcome::Failed(cause), WaitingFor::Client, Sent::Nothing);
        (cause_to_report(ended, cause, upload.waited_for_sender()), detail)
    })?;
    Ok(Some(charge))
}

/// Whether this is a gRPC call over HTTP/2 on both sides. It may stream in both directions, so that a
/// pause of the client is no sign of slowness. The media type alone proves nothing: any client can
/// send it.
pub(super) fn is_conversation(head: &RequestHead, service: &Service, client: &Client) -> bool {
    client.stream.is_exchange() && service.http == HttpVersion::Http2 && head.is_grpc()
}

/// How long the body is that is to be read first; `None`: the server gets it as it comes. Never what
/// may be a conversation: calls of gRPC, upgrades, bodies of unknown length.
fn length_to_read(head: &RequestHead, service: &Service, client: &Client) -> Option<u64> {
    service.in_flight_max?;
    let RequestBody::Length(length) = head.body() else { return None };
    let is_small = length <= u64::from(service.retries.body_kept_max_bytes);
    let is_here = !client.stream.is_exchange() && length <= client.buffer.len() as u64;
    (is_small && !is_here && !is_conversation(head, service, client) && head.upgrade().is_none())
        .then_some(length)
}
