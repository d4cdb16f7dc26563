//! Tests of idle connections: what makes one unusable, and what does not.

use std::future::poll_fn;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use transport::Stream;

use crate::pair;

async fn say(from: &Stream, to: &Stream, text: &[u8]) {
    let (mut from, mut to) = (from, to);
    from.write_all(text).await.unwrap();
    let mut read = vec![0; text.len()];
    to.read_exact(&mut read).await.unwrap();
}

/// Ready when the runtime has seen that something arrived.
async fn arrived(stream: &Stream) {
    poll_fn(|cx| stream.poll_read_ready(cx)).await.unwrap();
}

/// Returns a client's connection on which the server's tickets have arrived unread.
async fn with_tickets() -> (Stream, Stream) {
    let (near, far) = pair().await;
    (&near).write_all(b"question").await.unwrap();
    (&far).read_exact(&mut [0; 8]).await.unwrap();
    // A waiting reader makes the tickets be sent, as there is no other data.
    let mut byte = [0];
    let reading = async { (&far).read(&mut byte).await.unwrap() };
    tokio::select! {
        biased;
        _ = reading => panic!("nothing was sent"),
        () = arrived(&near) => {}
    }
    (near, far)
}

#[tokio::test]
async fn tickets_are_not_unsolicited_data() {
    let (near, _far) = with_tickets().await;
    assert!(near.tcp_info().unwrap().bytes_received > 0);
    assert!(!near.closed_or_readable_hint(), "by the runtime");
    let (near, _far) = with_tickets().await;
    assert!(near.is_silent(), "by the kernel");
    assert!(near.is_silent() && !near.closed_or_readable_hint(), "and nothing is left");
}

#[tokio::test]
async fn an_idle_connection_tells_when_it_is_no_longer_fit() {
    let (near, far) = with_tickets().await;
    assert!(!near.closed_or_readable_hint());
    (&far).write_all(b"full").await.unwrap();
    arrived(&near).await;
    assert!(near.closed_or_readable_hint(), "unsolicited bytes");
    assert!(!near.is_silent());
    // They are still there for a reader.
    let mut text = [0; 4];
    (&near).read_exact(&mut text).await.unwrap();
    assert_eq!(&text, b"full");
    assert!(!near.closed_or_readable_hint() && near.is_silent());
    poll_fn(|cx| far.poll_close_write(cx)).await.unwrap();
    arrived(&near).await;
    assert!(near.closed_or_readable_hint() && !near.is_silent(), "closed");

    let (near, far) = with_tickets().await;
    drop(far);
    assert!(!near.is_silent(), "cut");
    assert!(near.closed_or_readable_hint());

    let (near, far) = with_tickets().await;
    far.reset();
    assert!(!near.is_silent(), "reset");
    assert!(near.closed_or_readable_hint());
}

#[tokio::test]
async fn the_kernels_word_finds_what_the_runtime_has_not_seen() {
    let (near, far) = pair().await;
    say(&near, &far, b"question").await;
    say(&far, &near, b"answer").await;
    assert!(near.is_silent());
    (&far).write_all(b"unasked").await.unwrap();
    assert!(!near.is_silent());
    assert!(near.closed_or_readable_hint(), "and it is not forgotten");
}
