//! Message body framing, on the receiving and on the sending side.

use transport::Stream;
use wire::http1::{self, ChunkLimits, ChunkedDecoder, ResponseBody};

/// How the end of a body is recognised on the receiving side.
pub(crate) enum Source {
    /// This many bytes are still to come.
    Length(u64),
    /// Chunked. Boxed: the decoder keeps trailers, and most bodies have none.
    Chunked(Box<ChunkedDecoder>),
    /// Until the sender closes, or its stream ends.
    UntilClose,
}

impl Source {
    /// Returns that of a response's body on a connection.
    pub(crate) fn of(body: ResponseBody, stream: &Stream) -> Source {
        match body {
            ResponseBody::None => Source::Length(0),
            _ if stream.is_exchange() => Source::UntilClose,
            ResponseBody::Length(length) => Source::Length(length),
            ResponseBody::Chunked => {
                Source::Chunked(Box::new(ChunkedDecoder::new(ChunkLimits::default())))
            }
            ResponseBody::UntilClose => Source::UntilClose,
        }
    }
}

/// How a body is framed on the sending side.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Bytes as they are, delimited by Content-Length or by the close.
    Raw,
    /// Chunked.
    Chunked,
    /// Bytes as they are, ended by the end of the stream (HTTP/2).
    Stream,
}

/// Appends `run` unchanged, or as one chunk.
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
