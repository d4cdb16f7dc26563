//! The server behind Weir: answers as scripted, and records every request.

use std::collections::{HashMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::net::RecvFlags;

use crate::case::Respond;
use crate::message::{Message, Reader};

/// The Host of requests that are the runner's own and are not remembered.
pub const PROBE_HOST: &str = "probe.invalid";
/// The body of the answer to them.
pub const PROBE_BODY: &[u8] = b"probe";

/// A server that records.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// What a server saw of one case.
#[derive(Debug, Default)]
pub struct Seen {
    /// Whole requests, in order of their end.
    pub requests: Vec<Message>,
    /// Requests that began and never became whole.
    pub incomplete: usize,
    /// What broke the rules of HTTP.
    pub faults: Vec<String>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    settled: Condvar,
}

#[derive(Default)]
struct State {
    script: VecDeque<Respond>,
    seen: Seen,
    /// Connections in the middle of a request.
    busy: usize,
    /// Every connection that is open, for what has arrived and not been read yet.
    open: HashMap<SocketAddr, TcpStream>,
}

impl State {
    /// Whether something that has arrived is not accounted for.
    fn is_unsettled(&self) -> bool {
        self.busy > 0 || self.open.values().any(has_unread)
    }
}

/// Whether bytes have arrived that the connection's thread has not begun to read.
fn has_unread(stream: &TcpStream) -> bool {
    matches!(rustix::net::recv(stream, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT), Ok((n, _)) if n > 0)
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Server {
    /// Listens at `address`. Its threads end with the test's process.
    pub fn start(address: SocketAddr) -> io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        let shared = Arc::new(Shared::default());
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            while let Ok((stream, peer)) = listener.accept() {
                let shared = Arc::clone(&accepting);
                let Ok(watched) = stream.try_clone() else { continue };
                shared.lock().open.insert(peer, watched);
                shared.settled.notify_all();
                thread::spawn(move || {
                    // How a connection ends is in what was seen.
                    let _ = serve(stream, &shared);
                    shared.lock().open.remove(&peer);
                    shared.settled.notify_all();
                });
            }
        });
        Ok(Server { address, shared })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Begins a case.
    pub fn begin(&self, script: &[Respond]) {
        let mut state = self.shared.lock();
        state.script = script.iter().cloned().collect();
        state.seen = Seen::default();
    }

    /// What was seen since; `Err` if a request is still half there after `bound`.
    pub fn end(&self, bound: Duration) -> Result<Seen, String> {
        // Connections are accepted in order: once this one is, all before it are.
        let last = TcpStream::connect(self.address).map_err(|error| error.to_string())?;
        let last = last.local_addr().map(|own| (last, own)).map_err(|error| error.to_string())?;
        let state = self.shared.lock();
        let (state, _) = self
            .shared
            .settled
            .wait_timeout_while(state, bound, |state| !state.open.contains_key(&last.1))
            .unwrap_or_else(PoisonError::into_inner);
        let (mut state, waited) = self
            .shared
            .settled
            .wait_timeout_while(state, bound, |state| state.is_unsettled())
            .unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return Err(format!(
                "the server still waits for the rest of a request after {bound:?}"
            ));
        }
        Ok(std::mem::take(&mut state.seen))
    }
}

fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = Reader::new(stream);
    while reader.begins(|| shared.lock().busy += 1)? {
        let handled = request(&mut reader, shared);
        let mut state = shared.lock();
        state.busy -= 1;
        let answer = match handled {
            Ok(Some((message, answer))) => {
                state.seen.requests.push(message);
                answer
            }
            Ok(None) => probe_answer(),
            Err(error) => {
                state.seen.incomplete += 1;
                if error.kind() == io::ErrorKind::InvalidData {
                    state.seen.faults.push(error.to_string());
                }
                shared.settled.notify_all();
                return Err(error);
            }
        };
        drop(state);
        shared.settled.notify_all();
        reader.stream().write_all(&answer.bytes)?;
        if answer.bytes.starts_with(b"HTTP/1.1 101 ") {
            return echo(reader.stream());
        }
        if answer.close {
            return reader.stream().shutdown(Shutdown::Both);
        }
    }
    Ok(())
}

/// Reads a request; yields it and what it is answered, or nothing if it is the runner's own.
fn request(reader: &mut Reader, shared: &Shared) -> io::Result<Option<(Message, Respond)>> {
    let mut message = reader.head()?;
    if message.values("host") == [PROBE_HOST] {
        reader.body(&mut message, false)?;
        return Ok(None);
    }
    let next = || shared.lock().script.pop_front().unwrap_or_else(default_answer);
    let mut answer = next();
    let waits = message.values("expect").iter().any(|e| e.eq_ignore_ascii_case("100-continue"))
        && !(message.values("content-length").is_empty()
            && message.values("transfer-encoding").is_empty());
    if waits {
        reader.stream().write_all(&answer.bytes)?;
        // After a final answer the body may or may not come; the case says.
        if answer.bytes.starts_with(b"HTTP/1.1 100 ") {
            answer = next();
        } else {
            answer.bytes.clear();
        }
    }
    reader.body(&mut message, false)?;
    Ok(Some((message, answer)))
}

/// What follows a 101.
fn echo(mut stream: &TcpStream) -> io::Result<()> {
    let mut piece = [0; 1024];
    loop {
        match stream.read(&mut piece)? {
            0 => return stream.shutdown(Shutdown::Both),
            count => stream.write_all(&piece[..count])?,
        }
    }
}

fn default_answer() -> Respond {
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec();
    Respond { bytes, close: false }
}

fn probe_answer() -> Respond {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", PROBE_BODY.len());
    Respond { bytes: [head.as_bytes(), PROBE_BODY].concat(), close: false }
}
