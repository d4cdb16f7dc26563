//! Tests of streams over plain TCP, both ends in one process.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::task::{Context, Waker};

use os::splice::Pipe;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::Stream;

/// Two ends of one connection.
async fn pair() -> (Stream, Stream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (dialed, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
    let std = accepted.unwrap().0.into_std().unwrap();
    (Stream::from_tokio(dialed.unwrap(), address), Stream::from_std(std).unwrap())
}

async fn read_ready(stream: &Stream) {
    poll_fn(|cx| stream.poll_read_ready(cx)).await.unwrap();
}

fn is_read_ready(stream: &Stream) -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    stream.poll_read_ready(&mut cx).is_ready()
}

#[tokio::test]
async fn it_knows_its_ends() {
    let (near, far) = pair().await;
    assert_eq!(near.peer(), far.local().unwrap());
    assert_eq!(far.peer(), near.local().unwrap());
    assert_eq!(near.tcp_info().unwrap().state, os::tcp_info::TcpState::Established);
}

#[tokio::test]
async fn half_close_ends_one_direction_and_leaves_the_other() {
    let (near, far) = pair().await;
    (&near).write_all(b"question").await.unwrap();
    poll_fn(|cx| near.poll_close_write(cx)).await.unwrap();
    let mut question = Vec::new();
    (&far).read_to_end(&mut question).await.unwrap();
    assert_eq!(question, b"question");
    (&far).write_all(b"answer").await.unwrap();
    drop(far);
    let mut answer = Vec::new();
    (&near).read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, b"answer");
}

#[tokio::test]
async fn a_reset_is_an_error_and_closing_afterwards_is_none() {
    let (near, far) = pair().await;
    far.reset();
    let error = (&near).read(&mut [0; 8]).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    poll_fn(|cx| near.poll_close_write(cx)).await.unwrap();
    assert!((&near).write_all(b"late").await.is_err());
}

#[tokio::test]
async fn both_directions_flow_at_once_through_one_shared_stream() {
    const BYTES: usize = 8 << 20;
    let (near, far) = pair().await;
    let send = |stream| async move {
        let mut stream: &Stream = stream;
        stream.write_all(&vec![5; BYTES]).await.unwrap();
        stream.shutdown().await.unwrap();
    };
    let receive = |stream| async move {
        let mut stream: &Stream = stream;
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.unwrap();
        all.len()
    };
    let ((), (), at_near, at_far) =
        tokio::join!(send(&near), send(&far), receive(&near), receive(&far));
    assert_eq!((at_near, at_far), (BYTES, BYTES));
}

#[tokio::test]
async fn a_short_read_makes_the_next_wait_without_asking_the_kernel() {
    let (near, far) = pair().await;
    (&far).write_all(b"abc").await.unwrap();
    let mut buffer = [0; 16];
    assert_eq!((&near).read(&mut buffer).await.unwrap(), 3);
    assert!(!is_read_ready(&near), "the readiness is gone although no call saw EAGAIN");
    (&far).write_all(b"d").await.unwrap();
    assert_eq!((&near).read(&mut buffer).await.unwrap(), 1);
}

#[tokio::test]
async fn slices_are_written_in_order_in_one_go() {
    let (near, far) = pair().await;
    let slices = [IoSlice::new(b"head "), IoSlice::new(b""), IoSlice::new(b"body")];
    let written = poll_fn(|cx| near.poll_write_vectored(cx, &slices)).await.unwrap();
    assert_eq!(written, 9);
    let mut all = [0; 9];
    (&far).read_exact(&mut all).await.unwrap();
    assert_eq!(&all, b"head body");
}

#[tokio::test]
async fn an_idle_connection_tells_when_it_is_no_longer_fit() {
    let (near, far) = pair().await;
    assert!(!near.closed_or_readable_hint());
    (&far).write_all(b"full").await.unwrap();
    read_ready(&near).await;
    assert!(near.closed_or_readable_hint(), "unsolicited bytes");
    // Fills the buffer exactly: the runtime cannot know that nothing is left.
    (&near).read_exact(&mut [0; 4]).await.unwrap();
    assert!(!near.closed_or_readable_hint(), "the peek found nothing");
    assert!(!is_read_ready(&near), "and was needed once only");
    drop(far);
    read_ready(&near).await;
    assert!(near.closed_or_readable_hint(), "closed");

    let (near, far) = pair().await;
    far.reset();
    read_ready(&near).await;
    assert!(near.closed_or_readable_hint(), "reset");
}

#[tokio::test]
async fn splicing_carries_bytes_and_the_end() {
    const BYTES: usize = 4 << 20;
    let (source, inlet) = pair().await;
    let (outlet, sink) = pair().await;
    let send = async {
        let bytes: Vec<u8> = (0..BYTES).map(|n| (n % 251) as u8).collect();
        (&source).write_all(&bytes).await.unwrap();
        (&source).shutdown().await.unwrap();
    };
    let tunnel = async {
        let mut pipe = Pipe::new(1 << 18).unwrap();
        while poll_fn(|cx| inlet.poll_splice_in(cx, &mut pipe, usize::MAX)).await.unwrap() > 0 {
            while !pipe.is_empty() {
                poll_fn(|cx| outlet.poll_splice_out(cx, &mut pipe, false)).await.unwrap();
            }
        }
        poll_fn(|cx| outlet.poll_close_write(cx)).await.unwrap();
    };
    let receive = async {
        let mut all = Vec::new();
        (&sink).read_to_end(&mut all).await.unwrap();
        all
    };
    let ((), (), all) = tokio::join!(send, tunnel, receive);
    assert_eq!(all.len(), BYTES);
    assert!(all.iter().enumerate().all(|(n, &byte)| byte == (n % 251) as u8));
}
