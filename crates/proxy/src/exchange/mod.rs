//! A request's walk: route, admission, a server, the bytes both ways, the account. Read it from
//! top to bottom; what a step decides is a pure function elsewhere.
//!
//! ```text
//! run ─ route ─┬─ answer (deny, redirect, refusal)
//!              └─ forward ─ admit ─ attempt ─ respond ─┬─ (next request)
//!                     ^                  │             └─ tunnel (101)
//!                     └── another server ┘
//! ```

mod ahead;
mod attempt;
mod forward;
mod local;
mod pace;
mod respond;

#[cfg(test)]
mod panics;

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use decide::rate;
use model::path::has_dot_segments;
use model::{Action, Cause};
use wire::http1::{Known, RequestBody, RequestHead};

use crate::account::{self, Record};
use crate::answer::Answer;
use crate::client::{After, Client};
use crate::head::RequestId;
use crate::scratch::Scratch;
use crate::worker::{Plane, Worker};

use forward::forward;
use local::{location, respond_self};

/// How often a request may have passed this instance before it is refused as a loop: it may come back
/// by way of an authenticating proxy, for instance.
const PASSES_MAX: usize = 5;

/// Carries one request, whose head is in `scratch`, to its end.
pub(crate) async fn run(worker: &Rc<Worker>, client: &mut Client, scratch: &mut Scratch) -> After {
    let plane = Rc::clone(&client.plane);
    let random = worker.rng.borrow_mut().u128(..);
    let id = RequestId::new(random);
    let mut record = Record::new(os::clock::now(), id);
    record.asks_tcp = plane.sampling.asks_tcp(random);
    record.raises_tcp = plane.sampling.is_raised();
    record.explanation = plane.explanation(random, Some(&scratch.request));
    client.entry.begin(client.flight(&scratch.request, id, record.started));
    #[cfg(test)]
    let panics = panics::is_to_panic(&scratch.request);
    let walked = {
        let mut walk = pin!(walk(worker, &plane, client, scratch, &mut record));
        poll_fn(|cx| {
            if worker.shared.stopped() {
                return Poll::Ready(Err(Cause::ShuttingDown));
            }
            // A bug in one exchange ends that exchange, with its account closed as any other's.
            let step = AssertUnwindSafe(|| {
                #[cfg(test)]
                panics::panic_if(panics);
                walk.as_mut().poll(cx)
            });
            match catch_unwind(step) {
                Ok(polled) => polled.map(Ok),
                Err(_) => Poll::Ready(Err(Cause::ProxyInternalError)),
            }
        })
        .await
    };
    let after = match walked {
        Ok(after) => after,
        Err(cause) => cut_off(worker, client, scratch, &mut record, cause).await,
    };
    client.entry.end();
    account::finish(worker, &plane, client, &scratch.request, &record);
    after
}

/// The exchange ends here, whatever its stage: who has not been answered yet is told why.
async fn cut_off(
    worker: &Rc<Worker>,
    client: &mut Client,
    scratch: &mut Scratch,
    record: &mut Record,
    cause: Cause,
) -> After {
    if record.status == 0 {
        return respond_self(worker, client, scratch, record, Answer::of(cause)).await;
    }
    record.end(cause);
    After::Reset
}

/// What is refused whatever routes there are.
fn refusal<'a>(worker: &Worker, client: &Client, request: &RequestHead) -> Option<Answer<'a>> {
    if request.cdn_loop_passes(worker.shared.identity.id().as_bytes()) >= PASSES_MAX {
        return Some(Answer::of(Cause::ProxyLoopDetected));
    }
    // Towards HTTP/1.1 a request for another protocol is a wish that may be ignored. An extended
    // CONNECT has no other meaning.
    let is_refused_protocol = client.stream.is_exchange()
        && request.known(Known::Upgrade).is_some()
        && request.upgrade().is_none();
    if is_refused_protocol {
        let detail = "extended CONNECT for a protocol that is not in upgrade_protocols";
        return Some(Answer { detail, ..Answer::of(Cause::HttpRequestNotImplemented) });
    }
    match (request.body(), client.settings().body_max_bytes) {
        (RequestBody::Length(length), Some(max)) if length > max => {
            Some(Answer::of(Cause::HttpRequestBodyTooLarge))
        }
        _ => None,
    }
}

async fn walk(
    worker: &Rc<Worker>,
    plane: &Plane,
    client: &mut Client,
    scratch: &mut Scratch,
    record: &mut Record,
) -> After {
    let request: &RequestHead = &scratch.request;
    if let Some(answer) = refusal(worker, client, request) {
        return respond_self(worker, client, scratch, record, answer).await;
    }
    let published = &plane.published;
    let Some(index) = published.router.find(request, client.listener) else {
        // Servers disagree on what such a path is; what one takes for public may be another's
        // secret.
        let answer = if has_dot_segments(request.path()) {
            Answer { detail: "dot segments in the path", ..Answer::of(Cause::HttpRequestError) }
        } else {
            Answer::of(Cause::DestinationNotFound)
        };
        return respond_self(worker, client, scratch, record, answer).await;
    };
    let route = &published.snapshot.routes[index];
    if let Some(limit) = &route.rate_limit {
        let key = rate::rate_key(&limit.by, client.origin.peer.ip(), request);
        let table = worker.shared.registry.rate();
        let id = decide::hash_key(route.name.as_bytes());
        if let Err(wait) = table.take(id, limit, key, record.started) {
            let answer = Answer { retry_after: Some(wait), ..Answer::of(Cause::RateLimited) };
            return respond_self(worker, client, scratch, record, answer).await;
        }
    }
    match &route.action {
        Action::Deny(status) => {
            let answer = Answer { status: *status, ..Answer::of(Cause::HttpRequestDenied) };
            respond_self(worker, client, scratch, record, answer).await
        }
        Action::Redirect(redirect) => {
            let location = location(redirect, route, scratch, client.origin.scheme);
            let answer = Answer {
                status: redirect.status,
                location: Some(&location),
                ..Answer::of(Cause::Redirected)
            };
            respond_self(worker, client, scratch, record, answer).await
        }
        Action::Forward(_)
            if request.method() == "TRACE" && route.matches.method.as_deref() != Some("TRACE") =>
        {
            let answer = Answer::of(Cause::HttpMethodNotAllowed);
            respond_self(worker, client, scratch, record, answer).await
        }
        Action::Forward(to) => forward(worker, plane, client, scratch, record, route, to).await,
    }
}
