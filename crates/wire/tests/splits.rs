//! Tests that a message is parsed the same however its bytes are split: random messages, valid and
//! invalid, whole and in pieces. The seed is printed; `WEIR_SEED` replays it.

mod common;

use common::rng;
use fastrand::Rng;
use wire::http1::{
    ChunkLimits, ChunkedDecoder, HeadLimits, Parsed, RequestHead, ResponseHead, parse_request,
    parse_response,
};

const ROUNDS: usize = 20_000;

const LIMITS: HeadLimits = HeadLimits { head_max_bytes: 300, target_max_bytes: 60, fields_max: 8 };

fn pick<'a>(rng: &mut Rng, from: &[&'a str]) -> &'a str {
    from[rng.usize(..from.len())]
}

/// Occasionally corrupts a message: a byte changed, removed or doubled.
fn disturb(rng: &mut Rng, message: &mut Vec<u8>) {
    while rng.u8(..4) == 0 && !message.is_empty() {
        let at = rng.usize(..message.len());
        let byte = b"\r\n \t\0:;,aA0\x7f\xff"[rng.usize(..13)];
        match rng.u8(..3) {
            0 => message[at] = byte,
            1 => drop(message.remove(at)),
            _ => message.insert(at, byte),
        }
    }
}

fn fields(rng: &mut Rng, out: &mut String) {
    for _ in 0..rng.usize(..6) {
        out.push_str(pick(
            rng,
            &[
                "Host: a\r\n",
                "Content-Length: 5\r\n",
                "Transfer-Encoding: chunked\r\n",
                "Connection: close, x-a\r\n",
                "Connection: upgrade\r\n",
                "Upgrade: websocket\r\n",
                "X-A:  b c \r\n",
                "X_Forwarded_For: 1\r\n",
                "Expect: 100-continue\r\n",
                "Empty:\r\n",
                "Long: ",
            ],
        ));
        if out.ends_with("Long: ") {
            out.push_str(&"y".repeat(rng.usize(..200)));
            out.push_str("\r\n");
        }
    }
}

fn request(rng: &mut Rng) -> Vec<u8> {
    let mut text = pick(rng, &["", "", "\r\n", "\r\n\r\n"]).to_owned();
    text.push_str(pick(rng, &["GET", "POST", "OPTIONS", "CONNECT", "G{T"]));
    text.push(' ');
    text.push_str(pick(rng, &["/", "/a?b", "*", "http://h:1/x?y", "/#", "h:1"]));
    text.push_str(&"z".repeat(if rng.u8(..8) == 0 { rng.usize(..90) } else { 0 }));
    text.push_str(pick(rng, &[" HTTP/1.1\r\n", " HTTP/1.1\r\n", " HTTP/1.0\r\n", " HTTP/3.0\r\n"]));
    text.push_str("Host: example.com\r\n");
    fields(rng, &mut text);
    text.push_str("\r\nbody");
    let mut message = text.into_bytes();
    disturb(rng, &mut message);
    message
}

fn response(rng: &mut Rng) -> Vec<u8> {
    let mut text = pick(rng, &["HTTP/1.1 ", "HTTP/1.0 ", "HTTP/1.1 "]).to_owned();
    text.push_str(pick(rng, &["200 OK\r\n", "204\r\n", "101 x\r\n", "304 \r\n", "99 x\r\n"]));
    fields(rng, &mut text);
    text.push_str("\r\nbody");
    let mut message = text.into_bytes();
    disturb(rng, &mut message);
    message
}

fn chunked(rng: &mut Rng) -> Vec<u8> {
    let mut text = String::new();
    for _ in 0..rng.usize(..5) {
        let len = rng.usize(1..40);
        let extension = pick(rng, &["", "", ";a=b", " ;c", ";\"d\""]);
        let data = "d".repeat(len);
        text.push_str(&[&format!("{len:x}"), extension, "\r\n", &data, "\r\n"].concat());
    }
    text.push_str("0\r\n");
    text.push_str(pick(rng, &["", "", "A: b\r\n", "A: b\r\nHost: c\r\n", "A : b\r\n"]));
    text.push_str("\r\nrest");
    let mut message = text.into_bytes();
    disturb(rng, &mut message);
    message
}

/// Returns the result on growing prefixes: the first that is not `Partial`.
fn in_pieces<E>(
    rng: &mut Rng,
    input: &[u8],
    mut parse: impl FnMut(&[u8]) -> Result<Parsed, E>,
) -> Result<Parsed, E> {
    let step = if rng.bool() { 1 } else { rng.usize(1..60) };
    let mut len = 0;
    loop {
        let verdict = parse(&input[..len])?;
        if verdict != Parsed::Partial || len == input.len() {
            return Ok(verdict);
        }
        len = input.len().min(len + rng.usize(1..=step));
    }
}

#[test]
fn requests() {
    let mut rng = rng();
    let (mut whole, mut pieces) = (RequestHead::default(), RequestHead::default());
    let mut accepted = 0;
    for _ in 0..ROUNDS {
        let input = request(&mut rng);
        let at_once = parse_request(&input, &LIMITS, &mut whole);
        let split = in_pieces(&mut rng, &input, |part| parse_request(part, &LIMITS, &mut pieces));
        assert_eq!(at_once, split, "{}", input.escape_ascii());
        if let Ok(Parsed::Complete { consumed }) = at_once {
            assert!(consumed <= input.len());
            assert_eq!(format!("{whole:?}"), format!("{pieces:?}"));
            accepted += 1;
        }
    }
    assert!(accepted > ROUNDS / 10 && accepted < ROUNDS, "the messages are a mixture: {accepted}");
}

#[test]
fn responses() {
    let mut rng = rng();
    let (mut whole, mut pieces) = (ResponseHead::default(), ResponseHead::default());
    let mut accepted = 0;
    for _ in 0..ROUNDS {
        let input = response(&mut rng);
        let at_once = parse_response(&input, &LIMITS, &mut whole);
        let split = in_pieces(&mut rng, &input, |part| parse_response(part, &LIMITS, &mut pieces));
        assert_eq!(at_once, split, "{}", input.escape_ascii());
        if let Ok(Parsed::Complete { consumed }) = at_once {
            assert!(consumed <= input.len());
            assert_eq!(format!("{whole:?}"), format!("{pieces:?}"));
            accepted += 1;
        }
    }
    assert!(accepted > ROUNDS / 10 && accepted < ROUNDS, "the messages are a mixture: {accepted}");
}

/// Data, trailers and what remains after the end; `Ok(None)` if the end was not reached.
type Decoded = Result<Option<(Vec<u8>, Vec<u8>, usize)>, wire::http1::ChunkError>;

fn decode(input: &[u8], mut next_cut: impl FnMut(usize) -> usize) -> Decoded {
    let mut decoder = ChunkedDecoder::new(ChunkLimits::default());
    let (mut data, mut at) = (Vec::new(), 0);
    while at < input.len() {
        let cut = next_cut(at);
        while at < cut {
            let piece = &input[at..cut];
            let chunk = decoder.decode(piece)?;
            assert!(chunk.data.start <= chunk.data.end && chunk.data.end <= chunk.consumed);
            data.extend_from_slice(&piece[chunk.data]);
            at += chunk.consumed;
            if chunk.end {
                return Ok(Some((data, decoder.trailers().to_vec(), input.len() - at)));
            }
            assert!(chunk.consumed > 0);
        }
    }
    Ok(None)
}

#[test]
fn chunked_bodies() {
    let mut rng = rng();
    let mut ended = 0;
    for _ in 0..ROUNDS {
        let input = chunked(&mut rng);
        let at_once = decode(&input, |_| input.len());
        let step = rng.usize(1..20);
        let split = decode(&input, |at| input.len().min(at + rng.usize(1..=step)));
        assert_eq!(at_once, split, "{}", input.escape_ascii());
        ended += usize::from(matches!(at_once, Ok(Some(_))));
    }
    assert!(ended > ROUNDS / 10 && ended < ROUNDS, "the messages are a mixture: {ended}");
}
