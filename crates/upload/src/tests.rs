//! Uploads against a store that fails on request. A real one is asked in the whole-program
//! tests.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

use super::*;

type Script = Rc<RefCell<VecDeque<(u16, &'static str)>>>;

fn script<const N: usize>(answers: [(u16, &'static str); N]) -> Script {
    Rc::new(RefCell::new(VecDeque::from(answers)))
}

/// A store that answers parts with what is scripted, then with success, and writes down every
/// request.
#[derive(Clone, Default)]
struct Fake {
    /// Answers to parts, in the order in which they come: status and body. Status 0: none, ever.
    script: Script,
    /// Answers to `complete`. Status 0: none, and the connection is closed.
    complete: Script,
    /// The object's length, as it is answered to HEAD.
    object_bytes: u64,
    seen: Rc<RefCell<Vec<String>>>,
}

impl Fake {
    async fn serve(self, listener: TcpListener) {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::task::spawn_local(self.clone().connection(stream));
        }
    }

    async fn connection(self, mut stream: TcpStream) {
        let mut bytes = Vec::new();
        let (head, length) = loop {
            if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
                let length = head.split("Content-Length: ").nth(1);
                let length = length.and_then(|rest| rest.lines().next()?.parse().ok());
                break (head, end + 4 + length.unwrap_or(0));
            }
            if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                return;
            }
        };
        while bytes.len() < length {
            if stream.read_buf(&mut bytes).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let line = head.lines().next().unwrap_or_default();
        let (status, body) = if line.contains("uploads=1") {
            (
                200,
                "<InitiateMultipartUploadResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
                   <UploadId>id7</UploadId></InitiateMultipartUploadResult>",
            )
        } else if line.starts_with("PUT") {
            self.script.borrow_mut().pop_front().unwrap_or((200, ""))
        } else if line.starts_with("POST") {
            self.complete.borrow_mut().pop_front().unwrap_or((
                200,
                "<CompleteMultipartUploadResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
                 <ETag>\"x\"</ETag></CompleteMultipartUploadResult>",
            ))
        } else if line.starts_with("HEAD") {
            (200, "")
        } else {
            (204, "")
        };
        let short = line.split("&X-Amz-Alg").next().unwrap_or(line);
        let short = short.split("?X-Amz").next().unwrap_or(short);
        let part = line.split("partNumber=").nth(1).and_then(|rest| rest.split('&').next());
        self.seen.borrow_mut().push(match part {
            Some(part) => format!("PUT part {part}"),
            None => short.split('?').next().unwrap_or(short).to_owned(),
        });
        if status == 0 {
            if line.starts_with("PUT") {
                std::future::pending::<()>().await;
            }
            return;
        }
        let length = if line.starts_with("HEAD") { self.object_bytes } else { body.len() as u64 };
        let answer = format!(
            "HTTP/1.1 {status} X\r\nETag: \"tag\"\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        let _ = stream.write_all(answer.as_bytes()).await;
    }
}

fn plan() -> Plan {
    Plan {
        key: "k".to_owned(),
        size_bytes: 25,
        part_bytes: 10,
        parallel: 1,
        retries_max: 2,
        timeout: Duration::from_secs(20),
        connect_timeout: Duration::from_secs(20),
        keep: true,
    }
}

fn store(address: SocketAddr) -> Arc<Store> {
    let url = format!("http://{address}");
    let keys = Credentials::new("a", "s");
    Arc::new(Store::new("here", &url, "r", "bucket", Addressing::Path, keys, None).unwrap())
}

/// Uploads to the fake; yields what came of it, and what the fake saw.
async fn to(fake: Fake, plan: Plan) -> (Endpoint, Vec<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let store = store(listener.local_addr().unwrap());
    let seen = Rc::clone(&fake.seen);
    let endpoint = LocalSet::new()
        .run_until(async {
            let stop = pin!(std::future::pending());
            let mut watch = |_: Event<'_>| {};
            tokio::select! {
                endpoint = upload(store, &plan, stop, &mut watch) => endpoint,
                () = fake.serve(listener) => unreachable!("it never ends"),
            }
        })
        .await;
    let seen = seen.borrow().clone();
    (endpoint, seen)
}

#[tokio::test]
async fn a_part_that_failed_is_sent_again_and_its_time_holds_both_attempts() {
    let slow_down = "<Error><Code>SlowDown</Code></Error>";
    let script = script([(503, slow_down), (200, "")]);
    let (endpoint, seen) = to(Fake { script, ..Fake::default() }, plan()).await;
    assert_eq!(endpoint.error, None);
    assert_eq!(
        seen,
        [
            "POST /bucket/k",
            "PUT part 1",
            "PUT part 1",
            "PUT part 2",
            "PUT part 3",
            "POST /bucket/k"
        ]
    );
    assert_eq!(endpoint.retries, 1);
    let bytes: Vec<u64> = endpoint.parts.iter().map(|part| part.bytes).collect();
    assert_eq!(bytes, [10, 10, 5]);
    let first = &endpoint.parts[0];
    assert!(first.took_s >= first.last_attempt_s + 0.05, "the pause is part of it: {first:?}");
}

#[tokio::test]
async fn a_part_that_is_refused_ends_the_upload_and_removes_what_was_sent() {
    let denied = "<Error><Code>AccessDenied</Code><Message>Access Denied.</Message></Error>";
    let script = script([(200, ""), (403, denied)]);
    let (endpoint, seen) = to(Fake { script, ..Fake::default() }, plan()).await;
    assert_eq!(endpoint.error.as_deref(), Some("403 AccessDenied Access Denied"));
    assert_eq!(endpoint.left_behind, None);
    assert_eq!(seen, ["POST /bucket/k", "PUT part 1", "PUT part 2", "DELETE /bucket/k"]);
    assert_eq!(endpoint.parts.len(), 1, "what was measured is returned");
}

#[tokio::test]
async fn retries_end() {
    let script = script([(500, "oops"); 9]);
    let (endpoint, seen) = to(Fake { script, ..Fake::default() }, plan()).await;
    assert_eq!(endpoint.error.as_deref(), Some("500 oops"));
    assert_eq!(seen.iter().filter(|line| *line == "PUT part 1").count(), 3);
}

#[tokio::test]
async fn a_part_that_is_refused_does_not_wait_for_one_that_hangs() {
    let denied = "<Error><Code>AccessDenied</Code></Error>";
    let plan = Plan { parallel: 2, ..plan() };
    let (endpoint, _) =
        to(Fake { script: script([(0, ""), (403, denied)]), ..Fake::default() }, plan).await;
    assert_eq!(endpoint.error.as_deref(), Some("403 AccessDenied"));
    assert!(endpoint.real_s < 10.0, "the other's time limit of 20 s was waited for");
}

#[tokio::test]
async fn an_error_under_status_200_is_one_and_is_tried_again_if_it_may_pass() {
    let passing = (200, "<Error><Code>InternalError</Code><Message>try again</Message></Error>");
    let (endpoint, seen) =
        to(Fake { complete: script([passing]), ..Fake::default() }, plan()).await;
    assert_eq!(endpoint.error, None);
    assert_eq!(
        seen.iter().filter(|line| *line == "POST /bucket/k").count(),
        3,
        "create, complete twice"
    );

    let fake = Fake { complete: script([passing; 9]), ..Fake::default() };
    let (endpoint, seen) = to(fake, plan()).await;
    assert_eq!(endpoint.error.as_deref(), Some("200 InternalError try again"));
    assert_eq!(seen.last().map(String::as_str), Some("DELETE /bucket/k"));

    let denied = (200, "<Error><Code>AccessDenied</Code></Error>");
    let (endpoint, seen) = to(Fake { complete: script([denied]), ..Fake::default() }, plan()).await;
    assert_eq!(endpoint.error.as_deref(), Some("200 AccessDenied"));
    assert_eq!(
        seen.iter().filter(|line| *line == "POST /bucket/k").count(),
        2,
        "create, complete once"
    );
}

#[tokio::test]
async fn a_completion_whose_answer_was_lost_is_recognised_by_its_object() {
    let gone = (404, "<Error><Code>NoSuchUpload</Code></Error>");
    let lost = || script([(0, ""), gone]);
    let fake = Fake { complete: lost(), object_bytes: 25, ..Fake::default() };
    let (endpoint, seen) = to(fake, plan()).await;
    assert_eq!(endpoint.error, None);
    assert_eq!(seen.last().map(String::as_str), Some("HEAD /bucket/k"));

    let fake = Fake { complete: lost(), object_bytes: 24, ..Fake::default() };
    let (endpoint, _) = to(fake, plan()).await;
    assert_eq!(endpoint.error.as_deref(), Some("404 NoSuchUpload"), "another object's length");

    // Without an attempt before it, nothing of ours can be there.
    let fake = Fake { complete: script([gone]), object_bytes: 25, ..Fake::default() };
    let (endpoint, _) = to(fake, plan()).await;
    assert_eq!(endpoint.error.as_deref(), Some("404 NoSuchUpload"));
}

#[tokio::test]
async fn without_a_key_of_ones_own_the_object_is_removed_in_the_end() {
    let (endpoint, seen) = to(Fake::default(), Plan { keep: false, ..plan() }).await;
    assert_eq!(endpoint.error, None);
    assert_eq!(seen[seen.len() - 2..], ["POST /bucket/k", "DELETE /bucket/k"]);
}

#[tokio::test]
async fn who_is_stopped_removes_what_was_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let store = store(listener.local_addr().unwrap());
    let fake = Fake::default();
    let seen = Rc::clone(&fake.seen);
    let endpoint = LocalSet::new()
        .run_until(async {
            let plan = plan();
            let (arrived, first) = tokio::sync::oneshot::channel();
            let mut arrived = Some(arrived);
            let stop = pin!(async {
                let _ = first.await;
                "SIGINT"
            });
            let mut watch = |_: Event<'_>| {
                let _ = arrived.take().map(|arrived| arrived.send(()));
            };
            tokio::select! {
                endpoint = upload(store, &plan, stop, &mut watch) => endpoint,
                () = fake.serve(listener) => unreachable!("it never ends"),
            }
        })
        .await;
    assert_eq!(endpoint.error.as_deref(), Some("stopped by SIGINT"));
    assert_eq!(seen.borrow().last().map(String::as_str), Some("DELETE /bucket/k"));
    assert!(!endpoint.parts.is_empty());
}

#[test]
fn an_endpoint_that_is_none_is_said_to_be_none() {
    for (url, wanted) in [
        ("http://", "here: http:// is no endpoint: empty host"),
        ("ftp://x", "here: ftp://x is no endpoint: "),
        ("https://x", "here: https://x is no endpoint: there is no TLS for it"),
    ] {
        let keys = Credentials::new("a", "s");
        let error = Store::new("here", url, "r", "b", Addressing::Path, keys, None).unwrap_err();
        assert!(error.starts_with(wanted), "{error}");
    }
}
