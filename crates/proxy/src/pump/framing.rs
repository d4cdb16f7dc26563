//! How a message body is framed: where it comes from, and where it goes.

use wire::http1::{self, ChunkedDecoder};

/// How a body ends, on the side it comes from.
pub(crate) enum Source {
    /// So many bytes are still to come.
    Length(u64),
    /// Chunks. Boxed: the decoder keeps trailers, and most bodies have none.
    Chunked(Box<ChunkedDecoder>),
    /// Until the sender closes, or its stream ends.
    UntilClose,
}

/// How a body is framed on the side it goes to.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Bytes as they are: a Content-Length announced them, or the close ends them.
    Raw,
    /// Chunks.
    Chunked,
    /// Bytes as they are, whose end is that of the stream (HTTP/2).
    Stream,
}

/// The lines of the trailers, wherever they came.
pub(super) fn trailers<'a>(source: &'a Source, beside: &'a [u8]) -> &'a [u8] {
    match source {
        Source::Chunked(decoder) => decoder.trailers(),
        _ => beside,
    }
}

/// Appends `run` as it stands, or as one chunk.
pub(super) fn frame_run(framing: Framing, run: &[u8], out: &mut Vec<u8>) {
    match framing {
        Framing::Raw | Framing::Stream => out.extend_from_slice(run),
        Framing::Chunked => {
            out.extend_from_slice(http1::chunk_header(run.len(), &mut [0; 18]));
            out.extend_from_slice(run);
            out.extend_from_slice(b"\r\n");
        }
    }
}
