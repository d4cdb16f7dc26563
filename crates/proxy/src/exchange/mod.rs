//! A request's walk: route, admission, a server, the bytes both ways, the account. Read it from
//! top to bottom; what a step decides is a pure function elsewhere.
//!
//! ```text
//! run ─ route ─┬─ answer (deny, redirect, refusal)
//!              └─ forward ─ admit ─ attempt ─ respond ─┬─ (next request)
//!                     ^                  │             └─ tunnel (101)
//!                     └── another server ┘
//! ```

mod attempt;
mod forward;
mod local;
mod respond;

use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use decide::rate;
use model::path::has_dot_segments;
use model::{Action, Cause};
use wire::http1::{RequestBody, RequestHead};

use crate::account::{self, Record};
use crate::answer::Answer;
use crate::client::{After, Client};
use crate::head::RequestId;
use crate::scratch::Scratch;
use crate::worker::{Plane, Worker};

use forward::forward;
pub(crate) use forward::note_outcome;
use local::{location, respond_self};

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
    let walked = {
        let mut walk = pin!(walk(worker, &plane, client, scratch, &mut record));
        poll_fn(|cx| {
            if worker.shared.stopped() {
                return Poll::Ready(Err(Cause::ShuttingDown));
            }
            // A bug in one exchange ends that exchange, with its account closed as any other's.
            match catch_unwind(AssertUnwindSafe(|| walk.as_mut().poll(cx))) {
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

async fn walk(
    worker: &Rc<Worker>,
    plane: &Plane,
    client: &mut Client,
    scratch: &mut Scratch,
    record: &mut Record,
) -> After {
    let request: &RequestHead = &scratch.request;
    if let (RequestBody::Length(length), Some(max)) =
        (request.body(), client.settings().body_max_bytes)
        && length > max
    {
        let answer = Answer::of(Cause::HttpRequestBodyTooLarge);
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
        Action::Forward(to) => forward(worker, plane, client, scratch, record, route, to).await,
    }
}
