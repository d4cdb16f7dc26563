//! Reads a message body piece by piece, whatever its framing (RFC 9112 section 6.3).

use std::fmt;
use std::io;

use wire::http1::{ChunkError, ChunkLimits, ChunkedDecoder, RequestBody, ResponseBody};

use crate::{Inbox, Stream};

/// The progress of reading a body.
#[derive(Debug)]
pub struct Body(Framing);

#[derive(Debug)]
enum Framing {
    /// This many bytes are still to come.
    Length(u64),
    Chunked(Box<ChunkedDecoder>),
    UntilClose,
    Done,
}

impl Body {
    /// Returns the reader of a request's body.
    pub fn of_request(framing: RequestBody) -> Body {
        Body(match framing {
            RequestBody::None => Framing::Done,
            RequestBody::Length(bytes) => Framing::length(bytes),
            RequestBody::Chunked => Framing::chunked(),
        })
    }

    /// Returns the reader of a response's body.
    pub fn of_response(framing: ResponseBody) -> Body {
        Body(match framing {
            ResponseBody::None => Framing::Done,
            ResponseBody::Length(bytes) => Framing::length(bytes),
            ResponseBody::Chunked => Framing::chunked(),
            ResponseBody::UntilClose => Framing::UntilClose,
        })
    }

    /// Returns whether the whole body has been read.
    pub fn is_done(&self) -> bool {
        matches!(self.0, Framing::Done)
    }

    /// Passes the next piece to `sink`, waiting for it if necessary; a call may also yield none.
    /// Call until [`Body::is_done`].
    ///
    /// # Errors
    /// The connection failed, or the body's framing is invalid.
    pub async fn read(
        &mut self,
        stream: &Stream,
        inbox: &mut Inbox,
        mut sink: impl FnMut(&[u8]),
    ) -> Result<(), BodyError> {
        if self.is_done() {
            return Ok(());
        }
        if inbox.unread().is_empty() && inbox.fill(stream).await.map_err(BodyError::Io)? == 0 {
            return self.ended();
        }
        match &mut self.0 {
            Framing::Length(rest) => {
                let unread = inbox.unread();
                let count = usize::try_from(*rest).unwrap_or(usize::MAX).min(unread.len());
                sink(&unread[..count]);
                inbox.take(count);
                *rest -= count as u64;
                if *rest == 0 {
                    self.0 = Framing::Done;
                }
            }
            Framing::Chunked(decoder) => {
                let chunk = decoder.decode(inbox.unread()).map_err(BodyError::Chunk)?;
                sink(&inbox.unread()[chunk.data]);
                inbox.take(chunk.consumed);
                if chunk.end {
                    self.0 = Framing::Done;
                } else if chunk.consumed == 0
                    && inbox.fill(stream).await.map_err(BodyError::Io)? == 0
                {
                    return self.ended();
                }
            }
            Framing::UntilClose => {
                let count = inbox.unread().len();
                sink(inbox.unread());
                inbox.take(count);
            }
            Framing::Done => {}
        }
        Ok(())
    }

    /// Handles the end of the stream: complete, or premature.
    fn ended(&mut self) -> Result<(), BodyError> {
        match self.0 {
            Framing::UntilClose => {
                self.0 = Framing::Done;
                Ok(())
            }
            _ => Err(BodyError::Ended),
        }
    }
}

impl Framing {
    fn length(bytes: u64) -> Framing {
        if bytes == 0 { Framing::Done } else { Framing::Length(bytes) }
    }

    fn chunked() -> Framing {
        Framing::Chunked(Box::new(ChunkedDecoder::new(ChunkLimits::default())))
    }
}

/// Why a body could not be read to its end.
#[derive(Debug)]
pub enum BodyError {
    /// The connection broke.
    Io(io::Error),
    /// The stream ended before the body did.
    Ended,
    /// The chunked coding is broken.
    Chunk(ChunkError),
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BodyError::Io(error) => error.fmt(f),
            BodyError::Ended => f.write_str("the connection ended before the body"),
            BodyError::Chunk(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for BodyError {}
