//! A server that misbehaves exactly as a test specifies: it runs inside the test, with a thread and a
//! closure for each connection. [`crate::App`] is a server that behaves well.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The longest that a rogue waits for its peer.
const QUIET_MAX: Duration = Duration::from_mins(1);

/// A running server; it accepts no more once this is dropped.
pub struct Rogue {
    address: SocketAddr,
    stopped: Arc<AtomicBool>,
}

impl Rogue {
    /// Listens at `address` and does `behaviour` with each connection, which is closed when that
    /// returns.
    pub fn start(
        address: SocketAddr,
        behaviour: impl Fn(&mut Peer) + Send + Sync + 'static,
    ) -> Rogue {
        let listener = TcpListener::bind(address).expect("a free address");
        let stopped = Arc::new(AtomicBool::new(false));
        let (stop, behaviour) = (Arc::clone(&stopped), Arc::new(behaviour));
        std::thread::spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate() {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let behaviour = Arc::clone(&behaviour);
                std::thread::spawn(move || {
                    stream.set_nodelay(true).expect("TCP_NODELAY");
                    stream.set_read_timeout(Some(QUIET_MAX)).expect("a timeout");
                    stream.set_write_timeout(Some(QUIET_MAX)).expect("a timeout");
                    behaviour(&mut Peer { stream, number, buffer: Vec::new() });
                });
            }
        });
        Rogue { address, stopped }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Rogue {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        // Wakes the thread that accepts.
        drop(TcpStream::connect_timeout(&self.address, Duration::from_secs(1)));
    }
}

/// A connection to a [`Rogue`].
pub struct Peer {
    /// The socket.
    pub stream: TcpStream,
    /// How many connections came before this one.
    pub number: usize,
    /// Received and not yet taken.
    buffer: Vec<u8>,
}

impl Peer {
    /// The next request head; `None` when the peer has closed.
    pub fn head(&mut self) -> Option<String> {
        let head = self.until(b"\r\n\r\n")?;
        Some(String::from_utf8_lossy(&head).into_owned())
    }

    /// The next request, with a body that its Content-Length announces; `None` when the peer has
    /// closed.
    pub fn request(&mut self) -> Option<String> {
        self.message().map(|(head, _)| head)
    }

    /// As [`Peer::request`], with the body; of a chunked one with the chunks, as they were sent.
    pub fn message(&mut self) -> Option<(String, Vec<u8>)> {
        let head = self.head()?;
        if head.contains("Transfer-Encoding: chunked") {
            let body = self.until(b"0\r\n\r\n")?;
            return Some((head, body));
        }
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let length: usize = length.map_or(0, |length| length.trim().parse().expect("a length"));
        while self.buffer.len() < length {
            self.read_more()?;
        }
        let body = self.buffer.drain(..length).collect();
        Some((head, body))
    }

    /// Takes what comes up to the end of `mark`.
    fn until(&mut self, mark: &[u8]) -> Option<Vec<u8>> {
        loop {
            let found = self.buffer.windows(mark.len()).position(|window| window == mark);
            if let Some(at) = found {
                return Some(self.buffer.drain(..at + mark.len()).collect());
            }
            self.read_more()?;
        }
    }

    /// Writes `bytes`; that the peer may be gone is no concern here.
    pub fn say(&mut self, bytes: impl AsRef<[u8]>) {
        drop(self.stream.write_all(bytes.as_ref()));
    }

    /// Waits until the peer closes or resets the connection, reading nothing of use.
    pub fn hold(&mut self) {
        while self.read_more().is_some() {
            self.buffer.clear();
        }
    }

    /// Lets what was said arrive, which a reset would discard, and then resets the connection.
    pub fn reset(&mut self) {
        std::thread::sleep(Duration::from_millis(50));
        reset_on_close(&self.stream);
    }

    fn read_more(&mut self) -> Option<()> {
        let mut piece = [0; 16 * 1024];
        match self.stream.read(&mut piece) {
            Ok(count) if count > 0 => {
                self.buffer.extend_from_slice(&piece[..count]);
                Some(())
            }
            _ => None,
        }
    }
}

/// From here on, closing `stream` resets the connection.
pub fn reset_on_close(stream: &TcpStream) {
    let linger = Some(Duration::ZERO);
    rustix::net::sockopt::set_socket_linger(stream, linger).expect("SO_LINGER");
}

/// A socket that listens with the smallest queue and accepts no connection. Yields it with the
/// connections that fill the queue, so that further SYNs are dropped.
pub fn full_listen_queue(address: SocketAddr) -> io::Result<(rustix::fd::OwnedFd, Vec<TcpStream>)> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, listen, socket_with};
    let listener = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None)?;
    bind(&listener, &address)?;
    listen(&listener, 0)?;
    let mut queued = Vec::new();
    // A queue of 0 holds one; Linux lets another in before it looks again.
    for _ in 0..3 {
        let flags = SocketFlags::NONBLOCK;
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
        // In progress; whether it completes is what fills the queue.
        let _ = connect(&socket, &address);
        queued.push(TcpStream::from(socket));
    }
    Ok((listener, queued))
}

/// As [`full_listen_queue`], on a Unix socket at `path`; further connections have no room.
pub fn full_unix_queue(path: &Path) -> io::Result<(UnixListener, Vec<rustix::fd::OwnedFd>)> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
    let listener = UnixListener::bind(path)?;
    // On a socket that listens, listen(2) changes the length of its queue.
    rustix::net::listen(&listener, 0)?;
    let mut queued = Vec::new();
    loop {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        match rustix::net::connect(&socket, &SocketAddrUnix::new(path)?) {
            Ok(()) => queued.push(socket),
            Err(rustix::io::Errno::AGAIN) => return Ok((listener, queued)),
            Err(error) => return Err(error.into()),
        }
    }
}
