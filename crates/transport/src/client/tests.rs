//! Tests against scripted HTTP/1.1 servers.

use super::*;
use model::Cause;
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

/// Starts a server for one connection: it sends the next reply for each request. Returns the
/// requests.
fn server(replies: &[&str], end: End) -> (SocketAddr, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let replies: Vec<String> = replies.iter().map(ToString::to_string).collect();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut requests = Vec::new();
        for reply in replies {
            requests.push(read_request(&mut stream));
            // A client that has seen enough may close before the end.
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

/// Reads up to the empty line, and as many bytes after it as Content-Length says.
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
    let options =
        DialOptions { connect_timeout: Duration::from_secs(10), user_timeout: None, tls: None };
    Connection::open(address, &options).await.unwrap()
}

/// Performs one exchange with a server that sends `reply`, then does `end`.
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
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", Cause::HttpProtocolError),
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
async fn a_close_between_exchanges_is_distinguished_from_one_within() {
    let reply = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    for end in [End::Close, End::Reset] {
        let (address, thread) = server(&[reply], end);
        let mut connection = open(address).await;
        connection.exchange(&GET, &LIMITS).await.unwrap();
        thread.join().unwrap();
        poll_fn(|cx| connection.link.stream().poll_read_ready(cx)).await.unwrap();
        assert!(!connection.reusable(), "seen while idle");
        // Without checking first, the client finds out by the error.
        let error = connection.exchange(&GET, &LIMITS).await.unwrap_err();
        assert_eq!(error.cause(), Cause::ServerClosedIdleConnection, "{error}");
    }
}

#[tokio::test]
async fn silence_is_a_timeout_that_tells_where() {
    let limits = ExchangeLimits { timeout: Duration::from_secs(1), ..LIMITS };
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
