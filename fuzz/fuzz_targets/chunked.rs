//! Any bytes as a chunked body, whole and split as the first bytes say. What is accepted must be
//! the same both ways, and the same again once Weir has rewritten it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::http1::encode::{LAST_CHUNK, chunk_header};
use wire::http1::{ChunkError, ChunkLimits, ChunkedDecoder};

const LIMITS: ChunkLimits = ChunkLimits { extensions_max_bytes: 64, trailers_max_bytes: 256 };

#[derive(Debug, Default, PartialEq)]
struct Decoded {
    data: Vec<u8>,
    trailers: Vec<u8>,
    consumed: usize,
    end: bool,
}

fuzz_target!(|data: &[u8]| {
    let [first, second, input @ ..] = data else {
        return;
    };
    let whole = decode(input, |_| usize::MAX);
    let (first, second) = (usize::from(*first) + 1, usize::from(*second) + 1);
    let mut turn = 0;
    let split = decode(input, |_| {
        turn += 1;
        if turn % 2 == 0 { first } else { second }
    });
    assert_eq!(whole, split);
    assert_eq!(whole, decode(input, |_| 1));
    let Ok(decoded) = whole else { return };

    assert!(decoded.consumed <= input.len());
    if !decoded.end {
        assert_eq!(decoded.consumed, input.len());
        return;
    }
    assert!(input[..decoded.consumed].ends_with(b"\r\n"));
    assert!(decoded.trailers.is_empty() || decoded.trailers.ends_with(b"\r\n"));
    assert!(!decoded.trailers.windows(4).any(|window| window == b"\r\n\r\n"));

    let mut written = Vec::new();
    for piece in decoded.data.chunks(7) {
        written.extend_from_slice(chunk_header(piece.len(), &mut [0; 18]));
        written.extend_from_slice(piece);
        written.extend_from_slice(b"\r\n");
    }
    written.extend_from_slice(&LAST_CHUNK[..3]);
    written.extend_from_slice(&decoded.trailers);
    written.extend_from_slice(b"\r\n");
    // A space after each colon may have been added.
    let limits = ChunkLimits { trailers_max_bytes: 1024, ..LIMITS };
    let again = decode_with(limits, &written, |_| usize::MAX);
    let expected = Decoded { consumed: written.len(), ..decoded };
    assert_eq!(again, Ok(expected));
});

fn decode(input: &[u8], piece: impl FnMut(usize) -> usize) -> Result<Decoded, ChunkError> {
    decode_with(LIMITS, input, piece)
}

fn decode_with(
    limits: ChunkLimits,
    input: &[u8],
    mut piece: impl FnMut(usize) -> usize,
) -> Result<Decoded, ChunkError> {
    let mut decoder = ChunkedDecoder::new(limits);
    let mut out = Decoded::default();
    while out.consumed < input.len() {
        let cut = input.len().min(out.consumed.saturating_add(piece(out.consumed)));
        while out.consumed < cut {
            let part = &input[out.consumed..cut];
            let chunk = decoder.decode(part)?;
            assert!(chunk.data.start <= chunk.data.end && chunk.data.end <= chunk.consumed);
            assert!(chunk.consumed <= part.len());
            out.data.extend_from_slice(&part[chunk.data]);
            out.consumed += chunk.consumed;
            if chunk.end {
                out.trailers.extend_from_slice(decoder.trailers());
                out.end = true;
                return Ok(out);
            }
            assert!(chunk.consumed > 0);
        }
    }
    Ok(out)
}
