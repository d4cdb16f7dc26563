//! A plain HTTP/1.1 client on a blocking socket, for looking at answers byte by byte. It shares
//! no code with what it tests. Load comes from the programs in [`crate::clients`].

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// Longer than a connection is silent before Weir parks it.
pub const SILENCE: Duration = Duration::from_millis(400);
/// No answer takes longer.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);

/// A response.
#[derive(Debug, Clone)]
pub struct Response {
    /// Status code.
    pub status: u16,
    /// The head as received, without the empty line.
    pub head: String,
    /// Names in lower case, and values, in order.
    pub fields: Vec<(String, String)>,
    /// Body, chunks joined.
    pub body: Vec<u8>,
    /// Trailer fields as received.
    pub trailers: String,
}

impl Response {
    /// The first field of that name (lower case).
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; null if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

/// GET on a connection of its own.
pub fn get(address: SocketAddr, target: &str) -> io::Result<Response> {
    Connection::open(address)?.get(target, &[])
}

/// GET with further fields (`Host` is added unless it is among them), on a connection of its own.
pub fn get_with(address: SocketAddr, target: &str, fields: &[&str]) -> io::Result<Response> {
    Connection::open(address)?.get(target, fields)
}

/// Sends `bytes`, closes the sending side, and yields all that comes back.
pub fn raw(address: SocketAddr, bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut connection = Connection::open(address)?;
    connection.send(bytes)?;
    connection.stream.shutdown(std::net::Shutdown::Write)?;
    connection.rest()
}

/// A kept connection.
pub struct Connection {
    /// The socket.
    pub stream: TcpStream,
    address: SocketAddr,
    /// Received and not yet taken.
    buffer: Vec<u8>,
}

impl Connection {
    /// Connects.
    pub fn open(address: SocketAddr) -> io::Result<Connection> {
        Connection::of(TcpStream::connect_timeout(&address, Duration::from_secs(5))?, address)
    }

    /// Connects from this address.
    pub fn open_from(client: Ipv4Addr, address: SocketAddr) -> io::Result<Connection> {
        use rustix::net::{AddressFamily, SocketType, bind, connect, socket};
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        bind(&socket, &SocketAddr::from((client, 0)))?;
        connect(&socket, &address)?;
        Connection::of(TcpStream::from(socket), address)
    }

    fn of(stream: TcpStream, address: SocketAddr) -> io::Result<Connection> {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_WITHIN))?;
        stream.set_write_timeout(Some(ANSWER_WITHIN))?;
        Ok(Connection { stream, address, buffer: Vec::new() })
    }

    /// Sends `bytes` as they are.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// GET and its response.
    pub fn get(&mut self, target: &str, fields: &[&str]) -> io::Result<Response> {
        self.request("GET", target, fields, b"")
    }

    /// A request with a length-delimited body (if not empty), and its response.
    pub fn request(
        &mut self,
        method: &str,
        target: &str,
        fields: &[&str],
        body: &[u8],
    ) -> io::Result<Response> {
        let mut head = format!("{method} {target} HTTP/1.1\r\n");
        if !fields.iter().any(|field| field.to_lowercase().starts_with("host:")) {
            head += &format!("Host: {}\r\n", self.address);
        }
        for field in fields {
            head += &format!("{field}\r\n");
        }
        if !body.is_empty() {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        head += "\r\n";
        self.stream.write_all(&[head.as_bytes(), body].concat())?;
        self.response(method == "HEAD")
    }

    /// The next response, 1xx ones included.
    pub fn response(&mut self, to_head: bool) -> io::Result<Response> {
        let end = self.find(b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&self.take(end)).into_owned();
        self.take(4);
        let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
        let mut lines = head.split("\r\n");
        let status_line = lines.next().unwrap_or_default();
        let status: u16 = status_line
            .split(' ')
            .nth(1)
            .and_then(|code| code.parse().ok())
            .ok_or_else(|| invalid(&format!("not a status line: {status_line:?}")))?;
        let fields: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
            .collect();
        let mut response =
            Response { status, head, fields, body: Vec::new(), trailers: String::new() };
        if to_head || status < 200 || status == 204 || status == 304 {
            return Ok(response);
        }
        if response.field("transfer-encoding").is_some() {
            (response.body, response.trailers) = self.chunks()?;
        } else if let Some(length) = response.field("content-length") {
            let length = length.parse().map_err(|_| invalid("not a length"))?;
            self.fill(length)?;
            response.body = self.take(length);
        } else {
            response.body = self.rest()?;
        }
        Ok(response)
    }

    /// Everything until the peer closes.
    pub fn rest(&mut self) -> io::Result<Vec<u8>> {
        self.stream.read_to_end(&mut self.buffer)?;
        Ok(std::mem::take(&mut self.buffer))
    }

    /// Exactly `count` bytes.
    pub fn exactly(&mut self, count: usize) -> io::Result<Vec<u8>> {
        self.fill(count)?;
        Ok(self.take(count))
    }

    /// Whether the peer has closed (or reset) the connection; waits up to `bound` for it.
    pub fn is_closed_within(&mut self, bound: Duration) -> bool {
        self.stream.set_read_timeout(Some(bound)).expect("a timeout");
        let closed = match self.stream.read(&mut [0; 1]) {
            Ok(count) => count == 0,
            Err(error) => {
                !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
            }
        };
        self.stream.set_read_timeout(Some(ANSWER_WITHIN)).expect("a timeout");
        closed
    }

    fn chunks(&mut self) -> io::Result<(Vec<u8>, String)> {
        let mut body = Vec::new();
        loop {
            let end = self.find(b"\r\n")?;
            let line = String::from_utf8_lossy(&self.take(end + 2)).into_owned();
            let size = line.trim().split(';').next().unwrap_or_default();
            let size = usize::from_str_radix(size, 16)
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not a chunk size"))?;
            if size == 0 {
                break;
            }
            self.fill(size + 2)?;
            body.extend(self.take(size));
            self.take(2);
        }
        let mut trailers = String::new();
        loop {
            let end = self.find(b"\r\n")?;
            let line = self.take(end + 2);
            if line == b"\r\n" {
                return Ok((body, trailers));
            }
            trailers += &String::from_utf8_lossy(&line);
        }
    }

    /// Where `needle` begins, reading as long as it has not come.
    fn find(&mut self, needle: &[u8]) -> io::Result<usize> {
        loop {
            let found = self.buffer.windows(needle.len()).position(|window| window == needle);
            if let Some(at) = found {
                return Ok(at);
            }
            self.read_more()?;
        }
    }

    fn fill(&mut self, count: usize) -> io::Result<()> {
        while self.buffer.len() < count {
            self.read_more()?;
        }
        Ok(())
    }

    fn read_more(&mut self) -> io::Result<()> {
        let mut piece = [0; 16 * 1024];
        match self.stream.read(&mut piece)? {
            0 => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                format!("closed after {:?}", String::from_utf8_lossy(&self.buffer)),
            )),
            count => {
                self.buffer.extend_from_slice(&piece[..count]);
                Ok(())
            }
        }
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        self.buffer.drain(..count).collect()
    }
}
