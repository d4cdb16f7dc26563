//! Any bytes as the beginning of a stream of TLS, and as the inside of a `ClientHello`, which is
//! what most of its rules are about. A verdict is never taken back, it does not depend on how the
//! message was split over records, and a name that is found is one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::tls::client_hello::{HelloError, PEEK_MAX_BYTES, Peeked, peek};

fuzz_target!(|data: &[u8]| {
    let _ = check(data);
    let [piece, body @ ..] = data else {
        return;
    };
    // As a body, in one record and in many.
    let len = (body.len() as u32).to_be_bytes();
    let message = [&[1, len[1], len[2], len[3]], body].concat();
    let whole = records(&message, message.len());
    let split = records(&message, usize::from(*piece) + 1);
    let verdict = check(&whole);
    assert_ne!(verdict, Ok(Peeked::Partial));
    if split.len() <= PEEK_MAX_BYTES {
        assert_eq!(check(&split), verdict);
    } else {
        assert_eq!(check(&split), Err(HelloError::TooLong));
    }
});

fn records(message: &[u8], piece: usize) -> Vec<u8> {
    let mut stream = Vec::new();
    for fragment in message.chunks(piece) {
        stream.extend_from_slice(&[22, 3, 1]);
        stream.extend_from_slice(&(fragment.len() as u16).to_be_bytes());
        stream.extend_from_slice(fragment);
    }
    stream
}

fn check(input: &[u8]) -> Result<Peeked, HelloError> {
    let verdict = peek(input);
    for len in [input.len() / 3, input.len() / 2, input.len().saturating_sub(1), 9] {
        match peek(&input[..len.min(input.len())]) {
            Ok(Peeked::Partial) => {}
            earlier => assert_eq!(earlier, verdict),
        }
    }
    if let Ok(Peeked::Complete(hello)) = &verdict {
        if let Some(name) = hello.server_name() {
            assert!((1..=253).contains(&name.len()) && !name.contains(".."));
            assert!(!name.starts_with('.') && !name.ends_with('.'));
            assert!(
                name.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.'))
            );
            assert!(name.parse::<std::net::IpAddr>().is_err());
        }
        let listed: usize = hello.alpn().map(|name| 1 + name.len()).sum();
        assert!(listed <= input.len() && hello.alpn().all(|name| !name.is_empty()));
    }
    verdict
}
