//! Moves bytes between sockets inside the kernel, through a pipe (splice(2)).
//!
//! The caller decides whether that pays for a given tunnel: a splice pair costs two calls per run
//! of bytes just as read and write do, and saves the two copies.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::pipe::{PipeFlags, SpliceFlags};

/// A pipe for one direction of a tunnel: non-blocking, with a count of its contents, so that an
/// empty pipe is never read.
#[derive(Debug)]
pub struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
    capacity_bytes: usize,
    held_bytes: usize,
}

impl Pipe {
    /// Returns a pipe of at least `capacity_bytes` if the system grants it (`F_SETPIPE_SZ` rounds
    /// up to pages; unprivileged users are limited by fs.pipe-max-size and their share of
    /// fs.pipe-user-pages-soft), else of the system's default size.
    ///
    /// # Errors
    /// When there are no descriptors or no memory left for a pipe.
    pub fn new(capacity_bytes: usize) -> io::Result<Pipe> {
        let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let capacity_bytes = rustix::pipe::fcntl_setpipe_size(&writer, capacity_bytes)
            .or_else(|_| rustix::pipe::fcntl_getpipe_size(&writer))?;
        Ok(Pipe { reader, writer, capacity_bytes, held_bytes: 0 })
    }

    /// Returns its capacity. It may refuse more with fewer bytes inside, since each segment taken
    /// from a socket occupies a page however small it is.
    pub fn capacity_bytes(&self) -> usize {
        self.capacity_bytes
    }

    /// Returns the bytes taken in and not yet passed on.
    pub fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Returns whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.held_bytes == 0
    }
}

/// Moves at most `max` bytes (more than 0) from a non-blocking socket into the pipe; returns how
/// many, 0 at the end of the stream.
///
/// # Errors
/// `WouldBlock` when the socket has nothing **or** the pipe is full: when [`Pipe::held_bytes`] is
/// not 0 the caller cannot distinguish them, so it must empty the pipe first and try again.
pub fn splice_in(socket: &impl AsFd, pipe: &mut Pipe, max: usize) -> io::Result<usize> {
    let room = pipe.capacity_bytes.saturating_sub(pipe.held_bytes).min(max);
    if room == 0 {
        // Moving 0 bytes returns 0, which would look like the end of the stream.
        return Err(io::ErrorKind::WouldBlock.into());
    }
    let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
    let moved = rustix::pipe::splice(socket, None, &pipe.writer, None, room, flags)?;
    pipe.held_bytes += moved;
    Ok(moved)
}

/// Moves bytes from the pipe to a non-blocking socket; returns how many, 0 only when the pipe is
/// empty. `more`: further bytes will follow soon, so that the kernel may fill its segments first
/// (as `MSG_MORE`).
///
/// # Errors
/// `WouldBlock` when the socket takes nothing now; `BrokenPipe` or `ConnectionReset` when its peer
/// is gone.
pub fn splice_out(pipe: &mut Pipe, socket: &impl AsFd, more: bool) -> io::Result<usize> {
    if pipe.held_bytes == 0 {
        return Ok(0);
    }
    let mut flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
    flags.set(SpliceFlags::MORE, more);
    let moved = rustix::pipe::splice(&pipe.reader, None, socket, None, pipe.held_bytes, flags)?;
    pipe.held_bytes = pipe.held_bytes.saturating_sub(moved);
    Ok(moved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = listener.accept().unwrap().0;
        client.set_nonblocking(true).unwrap();
        server.set_nonblocking(true).unwrap();
        (client, server)
    }

    #[test]
    fn bytes_pass_unchanged_and_the_end_is_seen() {
        let (mut source, inlet) = pair();
        let (outlet, mut sink) = pair();
        let mut pipe = Pipe::new(1 << 16).unwrap();
        assert!(pipe.capacity_bytes() >= 1 << 16);

        assert_eq!(
            splice_in(&inlet, &mut pipe, usize::MAX).unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
        assert_eq!(splice_out(&mut pipe, &outlet, false).unwrap(), 0, "an empty pipe gives none");

        source.write_all(b"through the kernel").unwrap();
        source.shutdown(Shutdown::Write).unwrap();
        assert_eq!(splice_in(&inlet, &mut pipe, usize::MAX).unwrap(), 18);
        assert_eq!(pipe.held_bytes(), 18);
        assert_eq!(splice_out(&mut pipe, &outlet, false).unwrap(), 18);
        assert!(pipe.is_empty());
        assert_eq!(splice_in(&inlet, &mut pipe, usize::MAX).unwrap(), 0, "end of stream");

        outlet.shutdown(Shutdown::Write).unwrap();
        sink.set_nonblocking(false).unwrap();
        let mut arrived = Vec::new();
        sink.read_to_end(&mut arrived).unwrap();
        assert_eq!(arrived, b"through the kernel");
    }

    #[test]
    fn a_full_pipe_says_would_block_and_not_end_of_stream() {
        let (mut source, inlet) = pair();
        let mut pipe = Pipe::new(4096).unwrap();
        let filler = vec![7; 1 << 16];
        let mut kind = None;
        for _ in 0..64 {
            let _ = source.write(&filler);
            match splice_in(&inlet, &mut pipe, usize::MAX) {
                Ok(moved) => assert!(moved > 0),
                Err(error) => {
                    kind = Some(error.kind());
                    break;
                }
            }
        }
        assert_eq!(kind, Some(io::ErrorKind::WouldBlock));
        assert!(!pipe.is_empty());
        assert!(pipe.held_bytes() <= pipe.capacity_bytes());
    }

    #[test]
    fn a_vanished_peer_is_an_error() {
        let (mut source, inlet) = pair();
        let (outlet, sink) = pair();
        crate::socket::set_linger_zero(&sink).unwrap();
        drop(sink);
        let mut pipe = Pipe::new(1 << 16).unwrap();
        source.write_all(b"lost").unwrap();
        splice_in(&inlet, &mut pipe, usize::MAX).unwrap();
        let kind = splice_out(&mut pipe, &outlet, false).unwrap_err().kind();
        let expected = [io::ErrorKind::BrokenPipe, io::ErrorKind::ConnectionReset];
        assert!(expected.contains(&kind), "{kind:?}");
    }
}
