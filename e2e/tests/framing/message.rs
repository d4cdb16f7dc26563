//! The parser of the runner's two ends for HTTP/1.1 messages. Simple, strict, and independent of Weir: a
//! shared parser would share its mistakes.

use std::io::{self, Read};
use std::net::TcpStream;

/// A message as received.
#[derive(Debug, Default)]
pub struct Message {
    /// Request line or status line.
    pub line: String,
    /// Names as sent, and values.
    pub fields: Vec<(String, String)>,
    /// Body, chunks joined.
    pub body: Vec<u8>,
    /// Names as sent, and values.
    pub trailers: Vec<(String, String)>,
}

impl Message {
    /// Every value of a field, names compared without regard to case.
    pub fn values(&self, name: &str) -> Vec<&str> {
        values(&self.fields, name)
    }

    /// The second word of the first line, if it is a status line.
    pub fn status(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }
}

/// Every value of that name in `fields`.
pub fn values<'a>(fields: &'a [(String, String)], name: &str) -> Vec<&'a str> {
    let is = |field: &&(String, String)| field.0.eq_ignore_ascii_case(name);
    fields.iter().filter(is).map(|(_, value)| value.as_str()).collect()
}

/// A connection's incoming bytes.
pub struct Reader {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Reader {
    /// Reads from `stream`.
    pub fn new(stream: TcpStream) -> Reader {
        Reader { stream, buffer: Vec::new() }
    }

    /// The other direction.
    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Waits for the first byte of a message, and says so before it takes it out of the kernel;
    /// false if the peer closes instead.
    pub fn begins(&mut self, begun: impl FnOnce()) -> io::Result<bool> {
        if self.buffer.is_empty() && self.stream().peek(&mut [0])? == 0 {
            return Ok(false);
        }
        begun();
        Ok(true)
    }

    /// First line and fields.
    pub fn head(&mut self) -> io::Result<Message> {
        let end = self.find(b"\r\n\r\n")?;
        let bytes = self.take(end + 4)?;
        let text = String::from_utf8_lossy(&bytes[..end]).into_owned();
        if text.replace("\r\n", "").contains(['\r', '\n', '\0']) {
            return Err(invalid(&format!("a bare CR, a bare LF or a NUL in {text:?}")));
        }
        let mut lines = text.split("\r\n");
        let line = lines.next().unwrap_or_default().to_owned();
        let fields = lines.map(field).collect::<io::Result<_>>()?;
        Ok(Message { line, fields, ..Message::default() })
    }

    /// The body that the fields announce; `until_close` if they announce none and it may end with
    /// the connection.
    pub fn body(&mut self, message: &mut Message, until_close: bool) -> io::Result<()> {
        let (codings, lengths) =
            (message.values("transfer-encoding"), message.values("content-length"));
        match (&codings[..], &lengths[..]) {
            ([], []) if until_close => {
                while self.fill()? > 0 {}
                message.body = std::mem::take(&mut self.buffer);
            }
            ([], []) => {}
            ([], [length]) => {
                let digits = length.bytes().all(|b| b.is_ascii_digit());
                let length = length.parse().ok().filter(|_| digits);
                let length = length.ok_or_else(|| invalid("a bad length"))?;
                message.body = self.take(length)?;
            }
            (["chunked"], []) => (message.body, message.trailers) = self.chunks()?,
            _ => return Err(invalid(&format!("ambiguous framing: {:?}", message.fields))),
        }
        Ok(())
    }

    /// Exactly `count` bytes.
    pub fn take(&mut self, count: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < count {
            self.fill_some()?;
        }
        Ok(self.buffer.drain(..count).collect())
    }

    /// Everything until the peer closes.
    pub fn rest(&mut self) -> io::Result<Vec<u8>> {
        while self.fill()? > 0 {}
        Ok(std::mem::take(&mut self.buffer))
    }

    #[allow(clippy::type_complexity, reason = "body and trailers, once")]
    fn chunks(&mut self) -> io::Result<(Vec<u8>, Vec<(String, String)>)> {
        let mut body = Vec::new();
        loop {
            let line = self.line()?;
            let hex = !line.is_empty() && line.bytes().all(|b| b.is_ascii_hexdigit());
            let size = usize::from_str_radix(&line, 16).ok().filter(|_| hex);
            let size = size.ok_or_else(|| invalid(&format!("a bad chunk size: {line:?}")))?;
            if size == 0 {
                break;
            }
            body.extend(self.take(size)?);
            if self.take(2)? != b"\r\n" {
                return Err(invalid("no CRLF after a chunk"));
            }
        }
        let mut trailers = Vec::new();
        loop {
            match self.line()? {
                line if line.is_empty() => return Ok((body, trailers)),
                line => trailers.push(field(&line)?),
            }
        }
    }

    fn line(&mut self) -> io::Result<String> {
        let end = self.find(b"\r\n")?;
        let line = self.take(end + 2)?;
        Ok(String::from_utf8_lossy(&line[..end]).into_owned())
    }

    fn find(&mut self, needle: &[u8]) -> io::Result<usize> {
        let mut from = 0;
        loop {
            let windows = self.buffer[from..].windows(needle.len());
            if let Some(at) = windows.into_iter().position(|window| window == needle) {
                return Ok(from + at);
            }
            from = self.buffer.len().saturating_sub(needle.len() - 1);
            self.fill_some()?;
        }
    }

    fn fill_some(&mut self) -> io::Result<()> {
        if self.fill()? == 0 {
            let so_far = String::from_utf8_lossy(&self.buffer[..self.buffer.len().min(200)]);
            let why = format!("closed in the middle of a message, after {so_far:?}");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
        }
        Ok(())
    }

    fn fill(&mut self) -> io::Result<usize> {
        let mut piece = [0; 16 * 1024];
        let count = self.stream.read(&mut piece)?;
        self.buffer.extend_from_slice(&piece[..count]);
        Ok(count)
    }
}

fn field(line: &str) -> io::Result<(String, String)> {
    match line.split_once(':') {
        Some((name, value)) if !name.is_empty() && !name.contains([' ', '\t']) => {
            Ok((name.to_owned(), value.trim_matches([' ', '\t']).to_owned()))
        }
        _ => Err(invalid(&format!("a bad field line: {line:?}"))),
    }
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
