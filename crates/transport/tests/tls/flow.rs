//! Tests of bytes in both directions: ends, truncation, back-pressure.

use std::future::poll_fn;
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::task::{Context, Poll, Waker};

use rustls::pki_types::ServerName;
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use transport::Stream;

use crate::pki::{NAME, pki};
use crate::{pair, pattern, sockets};

/// As [`pair`], with send buffers smaller than a record.
async fn narrow_pair() -> (Stream, Stream) {
    let [near, far] = sockets().map(|end| {
        SockRef::from(&end).set_send_buffer_size(4096).unwrap();
        Stream::from_std(end).unwrap()
    });
    let name = ServerName::try_from(NAME).unwrap();
    let (near, far) =
        tokio::join!(near.connect_tls(pki().client(), name), far.accept_tls(pki().server(), &[]));
    (near.unwrap(), far.unwrap())
}

/// Returns what `stream` takes at once, without being polled again.
fn write_now(stream: &Stream, bytes: &[u8]) -> Poll<usize> {
    let cx = &mut Context::from_waker(Waker::noop());
    let write = tokio::task::coop::unconstrained(poll_fn(|cx| stream.poll_write(cx, bytes)));
    Future::poll(std::pin::pin!(write), cx).map(Result::unwrap)
}

async fn read_exactly(stream: &Stream, bytes: usize) -> Vec<u8> {
    let mut stream = stream;
    let mut read = vec![0; bytes];
    stream.read_exact(&mut read).await.unwrap();
    read
}

#[tokio::test]
async fn half_close_ends_one_direction_and_leaves_the_other() {
    let (near, far) = pair().await;
    (&near).write_all(b"question").await.unwrap();
    poll_fn(|cx| near.poll_close_write(cx)).await.unwrap();
    let mut question = Vec::new();
    (&far).read_to_end(&mut question).await.unwrap();
    assert_eq!(question, b"question");
    assert_eq!((&near).write(b"more").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
    (&far).write_all(b"answer").await.unwrap();
    poll_fn(|cx| far.poll_close_write(cx)).await.unwrap();
    drop(far);
    let mut answer = Vec::new();
    (&near).read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, b"answer");
}

#[tokio::test]
async fn an_end_without_a_word_is_a_cut() {
    let (near, far) = pair().await;
    (&near).write_all(b"half of it").await.unwrap();
    drop(near);
    let mut all = Vec::new();
    let error = (&far).read_to_end(&mut all).await.unwrap_err();
    assert_eq!((error.kind(), &all[..]), (ErrorKind::UnexpectedEof, &b"half of it"[..]));
    // And it stays one.
    assert_eq!((&far).read(&mut [0; 8]).await.unwrap_err().kind(), ErrorKind::UnexpectedEof);
}

#[tokio::test]
async fn a_reset_is_an_error_and_closing_afterwards_is_none() {
    let (near, far) = pair().await;
    far.reset();
    let error = (&near).read(&mut [0; 8]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    poll_fn(|cx| near.poll_close_write(cx)).await.unwrap();
    assert!((&near).write_all(b"late").await.is_err());
}

#[tokio::test]
async fn both_directions_flow_at_once_through_one_shared_stream() {
    const BYTES: usize = 8 << 20;
    let (near, far) = pair().await;
    let send = |stream| async move {
        let mut stream: &Stream = stream;
        stream.write_all(&pattern(BYTES)).await.unwrap();
        stream.shutdown().await.unwrap();
    };
    let receive = |stream| async move {
        let mut stream: &Stream = stream;
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.unwrap();
        all
    };
    let ((), (), at_near, at_far) =
        tokio::join!(send(&near), send(&far), receive(&near), receive(&far));
    assert!(at_near == pattern(BYTES) && at_far == pattern(BYTES));
}

#[tokio::test]
async fn reads_and_writes_of_any_size_fit_together() {
    const BYTES: usize = 400_000;
    let seed = std::env::var("SEED").map_or(20_777, |seed| seed.parse().unwrap());
    println!("SEED={seed}");
    let mut state: u64 = seed;
    let mut size = move |max: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % max + 1
    };
    let sizes: Vec<(usize, usize)> = (0..4000).map(|_| (size(20_000), size(3_000))).collect();
    let (near, far) = pair().await;
    let all = pattern(BYTES);
    let send = async {
        let mut left = &all[..];
        for &(count, _) in sizes.iter().cycle() {
            let piece;
            (piece, left) = left.split_at(count.min(left.len()));
            (&near).write_all(piece).await.unwrap();
            if left.is_empty() {
                break;
            }
        }
        poll_fn(|cx| near.poll_close_write(cx)).await.unwrap();
    };
    let receive = async {
        let mut read = Vec::new();
        for &(_, count) in sizes.iter().cycle() {
            let at = read.len();
            read.resize(at + count, 0);
            let count = (&far).read(&mut read[at..]).await.unwrap();
            read.truncate(at + count);
            if count == 0 {
                break;
            }
        }
        read
    };
    let ((), read) = tokio::join!(send, receive);
    assert!(read == all);
}

#[tokio::test]
async fn single_bytes_are_read_from_what_one_read_brought() {
    let (near, far) = pair().await;
    let all = pattern(40_000);
    let send = async { (&near).write_all(&all).await.unwrap() };
    let receive = async {
        for (at, &expected) in all.iter().enumerate() {
            let mut byte = [0];
            assert_eq!((&far).read(&mut byte).await.unwrap(), 1);
            assert_eq!(byte[0], expected, "at {at}");
        }
    };
    tokio::join!(send, receive);
    assert!(!far.closed_or_readable_hint(), "all of it has been read");
}

#[tokio::test]
async fn what_was_reported_as_written_arrives_without_another_poll_of_the_writer() {
    let (near, far) = pair().await;
    let piece = pattern(50_000);
    // Until the kernel takes no more: nothing reads.
    let mut written = 0;
    while let Poll::Ready(count) = write_now(&near, &piece[written % piece.len()..]) {
        written += count;
        assert!(written < 64 << 20, "the kernel's buffers are bounded");
    }
    let read = read_exactly(&far, written).await;
    assert!(read.iter().enumerate().all(|(at, &byte)| byte == piece[at % piece.len()]));
}

#[tokio::test]
async fn a_pending_write_is_reported_once_and_however_it_is_sliced_then() {
    let (near, far) = pair().await;
    let piece = pattern(60_000);
    let mut written = 0;
    while let Poll::Ready(count) = write_now(&near, &piece) {
        assert_eq!(count, piece.len());
        written += count;
        assert!(written < 64 << 20, "the kernel's buffers are bounded");
    }
    // Repeated as slices, then the rest of it, which must not be sent twice.
    let send = async {
        let slices = [IoSlice::new(&piece[..10]), IoSlice::new(&piece[10..1000])];
        let count = poll_fn(|cx| near.poll_write_vectored(cx, &slices)).await.unwrap();
        assert_eq!(count, 1000);
        (&near).write_all(&piece[1000..]).await.unwrap();
        poll_fn(|cx| near.poll_close_write(cx)).await.unwrap();
    };
    let receive = async {
        let mut all = Vec::new();
        (&far).read_to_end(&mut all).await.unwrap();
        all
    };
    let ((), all) = tokio::join!(send, receive);
    assert_eq!(all.len(), written + piece.len());
    assert!(all.chunks(piece.len()).all(|chunk| chunk == piece));
}

#[tokio::test]
async fn a_slow_reader_gets_everything_through_a_small_buffer() {
    let (near, far) = narrow_pair().await;
    let all = pattern(300_000);
    let send = async {
        (&near).write_all(&all).await.unwrap();
        // Nothing writes, flushes or reads here any more: what was taken has been sent.
    };
    let receive = async {
        let mut read = Vec::new();
        let mut piece = [0; 700];
        while read.len() < all.len() {
            let count = (&far).read(&mut piece).await.unwrap();
            assert!(count > 0);
            read.extend_from_slice(&piece[..count]);
            tokio::task::yield_now().await;
        }
        read
    };
    let ((), read) = tokio::join!(send, receive);
    assert!(read == all);
}

#[tokio::test]
async fn new_keys_are_followed_in_both_directions() {
    let [near, far] = sockets();
    near.set_nonblocking(false).unwrap();
    let far = Stream::from_std(far).unwrap();
    // A peer that uses rustls directly, as the stream does not request key updates itself.
    let peer = std::thread::spawn(move || {
        let name = ServerName::try_from(NAME).unwrap();
        let session = rustls::ClientConnection::new(pki().client(), name).unwrap();
        let mut tls = rustls::StreamOwned::new(session, near);
        for _ in 0..10 {
            tls.write_all(b"question").unwrap();
            // It requests a key update from the other side too.
            tls.conn.refresh_traffic_keys().unwrap();
            tls.write_all(b" again").unwrap();
            let mut answer = [0; 6];
            tls.read_exact(&mut answer).unwrap();
            assert_eq!(&answer, b"answer");
        }
        tls.conn.send_close_notify();
        tls.flush().unwrap();
    });
    let far = far.accept_tls(pki().server(), &[]).await.unwrap();
    for _ in 0..10 {
        assert_eq!(read_exactly(&far, 14).await, b"question again");
        (&far).write_all(b"answer").await.unwrap();
    }
    assert_eq!((&far).read(&mut [0; 8]).await.unwrap(), 0);
    peer.join().unwrap();
}

#[tokio::test]
async fn closing_waits_for_room_and_sends_close_notify() {
    let (near, far) = pair().await;
    let piece = pattern(60_000);
    let mut written = 0;
    while let Poll::Ready(count) = write_now(&near, &piece) {
        written += count;
        assert!(written < 64 << 20, "the kernel's buffers are bounded");
    }
    let close = async { poll_fn(|cx| near.poll_close_write(cx)).await.unwrap() };
    let receive = async {
        let mut all = Vec::new();
        (&far).read_to_end(&mut all).await.unwrap();
        all.len()
    };
    // A record that was begun is completed: half a record would be a truncation.
    let ((), bytes) = tokio::join!(close, receive);
    assert_eq!(bytes, written + piece.len());
}

#[tokio::test]
async fn slices_are_written_in_order_in_one_go() {
    let (near, far) = pair().await;
    let slices = [IoSlice::new(b"head "), IoSlice::new(b""), IoSlice::new(b"body")];
    let written = poll_fn(|cx| near.poll_write_vectored(cx, &slices)).await.unwrap();
    assert_eq!(written, 9);
    assert_eq!(read_exactly(&far, 9).await, b"head body");
}

#[tokio::test]
async fn a_small_answer_leaves_in_one_segment_with_the_tickets() {
    let (near, far) = pair().await;
    (&near).write_all(b"question").await.unwrap();
    read_exactly(&far, 8).await;
    let before = far.tcp_info().unwrap().data_segs_out;
    let slices = [IoSlice::new(b"head "), IoSlice::new(b"body")];
    poll_fn(|cx| far.poll_write_vectored(cx, &slices)).await.unwrap();
    assert_eq!(far.tcp_info().unwrap().data_segs_out, before + 1);
    assert_eq!(read_exactly(&near, 9).await, b"head body");
}
