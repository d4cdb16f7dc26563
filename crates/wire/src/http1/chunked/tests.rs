//! Tests of what the chunked decoder accepts and refuses.

use super::*;

/// Data, trailers and the number of bytes consumed; `Ok(None)` if the end was not reached.
type Decoded = Result<Option<(Vec<u8>, Vec<u8>, usize)>, ChunkError>;

/// Decodes `input` in pieces that end at `cuts`.
fn decode_split(input: &[u8], cuts: &[usize], limits: ChunkLimits) -> Decoded {
    let mut decoder = ChunkedDecoder::new(limits);
    let mut data = Vec::new();
    let mut at = 0;
    for &cut in cuts.iter().chain([&input.len()]) {
        while at < cut {
            let chunk = decoder.decode(&input[at..cut])?;
            assert!(chunk.data.end <= chunk.consumed && chunk.consumed <= cut - at);
            data.extend_from_slice(&input[at..cut][chunk.data]);
            at += chunk.consumed;
            if chunk.end {
                assert!(decoder.is_end());
                assert_eq!(decoder.decode(b"x"), Ok(Chunk { consumed: 0, data: 0..0, end: true }));
                return Ok(Some((data, decoder.trailers().to_vec(), at)));
            }
            assert!(chunk.consumed > 0, "input is left, so something is consumed");
        }
    }
    Ok(None)
}

fn decode(input: &str) -> Result<Option<(String, String, usize)>, ChunkError> {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let found = decode_split(input.as_bytes(), &[], ChunkLimits::default())?;
    Ok(found.map(|(data, trailers, consumed)| (text(data), text(trailers), consumed)))
}

#[test]
fn plain_bodies() {
    for (input, data) in [
        ("0\r\n\r\n", ""),
        ("5\r\nhello\r\n0\r\n\r\n", "hello"),
        ("5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world"),
        ("A\r\n0123456789\r\n000\r\n\r\n", "0123456789"),
        ("0000000000000001\r\nx\r\n0\r\n\r\n", "x"),
        ("2\r\n\r\n\r\n0\r\n\r\n", "\r\n"),
        ("5;a=b;c=\"d e\"\r\nhello\r\n0;last\r\n\r\n", "hello"),
        ("5 ; a\r\nhello\r\n0\t;\r\n\r\n", "hello"),
    ] {
        assert_eq!(decode(input), Ok(Some((data.into(), String::new(), input.len()))), "{input:?}");
    }
}

#[test]
fn what_follows_the_body_is_left() {
    assert_eq!(decode("1\r\nx\r\n0\r\n\r\nGET /"), Ok(Some(("x".into(), String::new(), 11))));
}

#[test]
fn trailers_are_cleaned() {
    let input = "0\r\nX-Sum:\t 42 \r\nContent-Length: 5\r\ntransfer-encoding: chunked\r\nHOST: x\r\n\
                 Authorization: y\r\nSet-Cookie: a\r\nX_Forwarded_For: 1\r\nRange: x\r\nempty:\r\n\r\n";
    let trailers = "X-Sum: 42\r\nempty: \r\n";
    assert_eq!(decode(input), Ok(Some((String::new(), trailers.into(), input.len()))));
}

#[test]
fn bad_bodies() {
    for (input, error) in [
        ("\r\n", ChunkError::BadSize),
        ("g\r\n", ChunkError::BadSize),
        ("-1\r\n", ChunkError::BadSize),
        ("+1\r\n", ChunkError::BadSize),
        (" 1\r\n", ChunkError::BadSize),
        ("0x1\r\n", ChunkError::BadSize),
        ("1_0\r\n", ChunkError::BadSize),
        (";a\r\n", ChunkError::BadSize),
        ("1 1\r\n", ChunkError::BadSize),
        ("5 \r\nhello", ChunkError::MissingLineEnd),
        ("5\nhello", ChunkError::MissingLineEnd),
        ("5\rhello", ChunkError::MissingLineEnd),
        ("5\r\r\nhello", ChunkError::MissingLineEnd),
        ("5;a\nhello", ChunkError::MissingLineEnd),
        ("5;a\rb\r\nhello", ChunkError::MissingLineEnd),
        ("5;a\0\r\nhello", ChunkError::BadExtension),
        ("8000000000000000\r\n", ChunkError::SizeTooLarge),
        ("ffffffffffffffff\r\n", ChunkError::SizeTooLarge),
        ("10000000000000000\r\n", ChunkError::SizeTooLarge),
        ("00000000000000001\r\n", ChunkError::SizeTooLarge),
        ("5\r\nhello0\r\n", ChunkError::MissingLineEnd),
        ("5\r\nhello\n0\r\n", ChunkError::MissingLineEnd),
        ("5\r\nhello\r0\r\n", ChunkError::MissingLineEnd),
        ("0\r\n\n", ChunkError::MissingLineEnd),
        ("0\r\n\r\r\n", ChunkError::MissingLineEnd),
        ("0\r\nx\r\n\r\n", ChunkError::BadTrailer),
        ("0\r\n: x\r\n\r\n", ChunkError::BadTrailer),
        ("0\r\nx : y\r\n\r\n", ChunkError::BadTrailer),
        ("0\r\nx: y\r\n z\r\n\r\n", ChunkError::BadTrailer),
        ("0\r\nx: y\rz\r\n\r\n", ChunkError::BadTrailer),
        ("0\r\nx: y\0\r\n\r\n", ChunkError::BadTrailer),
        ("0\r\nx: y\n\r\n", ChunkError::MissingLineEnd),
    ] {
        assert_eq!(decode(input), Err(error), "{input:?}");
    }
    assert_eq!(decode("7fffffffffffffff\r\nx"), Ok(None));
}

#[test]
fn extensions_are_bounded_in_proportion_to_the_data() {
    let limits = ChunkLimits { extensions_max_bytes: 10, trailers_max_bytes: 0 };
    let run =
        |input: &str| decode_split(input.as_bytes(), &[], limits).map(|found| found.is_some());
    assert_eq!(run("1;234567890\r\nx\r\n0\r\n\r\n"), Ok(true));
    assert_eq!(run("1;2345678901\r\nx\r\n0\r\n\r\n"), Err(ChunkError::ExtensionTooLong));
    let kept = "5;234567890\r\nhello\r\n".repeat(50);
    assert_eq!(run(&format!("{kept}0\r\n\r\n")), Ok(true));
    let tiny = "1;2345\r\nx\r\n".repeat(50);
    assert_eq!(run(&tiny), Err(ChunkError::ExtensionTooLong));
}

#[test]
fn trailers_are_bounded() {
    let limits = ChunkLimits { extensions_max_bytes: 0, trailers_max_bytes: 12 };
    let run =
        |input: &str| decode_split(input.as_bytes(), &[], limits).map(|found| found.is_some());
    assert_eq!(run("0\r\na: b\r\nc: d\r\n\r\n"), Ok(true));
    assert_eq!(run("0\r\na: b\r\nc: dd\r\n\r\n"), Err(ChunkError::TrailersTooLarge));
    assert_eq!(run("0\r\naaaaaaaaaaaaa"), Err(ChunkError::TrailersTooLarge));
}

#[test]
fn a_decoder_is_reused() {
    let mut decoder = ChunkedDecoder::new(ChunkLimits::default());
    for _ in 0..2 {
        let input = b"1;x\r\ny\r\n0\r\na: b\r\n\r\n";
        let first = decoder.decode(input).unwrap();
        assert_eq!((first.consumed, first.data), (6, 5..6));
        let rest = decoder.decode(&input[6..]).unwrap();
        assert!(rest.end);
        assert_eq!(decoder.trailers(), b"a: b\r\n");
        decoder.reset();
        assert_eq!(decoder.trailers(), b"");
    }
}

#[test]
fn split_anywhere_the_result_is_the_same() {
    for input in [
        &b"5;a=b\r\nhello\r\n0\r\nx: y\r\nhost: z\r\n\r\nrest"[..],
        b"1\r\na\r\n2\r\nbc\r\n0\r\n\r\n",
        b"5\r\nhello\n0\r\n",
        b"0\r\nx : y\r\n\r\n",
    ] {
        let whole = decode_split(input, &[], ChunkLimits::default());
        for first in 0..=input.len() {
            for second in first..=input.len() {
                let split = decode_split(input, &[first, second], ChunkLimits::default());
                assert_eq!(split, whole, "cut at {first} and {second}");
            }
        }
    }
}
