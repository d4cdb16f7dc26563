//! Parses HTTP/1.1 responses as their bytes arrive: the end of each, and its status. No socket.

use wire::http1::{
    ChunkLimits, ChunkedDecoder, FIELDS_MAX, HeadLimits, Parsed, ResponseBody, ResponseHead,
    parse_response,
};

/// Bounds on a response's head.
const HEAD_LIMITS: HeadLimits =
    HeadLimits { head_max_bytes: 64 * 1024, target_max_bytes: 0, fields_max: FIELDS_MAX };

/// What is left of a response.
#[derive(Debug, Default)]
enum Left {
    /// Its head, or the rest of it.
    #[default]
    Head,
    /// So many bytes of its body.
    Length(u64),
    /// A body in chunks.
    Chunked,
    /// A body that ends with the connection.
    UntilClose,
}

/// How far the response of one connection has been read.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    left: Left,
    status: u16,
    keeps: bool,
    /// The beginning of a head, when it comes in pieces; so of a chunk's header never.
    partial: Vec<u8>,
    /// Made for the first response in chunks, then kept.
    chunks: Option<Box<ChunkedDecoder>>,
}

/// What came of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The response goes on.
    More,
    /// It is whole.
    Whole {
        /// Its status.
        status: u16,
        /// Whether the connection may be used again.
        keeps: bool,
    },
}

/// Not HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotHttp;

impl Reader {
    /// Whether something of the response has come.
    pub(crate) fn has_begun(&self) -> bool {
        !matches!(self.left, Left::Head) || !self.partial.is_empty()
    }

    /// Takes what came. `head` is scratch that all connections of a thread share. `body` is
    /// increased by the bytes that belong to the body.
    pub(crate) fn feed(
        &mut self,
        bytes: &[u8],
        is_head: bool,
        head: &mut ResponseHead,
        body: &mut usize,
    ) -> Result<Progress, NotHttp> {
        if !matches!(self.left, Left::Head) {
            return self.feed_body(bytes, body);
        }
        if self.partial.is_empty() {
            return self.feed_head(bytes, is_head, head, body);
        }
        let mut whole = std::mem::take(&mut self.partial);
        whole.extend_from_slice(bytes);
        let progress = self.feed_head(&whole, is_head, head, body);
        if self.partial.is_empty() {
            // Its room serves the next one that comes in pieces.
            whole.clear();
            self.partial = whole;
        }
        progress
    }

    fn feed_head(
        &mut self,
        mut bytes: &[u8],
        is_head: bool,
        head: &mut ResponseHead,
        body: &mut usize,
    ) -> Result<Progress, NotHttp> {
        loop {
            match parse_response(bytes, &HEAD_LIMITS, head).map_err(|_| NotHttp)? {
                Parsed::Partial => {
                    self.partial.clear();
                    self.partial.extend_from_slice(bytes);
                    return Ok(Progress::More);
                }
                Parsed::Complete { consumed } => bytes = &bytes[consumed..],
            }
            if head.status() == 101 {
                return Err(NotHttp);
            }
            if !head.is_informational() {
                break;
            }
        }
        self.status = head.status();
        self.keeps = head.keep_alive();
        self.left = match head.body(is_head) {
            ResponseBody::None => Left::Length(0),
            ResponseBody::Length(length) => Left::Length(length),
            ResponseBody::UntilClose => Left::UntilClose,
            ResponseBody::Chunked => {
                let new = || Box::new(ChunkedDecoder::new(ChunkLimits::default()));
                self.chunks.get_or_insert_with(new).reset();
                Left::Chunked
            }
        };
        self.feed_body(bytes, body)
    }

    fn feed_body(&mut self, bytes: &[u8], body: &mut usize) -> Result<Progress, NotHttp> {
        let rest = match &mut self.left {
            Left::Head => return Ok(Progress::More),
            Left::UntilClose => {
                *body += bytes.len();
                return Ok(Progress::More);
            }
            Left::Length(left) => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                *left -= taken as u64;
                *body += taken;
                if *left > 0 {
                    return Ok(Progress::More);
                }
                &bytes[taken..]
            }
            Left::Chunked => match self.feed_chunks(bytes, body)? {
                None => return Ok(Progress::More),
                Some(rest) => rest,
            },
        };
        // Bytes after the response are an answer to nothing: no later one could be trusted.
        let keeps = self.keeps && rest.is_empty();
        self.left = Left::Head;
        Ok(Progress::Whole { status: self.status, keeps })
    }

    /// Yields what is left of `bytes` once the body is whole.
    fn feed_chunks<'a>(
        &mut self,
        mut bytes: &'a [u8],
        body: &mut usize,
    ) -> Result<Option<&'a [u8]>, NotHttp> {
        let Some(chunks) = &mut self.chunks else { return Err(NotHttp) };
        loop {
            let chunk = chunks.decode(bytes).map_err(|_| NotHttp)?;
            *body += chunk.data.len();
            bytes = &bytes[chunk.consumed..];
            if chunk.end {
                return Ok(Some(bytes));
            }
            if chunk.consumed == 0 || bytes.is_empty() {
                return Ok(None);
            }
        }
    }

    /// The server has closed: the status, if that is how the response ends.
    pub(crate) fn end(&mut self) -> Option<u16> {
        match std::mem::take(&mut self.left) {
            Left::UntilClose => Some(self.status),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `text` in pieces of `size`; yields what came of the last and the bytes of the body.
    fn read(text: &[u8], size: usize, is_head: bool) -> (Result<Progress, NotHttp>, usize) {
        let (mut reader, mut head, mut body) = (Reader::default(), ResponseHead::default(), 0);
        let mut last = Ok(Progress::More);
        for piece in text.chunks(size) {
            assert_eq!(last, Ok(Progress::More), "{}", String::from_utf8_lossy(text));
            last = reader.feed(piece, is_head, &mut head, &mut body);
            if last.is_err() {
                break;
            }
        }
        (last, body)
    }

    #[test]
    fn a_response_ends_where_its_framing_says_however_it_is_split() {
        let whole = |status, keeps| Ok(Progress::Whole { status, keeps });
        for (text, is_head, wanted) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", false, (whole(200, true), 5)),
            ("HTTP/1.1 204 No Content\r\n\r\n", false, (whole(204, true), 0)),
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", true, (whole(200, true), 0)),
            (
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 x\r\nConnection: close\r\n\
                 Content-Length: 0\r\n\r\n",
                false,
                (whole(503, false), 0),
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                 3\r\nabc\r\n10\r\n0123456789abcdef\r\n0\r\nX: y\r\n\r\n",
                false,
                (whole(200, true), 19),
            ),
        ] {
            for size in [1, 2, 3, 7, 50, 1000] {
                assert_eq!(read(text.as_bytes(), size, is_head), wanted, "{size}: {text}");
            }
        }
    }

    #[test]
    fn what_follows_a_response_makes_its_connection_unfit() {
        let (mut reader, mut head, mut body) = (Reader::default(), ResponseHead::default(), 0);
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc";
        let progress = reader.feed(text, false, &mut head, &mut body);
        assert_eq!(progress, Ok(Progress::Whole { status: 200, keeps: false }));
    }

    #[test]
    fn a_body_until_the_close_ends_with_it_and_no_other_does() {
        let (mut reader, mut head, mut body) = (Reader::default(), ResponseHead::default(), 0);
        let open = b"HTTP/1.0 200 OK\r\n\r\nabc";
        assert_eq!(reader.feed(open, false, &mut head, &mut body), Ok(Progress::More));
        assert!(reader.has_begun());
        assert_eq!((reader.end(), body), (Some(200), 3));
        let cut = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc";
        assert_eq!(reader.feed(cut, false, &mut head, &mut body), Ok(Progress::More));
        assert_eq!(reader.end(), None);
    }

    #[test]
    fn what_is_not_http_is_refused() {
        for text in ["SSH-2.0-OpenSSH\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/2 200\r\n\r\n"] {
            assert!(read(text.as_bytes(), 64, false).0.is_err(), "{text}");
        }
    }
}
