//! The way in: the socket that the API listens on, and the token that it asks for. Opened while
//! the program may still be root; what comes in is `guard`'s affair.

mod token;
mod unix;

use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};

use model::{Admin, AdminAddress};
use os::listen::ListenError;

pub use token::{Token, TokenError};
pub(crate) use unix::SocketFile;
pub use unix::{UnixError, UnixSocket};

/// A socket that listens where it may, and the token to ask for.
#[derive(Debug)]
pub struct Door {
    listener: Listener,
    token: Option<Token>,
}

impl Door {
    /// Opens the door that a configuration asks for: reads the token, binds the address. `owner`
    /// (user and group ids) gets the Unix socket's file; `None`: whoever we are.
    ///
    /// # Errors
    /// The token cannot be read, or the address or path cannot be listened on.
    pub fn open(admin: &Admin, owner: Option<(u32, u32)>) -> Result<Door, OpenError> {
        let token = match &admin.token_file {
            Some(path) => Some(Token::read(path).map_err(OpenError::Token)?),
            None => None,
        };
        let listener = match &admin.address {
            AdminAddress::Tcp(address) => {
                check_address(*address).map_err(OpenError::NotLoopback)?;
                let bound = os::listen::bind(*address, None, false).map_err(OpenError::Listen)?;
                Listener::Tcp(bound.listener)
            }
            AdminAddress::Unix(path) => {
                Listener::Unix(UnixSocket::bind(path, owner).map_err(OpenError::Unix)?)
            }
        };
        Ok(Door { listener, token })
    }

    /// Whether [`Door::open`] could open the door, short of binding its address: the token file can
    /// be read and is kept from others, and a Unix socket's directory takes a new file.
    ///
    /// # Errors
    /// As [`Door::open`].
    pub fn check(admin: &Admin) -> Result<(), Vec<OpenError>> {
        let mut errors = Vec::new();
        if let Some(Err(error)) = admin.token_file.as_deref().map(Token::read) {
            errors.push(OpenError::Token(error));
        }
        match &admin.address {
            AdminAddress::Tcp(address) => {
                errors.extend(check_address(*address).err().map(OpenError::NotLoopback));
            }
            AdminAddress::Unix(path) => {
                errors.extend(UnixSocket::check(path).err().map(OpenError::Unix));
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// A door on a socket that is bound already, such as one that another process handed over.
    /// Whether its address is one to listen on is found out by [`crate::start`].
    pub fn of(listener: Listener, token: Option<Token>) -> Door {
        Door { listener, token }
    }

    /// The token it asks for.
    pub fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    pub(crate) fn into_parts(self) -> (Listener, Option<Token>) {
        (self.listener, self.token)
    }
}

/// For whoever hands the socket over to another process.
impl AsFd for Door {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.listener {
            Listener::Tcp(listener) => listener.as_fd(),
            Listener::Unix(socket) => socket.as_fd(),
        }
    }
}

/// A bound socket of either kind.
#[derive(Debug)]
pub enum Listener {
    /// On a loopback address.
    Tcp(TcpListener),
    /// In the file system.
    Unix(UnixSocket),
}

/// Why the door could not be opened. Prints as one line: what, why, how to mend it.
#[derive(Debug)]
pub enum OpenError {
    /// The address is one that other machines reach.
    NotLoopback(NotLoopback),
    /// The address cannot be bound.
    Listen(ListenError),
    /// The Unix socket cannot be bound.
    Unix(UnixError),
    /// There is no good token in the file.
    Token(TokenError),
}

impl OpenError {
    /// Whether somebody else listens there.
    pub fn is_address_in_use(&self) -> bool {
        match self {
            OpenError::Listen(error) => error.is_address_in_use(),
            OpenError::Unix(error) => error.is_address_in_use(),
            OpenError::NotLoopback(_) | OpenError::Token(_) => false,
        }
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::NotLoopback(error) => error.fmt(f),
            OpenError::Listen(error) => error.fmt(f),
            OpenError::Unix(error) => error.fmt(f),
            OpenError::Token(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

/// An address that the API must not listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotLoopback(SocketAddr);

impl fmt::Display for NotLoopback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is not a loopback address, and elsewhere the admin API would need TLS, which it \
             does not speak yet; use 127.0.0.1:{} and an SSH tunnel",
            self.0,
            self.0.port()
        )
    }
}

impl std::error::Error for NotLoopback {}

/// Whether the API may listen on `address`: only loopback, as long as it does not speak TLS.
///
/// # Errors
/// The address is not a loopback address.
pub fn check_address(address: SocketAddr) -> Result<(), NotLoopback> {
    if address.ip().to_canonical().is_loopback() { Ok(()) } else { Err(NotLoopback(address)) }
}
