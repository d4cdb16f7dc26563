//! Answers that Weir sends itself instead of forwarding.

use std::future::poll_fn;
use std::sync::{Arc, LazyLock};
use std::task::{Poll, ready};

use decide::rate::Left;
use decide::{Published, cors, error_page};
use model::{Cause, Content, ErrorPage, Listener, RateLimit, Redirect, Respond, Route, ServiceId};
use wire::http1::{RequestBody, RequestHead};

use super::Exchange;
use crate::account;
use crate::answer::{Answer, Occasion};
use crate::authentication::Identity;
use crate::client::{After, Client};
use crate::head::{self, OwnFields, Scheme};
use crate::plane::Plane;
use crate::worker::Worker;

/// A body of at most this length is read before a request is answered that is no error, or that asks
/// for credentials. A whole window of HTTP/2 (RFC 9113 section 6.9.2).
const BODY_READ_MAX_BYTES: u64 = 65_535;

impl Exchange<'_> {
    /// Answers as a route is configured to.
    pub(super) async fn answer_by_route(&mut self, answer: Answer) -> After {
        // The client of a 401 sends the request again, with credentials.
        if (200..400).contains(&answer.status) || answer.status == 401 {
            self.discard_body().await;
        }
        self.answer(answer).await
    }

    /// Returns the answer to a certificate authority's HTTP-01 challenge, if the request is for one
    /// that is pending. Otherwise it takes a comparison of the path at most.
    pub(super) fn challenge_answer(&self) -> Option<Answer> {
        let request = &*self.scratch.request;
        let authorization = self.worker.shared.challenges.http(request.path())?;
        if !matches!(request.method(), "GET" | "HEAD") {
            return None;
        }
        let content = Arc::new(Content {
            media_type: Some("application/octet-stream".to_owned()),
            fields: vec![("cache-control".to_owned(), "no-store".into())],
            body: Arc::from(authorization.as_bytes()),
        });
        let detail = "ACME challenge";
        Some(Answer { status: 200, detail, content: Some(content), ..Answer::of(Cause::Responded) })
    }

    /// Reads and discards a short body, so that the connection stays usable. Over HTTP/2 some clients
    /// (curl 7.88) discard a response if their stream is reset while they still send, which RFC 9113
    /// section 8.1 forbids them.
    async fn discard_body(&mut self) {
        let Exchange { client, scratch, record, .. } = self;
        let mut left = match scratch.request.body() {
            // The client waits for this answer, and sends its body only if it is a 100.
            _ if scratch.request.expects_continue() => return,
            RequestBody::Length(length) if length <= BODY_READ_MAX_BYTES => length,
            // One of unknown length may be a conversation.
            RequestBody::None | RequestBody::Length(_) | RequestBody::Chunked => return,
        };
        let until = os::clock::now() + client.settings().timeouts.body;
        let Client { stream, buffer, watchdog, .. } = &mut **client;
        // The end of a stream is an event of its own, which may come after the last byte.
        let ends_by_length = !stream.is_exchange();
        let reading = poll_fn(|cx| {
            loop {
                let here = left.min(buffer.len() as u64);
                buffer.consume(here as usize);
                left -= here;
                record.body_in += here;
                if ends_by_length && left == 0 || !buffer.is_empty() {
                    return Poll::Ready(left == 0);
                }
                match ready!(buffer.poll_fill(stream, cx)) {
                    Ok(0) => return Poll::Ready(!ends_by_length),
                    Ok(_) => {}
                    Err(_) => return Poll::Ready(false),
                }
            }
        });
        record.body_read = watchdog.until(until, reading).await.unwrap_or(false);
    }

    /// Sends an answer instead of forwarding.
    pub(super) async fn answer(&mut self, answer: Answer) -> After {
        let route = self.route();
        let Exchange { worker, plane, client, identity, rates, scratch, record, .. } = self;
        record.answered(&answer);
        if answer.status == 0 {
            return After::Close;
        }
        let grpc = client.stream.is_exchange() && scratch.request.is_grpc();
        if grpc && answer.content.is_none() {
            (record.status, record.grpc_status) = (200, Some(answer.grpc_status()));
        }
        // The unread rest of a body would be parsed as the next request.
        let whole = match scratch.request.body() {
            // How much an exchange that panicked has read is unknown.
            _ if answer.cause == Cause::ProxyInternalError => false,
            RequestBody::None => true,
            // A stream ends with its exchange, however much of it was read.
            _ if client.stream.is_exchange() => false,
            _ if record.body_read => true,
            RequestBody::Length(length) => {
                let all_here = record.body_in == 0 && length <= client.buffer.len() as u64;
                if all_here {
                    client.buffer.consume(length as usize);
                }
                all_here
            }
            RequestBody::Chunked => false,
        };
        let keep = whole && scratch.request.keep_alive() && !client.is_last(worker);
        let page = if grpc || !answer.is_error() {
            None
        } else {
            let lists = error_pages(plane, route, record.service, client.settings());
            error_page::choose(lists, (answer.status, answer.cause), Some(&scratch.request))
        };
        let occasion = Occasion {
            request: Some(&scratch.request),
            request_id: account::request_id(client, &scratch.request, &record.id),
            proxy_status: client.settings().proxy_status,
            close: !keep,
            grpc,
            page,
            own: own_fields(client, route, &scratch.request, (rates, identity.as_deref())),
        };
        scratch.down.clear();
        answer.write(&occasion, &mut scratch.down);
        let sent = client.send_last(&scratch.down).await;
        record.ended = os::clock::now();
        match sent {
            Ok(()) if keep => After::Keep,
            Ok(()) if whole => client.after_last(worker),
            Ok(()) => After::Linger,
            Err(cause) => {
                record.end(cause);
                After::Close
            }
        }
    }
}

/// Returns the fields that all responses to a request get.
pub(super) fn own_fields<'a>(
    client: &Client,
    route: Option<&'a Route>,
    request: &'a RequestHead,
    (rates, identity): (&'a [(&'a RateLimit, Left)], Option<&'a Identity>),
) -> OwnFields<'a> {
    let cors = route.and_then(Route::cors).map(|rules| cors::verdict(rules, request));
    let passed = identity.map_or(&[][..], |known| &known.response_fields);
    OwnFields { hsts: client.hsts(), cors, rates, passed }
}

/// Returns the error pages for a request, in the order in which they are tried.
fn error_pages<'a>(
    plane: &'a Plane,
    route: Option<&'a Route>,
    service: Option<ServiceId>,
    listener: &'a Listener,
) -> impl Iterator<Item = &'a [ErrorPage]> {
    let service = service.map(|id| plane.published.snapshot.service(id));
    let own = route.map(|route| &route.error_pages).into_iter();
    let pages = own.chain(service.map(|service| &service.error_pages));
    pages.chain([&listener.error_pages]).map(Vec::as_slice)
}

/// Returns the configured response.
pub(super) fn respond(respond: &Respond, worker: &Worker, published: &Published) -> Answer {
    static READY: LazyLock<Arc<Content>> = LazyLock::new(|| readiness("ready\n"));
    static NOT_READY: LazyLock<Arc<Content>> = LazyLock::new(|| readiness("not ready\n"));
    let (status, content, detail) = match respond {
        Respond::Fixed { status, content } => (*status, content, ""),
        Respond::Ready(_) if worker.shared.stopping() => (503, &*NOT_READY, "stopping"),
        Respond::Ready(services) => {
            let has_server = |id: &ServiceId| {
                let endpoints = published.service(*id).endpoints();
                endpoints.all.iter().any(|endpoint| endpoint.is_ready())
            };
            if services.iter().all(has_server) {
                (200, &*READY, "")
            } else {
                (503, &*NOT_READY, "a service has no ready server")
            }
        }
    };
    let content = Some(Arc::clone(content));
    Answer { status, detail, content, ..Answer::of(Cause::Responded) }
}

fn readiness(text: &str) -> Arc<Content> {
    Arc::new(Content {
        media_type: Some("text/plain; charset=utf-8".to_owned()),
        fields: vec![("cache-control".to_owned(), "no-store".into())],
        body: Arc::from(text.as_bytes()),
    })
}

/// Returns the target of a redirect (RFC 9110 section 10.2.2).
pub(super) fn location(
    redirect: &Redirect,
    route: &Route,
    request: &RequestHead,
    scheme: Scheme,
) -> String {
    let scheme = redirect.scheme.as_deref().unwrap_or(scheme.name());
    let mut out = format!("{scheme}://").into_bytes();
    match (&redirect.host, redirect.port, &redirect.scheme) {
        (Some(host), _, _) => out.extend_from_slice(host.as_bytes()),
        // With another port or scheme, the request's own port does not apply.
        (None, Some(_), _) | (None, _, Some(_)) => out.extend_from_slice(request.host().as_bytes()),
        (None, None, None) => out.extend_from_slice(request.authority().as_bytes()),
    }
    // The default port of a scheme is left out (RFC 9110 section 4.2.3).
    let usual = if scheme == "https" { 443 } else { 80 };
    if let Some(port) = redirect.port.filter(|port| *port != usual) {
        out.extend_from_slice(format!(":{port}").as_bytes());
    }
    // `OPTIONS *` is about the server as a whole: its URL has no path (RFC 9110 section 7.1).
    if request.path() != "*" {
        head::write_path(request.path(), &route.matches.path, redirect.path.as_ref(), &mut out);
    }
    if let Some(query) = request.query() {
        out.push(b'?');
        out.extend_from_slice(query.as_bytes());
    }
    // Built from a checked configuration and a target of visible ASCII.
    String::from_utf8_lossy(&out).into_owned()
}
