//! The rustls session between a socket and its users: feeds it received bytes and sends its output.

use std::cell::RefCell;
use std::io::{self, BufRead, IoSlice, Write};
use std::task::{Context, Poll, ready};

use rustls::{InvalidMessage, ProtocolVersion};
use tokio::io::ReadBuf;

use super::TlsError;
use super::is_gone;
use crate::stream::tcp::Tcp;

/// Maximum bytes of one read from the socket: four full-size records, with some room.
const READ_MAX_BYTES: usize = 65 * 1024;
/// Minimum: one full-size record.
const READ_MIN_BYTES: usize = 17 * 1024;
/// Approximate overhead of the records of that many bytes of plaintext.
const OVERHEAD_BYTES: usize = 512;
/// Maximum plaintext encrypted at a time: a full buffer, and the head before it.
const WRITE_MAX_BYTES: usize = 68 * 1024;

thread_local! {
    /// Buffer for socket reads: used within one call, so all connections of a thread share it.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// A session, and the data in transit through it.
pub(super) struct Session {
    rustls: rustls::Connection,
    /// Records that have been read and not yet decrypted, because the reader had no room for the
    /// plaintext before them. At most what one read fetched.
    held: Vec<u8>,
    /// Plaintext that was taken and not yet reported as written.
    owed_bytes: usize,
    /// Set when nothing more is read, with the reason.
    end: Option<End>,
    /// `close_notify` has been queued.
    closing: bool,
    /// The first byte of the connection tells TLS from other protocols.
    first_byte: Option<u8>,
}

/// Why nothing more is read.
enum End {
    /// The peer sent `close_notify`.
    Closed,
    /// TCP ended without `close_notify`.
    Cut,
    Failed(rustls::Error),
    Io(io::ErrorKind),
}

impl Session {
    pub(super) fn new(mut rustls: rustls::Connection) -> Session {
        rustls.set_buffer_limit(Some(WRITE_MAX_BYTES));
        let (held, owed_bytes) = (Vec::new(), 0);
        Session { rustls, held, owed_bytes, end: None, closing: false, first_byte: None }
    }

    pub(super) fn rustls(&self) -> &rustls::Connection {
        &self.rustls
    }

    /// Takes what had been read from the connection before.
    pub(super) fn begin_with(&mut self, prefix: &[u8]) {
        self.absorb(prefix, &mut ReadBuf::new(&mut []));
    }

    /// Ready when the handshake is complete or has failed.
    pub(super) fn poll_handshake(
        &mut self,
        tcp: &Tcp,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), TlsError>> {
        let nothing = &mut ReadBuf::new(&mut []);
        loop {
            let done = !self.rustls.is_handshaking();
            // Data that followed the handshake, or the end, is left to the reader.
            if done && self.has_only_tickets() {
                return Poll::Ready(Ok(()));
            }
            if let (Some(end), false) = (&self.end, done) {
                let error = end.in_handshake(self.first_byte);
                if !matches!(error, TlsError::NotTls) {
                    self.speak(tcp, cx);
                }
                return Poll::Ready(Err(error));
            }
            if let Err(error) = ready!(self.poll_flush(tcp, cx)) {
                // The peer may have sent an alert before it left.
                if !done && is_gone(&error) && self.poll_fill(tcp, cx, nothing).is_ready() {
                    continue;
                }
                return Poll::Ready(Err(TlsError::Io(error)));
            }
            if !done {
                ready!(self.poll_fill(tcp, cx, nothing));
            }
        }
    }

    /// Returns whether nothing is left to be sent, or only what can go with the first response.
    fn has_only_tickets(&self) -> bool {
        let version = self.rustls.protocol_version();
        let is_server = matches!(self.rustls, rustls::Connection::Server(_));
        !self.rustls.wants_write() || is_server && version == Some(ProtocolVersion::TLSv1_3)
    }

    /// Returns why there is nothing more to read, once all has been read.
    pub(super) fn end(&self) -> Option<io::Result<()>> {
        self.end.as_ref().map(End::in_reading)
    }

    /// Returns whether a read would yield data or the end, without asking the socket.
    pub(super) fn is_readable(&mut self) -> bool {
        self.end.is_some() || !self.held.is_empty() || self.has_plaintext()
    }

    fn has_plaintext(&mut self) -> bool {
        self.rustls.reader().fill_buf().is_ok_and(|chunk| !chunk.is_empty())
    }

    /// Moves available plaintext to `buf`.
    pub(super) fn take(&mut self, buf: &mut ReadBuf<'_>) {
        self.take_plaintext(buf);
        if buf.remaining() > 0 && !self.held.is_empty() {
            let held = std::mem::take(&mut self.held);
            self.absorb(&held, buf);
        }
    }

    fn take_plaintext(&mut self, buf: &mut ReadBuf<'_>) {
        let mut reader = self.rustls.reader();
        while buf.remaining() > 0 {
            let Ok(chunk) = reader.fill_buf() else { return };
            let count = chunk.len().min(buf.remaining());
            if count == 0 {
                return;
            }
            buf.put_slice(&chunk[..count]);
            reader.consume(count);
        }
    }

    /// Reads once from the socket, about as much as `buf` has room for. Ready when that yielded
    /// anything, which need not be plaintext.
    pub(super) fn poll_fill(
        &mut self,
        tcp: &Tcp,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<()> {
        let want = (buf.remaining() + OVERHEAD_BYTES).clamp(READ_MIN_BYTES, READ_MAX_BYTES);
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.resize(READ_MAX_BYTES, 0);
            let mut window = ReadBuf::new(&mut scratch[..want]);
            match ready!(tcp.poll_read(cx, &mut window)) {
                Ok(()) => self.arrived(window.filled(), buf),
                Err(error) => self.end = Some(End::Io(error.kind())),
            }
            Poll::Ready(())
        })
    }

    /// Reads once, when data is known to be there.
    pub(super) fn fill_now(&mut self, tcp: &Tcp) {
        SCRATCH.with_borrow_mut(|scratch| {
            scratch.resize(READ_MAX_BYTES, 0);
            match tcp.read_now(scratch) {
                Ok(count) => self.arrived(&scratch[..count], &mut ReadBuf::new(&mut [])),
                Err(error) => self.end = Some(End::Io(error.kind())),
            }
        });
    }

    fn arrived(&mut self, bytes: &[u8], buf: &mut ReadBuf<'_>) {
        if bytes.is_empty() {
            self.end = Some(End::Cut);
        } else {
            self.absorb(bytes, buf);
        }
    }

    /// Decrypts `bytes` into `buf`; what does not fit is held.
    fn absorb(&mut self, bytes: &[u8], buf: &mut ReadBuf<'_>) {
        self.first_byte = self.first_byte.or(bytes.first().copied());
        let mut left = bytes;
        while !left.is_empty() && self.end.is_none() {
            if let Err(error) = self.feed(&mut left) {
                self.end = Some(End::Failed(error));
            }
            // After an error too: what came before it is valid.
            self.take_plaintext(buf);
            if self.has_plaintext() {
                self.held.extend_from_slice(left);
                return;
            }
        }
    }

    /// Feeds rustls as much as it takes at a time, which is little.
    fn feed(&mut self, left: &mut &[u8]) -> Result<(), rustls::Error> {
        // It fails only when full: of plaintext, which is taken each time, or of a handshake
        // message that does not end.
        let too_large = rustls::Error::InvalidMessage(InvalidMessage::HandshakePayloadTooLarge);
        self.rustls.read_tls(left).map_err(|_| too_large)?;
        if self.rustls.process_new_packets()?.peer_has_closed() {
            self.end = Some(End::Closed);
        }
        Ok(())
    }

    /// Writes some of the bytes of all slices; see the module documentation.
    pub(super) fn poll_write(
        &mut self,
        tcp: &Tcp,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let len: usize = slices.iter().map(|slice| slice.len()).sum();
        if len == 0 {
            return Poll::Ready(Ok(0));
        }
        if self.closing {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        while self.owed_bytes == 0 {
            self.owed_bytes = self.rustls.writer().write_vectored(slices)?;
            if self.owed_bytes == 0 {
                // No room beside pending TLS messages.
                ready!(self.poll_flush(tcp, cx))?;
            }
        }
        ready!(self.poll_flush(tcp, cx))?;
        let count = self.owed_bytes.min(len);
        self.owed_bytes -= count;
        Poll::Ready(Ok(count))
    }

    /// Closes the sending side, after everything written.
    pub(super) fn poll_close(&mut self, tcp: &Tcp, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.closing {
            self.closing = true;
            self.rustls.send_close_notify();
        }
        self.poll_flush(tcp, cx)
    }

    /// Sends pending TLS messages (alerts, tickets) when no write is about to. Errors show in the
    /// next read or write.
    pub(super) fn speak(&mut self, tcp: &Tcp, cx: &mut Context<'_>) {
        // A pending write or close sends all of it; this must not replace its waker.
        if self.owed_bytes == 0 && !self.closing {
            let _ = self.poll_flush(tcp, cx);
        }
    }

    fn poll_flush(&mut self, tcp: &Tcp, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.rustls.wants_write() {
            match self.rustls.write_tls(&mut Sink { tcp, cx }) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Poll::Pending,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl End {
    fn in_reading(&self) -> io::Result<()> {
        match self {
            End::Closed => Ok(()),
            End::Cut => Err(io::ErrorKind::UnexpectedEof.into()),
            End::Failed(error) => Err(TlsError::from(error.clone()).into()),
            End::Io(kind) => Err((*kind).into()),
        }
    }

    fn in_handshake(&self, first_byte: Option<u8>) -> TlsError {
        match self {
            End::Closed | End::Cut => TlsError::Closed,
            End::Failed(error) => TlsError::in_handshake(error, first_byte),
            End::Io(kind) => TlsError::Io((*kind).into()),
        }
    }
}

/// The socket as rustls writes to it.
struct Sink<'a, 'b> {
    tcp: &'a Tcp,
    cx: &'a mut Context<'b>,
}

impl Write for Sink<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        or_would_block(self.tcp.poll_write(self.cx, bytes))
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match slices {
            // The runtime learns about a short write only in this way.
            [one] => self.write(one),
            _ => or_would_block(self.tcp.poll_write_vectored(self.cx, slices)),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn or_would_block(polled: Poll<io::Result<usize>>) -> io::Result<usize> {
    match polled {
        Poll::Ready(result) => result,
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}
