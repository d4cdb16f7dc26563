//! The `h2` crate as a server, for comparison.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use wire::http1::is_forbidden_trailer;

use crate::frames::{self, kind};
use crate::outcome::{CONFIG, Fields, Head, Notes, Outcome, removed, sorted};

/// Bytes to `h2` and from it.
#[derive(Clone, Default)]
struct Wire {
    to: Rc<RefCell<Vec<u8>>>,
    from: Rc<RefCell<Vec<u8>>>,
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let mut to = self.to.borrow_mut();
        let count = to.len().min(buffer.remaining());
        if count == 0 {
            return Poll::Pending;
        }
        buffer.put_slice(&to[..count]);
        to.drain(..count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        self.from.borrow_mut().extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

type Respond = h2::server::SendResponse<Bytes>;

/// The `h2` crate as the same server. It is polled by hand, without a runtime.
pub struct H2 {
    wire: Wire,
    handshake: Option<h2::server::Handshake<Wire, Bytes>>,
    connection: Option<h2::server::Connection<Wire, Bytes>>,
    streams: BTreeMap<u32, (h2::RecvStream, Respond)>,
}

impl H2 {
    pub fn new() -> H2 {
        let wire = Wire::default();
        let mut builder = h2::server::Builder::new();
        builder
            .initial_window_size(CONFIG.window_bytes)
            .initial_connection_window_size(CONFIG.connection_window_bytes)
            .max_concurrent_streams(CONFIG.streams_max)
            .max_header_list_size(CONFIG.head_max_bytes)
            .max_concurrent_reset_streams(10_000)
            .max_pending_accept_reset_streams(10_000)
            .max_local_error_reset_streams(None)
            .reset_stream_duration(Duration::from_secs(3600))
            .enable_connect_protocol();
        let handshake = Some(builder.handshake(wire.clone()));
        H2 { wire, handshake, connection: None, streams: BTreeMap::new() }
    }

    pub fn receive(&mut self, bytes: &[u8]) -> Outcome {
        let mut outcome = Outcome::default();
        self.wire.to.borrow_mut().extend_from_slice(bytes);
        let cx = &mut Context::from_waker(Waker::noop());
        if let Some(handshake) = &mut self.handshake
            && let Poll::Ready(ready) = Pin::new(handshake).poll(cx)
        {
            self.handshake = None;
            self.connection = ready.ok();
            outcome.failed = self.connection.is_none();
        }
        // Accepting drives the connection; what the streams do may need to be sent.
        while self.accept(&mut outcome, cx) | self.read(&mut outcome, cx) {}
        self.accept(&mut outcome, cx);
        self.refusals(&mut outcome);
        outcome
    }

    /// Returns whether a request was accepted.
    fn accept(&mut self, outcome: &mut Outcome, cx: &mut Context<'_>) -> bool {
        let Some(connection) = &mut self.connection else { return false };
        match connection.poll_accept(cx) {
            Poll::Pending => false,
            Poll::Ready(Some(Ok((request, respond)))) => {
                let id = respond.stream_id().as_u32();
                outcome.heads.insert(id, head_from(&request, &mut outcome.notes));
                self.streams.insert(id, (request.into_body(), respond));
                true
            }
            Poll::Ready(Some(Err(_)) | None) => {
                self.connection = None;
                true
            }
        }
    }

    /// Returns whether anything of a stream was read.
    fn read(&mut self, outcome: &mut Outcome, cx: &mut Context<'_>) -> bool {
        let mut has_read = false;
        let ids: Vec<u32> = self.streams.keys().copied().collect();
        for id in ids {
            let Some((body, respond)) = self.streams.get_mut(&id) else { continue };
            let is_over = match body.poll_data(cx) {
                Poll::Pending => continue,
                Poll::Ready(Some(Ok(data))) => {
                    let _ = body.flow_control().release_capacity(data.len());
                    if !data.is_empty() {
                        outcome.content.entry(id).or_default().extend_from_slice(&data);
                    }
                    false
                }
                Poll::Ready(Some(Err(error))) => {
                    if error.is_remote() && error.is_reset() {
                        outcome.reset.insert(id);
                    }
                    true
                }
                Poll::Ready(None) => match body.poll_trailers(cx) {
                    Poll::Pending => continue,
                    Poll::Ready(Err(_)) => true,
                    Poll::Ready(Ok(trailers)) => {
                        if let Some(trailers) = trailers {
                            let all = fields_from(&trailers);
                            outcome.notes.raw.extend(all.iter().cloned());
                            let kept = all.into_iter().filter(|(name, _)| {
                                !is_forbidden_trailer(name.as_bytes()) && name != "http2-settings"
                            });
                            outcome.trailers.insert(id, sorted(kept.collect()));
                        }
                        outcome.ended.insert(id);
                        let _ = respond.send_response(http::Response::new(()), true);
                        true
                    }
                },
            };
            has_read = true;
            if is_over {
                self.streams.remove(&id);
            }
        }
        has_read
    }

    /// Reads the output for what was reset.
    fn refusals(&mut self, outcome: &mut Outcome) {
        let bytes = std::mem::take(&mut *self.wire.from.borrow_mut());
        let mut rest = &bytes[..];
        while let Some(frame) = frames::take(&mut rest) {
            match frame.kind {
                kind::RST_STREAM => drop(outcome.refused.insert(frame.stream)),
                kind::GOAWAY => outcome.failed |= frame.number(4) != Some(0),
                _ => {}
            }
        }
        assert!(rest.is_empty());
    }
}

fn fields_from(map: &http::HeaderMap) -> Fields {
    let value = |value: &http::HeaderValue| value.as_bytes().escape_ascii().to_string();
    map.iter().map(|(name, it)| (name.to_string(), value(it))).collect()
}

/// Returns a request of `h2` as the engine would report it.
fn head_from(request: &http::Request<h2::RecvStream>, notes: &mut Notes) -> Head {
    let mut fields = sorted(fields_from(request.headers()));
    notes.raw.extend(fields.iter().cloned());
    let uri = request.uri();
    let authority =
        uri.authority().map(|authority| authority.as_str().as_bytes().escape_ascii().to_string());
    notes.has_authority = authority.is_some();
    let is_tunnel = request.extensions().get::<h2::ext::Protocol>().is_some();
    let mut host = removed(&mut fields, "host");
    if let Some(authority) = authority {
        host = Some(authority);
        // Equal to it, or the engine would refuse.
        fields.retain(|field| field.0 != "host");
    }
    while removed(&mut fields, "http2-settings").is_some() {}
    if let Some(length) = removed(&mut fields, "content-length") {
        fields.retain(|field| field.0 != "content-length");
        fields.push(("content-length".to_owned(), length));
    }
    if is_tunnel {
        fields
            .retain(|field| !matches!(&field.0[..], "sec-websocket-key" | "sec-websocket-accept"));
    }
    let mut cookies = String::new();
    while let Some(cookie) = removed(&mut fields, "cookie") {
        cookies.push_str(if cookies.is_empty() { "" } else { "; " });
        cookies.push_str(&cookie);
    }
    if !cookies.is_empty() {
        fields.push(("cookie".to_owned(), cookies));
    }
    let method = request.method().to_string();
    let target = match uri.path_and_query() {
        _ if method == "CONNECT" && !is_tunnel => host.clone().unwrap_or_default(),
        Some(path) => path.as_str().as_bytes().escape_ascii().to_string(),
        None => String::new(),
    };
    Head { method, target, host, fields: sorted(fields) }
}
