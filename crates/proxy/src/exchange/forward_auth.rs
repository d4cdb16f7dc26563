//! Lets an authentication server decide about a request (`forward`): what its response means.

use std::sync::Arc;

use decide::cors;
use identity::{Unfit, header_value};
use model::{Authentication, Cause, Content, Fault, ForwardRules, IdentityValue};
use wire::http1::{Known, ResponseHead};

use super::Exchange;
use super::inquiry::{self, Reply};
use crate::answer::Answer;
use crate::authentication::Identity;
use crate::servers::NoServer;

impl<'a> Exchange<'a> {
    /// Asks the authentication server, and returns who sends the request or how it is refused.
    pub(super) async fn by_server(
        &mut self,
        settings: &'a Authentication,
        rules: &'a ForwardRules,
    ) -> Result<Identity, Answer> {
        let Reply { head, body } = self.ask(rules).await.map_err(|none| no_verdict(&none))?;
        match head.status() {
            200..=299 => identity(settings, rules, &head).map_err(denied),
            300..=499 if !is_about_question(head.status()) => Err(self.relayed(&head, body)),
            status => Err(Answer {
                detail: if status >= 500 { "server_error" } else { "unexpected_status" },
                received_status: Some(status),
                ..Answer::of(Cause::AuthenticationUnavailable)
            }),
        }
    }

    /// Returns the authentication server's own answer.
    fn relayed(&self, head: &ResponseHead, body: Vec<u8>) -> Answer {
        let status = head.status();
        let (cause, detail) = match status {
            300..=399 => (Cause::Unauthenticated, "redirected_by_server"),
            403 => (Cause::HttpRequestDenied, "denied_by_server"),
            429 => (Cause::RateLimited, "limited_by_server"),
            _ => (Cause::Unauthenticated, "denied_by_server"),
        };
        let is_grpc = self.client.stream.is_exchange() && self.scratch.request.is_grpc();
        if is_grpc {
            // Such a client reads no page and follows no redirect.
            return Answer { detail, ..Answer::of(cause) };
        }
        let has_hsts = self.client.hsts().is_some();
        let is_relayed = |known: Known| match known {
            // Weir writes these.
            Known::ContentLength
            | Known::TransferEncoding
            | Known::Trailer
            | Known::Date
            | Known::XRequestId => false,
            Known::StrictTransportSecurity => !has_hsts,
            _ => true,
        };
        let fields = head.fields().filter(|field| {
            !field.hop_by_hop
                && is_relayed(field.known)
                && !field.name.eq_ignore_ascii_case(b"proxy-status")
        });
        let fields = fields.filter_map(|field| {
            let name = std::str::from_utf8(field.name).ok()?.to_ascii_lowercase();
            Some((name, std::str::from_utf8(field.value).ok()?.into()))
        });
        let fields = fields.collect();
        let content = Content { media_type: None, fields, body: body.into() };
        Answer { status, detail, content: Some(Arc::new(content)), ..Answer::of(cause) }
    }
}

/// Returns whether a status is about Weir's question rather than about the client's request: the server is
/// not asked as it expects, such as by another path.
fn is_about_question(status: u16) -> bool {
    // A 304 answers a condition, and none was sent.
    matches!(
        status,
        304 | 404 | 405 | 407 | 408 | 410 | 411 | 413 | 414 | 415 | 417 | 421 | 426 | 431
    )
}

/// Returns what a 2xx says about the sender. Fails with the reason for a refusal.
fn identity(
    settings: &Authentication,
    rules: &ForwardRules,
    head: &ResponseHead,
) -> Result<Identity, &'static str> {
    let mut identity = Identity {
        user: None,
        fields: Vec::new(),
        forwards_credentials: settings.forwards_credentials,
        claims: None,
        response_fields: response_fields(rules, head),
    };
    for field in &settings.identity_fields {
        let values = values(head, &field.name)?;
        match (&field.value, values.as_slice()) {
            (_, []) | (IdentityValue::Claim(_), _) => {}
            (IdentityValue::User, [user]) => {
                identity.user = Some(user.clone());
                identity.fields.push((field.name.clone(), user.clone()));
            }
            // Which of them a server behind Weir would read is unknown.
            (IdentityValue::User, _) => return Err("several_users"),
            (IdentityValue::Response, values) => {
                // RFC 9110 section 5.3.
                let value = values.join(", ");
                header_value::check(&value).map_err(Unfit::reason)?;
                identity.fields.push((field.name.clone(), value));
            }
        }
    }
    Ok(identity)
}

/// Returns the values of a field that are not empty: servers send an empty one for what is unknown.
fn values(head: &ResponseHead, name: &str) -> Result<Vec<String>, &'static str> {
    let named = head.fields().filter(|field| {
        !field.hop_by_hop
            && !field.value.is_empty()
            && field.name.eq_ignore_ascii_case(name.as_bytes())
    });
    let checked = named.map(|field| {
        let value = std::str::from_utf8(field.value).map_err(|_| "value_not_utf8")?;
        // A value that a field cannot have may be an attack on the server.
        let value = header_value::check(value).map_err(Unfit::reason)?;
        Ok(value.to_owned())
    });
    checked.collect()
}

/// Returns the fields that the client receives with the response.
fn response_fields(rules: &ForwardRules, head: &ResponseHead) -> Vec<(String, Vec<u8>)> {
    let is_passed = |name: &[u8]| {
        let mut names = rules.response_fields.iter();
        names.any(|one| name.eq_ignore_ascii_case(one.as_bytes())) && !cors::is_reserved(name)
    };
    let passed = head.fields().filter(|field| !field.hop_by_hop && is_passed(field.name));
    let passed = passed.filter_map(|field| {
        Some((std::str::from_utf8(field.name).ok()?.to_owned(), field.value.to_vec()))
    });
    passed.collect()
}

/// The server has let a request pass whose sender cannot be passed on.
fn denied(detail: &'static str) -> Answer {
    Answer { detail, ..Answer::of(Cause::HttpRequestDenied) }
}

/// Returns the answer to a request about which there is no verdict.
fn no_verdict(none: &NoServer) -> Answer {
    let NoServer { reason, retry_after } = none;
    let cause = reason.cause;
    if cause.fault() == Fault::Client || cause.status() == 0 {
        // The client has gone, or its request cannot be asked about.
        return Answer { detail: reason.detail, ..Answer::of(cause) };
    }
    let is_late = matches!(
        cause,
        Cause::TotalTimeout
            | Cause::HttpResponseTimeout
            | Cause::ConnectionReadTimeout
            | Cause::QueueWaitExceeded
    );
    let own = if is_late { Cause::AuthenticationTimeout } else { Cause::AuthenticationUnavailable };
    // A bound of Weir's is named by itself.
    let detail = if reason.detail == inquiry::TOO_LARGE { reason.detail } else { cause.name() };
    Answer { detail, retry_after: *retry_after, ..Answer::of(own) }
}
