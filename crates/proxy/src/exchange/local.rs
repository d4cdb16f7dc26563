//! Answers that Weir sends itself instead of forwarding.

use model::{Cause, Redirect, Route};
use wire::http1::{RequestBody, RequestHead};

use super::Exchange;
use crate::account;
use crate::answer::{Answer, Occasion};
use crate::client::After;
use crate::head::{self, Scheme};

impl Exchange<'_> {
    /// Sends an answer instead of forwarding.
    pub(super) async fn answer(&mut self, answer: Answer) -> After {
        let Exchange { worker, client, scratch, record, .. } = self;
        record.answered(&answer);
        if answer.status == 0 {
            return After::Close;
        }
        let grpc = client.stream.is_exchange() && scratch.request.is_grpc();
        if grpc {
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
        let occasion = Occasion {
            request: Some(&scratch.request),
            request_id: account::request_id(client, &scratch.request, &record.id),
            proxy_status: client.settings().proxy_status,
            hsts: client.hsts(),
            close: !keep,
            grpc,
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
    if let Some(port) = redirect.port {
        out.extend_from_slice(format!(":{port}").as_bytes());
    }
    head::write_path(request.path(), &route.matches.path, redirect.path.as_deref(), &mut out);
    if let Some(query) = request.query() {
        out.push(b'?');
        out.extend_from_slice(query.as_bytes());
    }
    // Built from a checked configuration and a target of visible ASCII.
    String::from_utf8_lossy(&out).into_owned()
}
