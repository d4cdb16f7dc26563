//! What TLS costs, for a person to look at: `cargo test -p weir-transport --test tls pace --
//! --ignored --nocapture`.

use std::future::poll_fn;

use tokio::io::ReadBuf;
use transport::Stream;

use crate::{pair, tcp};

/// Sends `bytes` by repeating `data`, and reads them into `storage`. Yields the reads and the
/// writes that brought something.
async fn carry(
    (from, to): (&Stream, &Stream),
    bytes: usize,
    data: &[u8],
    storage: &mut [u8],
) -> (usize, usize) {
    let (mut reads, mut writes) = (0, 0);
    let send = async {
        let mut left = bytes;
        while left > 0 {
            let part = &data[..data.len().min(left)];
            left -= poll_fn(|cx| from.poll_write(cx, part)).await.unwrap();
            writes += 1;
        }
    };
    let receive = async {
        let mut left = bytes;
        while left > 0 {
            let mut buf = ReadBuf::new(storage);
            poll_fn(|cx| to.poll_read(cx, &mut buf)).await.unwrap();
            left -= buf.filled().len();
            reads += 1;
        }
    };
    tokio::join!(send, receive);
    (reads, writes)
}

async fn measure(name: &str, near: &Stream, far: &Stream) {
    const BULK: usize = 256 << 20;
    let (data, mut storage) = (vec![7; 64 * 1024], vec![0; 64 * 1024]);
    let begun = os::clock::now();
    let (reads, writes) = carry((near, far), BULK, &data, &mut storage).await;
    let rate = BULK as f64 / (os::clock::now() - begun).as_secs_f64() / 1e6;
    let per = |count: usize| (BULK / count) >> 10;
    println!("{name}: bulk {rate:.0} MB/s, {} KiB a read, {} KiB a write", per(reads), per(writes));
    const ROUNDS: u32 = 50_000;
    let begun = os::clock::now();
    for _ in 0..ROUNDS {
        carry((near, far), 200, &data[..200], &mut storage).await;
        carry((far, near), 300, &data[..300], &mut storage).await;
    }
    println!(
        "{name}: {:?} a small question and answer, both ends",
        (os::clock::now() - begun) / ROUNDS
    );
}

#[tokio::test]
#[ignore = "prints figures, checks nothing"]
async fn pace() {
    let (near, far) = tcp();
    measure("TCP", &near, &far).await;
    let (near, far) = pair().await;
    measure("TLS", &near, &far).await;
}
