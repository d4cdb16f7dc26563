//! A connected non-blocking socket, in clear text or over TLS.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};

/// How often one read asks the socket while TLS yields nothing: `rustls` takes a record of 16 KiB in
/// five pieces. What is still there then shows itself again, so that records without content
/// delay no other connection.
const PIECES_MAX: usize = 16;

/// A socket, and TLS if it is spoken on it.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) socket: TcpStream,
    tls: Option<Box<ClientConnection>>,
}

impl Link {
    pub(crate) fn new(socket: TcpStream) -> Link {
        Link { socket, tls: None }
    }

    /// Begins TLS; [`Link::handshake`] carries it on.
    pub(crate) fn begin_tls(
        &mut self,
        config: &Arc<ClientConfig>,
        name: &ServerName<'static>,
    ) -> io::Result<()> {
        let session = ClientConnection::new(Arc::clone(config), name.clone());
        let mut session = session.map_err(io::Error::other)?;
        // A request is handed over whole, whatever its size.
        session.set_buffer_limit(None);
        self.tls = Some(Box::new(session));
        Ok(())
    }

    /// Carries the handshake on; yields whether it is done.
    pub(crate) fn handshake(&mut self) -> io::Result<bool> {
        let Link { socket, tls: Some(tls) } = self else { return Ok(true) };
        while tls.is_handshaking() {
            flush(tls, socket)?;
            if tls.is_handshaking() && tls.wants_read() && !take_in(tls, socket)? {
                break;
            }
        }
        flush(tls, socket)?;
        Ok(!tls.is_handshaking())
    }

    /// The protocol that the handshake agreed on.
    pub(crate) fn alpn(&self) -> Option<&[u8]> {
        self.tls.as_ref()?.alpn_protocol()
    }

    /// Whether something waits for room in the socket.
    pub(crate) fn is_blocked(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Sends what waits for room; nothing over plain TCP.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        let Link { socket, tls } = self;
        tls.as_mut().map_or(Ok(()), |tls| flush(tls, socket))
    }

    /// Writes some of `bytes`; yields how many were taken, 0: none for now. Over TLS all are
    /// taken, and [`Link::is_blocked`] says whether some still wait.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Link { socket, tls } = self;
        match tls {
            None => would_block_is(0, (&*socket).write(bytes)),
            Some(tls) => {
                let count = tls.writer().write(bytes)?;
                flush(tls, socket)?;
                Ok(count)
            }
        }
    }

    /// Reads into `buffer`; `None`: nothing for now; 0: the end.
    ///
    /// # Errors
    /// `UnexpectedEof` when TLS ends without saying so; `InvalidData` when it is broken.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let Link { socket, tls } = self;
        let Some(tls) = tls else {
            return match (&*socket).read(buffer) {
                Ok(count) => Ok(Some(count)),
                Err(error) => would_block_is(None, Err(error)),
            };
        };
        for _ in 0..PIECES_MAX {
            if let Some(held) = opened(tls, buffer)? {
                return Ok(Some(held));
            }
            if !take_in(tls, socket)? {
                return Ok(None);
            }
        }
        opened(tls, buffer)
    }

    /// As [`Link::read`], but of what the socket has given up already and TLS has opened.
    pub(crate) fn read_held(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        self.tls.as_mut().map_or(Ok(None), |tls| opened(tls, buffer))
    }
}

/// Reads what TLS has opened; `None`: nothing; 0: the end.
fn opened(tls: &mut ClientConnection, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    match tls.reader().read(buffer) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        other => other.map(Some),
    }
}

/// Reads from the socket into the session; whether there was anything.
fn take_in(tls: &mut ClientConnection, socket: &TcpStream) -> io::Result<bool> {
    match tls.read_tls(&mut &*socket) {
        Ok(0) if tls.is_handshaking() => return Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(_) => {}
        Err(error) => return would_block_is(false, Err(error)),
    }
    if let Err(error) = tls.process_new_packets() {
        // The alert that says why is worth a try.
        let _ = flush(tls, socket);
        return Err(io::Error::new(io::ErrorKind::InvalidData, error));
    }
    Ok(true)
}

fn flush(tls: &mut ClientConnection, socket: &TcpStream) -> io::Result<()> {
    while tls.wants_write() {
        match tls.write_tls(&mut &*socket) {
            Ok(_) => {}
            Err(error) => return would_block_is((), Err(error)),
        }
    }
    Ok(())
}

/// Turns "it would wait" and "a signal came" into `value`: the caller is woken again when the
/// socket is ready.
fn would_block_is<T>(value: T, result: io::Result<T>) -> io::Result<T> {
    match result {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
        {
            Ok(value)
        }
        other => other,
    }
}
