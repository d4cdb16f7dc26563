//! The sample server as its clients see it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use transport::client::{Connection, ExchangeLimits, Request, Response};
use transport::dial::{DialOptions, dial};
use wire::pattern::pattern;

use super::*;

const LONG: Duration = Duration::from_secs(20);

/// Runs a server for as long as `client` takes.
async fn with<T>(spec: SampleSpec, client: impl AsyncFnOnce(SocketAddr, Arc<Sample>) -> T) -> T {
    let bound = os::listen::bind("127.0.0.1:0".parse().unwrap(), None, false).unwrap();
    let address = bound.listener.local_addr().unwrap();
    let sample = Sample::new(spec);
    tokio::select! {
        ended = serve(bound.listener, Arc::clone(&sample)) => unreachable!("{ended:?}"),
        result = client(address, sample) => result,
    }
}

fn quick() -> SampleSpec {
    SampleSpec { work: Duration::ZERO, ..SampleSpec::default() }
}

const DIAL: DialOptions = DialOptions { connect_timeout: LONG, user_timeout: None, tls: None };

async fn get(connection: &mut Connection, method: &str, path: &str) -> Response {
    let request = Request { method, path, host: "sample.test", fields: &[], body: b"" };
    let limits = ExchangeLimits { timeout: LONG, body_max_bytes: 1 << 20 };
    connection.exchange(&request, &limits).await.unwrap()
}

async fn get_fresh(address: SocketAddr, path: &str) -> Response {
    get(&mut Connection::open(address, &DIAL).await.unwrap(), "GET", path).await
}

/// Sends bytes as they are; yields everything until the server closes.
async fn raw(address: SocketAddr, bytes: &str) -> String {
    let stream = dial(address, &DIAL).await.unwrap();
    (&stream).write_all(bytes.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    (&stream).read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn it_answers_the_size_asked_for_on_one_kept_connection() {
    let payload = Payload::Text { size_bytes: 50_000 };
    with(SampleSpec { payload, ..quick() }, async |address, sample| {
        let mut connection = Connection::open(address, &DIAL).await.unwrap();
        for _ in 0..3 {
            let response = get(&mut connection, "GET", "/any/path?x").await;
            assert_eq!((response.status, response.body), (200, pattern(0, 50_000)));
        }
        let head = get(&mut connection, "HEAD", "/").await;
        assert_eq!(head.body, b"");
        assert_eq!(connection.head().content_length(), Some(50_000));
        let stats = sample.stats();
        assert_eq!((stats.connections, stats.connections_open, stats.requests), (1, 1, 4));
        assert_eq!((stats.concurrent, stats.concurrent_max), (0, 1));
    })
    .await;
}

#[tokio::test]
async fn the_json_says_who_answered() {
    let spec = SampleSpec { name: "a1".to_owned(), zone: Some("a".to_owned()), ..quick() };
    with(spec, async |address, _| {
        let first = get_fresh(address, "/").await;
        assert_eq!(first.body, b"{\"id\":\"1\",\"server\":\"a1\",\"zone\":\"a\"}\n");
        let answer = raw(
            address,
            "GET / HTTP/1.1\r\nHost: a\r\nX-Request-Id: r-7\r\nConnection: close\r\n\r\n",
        );
        let answer = answer.await;
        assert!(answer.contains("\r\nX-Server: a1\r\n"), "{answer}");
        assert!(
            answer.ends_with("{\"id\":\"r-7\",\"server\":\"a1\",\"zone\":\"a\"}\n"),
            "{answer}"
        );
    })
    .await;
}

#[tokio::test]
async fn slots_bound_the_work_and_the_rest_waits() {
    let work = Duration::from_millis(30);
    with(SampleSpec { work, slots: Some(2), ..quick() }, async |address, sample| {
        let begun = os::clock::now();
        let one = || get_fresh(address, "/");
        tokio::join!(one(), one(), one(), one(), one(), one());
        let took = os::clock::now() - begun;
        assert!(took >= work * 3, "three turns of two: {took:?}");
        let stats = sample.stats();
        assert_eq!((stats.requests, stats.concurrent), (6, 0));
        assert!(stats.concurrent_max <= 6);
        assert_eq!(stats.busy.len(), 2);
        assert!(stats.busy.iter().sum::<Duration>() >= work * 6, "{stats:?}");
    })
    .await;
}

#[tokio::test]
async fn status_and_stats_answer_while_all_slots_are_busy() {
    with(SampleSpec { work: LONG * 10, slots: Some(1), ..quick() }, async |address, _| {
        let work = dial(address, &DIAL).await.unwrap();
        (&work).write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        let mut connection = Connection::open(address, &DIAL).await.unwrap();
        let response = get(&mut connection, "GET", "/status").await;
        assert_eq!(response.status, 200);
        assert!(response.body.starts_with(b"{\"server\":\"sample\","), "{response:?}");
        let stats = get(&mut connection, "GET", "/stats").await;
        let stats = String::from_utf8(stats.body).unwrap();
        assert!(stats.contains("\"status_requests\":1"), "{stats}");
        assert!(stats.contains("\"connections\":2"), "{stats}");
    })
    .await;
}

#[tokio::test]
async fn the_status_can_be_made_to_fail_and_to_heal() {
    with(quick(), async |address, sample| {
        let mut connection = Connection::open(address, &DIAL).await.unwrap();
        let post = get(&mut connection, "POST", "/fail?x=1&status=503").await;
        assert_eq!(post.status, 200);
        assert_eq!(get(&mut connection, "GET", "/status").await.status, 503);
        assert_eq!(get(&mut connection, "GET", "/").await.status, 200, "work goes on");
        sample.set_status(204);
        assert_eq!(get(&mut connection, "GET", "/status").await.status, 204);
        for path in ["/fail", "/fail?status=", "/fail?status=100", "/fail?status=70000"] {
            assert_eq!(get(&mut connection, "POST", path).await.status, 400, "{path}");
        }
        assert_eq!(get(&mut connection, "GET", "/fail?status=503").await.status, 405);
        assert_eq!(get(&mut connection, "GET", "/status").await.status, 204);
    })
    .await;
}

#[tokio::test]
async fn bodies_of_either_framing_are_read_and_counted() {
    with(quick(), async |address, sample| {
        let answer = raw(
            address,
            "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello\
             POST /b HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
             3\r\nabc\r\n0\r\nT: x\r\n\r\n\
             GET /c HTTP/1.0\r\n\r\n",
        )
        .await;
        assert_eq!(answer.matches("HTTP/1.1 200 OK\r\n").count(), 3, "pipelined: {answer}");
        assert_eq!(answer.matches("Connection: close\r\n").count(), 1, "{answer}");
        assert_eq!((sample.stats().body_bytes, sample.stats().requests), (8, 3));
    })
    .await;
}

#[tokio::test]
async fn an_expected_continue_is_given_before_the_body() {
    with(quick(), async |address, sample| {
        let stream = dial(address, &DIAL).await.unwrap();
        let head = b"PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\
            Connection: close\r\n\r\n";
        (&stream).write_all(head).await.unwrap();
        let mut interim = [0; 25];
        (&stream).read_exact(&mut interim).await.unwrap();
        assert_eq!(&interim, b"HTTP/1.1 100 Continue\r\n\r\n");
        (&stream).write_all(b"ok").await.unwrap();
        let mut answer = String::new();
        (&stream).read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert_eq!(sample.stats().body_bytes, 2);
    })
    .await;
}

#[tokio::test]
async fn what_is_no_request_is_refused_and_the_connection_closed() {
    with(quick(), async |address, sample| {
        let answer = raw(address, "GET / HTTP/1.1\r\nHost : a\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
        let broken = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
        let answer = raw(address, broken).await;
        assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
        assert_eq!(sample.stats().bad_requests, 2);
        assert_eq!(sample.stats().concurrent, 0);
    })
    .await;
}

#[tokio::test]
async fn a_connection_is_closed_after_as_many_requests_as_it_may_carry() {
    with(
        SampleSpec { requests_per_connection_max: Some(2), ..quick() },
        async |address, sample| {
            let mut connection = Connection::open(address, &DIAL).await.unwrap();
            assert!(get(&mut connection, "GET", "/").await.keep_alive);
            let last = get(&mut connection, "GET", "/").await;
            assert!(!last.keep_alive, "it says so");
            let answer = raw(address, "GET /a HTTP/1.0\r\nConnection: close\r\n\r\n").await;
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
            assert_eq!(sample.stats().requests, 3);
        },
    )
    .await;
}

#[tokio::test]
async fn silence_ends_a_connection_after_the_time_it_was_given() {
    let silence_max = Duration::from_millis(50);
    with(SampleSpec { silence_max, ..quick() }, async |address, _| {
        let begun = os::clock::now();
        let stream = dial(address, &DIAL).await.unwrap();
        assert_eq!((&stream).read(&mut [0; 16]).await.unwrap(), 0, "closed");
        assert!(os::clock::now() - begun >= silence_max);
    })
    .await;
}

/// Workers that accept for themselves leave the others in the kernel's queue: the server has not
/// even accepted them, whatever they have sent.
#[tokio::test]
async fn workers_of_one_thread_accept_when_they_are_free() {
    let work = Duration::from_millis(40);
    let spec = SampleSpec {
        work,
        slots: Some(2),
        workers_accept: true,
        requests_per_connection_max: Some(1),
        ..SampleSpec::default()
    };
    with(spec, async |address, sample| {
        let begun = os::clock::now();
        let one = || get_fresh(address, "/");
        let watch = async {
            // An idle connection takes a worker, too: that is what it means to have one thread.
            while sample.stats().connections_open < 2 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            sample.stats()
        };
        let (.., seen) = tokio::join!(one(), one(), one(), one(), one(), one(), watch);
        assert_eq!((seen.connections_open, seen.concurrent_max <= 2), (2, true), "{seen:?}");
        assert!(os::clock::now() - begun >= work * 3, "three turns of two");
        let stats = sample.stats();
        assert_eq!((stats.connections, stats.requests, stats.concurrent_max), (6, 6, 2));
        assert_eq!(stats.busy.len(), 2);
        assert!(stats.busy.iter().sum::<Duration>() >= work * 6, "{stats:?}");
    })
    .await;
}

#[tokio::test]
async fn work_takes_what_was_asked_for() {
    let work = Duration::from_millis(30);
    with(SampleSpec { work, ..SampleSpec::default() }, async |address, _| {
        let mut connection = Connection::open(address, &DIAL).await.unwrap();
        get(&mut connection, "GET", "/").await;
        let mut least = LONG;
        for _ in 0..10 {
            let begun = os::clock::now();
            get(&mut connection, "GET", "/").await;
            least = least.min(os::clock::now() - begun);
        }
        // How punctual it is, is judged by `make measure` (`a_sample_server_is_punctual`).
        assert!(least >= work, "{least:?}");
    })
    .await;
}

#[tokio::test]
async fn dropping_the_server_closes_everything() {
    let (stream, address) = with(quick(), async |address, _| {
        let stream = dial(address, &DIAL).await.unwrap();
        (&stream).write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await.unwrap();
        assert!((&stream).read(&mut [0; 4096]).await.unwrap() > 0);
        (stream, address)
    })
    .await;
    assert_eq!((&stream).read(&mut [0; 16]).await.unwrap(), 0, "closed");
    let error = dial(address, &DIAL).await.unwrap_err();
    assert_eq!(error.cause, model::Cause::ConnectionRefused);
}
