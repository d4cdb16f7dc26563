//! A small HTTP/1.1 client connection: for probes, demo traffic and the like.
//!
//! Not the way requests of clients take: it keeps whole bodies, up to a bound.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use model::Cause;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;
use wire::http1::{
    self, FIELDS_MAX, HeadLimits, Parsed, ResponseBody, ResponseError, ResponseHead, encode,
};

use crate::body::{Body, BodyError};
use crate::dial::{self, DialError, DialOptions};
use crate::{Inbox, Stream};

/// What is sent. Host and Content-Length are added, so they must not be among `fields`; nor must
/// Transfer-Encoding, Upgrade or Expect, which this client does not speak.
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
    /// Bytes of a body that are read; a longer one is cut off and its connection not used again.
    pub body_max_bytes: usize,
}

/// What came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The final status (1xx are skipped).
    pub status: u16,
    /// Whether the server keeps the connection open for another request.
    pub keep_alive: bool,
    /// The body, without its framing; at most `body_max_bytes` of it.
    pub body: Vec<u8>,
    /// Whether there was more than that.
    pub truncated: bool,
}

/// Bounds on a response's head.
const HEAD_LIMITS: HeadLimits =
    HeadLimits { head_max_bytes: 64 * 1024, target_max_bytes: 0, fields_max: FIELDS_MAX };

/// Interim responses (1xx) that are skipped before one response.
const INTERIM_MAX: u32 = 32;

/// A connection to one server, used for one exchange after the other.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    inbox: Inbox,
    outbox: Vec<u8>,
    head: ResponseHead,
    /// Between exchanges, with everything of the last one read and the server willing.
    idle: bool,
    exchanges: u64,
}

impl Connection {
    /// Connects.
    pub async fn open(address: SocketAddr, options: &DialOptions) -> Result<Connection, DialError> {
        Ok(Connection::over(dial::dial(address, options).await?))
    }

    /// Over a stream that is connected already.
    pub fn over(stream: Stream) -> Connection {
        Connection {
            stream,
            inbox: Inbox::default(),
            outbox: Vec::new(),
            head: ResponseHead::default(),
            idle: true,
            exchanges: 0,
        }
    }

    /// Sends a request and reads its response. After an error, and when the future is dropped
    /// before it is done, the connection is not [`reusable`](Connection::reusable).
    pub async fn exchange(
        &mut self,
        request: &Request<'_>,
        limits: &ExchangeLimits,
    ) -> Result<Response, ClientError> {
        if !self.idle {
            return Err(ClientError::BadRequest("the connection is not fit for another exchange"));
        }
        request.check()?;
        // Until it has ended well; a dropped future leaves it so.
        self.idle = false;
        let mut response = None;
        match timeout(limits.timeout, self.run(request, limits, &mut response)).await {
            Err(_) => Err(ClientError::Timeout { in_body: response.is_some() }),
            Ok(Err(error)) => Err(error),
            // `run` yields a response whenever it ends well.
            Ok(Ok(())) => response.ok_or(ClientError::Incomplete(None)),
        }
    }

    /// The head of the last response; empty before the first.
    pub fn head(&self) -> &ResponseHead {
        &self.head
    }

    /// Whether another request may be sent on it: the last exchange ended cleanly, the server
    /// keeps the connection, and has not closed it meanwhile. No system call while nothing has
    /// happened.
    pub fn reusable(&self) -> bool {
        self.idle && !self.stream.closed_or_readable_hint()
    }

    /// Exchanges completed on it.
    pub fn exchanges(&self) -> u64 {
        self.exchanges
    }

    /// The server's address.
    pub fn peer(&self) -> SocketAddr {
        self.stream.peer()
    }

    /// Closes with a reset, leaving no `TIME_WAIT`. (Dropping closes in the ordinary way.)
    pub fn reset(self) {
        self.stream.reset();
    }

    /// One exchange. The response is put in place as soon as its head is known, so that a timeout
    /// can tell where it struck.
    async fn run(
        &mut self,
        request: &Request<'_>,
        limits: &ExchangeLimits,
        response: &mut Option<Response>,
    ) -> Result<(), ClientError> {
        request.encode(&mut self.outbox);
        let mut stream = &self.stream;
        // A server may answer and close before it has read everything: its answer counts, and a
        // broken connection shows itself again in the reading.
        let sent = stream.write_all(&self.outbox).await;
        self.read_head(sent.err()).await?;

        let framing = self.head.body(request.method == "HEAD");
        let response = response.insert(Response {
            status: self.head.status(),
            keep_alive: self.head.keep_alive() && !matches!(framing, ResponseBody::UntilClose),
            body: Vec::new(),
            truncated: false,
        });
        let mut body = Body::of_response(framing);
        while !body.is_done() {
            let kept = &mut response.body;
            let mut over = false;
            let keep = |piece: &[u8]| {
                let room = limits.body_max_bytes - kept.len();
                kept.extend_from_slice(&piece[..piece.len().min(room)]);
                over = piece.len() > room;
            };
            body.read(&self.stream, &mut self.inbox, keep).await?;
            if over {
                response.truncated = true;
                response.keep_alive = false;
                break;
            }
        }
        self.exchanges += 1;
        // Bytes after the response are an answer to nothing: no later one could be trusted.
        self.idle =
            response.keep_alive && !request.asks_to_close() && self.inbox.unread().is_empty();
        response.keep_alive = self.idle;
        Ok(())
    }

    /// Reads the final response head, over interim ones.
    async fn read_head(&mut self, send_error: Option<io::Error>) -> Result<(), ClientError> {
        let mut interim = 0;
        loop {
            let parsed = http1::parse_response(self.inbox.unread(), &HEAD_LIMITS, &mut self.head);
            match parsed.map_err(ClientError::of_head)? {
                Parsed::Complete { consumed } => {
                    self.inbox.take(consumed);
                    if self.head.status() == 101 {
                        return Err(ClientError::Malformed("101 without an Upgrade asked for"));
                    }
                    if !self.head.is_informational() {
                        return Ok(());
                    }
                    interim += 1;
                    if interim > INTERIM_MAX {
                        return Err(ClientError::Malformed("too many interim responses"));
                    }
                }
                Parsed::Partial => {
                    let source = match self.inbox.fill(&self.stream).await {
                        Ok(0) => send_error,
                        Ok(_) => continue,
                        Err(error) => Some(error),
                    };
                    let nothing_came = interim == 0 && self.inbox.unread().is_empty();
                    return Err(if nothing_came {
                        ClientError::Closed { kept: self.exchanges > 0, source }
                    } else {
                        ClientError::Incomplete(source)
                    });
                }
            }
        }
    }
}

impl Request<'_> {
    /// Refuses what would not be one request on the wire.
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
        // RFC 9110 section 8.6: these methods anticipate a body, so its absence is said.
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

/// Why an exchange failed.
#[derive(Debug)]
pub enum ClientError {
    /// The request cannot be sent as it is; nothing was sent.
    BadRequest(&'static str),
    /// The server closed or reset the connection without having sent anything of a response. On a
    /// kept connection that is the normal race with the server's idle timeout.
    Closed {
        /// Whether the connection had served an exchange before.
        kept: bool,
        /// What the system said, unless the stream simply ended.
        source: Option<io::Error>,
    },
    /// The connection ended or broke within the response.
    Incomplete(Option<io::Error>),
    /// What came is no valid response; says which rule.
    Malformed(&'static str),
    /// The response head is larger than accepted.
    HeadTooLarge,
    /// Not done in time.
    Timeout {
        /// Whether the response head had arrived.
        in_body: bool,
    },
}

impl ClientError {
    fn of_head(error: ResponseError) -> ClientError {
        match error {
            ResponseError::HeadTooLarge | ResponseError::TooManyFields => ClientError::HeadTooLarge,
            other => ClientError::Malformed(other.detail()),
        }
    }

    /// In the terms of an exchange's end.
    pub fn cause(&self) -> Cause {
        match self {
            ClientError::BadRequest(_) => Cause::ProxyInternalError,
            ClientError::Closed { kept: true, .. } => Cause::ServerClosedIdleConnection,
            ClientError::Closed { kept: false, .. } => Cause::ConnectionTerminated,
            ClientError::Incomplete(_) => Cause::HttpResponseIncomplete,
            ClientError::Malformed(_) => Cause::HttpProtocolError,
            ClientError::HeadTooLarge => Cause::HttpResponseHeadTooLarge,
            ClientError::Timeout { in_body: false } => Cause::HttpResponseTimeout,
            ClientError::Timeout { in_body: true } => Cause::ConnectionReadTimeout,
        }
    }
}

impl From<BodyError> for ClientError {
    fn from(error: BodyError) -> ClientError {
        match error {
            BodyError::Io(error) => ClientError::Incomplete(Some(error)),
            BodyError::Ended => ClientError::Incomplete(None),
            BodyError::Chunk(error) => ClientError::Malformed(error.detail()),
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::BadRequest(why) => write!(f, "the request cannot be sent: {why}"),
            ClientError::Closed { source: Some(source), .. } => {
                write!(f, "connection lost before a response: {source}")
            }
            ClientError::Closed { .. } => f.write_str("connection closed before a response"),
            ClientError::Incomplete(Some(source)) => {
                write!(f, "connection lost within the response: {source}")
            }
            ClientError::Incomplete(None) => f.write_str("connection closed within the response"),
            ClientError::Malformed(why) => write!(f, "not a valid HTTP/1.1 response: {why}"),
            ClientError::HeadTooLarge => f.write_str("the response head is too large"),
            ClientError::Timeout { in_body: false } => f.write_str("no response head in time"),
            ClientError::Timeout { in_body: true } => {
                f.write_str("the response body was not complete in time")
            }
        }
    }
}

impl std::error::Error for ClientError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ClientError::Closed { source, .. } | ClientError::Incomplete(source) => {
                source.as_ref().map(|e| e as &(dyn std::error::Error + 'static))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::thread::JoinHandle;

    /// What a scripted server does after its last reply.
    #[derive(Clone, Copy)]
    enum End {
        Close,
        Reset,
        Hold,
    }

    /// A server for one connection: for each request, the next reply. Yields the requests.
    fn server(replies: &[&str], end: End) -> (SocketAddr, JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let replies: Vec<String> = replies.iter().map(ToString::to_string).collect();
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut requests = Vec::new();
            for reply in replies {
                requests.push(read_request(&mut stream));
                // A client that has seen enough may be gone before the end.
                let _ = stream.write_all(reply.as_bytes());
            }
            match end {
                End::Close => {}
                End::Reset => os::socket::set_linger_zero(&stream).unwrap(),
                End::Hold => drop(stream.read_to_end(&mut Vec::new())),
            }
            requests
        });
        (address, thread)
    }

    /// Up to the empty line, and as many bytes after it as Content-Length says.
    fn read_request(stream: &mut TcpStream) -> String {
        let mut text = String::new();
        let mut byte = [0];
        while !text.ends_with("\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
            text.push(char::from(byte[0]));
        }
        let length = text.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let mut body = vec![0; length.map_or(0, |n| n.parse().unwrap())];
        stream.read_exact(&mut body).unwrap();
        text + &String::from_utf8(body).unwrap()
    }

    const GET: Request<'_> =
        Request { method: "GET", path: "/status", host: "app.test", fields: &[], body: b"" };

    const LIMITS: ExchangeLimits =
        ExchangeLimits { timeout: Duration::from_secs(10), body_max_bytes: 1000 };

    async fn open(address: SocketAddr) -> Connection {
        let options = DialOptions { connect_timeout: Duration::from_secs(10), user_timeout: None };
        Connection::open(address, &options).await.unwrap()
    }

    /// One exchange with a server that sends `reply`, then does `end`.
    async fn one(reply: &str, end: End) -> (Connection, Result<Response, ClientError>) {
        let (address, _thread) = server(&[reply], end);
        let mut connection = open(address).await;
        let result = connection.exchange(&GET, &LIMITS).await;
        (connection, result)
    }

    #[tokio::test]
    async fn one_connection_serves_many_exchanges_of_every_framing() {
        let replies = [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            "HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nT: 1\r\n\r\n",
            "HTTP/1.1 204 No Content\r\n\r\n",
            "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 3\r\n\r\n",
        ];
        let (address, thread) = server(&replies, End::Hold);
        let mut connection = open(address).await;
        let mut seen = Vec::new();
        for _ in replies {
            assert!(connection.reusable());
            let response = connection.exchange(&GET, &LIMITS).await.unwrap();
            assert!(response.keep_alive && !response.truncated);
            seen.push((response.status, String::from_utf8(response.body).unwrap()));
        }
        let seen: Vec<_> = seen.iter().map(|(status, body)| (*status, body.as_str())).collect();
        assert_eq!(seen, [(200, "hello"), (201, "abcdefg"), (204, ""), (503, "")]);
        assert_eq!(connection.head().field("retry-after"), Some(&b"3"[..]));
        assert_eq!(connection.exchanges(), 4);
        connection.reset();
        let requests = thread.join().unwrap();
        assert_eq!(requests[0], "GET /status HTTP/1.1\r\nHost: app.test\r\n\r\n");
    }

    #[tokio::test]
    async fn a_request_carries_its_fields_and_body() {
        let reply = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        let (address, thread) = server(&[reply], End::Close);
        let mut connection = open(address).await;
        let fields = [("X-Probe".to_owned(), "weir".to_owned())];
        let request =
            Request { method: "POST", path: "/a?b", host: "h:1", fields: &fields, body: b"{}" };
        connection.exchange(&request, &LIMITS).await.unwrap();
        assert_eq!(
            thread.join().unwrap(),
            ["POST /a?b HTTP/1.1\r\nHost: h:1\r\nX-Probe: weir\r\nContent-Length: 2\r\n\r\n{}"]
        );
    }

    #[tokio::test]
    async fn a_body_may_last_until_the_close() {
        let (connection, result) = one("HTTP/1.1 200 OK\r\n\r\nall of it", End::Close).await;
        let response = result.unwrap();
        assert_eq!(response.body, b"all of it");
        assert!(!response.keep_alive && !connection.reusable());
    }

    #[tokio::test]
    async fn the_answer_to_head_has_no_body_whatever_it_announces() {
        let reply = "HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n";
        let (address, _thread) = server(&[reply], End::Hold);
        let mut connection = open(address).await;
        let response = connection.exchange(&Request { method: "HEAD", ..GET }, &LIMITS).await;
        assert_eq!(response.unwrap().body, b"");
        assert!(connection.reusable());
    }

    #[tokio::test]
    async fn interim_responses_are_skipped_but_not_without_end() {
        let hint = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
        let reply = hint.repeat(3) + "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
        let (connection, result) = one(&reply, End::Hold).await;
        assert_eq!(result.unwrap().status, 200);
        assert!(connection.reusable());

        let (_, result) = one(&hint.repeat(100), End::Hold).await;
        assert!(matches!(result, Err(ClientError::Malformed(_))));
    }

    #[tokio::test]
    async fn a_body_over_the_bound_is_cut_off_and_ends_the_connection() {
        for framing in ["Content-Length: 999999999\r\n\r\n", "Connection: close\r\n\r\n"] {
            let reply = format!("HTTP/1.1 200 OK\r\n{framing}{}", "y".repeat(100_000));
            let (connection, result) = one(&reply, End::Hold).await;
            let response = result.unwrap();
            assert_eq!(response.body, b"y".repeat(LIMITS.body_max_bytes));
            assert!(response.truncated && !response.keep_alive && !connection.reusable());
        }
        let exact = format!("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{}", "y".repeat(1000));
        let (connection, result) = one(&exact, End::Hold).await;
        assert!(!result.unwrap().truncated && connection.reusable());
    }

    #[tokio::test]
    async fn the_wish_of_either_side_to_close_is_respected() {
        let reply = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        let (connection, result) = one(reply, End::Hold).await;
        assert!(!result.unwrap().keep_alive && !connection.reusable());

        let reply = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        let (address, _thread) = server(&[reply], End::Hold);
        let mut connection = open(address).await;
        let fields = [("connection".to_owned(), "Close".to_owned())];
        let request = Request { fields: &fields, ..GET };
        connection.exchange(&request, &LIMITS).await.unwrap();
        assert!(!connection.reusable());
        assert!(connection.exchange(&GET, &LIMITS).await.is_err());
    }

    #[tokio::test]
    async fn bytes_after_the_response_end_the_trust() {
        let reply = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n";
        let (connection, result) = one(reply, End::Hold).await;
        assert_eq!(result.unwrap().body, b"ok");
        assert!(!connection.reusable());
    }

    #[tokio::test]
    async fn what_is_no_response_is_said_to_be_none() {
        for (reply, cause) in [
            ("SSH-2.0-OpenSSH_9.2\r\n", Cause::HttpProtocolError),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
                Cause::HttpProtocolError,
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
                Cause::HttpProtocolError,
            ),
            (
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
                Cause::HttpProtocolError,
            ),
            ("HTTP/1.1 200 OK\r\nContent-Le", Cause::HttpResponseIncomplete),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", Cause::HttpResponseIncomplete),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf",
                Cause::HttpResponseIncomplete,
            ),
            ("", Cause::ConnectionTerminated),
        ] {
            let (connection, result) = one(reply, End::Close).await;
            let error = result.unwrap_err();
            assert_eq!(error.cause(), cause, "{reply:?}: {error}");
            assert!(!connection.reusable());
        }
        let huge = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "z".repeat(70_000));
        let (_, result) = one(&huge, End::Hold).await;
        assert!(matches!(result, Err(ClientError::HeadTooLarge)));
    }

    #[tokio::test]
    async fn a_close_between_exchanges_is_told_from_one_within() {
        let reply = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        for end in [End::Close, End::Reset] {
            let (address, thread) = server(&[reply], end);
            let mut connection = open(address).await;
            connection.exchange(&GET, &LIMITS).await.unwrap();
            thread.join().unwrap();
            std::future::poll_fn(|cx| connection.stream.poll_read_ready(cx)).await.unwrap();
            assert!(!connection.reusable(), "seen while idle");
            // Whoever does not ask first finds out by the error.
            let error = connection.exchange(&GET, &LIMITS).await.unwrap_err();
            assert_eq!(error.cause(), Cause::ServerClosedIdleConnection, "{error}");
        }
    }

    #[tokio::test]
    async fn silence_is_a_timeout_that_tells_where() {
        let limits = ExchangeLimits { timeout: Duration::from_millis(50), ..LIMITS };
        for (reply, cause) in [
            ("HTTP/1.1 20", Cause::HttpResponseTimeout),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", Cause::ConnectionReadTimeout),
        ] {
            let (address, _thread) = server(&[reply], End::Hold);
            let mut connection = open(address).await;
            let error = connection.exchange(&GET, &limits).await.unwrap_err();
            assert_eq!(error.cause(), cause, "{error}");
            assert!(!connection.reusable());
        }
    }

    #[tokio::test]
    async fn what_would_not_be_one_request_is_not_sent() {
        let (address, _thread) = server(&[], End::Hold);
        let mut connection = open(address).await;
        let fields = [("X".to_owned(), "a\r\nY: b".to_owned())];
        for request in [
            Request { method: "GET /x HTTP/1.1\r\n", ..GET },
            Request { path: "/a b", ..GET },
            Request { path: "", ..GET },
            Request { host: "a\r\nb", ..GET },
            Request { fields: &fields, ..GET },
        ] {
            let result = connection.exchange(&request, &LIMITS).await;
            assert!(matches!(result, Err(ClientError::BadRequest(_))), "{request:?}");
        }
        assert!(connection.reusable(), "nothing happened on it");
    }
}
