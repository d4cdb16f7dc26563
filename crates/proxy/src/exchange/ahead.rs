//! Request buffering: a small body is read before a slot is taken, so that a slow client costs
//! memory instead of a slot at a server.

use std::future::poll_fn;

use health::blame::{Ended, Outcome, Sent, WaitingFor, cause_to_report};
use model::Service;
use wire::http1::{RequestBody, RequestHead, Version};

use super::Exchange;
use super::forward::Forwarding;
use super::upload::is_conversation;
use crate::budget::Charge;
use crate::client::Client;
use crate::failure::{self, Reason, Sender};

/// RFC 9110 section 15.2.1.
const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

impl Forwarding<'_, '_> {
    /// Reads the request's body if that saves holding a slot, and charges its memory to `charge`.
    /// Returns whether the body was read.
    pub(super) async fn read_ahead(&mut self) -> Result<bool, Reason> {
        let Forwarding { exchange, upload, limits, service, continued, .. } = self;
        let Exchange { worker, plane, client, scratch, record, .. } = &mut **exchange;
        let head = &*scratch.request;
        let Some(length) = length_to_read(head, service, client) else { return Ok(false) };
        let max = plane.published.snapshot.request_buffers_max_bytes;
        if max == 0 {
            return Ok(false);
        }
        // A client that has already sent part of the body is not waiting for a 100 (RFC 9110
        // section 10.1.1).
        let waits = head.expects_continue() && client.buffer.is_empty();
        *continued = head.expects_continue();
        if waits && head.version() != Version::Http10 {
            client.send(CONTINUE).await?;
        }
        let mut charge = Charge::new(&worker.shared.request_buffers, max);
        let Client { stream, buffer, watchdog, .. } = &mut **client;
        let reading = poll_fn(|cx| {
            let from = (&*stream, &mut *buffer);
            let read = upload.pump.poll_read_ahead(cx, from, limits, length as usize, &mut charge);
            record.body_in = upload.pump.bytes();
            read.map_err(|error| failure::reason(&error, Sender::Client))
        });
        let read = watchdog.guard(limits, reading).await;
        read.map_err(|Reason { cause, detail }| {
            let ended = Ended::alone(Outcome::Failed(cause), WaitingFor::Client, Sent::Nothing);
            let cause = cause_to_report(ended, cause, upload.pump.waited_for_sender());
            Reason { cause, detail }
        })?;
        self.charge = Some(charge);
        Ok(true)
    }
}

/// Returns the length of a body that is buffered first; `None` if it is streamed. Never buffers
/// what may be a conversation: gRPC calls, upgrades, bodies of unknown length.
fn length_to_read(head: &RequestHead, service: &Service, client: &Client) -> Option<u64> {
    let RequestBody::Length(length) = head.body() else { return None };
    let is_small = length <= u64::from(service.retries.body_kept_max_bytes);
    let is_here = !client.stream.is_exchange() && length <= client.buffer.len() as u64;
    (is_small
        && !is_here
        && !is_conversation(head, service, client)
        && head.upgrade().is_none()
        && service.is_limited())
    .then_some(length)
}
