//! A small HTTP client, one exchange at a time: for probes, demo traffic and similar uses.
//!
//! Not used for forwarding: it buffers whole bodies, up to a bound.

mod connect;
mod error;

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::time::timeout;
use wire::http1::{
    self, FIELDS_MAX, HeadLimits, Parsed, RequestBody, ResponseBody, ResponseHead, encode,
};

use crate::body::Body;
use crate::dial::{self, DialError, DialOptions};
use crate::http2::Http2Client;
use crate::{Inbox, Stream};

pub use connect::{ConnectError, connect};
pub use error::ClientError;

/// A request. Host and Content-Length are added, so they must not be among `fields`; nor may
/// Transfer-Encoding, Upgrade or Expect, which this client does not support.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Method, upper case.
    pub method: &'a str,
    /// Request target in origin form.
    pub path: &'a str,
    /// The Host field.
    pub host: &'a str,
    /// Further fields, in order.
    pub fields: &'a [(String, String)],
    /// Body; empty: none.
    pub body: &'a [u8],
}

/// Bounds of one exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeLimits {
    /// From the first byte sent to the last byte of the body received.
    pub timeout: Duration,
    /// Maximum number of body bytes read; a longer body is cut off and its connection not reused.
    pub body_max_bytes: usize,
}

/// A response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The final status (1xx are skipped).
    pub status: u16,
    /// Whether the server keeps the connection open for another request.
    pub keep_alive: bool,
    /// The body, without its framing; at most `body_max_bytes` of it.
    pub body: Vec<u8>,
    /// Whether the body was longer than that.
    pub truncated: bool,
}

/// Maximum length of [`Response::excerpt`].
const EXCERPT_MAX_CHARS: usize = 200;

impl Response {
    /// Returns the beginning of its body, for a line of the log: without what is no text, such as the bytes between the
    /// texts of a protobuf message, and at most 200 characters.
    pub fn excerpt(&self) -> String {
        let text = String::from_utf8_lossy(&self.body);
        let readable =
            text.chars().filter(|c| !c.is_control() && *c != char::REPLACEMENT_CHARACTER);
        readable.take(EXCERPT_MAX_CHARS).collect::<String>().trim().to_owned()
    }
}

/// Bounds on a response's head.
const HEAD_LIMITS: HeadLimits =
    HeadLimits { head_max_bytes: 64 * 1024, target_max_bytes: 0, fields_max: FIELDS_MAX };

/// Interim responses (1xx) that are skipped before one response.
const INTERIM_MAX: u32 = 32;

/// A connection to one server, used for one exchange at a time.
#[derive(Debug)]
pub struct Connection {
    link: Link,
    inbox: Inbox,
    outbox: Vec<u8>,
    head: ResponseHead,
    trailers: Vec<u8>,
    /// Between exchanges, with the last response completely read and the server willing to
    /// continue.
    idle: bool,
    exchanges: u64,
}

/// The transport of exchanges.
enum Link {
    /// All exchanges on this stream; one, if it is a stream of HTTP/2.
    Http1(Stream),
    /// Each exchange on its own stream.
    Http2(Http2Client),
}

impl Connection {
    /// Connects, for HTTP/1.1.
    ///
    /// # Errors
    /// The connection failed.
    pub async fn open(address: SocketAddr, options: &DialOptions) -> Result<Connection, DialError> {
        Ok(Connection::over(dial::dial(address, options).await?))
    }

    /// Uses HTTP/1.1 over a stream that is already connected.
    pub fn over(stream: Stream) -> Connection {
        Connection::of(Link::Http1(stream))
    }

    /// Uses HTTP/2, on a connection that has no other user, and whose driver is polled elsewhere.
    pub fn over_http2(client: Http2Client) -> Connection {
        Connection::of(Link::Http2(client))
    }

    /// Uses a stream of an HTTP/2 connection that others use, too, for one exchange.
    pub fn for_one(client: &Http2Client) -> Connection {
        Connection::of(Link::Http1(client.open(RequestBody::None)))
    }

    fn of(link: Link) -> Connection {
        Connection {
            link,
            inbox: Inbox::default(),
            outbox: Vec::new(),
            head: ResponseHead::default(),
            trailers: Vec::new(),
            idle: true,
            exchanges: 0,
        }
    }

    /// Sends a request and reads its response. After an error, and when the future is dropped
    /// before it is done, the connection is not [`reusable`](Connection::reusable).
    ///
    /// # Errors
    /// The request could not be sent, or no valid response came within the limits.
    pub async fn exchange(
        &mut self,
        request: &Request<'_>,
        limits: &ExchangeLimits,
    ) -> Result<Response, ClientError> {
        let mut response = None;
        match timeout(limits.timeout, self.run(request, limits, &mut response)).await {
            Err(_) => Err(ClientError::Timeout { in_body: response.is_some() }),
            Ok(Err(error)) => Err(error),
            // `run` returns a response whenever it succeeds.
            Ok(Ok(())) => response.ok_or(ClientError::Incomplete(None)),
        }
    }

    /// Returns the head of the last response; empty before the first.
    pub fn head(&self) -> &ResponseHead {
        &self.head
    }

    /// Returns a trailer field of the last response, over HTTP/2; trailers of HTTP/1.1 are ignored.
    pub fn trailer(&self, name: &str) -> Option<&[u8]> {
        http1::trailer(&self.trailers, name.as_bytes())
    }

    /// Returns whether another request may be sent on it: the last exchange ended cleanly, the
    /// server keeps the connection open, and has not closed it meanwhile. No system call while
    /// nothing has happened.
    pub fn reusable(&self) -> bool {
        self.idle
            && match &self.link {
                Link::Http1(stream) => !stream.is_exchange() && !stream.closed_or_readable_hint(),
                Link::Http2(client) => client.is_open(),
            }
    }

    /// Returns the number of exchanges completed on it.
    pub fn exchanges(&self) -> u64 {
        self.exchanges
    }

    /// Returns the server's address.
    pub fn peer(&self) -> SocketAddr {
        self.link.stream().peer()
    }

    /// Returns the kernel's TCP statistics of the connection.
    ///
    /// # Errors
    /// The kernel does not provide them.
    pub fn tcp_info(&self) -> io::Result<os::tcp_info::TcpInfo> {
        self.link.stream().tcp_info()
    }

    /// Closes with a reset, leaving no `TIME_WAIT`. (Dropping closes normally.) Over HTTP/2 it
    /// closes once its driver is dropped, too.
    pub fn reset(self) {
        match self.link {
            Link::Http1(stream) => stream.reset(),
            Link::Http2(client) => client.connection().reset_when_dropped(),
        }
    }

    /// Sends a request and returns the response as it arrives, once its head is there. The caller bounds the time.
    /// The connection is not [`reusable`](Connection::reusable) afterwards.
    ///
    /// # Errors
    /// The request could not be sent, or no valid head came.
    pub async fn begin(&mut self, request: &Request<'_>) -> Result<Incoming<'_>, ClientError> {
        if !self.idle {
            return Err(ClientError::BadRequest("the connection is not fit for another exchange"));
        }
        request.check()?;
        // Until it has ended successfully; a dropped future leaves it so.
        self.idle = false;
        let Connection { link, inbox, outbox, head, trailers, exchanges, .. } = self;
        let exchange = match link {
            Link::Http1(_) => None,
            Link::Http2(client) => {
                *inbox = Inbox::default();
                Some(client.open(RequestBody::Length(request.body.len() as u64)))
            }
        };
        let stream = exchange.as_ref().unwrap_or_else(|| link.stream());
        trailers.clear();
        request.encode(outbox);
        // A server may answer and close before it has read everything: its answer counts, and a
        // broken connection shows again when reading.
        let sent = send(stream, outbox).await;
        read_head(stream, inbox, head, *exchanges > 0, sent.err()).await?;

        // An HTTP/2 stream ends with the body, whatever the head says.
        let framing = match head.body(request.method == "HEAD") {
            _ if stream.is_exchange() => ResponseBody::UntilClose,
            framing => framing,
        };
        let closes = matches!(framing, ResponseBody::UntilClose) && !stream.is_exchange();
        let body = Body::of_response(framing);
        Ok(Incoming { connection: self, exchange, body, closes })
    }

    /// Performs one exchange. The response is stored as soon as its head is known, so that a
    /// timeout can tell whether it happened in the body.
    async fn run(
        &mut self,
        request: &Request<'_>,
        limits: &ExchangeLimits,
        response: &mut Option<Response>,
    ) -> Result<(), ClientError> {
        let mut incoming = self.begin(request).await?;
        let response = response.insert(Response {
            status: incoming.status(),
            keep_alive: incoming.connection.head.keep_alive() && !incoming.closes,
            body: Vec::new(),
            truncated: false,
        });
        let mut over = false;
        while !over
            && incoming
                .read(|piece| {
                    let room = limits.body_max_bytes - response.body.len();
                    response.body.extend_from_slice(&piece[..piece.len().min(room)]);
                    over = piece.len() > room;
                })
                .await?
        {}
        if over {
            response.truncated = true;
            response.keep_alive = false;
        }
        let Incoming { connection, exchange, .. } = incoming;
        let Connection { link, inbox, trailers, idle, exchanges, .. } = connection;
        *trailers = exchange.as_ref().unwrap_or_else(|| link.stream()).take_trailers();
        *exchanges += 1;
        // Bytes after the response belong to no request: no later response could be trusted.
        *idle = response.keep_alive && !request.asks_to_close() && inbox.unread().is_empty();
        response.keep_alive = *idle;
        Ok(())
    }
}

/// A response whose body is read as it arrives.
#[derive(Debug)]
pub struct Incoming<'a> {
    connection: &'a mut Connection,
    /// The stream of this exchange, over HTTP/2.
    exchange: Option<Stream>,
    body: Body,
    /// The connection ends with the body.
    closes: bool,
}

impl Incoming<'_> {
    /// Returns the final status (1xx are skipped).
    pub fn status(&self) -> u16 {
        self.connection.head.status()
    }

    /// Waits for the next piece of the body, without its framing, and passes it to `sink`. Returns false, at once,
    /// at the end of the body. A call may also yield no piece. If the future is dropped, nothing is lost.
    ///
    /// # Errors
    /// The connection failed, or the body's framing is invalid.
    pub async fn read(&mut self, sink: impl FnMut(&[u8])) -> Result<bool, ClientError> {
        let Incoming { connection, exchange, body, .. } = self;
        if body.is_done() {
            return Ok(false);
        }
        let stream = exchange.as_ref().unwrap_or_else(|| connection.link.stream());
        body.read(stream, &mut connection.inbox, sink).await?;
        Ok(true)
    }
}

impl Link {
    /// Returns the connection itself.
    fn stream(&self) -> &Stream {
        match self {
            Link::Http1(stream) => stream,
            Link::Http2(client) => client.connection(),
        }
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Link::Http1(_) => "Http1",
            Link::Http2(_) => "Http2",
        };
        f.debug_tuple(name).field(self.stream()).finish()
    }
}

/// Sends a whole request.
async fn send(stream: &Stream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = poll_fn(|cx| stream.poll_write_last(cx, bytes)).await?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = &bytes[count..];
    }
    Ok(())
}

/// Reads the final response head, skipping interim ones. `kept`: the connection has served an
/// exchange before.
async fn read_head(
    stream: &Stream,
    inbox: &mut Inbox,
    head: &mut ResponseHead,
    kept: bool,
    send_error: Option<io::Error>,
) -> Result<(), ClientError> {
    let mut interim = 0;
    loop {
        let parsed = http1::parse_response(inbox.unread(), &HEAD_LIMITS, head);
        match parsed.map_err(ClientError::of_head)? {
            Parsed::Complete { consumed } => {
                inbox.take(consumed);
                if head.status() == 101 {
                    return Err(ClientError::Malformed("101 without an Upgrade asked for"));
                }
                if !head.is_informational() {
                    return Ok(());
                }
                interim += 1;
                if interim > INTERIM_MAX {
                    return Err(ClientError::Malformed("too many interim responses"));
                }
            }
            Parsed::Partial => {
                let source = match inbox.fill(stream).await {
                    Ok(0) => send_error,
                    Ok(_) => continue,
                    Err(error) => Some(error),
                };
                let begun = interim > 0 || !inbox.unread().is_empty();
                return Err(ClientError::of_break(source, kept, begun));
            }
        }
    }
}

impl Request<'_> {
    /// Refuses what would not be exactly one request on the wire.
    fn check(&self) -> Result<(), ClientError> {
        let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        let visible = |b: u8| b.is_ascii_graphic();
        let value = |b: u8| b == b'\t' || (b >= b' ' && b != 0x7f);
        let all = |text: &str, may: &dyn Fn(u8) -> bool| text.bytes().all(may);
        if self.method.is_empty() || !all(self.method, &token) {
            return Err(ClientError::BadRequest("the method is not a token"));
        }
        if self.path.is_empty() || !all(self.path, &visible) {
            return Err(ClientError::BadRequest("the target has a character not allowed there"));
        }
        if !all(self.host, &visible) {
            return Err(ClientError::BadRequest("the Host has a character not allowed there"));
        }
        for (name, text) in self.fields {
            if name.is_empty() || !all(name, &token) || !all(text, &value) {
                return Err(ClientError::BadRequest("a field has a character not allowed there"));
            }
        }
        Ok(())
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        encode::put_request_line(out, self.method, self.path);
        encode::put_field(out, b"Host", self.host.as_bytes());
        for (name, value) in self.fields {
            encode::put_field(out, name.as_bytes(), value.as_bytes());
        }
        // RFC 9110 section 8.6: these methods anticipate a body, so its absence is stated.
        if !self.body.is_empty() || matches!(self.method, "POST" | "PUT" | "PATCH") {
            encode::put_number_field(out, b"Content-Length", self.body.len() as u64);
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(self.body);
    }

    fn asks_to_close(&self) -> bool {
        self.fields.iter().any(|(name, value)| {
            name.eq_ignore_ascii_case("connection")
                && value.split(',').any(|option| option.trim().eq_ignore_ascii_case("close"))
        })
    }
}

#[cfg(test)]
mod tests;
