//! A client of the admin API, for the verbs that ask a running balancer: a connection a request,
//! over TCP or a Unix socket, blocking. What goes wrong is one line that says what to do.

use std::fmt;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use admin_api::Problem;
use model::{Address, Moment};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use wire::http1::{
    self, ChunkLimits, ChunkedDecoder, FIELDS_MAX, HeadLimits, Parsed, ResponseBody, ResponseHead,
};

use crate::flags::{AdminArgs, Exit};

/// An answer is there in this time, or it does not come.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// The largest answer that is read: some ten thousand servers.
const ANSWER_MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The largest token file that is read.
const TOKEN_MAX_BYTES: u64 = 4096;

const HEAD_LIMITS: HeadLimits =
    HeadLimits { head_max_bytes: 64 * 1024, target_max_bytes: 0, fields_max: FIELDS_MAX };

/// The way to one balancer's admin API.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    address: Address,
    token: Option<String>,
    answer_max: Duration,
}

impl Client {
    /// Reads the token, if there is one; connects only when something is asked.
    pub(crate) fn new(args: &AdminArgs) -> Result<Client, ClientError> {
        let token = match &args.token_file {
            Some(path) => Some(
                read_token(path)
                    .map_err(|source| ClientError::Token { path: path.clone(), source })?,
            ),
            None => None,
        };
        Ok(Client { address: args.address, token, answer_max: ANSWER_MAX })
    }

    /// Waits for answers up to `time`.
    pub(crate) fn patient(self, time: Duration) -> Client {
        Client { answer_max: time, ..self }
    }

    /// What is at `path`.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.ask("GET", path, "")
    }

    /// What comes of posting `body` to `path`.
    pub(crate) fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, ClientError> {
        self.ask("POST", path, &json!(body).to_string())
    }

    fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: &str,
    ) -> Result<T, ClientError> {
        let unreachable = |source| ClientError::Unreachable { address: self.address, source };
        let request = self.request(method, path, body);
        let deadline = os::clock::now() + self.answer_max;
        let received = match &self.address {
            Address::Ip(address) => {
                TcpStream::connect_timeout(address, self.answer_max.min(ANSWER_MAX))
                    .and_then(|stream| exchange(stream, &request, deadline))
            }
            Address::Unix(path) => UnixStream::connect(path.as_path())
                .and_then(|stream| exchange(stream, &request, deadline)),
        };
        let (status, body) = self.read(&received.map_err(unreachable)?)?;
        let value: Value =
            serde_json::from_slice(&body).map_err(|_| self.no_api("its answer is no JSON"))?;
        if status == 200 {
            return serde_json::from_value(value)
                .map_err(|error| self.no_api(&format!("its answer has another form: {error}")));
        }
        match serde_json::from_value(value) {
            Ok(Problem { error: _, message }) => Err(ClientError::Refused { status, message }),
            Err(_) => Err(self.no_api(&format!("it answers {status}"))),
        }
    }

    fn request(&self, method: &str, path: &str, body: &str) -> String {
        let host = self.address.authority();
        let token = self.token.as_ref().map(|token| format!("Authorization: Bearer {token}\r\n"));
        let length = body.len();
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n{}\r\n{body}",
            token.unwrap_or_default()
        )
    }

    /// The status and the body of a whole response.
    fn read(&self, received: &[u8]) -> Result<(u16, Vec<u8>), ClientError> {
        let mut head = ResponseHead::default();
        let parsed = http1::parse_response(received, &HEAD_LIMITS, &mut head);
        let Ok(Parsed::Complete { consumed }) = parsed else {
            return Err(self.no_api("its answer is no HTTP"));
        };
        let rest = &received[consumed..];
        let cut = || self.no_api("its answer ends too early");
        let body = match head.body(false) {
            ResponseBody::None => Vec::new(),
            ResponseBody::UntilClose => rest.to_vec(),
            ResponseBody::Length(length) => {
                let length = usize::try_from(length).map_err(|_| cut())?;
                rest.get(..length).ok_or_else(cut)?.to_vec()
            }
            ResponseBody::Chunked => unchunked(rest).ok_or_else(cut)?,
        };
        Ok((head.status(), body))
    }

    fn no_api(&self, why: &str) -> ClientError {
        ClientError::NoApi { address: self.address, why: why.to_owned() }
    }
}

/// A stream whose waiting can be bounded.
trait Bounded: Read + Write {
    fn bound(&self, time: Duration) -> io::Result<()>;
}

impl Bounded for TcpStream {
    fn bound(&self, time: Duration) -> io::Result<()> {
        self.set_write_timeout(Some(time))?;
        self.set_read_timeout(Some(time))
    }
}

impl Bounded for UnixStream {
    fn bound(&self, time: Duration) -> io::Result<()> {
        self.set_write_timeout(Some(time))?;
        self.set_read_timeout(Some(time))
    }
}

/// Sends a request and reads all that comes until the server closes.
fn exchange(mut stream: impl Bounded, request: &str, deadline: Moment) -> io::Result<Vec<u8>> {
    let mut received = Vec::new();
    let mut buffer = vec![0; 16 * 1024];
    stream.bound(ANSWER_MAX)?;
    stream.write_all(request.as_bytes())?;
    loop {
        let left = deadline.since(os::clock::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.bound(left)?;
        match stream.read(&mut buffer) {
            Ok(0) => return Ok(received),
            Ok(read) => received.extend_from_slice(&buffer[..read]),
            // A timeout, in the words of a socket with one.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if received.len() as u64 > ANSWER_MAX_BYTES {
            return Err(io::Error::other("the answer is too large"));
        }
    }
}

/// A whole chunked body; `None` if it is not whole, or none.
fn unchunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut decoder = ChunkedDecoder::new(ChunkLimits::default());
    let mut body = Vec::new();
    loop {
        let chunk = decoder.decode(rest).ok()?;
        body.extend_from_slice(&rest[chunk.data.clone()]);
        if chunk.end {
            return Some(body);
        }
        if chunk.consumed == 0 {
            return None;
        }
        rest = &rest[chunk.consumed..];
    }
}

fn read_token(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    std::fs::File::open(path)?.take(TOKEN_MAX_BYTES).read_to_string(&mut text)?;
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(io::Error::other("there is no token in it"));
    }
    Ok(token.to_owned())
}

/// A word as one segment of a path (RFC 3986 section 3.3).
pub(crate) fn segment(word: &str) -> String {
    let mut out = String::with_capacity(word.len());
    for byte in word.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:*".contains(&byte) {
            out.push(char::from(byte));
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// Why nothing came of asking. Prints as one line, or as what the balancer said.
#[derive(Debug)]
pub(crate) enum ClientError {
    /// The token cannot be read.
    Token { path: PathBuf, source: io::Error },
    /// Nothing listens there, or it does not answer.
    Unreachable { address: Address, source: io::Error },
    /// Something else than Weir's admin API listens there.
    NoApi { address: Address, why: String },
    /// The balancer says no.
    Refused { status: u16, message: String },
}

impl ClientError {
    /// Says it on standard error, and yields what the program ends with.
    pub(crate) fn tell(&self) -> Exit {
        eprintln!("weir: {self}");
        match self {
            // What was typed is not there.
            ClientError::Refused { status: 400 | 404 | 422, .. } | ClientError::Token { .. } => {
                Exit::Mistake
            }
            _ => Exit::Failed,
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ClientError::Token { path, source } => {
                write!(f, "cannot read the token file {}: {source}", path.display())
            }
            ClientError::Unreachable { address, source } => match source.kind() {
                io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => write!(
                    f,
                    "nothing listens at {address}: is a balancer running here, and is that the \
                     `address` of its [admin]? --admin ADDRESS names another"
                ),
                io::ErrorKind::PermissionDenied => write!(
                    f,
                    "this user may not open {address}; its owner may, and root (sudo weir …)"
                ),
                io::ErrorKind::TimedOut => {
                    write!(f, "{address} does not answer in time")
                }
                _ => write!(f, "{address}: {source}"),
            },
            ClientError::NoApi { address, why } => {
                write!(f, "{address} is not Weir's admin API: {why}")
            }
            ClientError::Refused { status: 401, .. } => f.write_str(
                "the admin API asks for another token: --token-file FILE, the `token_file` of its \
                 [admin]",
            ),
            ClientError::Refused { message, .. } => f.write_str(message),
        }
    }
}

impl std::error::Error for ClientError {}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// The client's view of a server that answers `answer`, whatever is asked.
    fn asked(answer: &'static str) -> Result<Value, ClientError> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Ip(listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = Vec::new();
            let mut byte = [0];
            while !request.ends_with(b"\r\n\r\n") {
                stream.read_exact(&mut byte).unwrap();
                request.push(byte[0]);
            }
            stream.write_all(answer.as_bytes()).unwrap();
        });
        let client = Client { address, token: None, answer_max: ANSWER_MAX };
        let result = client.get("/api/v1/status");
        server.join().unwrap();
        result
    }

    #[test]
    fn an_answer_is_read_however_it_is_framed() {
        for answer in [
            "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{\"a\":1}",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{\"a\r\n4\r\n\":1}\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\n{\"a\":1}",
        ] {
            assert_eq!(asked(answer).unwrap(), serde_json::json!({ "a": 1 }), "{answer}");
        }
    }

    #[test]
    fn somebody_else_is_told_from_a_balancer() {
        for (answer, said) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "no JSON"),
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"a\":1}", "too early"),
            ("HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\n{}", "answers 404"),
            ("SSH-2.0-OpenSSH_9.2\r\n", "no HTTP"),
            ("", "no HTTP"),
        ] {
            let error = asked(answer).unwrap_err();
            let text = error.to_string();
            assert!(text.contains("is not Weir's admin API") && text.contains(said), "{text}");
            assert_eq!(error.tell(), Exit::Failed);
        }
    }

    #[test]
    fn what_the_balancer_says_is_passed_on() {
        let answer =
            "HTTP/1.1 404 Not Found\r\n\r\n{\"error\":\"x\",\"message\":\"no such thing\"}";
        let error = asked(answer).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.tell()), ("no such thing", Exit::Mistake));
        let answer = "HTTP/1.1 401 Unauthorized\r\n\r\n{\"error\":\"x\",\"message\":\"m\"}";
        assert!(asked(answer).unwrap_err().to_string().contains("--token-file"));
    }

    #[test]
    fn names_with_slashes_are_one_segment() {
        assert_eq!(segment("a/b.c:1*-_~"), "a%2Fb.c:1*-_~");
        assert_eq!(segment("[::1]:80"), "%5B::1%5D:80");
        assert_eq!(segment("ü "), "%C3%BC%20");
    }
}
