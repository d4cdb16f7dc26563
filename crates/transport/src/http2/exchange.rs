//! One HTTP/2 stream: a request and its response, presented as bytes.

use std::cell::{RefCell, RefMut};
use std::io::{self, IoSlice};
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes};
use h2::client::{ResponseFuture, SendRequest};
use h2::ext::Protocol;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{Method, Request, Response};
use tokio::io::ReadBuf;
use wire::http2;

use super::failure::{UNENCODABLE, of_reset, to_io};
use super::window::Promise;
use crate::Stream;
use crate::websocket;

/// Maximum length of an incomplete head: heads written here were read within limits, and extended
/// by configured fields.
const HEAD_MAX_BYTES: usize = 1024 * 1024;

/// A stream of either role.
pub(crate) struct Exchange {
    connection: Rc<Stream>,
    inner: RefCell<Inner>,
}

struct Inner {
    role: Role,
    /// The protocol of an extended CONNECT, and the value that answers a WebSocket key.
    upgrade: Option<(String, String)>,
    /// The part of the head written so far.
    head: Vec<u8>,
    /// Set once the final head has been sent.
    send: Option<SendStream<Bytes>>,
    write_ended: bool,
    /// Set once the head has arrived.
    recv: Option<RecvStream>,
    /// Received and not read yet: head text, or body.
    unread: Bytes,
    unread_is_body: bool,
    read_ended: bool,
    trailers: Vec<u8>,
    /// Why the head could not be sent: there will be no response.
    failed: Option<io::ErrorKind>,
}

enum Role {
    /// Towards a client: its request came with the stream.
    Server(SendResponse<Bytes>),
    /// Towards a server.
    Client {
        requests: Requests,
        response: Option<ResponseFuture>,
        /// A response to HEAD ends with its head, whatever length the head states.
        is_head: bool,
        /// The body's reserved part of the connection's window.
        promise: Promise,
    },
}

/// Where requests to a server are sent.
#[derive(Clone)]
pub(super) struct Requests {
    pub(super) send: SendRequest<Bytes>,
    /// `http` or `https`, for `:scheme`.
    pub(super) scheme: &'static str,
    /// One reference per exchange in progress, and one more.
    pub(super) exchanges: Rc<()>,
}

impl Exchange {
    /// Returns the exchange of a client's request.
    pub(super) fn of_client(
        connection: Rc<Stream>,
        request: Request<RecvStream>,
        respond: SendResponse<Bytes>,
    ) -> Exchange {
        let (parts, recv) = request.into_parts();
        let request = Request::from_parts(parts, ());
        // Anything else is a plain CONNECT, which is refused.
        let protocol = request.extensions().get::<Protocol>();
        let protocol = protocol.filter(|protocol| http2::is_protocol(protocol.as_str()));
        let key = protocol.map(|_| websocket::key());
        let asked = protocol.map(Protocol::as_str).zip(key.as_deref());
        let asked = asked.map(|(name, key)| http2::Protocol { name, key });
        let mut text = Vec::with_capacity(512);
        http2::write_request(&request, asked, recv.is_end_stream(), &mut text);
        let upgrade = asked.map(|asked| (asked.name.to_owned(), String::new()));
        let read_ended = recv.is_end_stream();
        let mut inner = Inner::new(Role::Server(respond), text.into());
        (inner.upgrade, inner.recv, inner.read_ended) = (upgrade, Some(recv), read_ended);
        Exchange { connection, inner: RefCell::new(inner) }
    }

    /// Returns an exchange for a request to a server.
    pub(super) fn to_server(
        connection: Rc<Stream>,
        requests: Requests,
        promise: Promise,
    ) -> Exchange {
        let role = Role::Client { requests, response: None, is_head: false, promise };
        Exchange { connection, inner: RefCell::new(Inner::new(role, Bytes::new())) }
    }

    /// Returns the underlying connection.
    pub(crate) fn connection(&self) -> &Rc<Stream> {
        &self.connection
    }

    /// Reads head text, then body; an empty read is the end of the stream.
    pub(crate) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut inner = self.inner();
        ready!(inner.poll_unread(cx))?;
        let count = inner.unread.len().min(buf.remaining());
        buf.put_slice(&inner.unread[..count]);
        inner.unread.advance(count);
        if inner.unread_is_body
            && let Some(recv) = &mut inner.recv
        {
            recv.flow_control().release_capacity(count).map_err(to_io)?;
        }
        Poll::Ready(Ok(()))
    }

    /// Ready when a read would not block.
    pub(crate) fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_unread(cx)
    }

    /// Writes head text or, once the final head is complete, body; returns how much was taken.
    pub(crate) fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.write(cx, bytes, false)
    }

    /// Like `poll_write`; if all of these bytes are taken, the stream ends.
    pub(crate) fn poll_write_last(
        &self,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.write(cx, bytes, true)
    }

    /// Writes from the first non-empty slice only: each write is a frame anyway.
    pub(crate) fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = slices.iter().find(|slice| !slice.is_empty());
        self.write(cx, first.map_or(&[], |slice| slice), false)
    }

    fn write(&self, cx: &mut Context<'_>, bytes: &[u8], last: bool) -> Poll<io::Result<usize>> {
        let mut inner = self.inner();
        let of_head = if inner.send.is_none() {
            let written = inner.write_head(bytes, last);
            written.map_err(|error| inner.ended_here().map_or(error, io::Error::from))?
        } else {
            0
        };
        let body = &bytes[of_head..];
        if body.is_empty() {
            return Poll::Ready(Ok(of_head));
        }
        let written = inner.poll_write_body(cx, body, last);
        let written = written.map_err(|error| inner.ended_here().map_or(error, io::Error::from));
        match written {
            Poll::Ready(Ok(taken)) => Poll::Ready(Ok(of_head + taken)),
            // If it is an error, it will be returned again.
            _ if of_head > 0 => Poll::Ready(Ok(of_head)),
            other => other,
        }
    }

    /// Ends the sending side with these trailer lines.
    pub(crate) fn finish(&self, trailers: &[u8]) -> io::Result<()> {
        let mut inner = self.inner();
        if inner.write_ended {
            return Ok(());
        }
        let Some(send) = &mut inner.send else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        if trailers.is_empty() {
            send.send_data(Bytes::new(), true).map_err(to_io)?;
        } else {
            let trailers = http2::read_trailers(trailers).map_err(io::Error::other)?;
            send.send_trailers(trailers).map_err(to_io)?;
        }
        inner.write_ended = true;
        Ok(())
    }

    /// Ends the sending side; an exchange that has not reached its body has nothing to end.
    pub(crate) fn poll_close_write(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.finish(&[]) {
            Err(error) if error.kind() != io::ErrorKind::NotConnected => Poll::Ready(Err(error)),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Returns whether data or the end has arrived.
    pub(crate) fn closed_or_readable_hint(&self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        self.inner().poll_unread(&mut context).is_ready()
    }

    /// Returns whether nothing more will arrive, including trailers.
    pub(crate) fn is_ended(&self) -> bool {
        let inner = self.inner();
        inner.read_ended && inner.unread.is_empty() && inner.trailers.is_empty()
    }

    /// Returns the trailer lines that followed the body, once it was read to its end.
    pub(crate) fn take_trailers(&self) -> Vec<u8> {
        std::mem::take(&mut self.inner().trailers)
    }

    /// Ready when the peer has cancelled the exchange, with the error kind.
    pub(crate) fn poll_abandoned(&self, cx: &mut Context<'_>) -> Poll<io::ErrorKind> {
        let mut inner = self.inner();
        let Inner { send, role, .. } = &mut *inner;
        let reset = match (send, role) {
            (Some(send), _) => ready!(send.poll_reset(cx)),
            (None, Role::Server(respond)) => ready!(respond.poll_reset(cx)),
            (None, Role::Client { .. }) => return Poll::Pending,
        };
        let kind = reset.map_or_else(|error| to_io(error).kind(), of_reset);
        Poll::Ready(inner.ended_here().unwrap_or(kind))
    }

    /// Resets the exchange, so that the peer does not take any of it for complete.
    pub(crate) fn reset(self) {
        let Inner { role, send, .. } = self.inner.into_inner();
        match (send, role) {
            (Some(mut send), Role::Server(_)) => send.send_reset(Reason::INTERNAL_ERROR),
            (Some(mut send), Role::Client { .. }) => send.send_reset(Reason::CANCEL),
            (None, Role::Server(mut respond)) => respond.send_reset(Reason::INTERNAL_ERROR),
            // Nothing of it has been sent.
            (None, Role::Client { .. }) => {}
        }
    }

    fn inner(&self) -> RefMut<'_, Inner> {
        // Every borrow ends within its own call, and none of those calls re-enters.
        self.inner.borrow_mut()
    }
}

impl Inner {
    fn new(role: Role, unread: Bytes) -> Inner {
        Inner {
            role,
            upgrade: None,
            head: Vec::new(),
            send: None,
            write_ended: false,
            recv: None,
            unread,
            unread_is_body: false,
            read_ended: false,
            trailers: Vec::new(),
            failed: None,
        }
    }

    /// Ready when there is unread data, or the end.
    fn poll_unread(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.unread.is_empty() && !self.read_ended {
            let Some(recv) = &mut self.recv else {
                ready!(self.poll_response(cx))?;
                continue;
            };
            match ready!(recv.poll_data(cx)) {
                Some(Ok(data)) => {
                    self.unread = data;
                    self.unread_is_body = true;
                }
                Some(Err(error)) => return Poll::Ready(Err(to_io(error))),
                None => {
                    let trailers = ready!(recv.poll_trailers(cx)).map_err(to_io)?;
                    if let Some(trailers) = trailers {
                        http2::write_trailers(&trailers, &mut self.trailers);
                    }
                    self.read_ended = true;
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Waits for the next response head.
    fn poll_response(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(kind) = self.failed {
            return Poll::Ready(Err(kind.into()));
        }
        let Role::Client { response: Some(response), is_head, .. } = &mut self.role else {
            // Nothing was sent yet; the reader is woken by the write.
            return Poll::Pending;
        };
        let mut text = Vec::with_capacity(512);
        if let Poll::Ready(Some(informational)) = response.poll_informational(cx) {
            let informational = informational.map_err(to_io)?;
            let (status, fields) = (informational.status(), informational.headers());
            http2::write_response(status, fields, Some(false), None, &mut text);
        } else {
            let (parts, recv) =
                ready!(std::pin::Pin::new(response).poll(cx)).map_err(to_io)?.into_parts();
            let ended = recv.is_end_stream();
            let upgrade = self.upgrade.as_ref().map(|(name, accept)| (&**name, &**accept));
            let framed = (!*is_head).then_some(ended);
            http2::write_response(parts.status, &parts.headers, framed, upgrade, &mut text);
            (self.recv, self.read_ended) = (Some(recv), ended);
        }
        self.unread = text.into();
        self.unread_is_body = false;
        Poll::Ready(Ok(()))
    }

    /// Takes the bytes that belong to the head, and sends it when it is complete and it is known
    /// whether a body follows; returns how many.
    fn write_head(&mut self, bytes: &[u8], last: bool) -> io::Result<usize> {
        let before = self.head.len();
        // The empty line may be split over two writes.
        let from = before.saturating_sub(3);
        self.head.extend_from_slice(bytes);
        let Some(end) = memchr::memmem::find(&self.head[from..], b"\r\n\r\n") else {
            if self.head.len() > HEAD_MAX_BYTES {
                return Err(io::ErrorKind::InvalidData.into());
            }
            return Ok(bytes.len());
        };
        let end = from + end + 4;
        self.head.truncate(end);
        let ended = last && end - before == bytes.len();
        let head = std::mem::take(&mut self.head);
        self.send_head(&head, ended).inspect_err(|error| self.failed = Some(error.kind()))?;
        self.write_ended = ended && self.send.is_some();
        Ok(end - before)
    }

    fn send_head(&mut self, text: &[u8], ended: bool) -> io::Result<()> {
        match &mut self.role {
            Role::Server(respond) => {
                let response: Response<()> =
                    http2::read_response(text, self.upgrade.is_some()).map_err(io::Error::other)?;
                if response.status().is_informational() {
                    respond.send_informational(response).map_err(to_io)
                } else {
                    self.send = Some(respond.send_response(response, ended).map_err(to_io)?);
                    Ok(())
                }
            }
            Role::Client { requests, response, is_head, .. } => {
                let (mut request, upgrade) = http2::read_request(text, requests.scheme)
                    .map_err(|error| io::Error::new(UNENCODABLE, error))?;
                *is_head = request.method() == Method::HEAD;
                if let Some(name) = upgrade {
                    if !requests.send.is_extended_connect_protocol_enabled() {
                        let what = "the server takes no extended CONNECT";
                        return Err(io::Error::new(io::ErrorKind::Unsupported, what));
                    }
                    request.extensions_mut().insert(Protocol::from(name));
                    self.upgrade = Some((name.to_owned(), websocket::accept(text)));
                }
                let (future, send) = requests.send.send_request(request, ended).map_err(to_io)?;
                (*response, self.send) = (Some(future), Some(send));
                Ok(())
            }
        }
    }

    /// Returns the error kind if a client's stream was ended on this side, separately or with its
    /// connection. The sending half does not know which side it was; the receiving half does.
    fn ended_here(&mut self) -> Option<io::ErrorKind> {
        let (Role::Server(_), Some(recv)) = (&self.role, &mut self.recv) else {
            return None;
        };
        let mut context = Context::from_waker(Waker::noop());
        // Data that came before the end will not be read.
        loop {
            match recv.poll_data(&mut context) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(error))) if !error.is_remote() && !error.is_io() => {
                    return Some(to_io(error).kind());
                }
                _ => return None,
            }
        }
    }

    fn poll_write_body(
        &mut self,
        cx: &mut Context<'_>,
        body: &[u8],
        last: bool,
    ) -> Poll<io::Result<usize>> {
        let Some(send) = &mut self.send else {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        };
        send.reserve_capacity(body.len());
        while send.capacity() == 0 {
            match ready!(send.poll_capacity(cx)) {
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(to_io(error))),
                None => return Poll::Ready(Err(closed(send, cx))),
            }
        }
        let count = send.capacity().min(body.len());
        let ends = last && count == body.len();
        let data = Bytes::copy_from_slice(&body[..count]);
        if let Err(error) = send.send_data(data, ends) {
            return Poll::Ready(Err(to_io(error)));
        }
        if let Role::Client { promise, .. } = &self.role {
            promise.taken(count);
        }
        self.write_ended = ends;
        Poll::Ready(Ok(count))
    }
}

/// Returns why a stream accepts no more data.
fn closed(send: &mut SendStream<Bytes>, cx: &mut Context<'_>) -> io::Error {
    match send.poll_reset(cx) {
        Poll::Ready(Ok(reason)) => of_reset(reason).into(),
        Poll::Ready(Err(error)) => to_io(error),
        Poll::Pending => io::ErrorKind::BrokenPipe.into(),
    }
}
