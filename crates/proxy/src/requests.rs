//! One request on a client's connection or stream: reads its head, then processes or refuses it.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, ready};

use decide::error_page;
use model::{Cause, Moment};
use wire::http1::{self, HeadLimits, Parsed};

use crate::account;
use crate::answer::{Answer, Occasion};
use crate::client::{After, Client};
use crate::exchange;
use crate::failure::Reason;
use crate::head::{OwnFields, RequestId};
use crate::scratch::Scratch;
use crate::worker::Worker;

/// Serves one request; returns what happens to the connection afterwards.
pub(crate) async fn serve_one(worker: &Rc<Worker>, client: &mut Client) -> After {
    let mut scratch = worker.scratch.take();
    let after = match head(client, &mut scratch).await {
        Ok(()) => {
            // There is no other reference between exchanges.
            let request = Rc::make_mut(&mut scratch.request);
            request.keep_upgrade(&client.settings().upgrade_protocols);
            client.via.plane.identity_names.remove_from(request);
            // Pinned where it is made: `await` would copy it.
            pin!(exchange::run(worker, client, &mut scratch)).await
        }
        Err(refusal) => refuse(worker, client, &mut scratch, refusal).await,
    };
    worker.scratch.give(scratch);
    after
}

/// Refuses a client that speaks clear text on a TLS port.
pub(crate) async fn refuse_clear_text(worker: &Rc<Worker>, client: &mut Client) -> After {
    let refused =
        Refused::new(Cause::HttpRequestError, "clear text where TLS is spoken: use https");
    let mut scratch = worker.scratch.take();
    let after = refuse(worker, client, &mut scratch, refused).await;
    worker.scratch.give(scratch);
    after
}

/// A request that is refused before it could be routed.
struct Refused {
    reason: Reason,
    /// Since when the client has been waiting, if not since now: when its head began.
    since: Option<Moment>,
}

impl Refused {
    fn new(cause: Cause, detail: &'static str) -> Refused {
        Refused { reason: Reason { cause, detail }, since: None }
    }
}

/// Reads and parses a whole request head.
async fn head(client: &mut Client, scratch: &mut Scratch) -> Result<(), Refused> {
    let patience = client.settings().timeouts.head;
    let limits = HeadLimits::of_client(client.settings().head_max_bytes);
    // There is no other reference between exchanges.
    let request = Rc::make_mut(&mut scratch.request);
    match http1::parse_request(&client.buffer, &limits, request) {
        Ok(Parsed::Complete { consumed }) => {
            client.buffer.consume(consumed);
            return Ok(());
        }
        Ok(Parsed::Partial) => {}
        Err(error) => return Err(refusal_of(error)),
    }
    let Client { stream, buffer, watchdog, .. } = client;
    // The first byte has arrived: the timeout of the head starts here.
    let began = os::clock::now();
    let reading = poll_fn(|cx| {
        loop {
            if !buffer.has_room() && !buffer.grow() {
                // Larger than any head that the limits allow, and still incomplete.
                let cause = Cause::HttpRequestHeadTooLarge;
                return Poll::Ready(Err(Refused::new(cause, "the request head does not end")));
            }
            match ready!(buffer.poll_fill(stream, cx)) {
                // A request had begun.
                Ok(0) | Err(_) => {
                    let cause = Cause::HttpRequestIncomplete;
                    return Poll::Ready(Err(Refused::new(cause, "")));
                }
                Ok(_) => {}
            }
            match http1::parse_request(buffer, &limits, request) {
                Ok(Parsed::Complete { consumed }) => {
                    buffer.consume(consumed);
                    return Poll::Ready(Ok(()));
                }
                Ok(Parsed::Partial) => {}
                Err(error) => return Poll::Ready(Err(refusal_of(error))),
            }
        }
    });
    match watchdog.until(began + patience, reading).await {
        Some(result) => result,
        None => Err(Refused {
            since: Some(began),
            ..Refused::new(Cause::HttpRequestTimeout, "the request head was not complete in time")
        }),
    }
}

fn refusal_of(error: http1::RequestError) -> Refused {
    let cause = match error.status() {
        413 => Cause::HttpRequestBodyTooLarge,
        414 => Cause::UriTooLong,
        417 => Cause::HttpExpectationFailed,
        431 => Cause::HttpRequestHeadTooLarge,
        501 => Cause::HttpRequestNotImplemented,
        505 => Cause::HttpVersionNotSupported,
        _ => Cause::HttpRequestError,
    };
    Refused::new(cause, error.detail())
}

async fn refuse(
    worker: &Rc<Worker>,
    client: &mut Client,
    scratch: &mut Scratch,
    refused: Refused,
) -> After {
    let started = refused.since.unwrap_or_else(os::clock::now);
    let Reason { cause, detail } = refused.reason;
    let answer = Answer { detail, ..Answer::of(cause) };
    let id = RequestId::new(worker.rng.borrow_mut().u128(..));
    let pages = &*client.settings().error_pages;
    let page = error_page::choose([pages], (answer.status, cause), None);
    let occasion = Occasion {
        request: None,
        request_id: id.as_bytes(),
        proxy_status: client.settings().proxy_status,
        close: true,
        grpc: false,
        page,
        own: OwnFields { hsts: client.hsts(), ..OwnFields::default() },
    };
    Rc::make_mut(&mut scratch.request).clear();
    scratch.down.clear();
    let mut after = After::Close;
    if answer.status > 0 {
        answer.write(&occasion, &mut scratch.down);
        if client.send_last(&scratch.down).await.is_ok() {
            after = After::Linger;
        }
    }
    account::refused(worker, client, &answer, id, started);
    after
}
