//! The API's listening socket and its token. Opened while the program may still be root; `guard` checks
//! the requests.

mod token;

use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use model::{Address, Admin};
use os::listen::ListenError;
use os::unix_socket::{Access, UnixError, UnixSocket};

pub use token::{Token, TokenError};

/// Listen backlog of a Unix socket.
const UNIX_BACKLOG: u32 = 128;

/// Only the owner may connect.
fn access(owner: Option<(u32, u32)>) -> Access {
    Access { mode: 0o600, user: owner.map(|(user, _)| user), group: owner.map(|(_, group)| group) }
}

/// A listening socket on an allowed address, and the token to require.
#[derive(Debug)]
pub struct Door {
    listener: Listener,
    token: Option<Token>,
}

impl Door {
    /// Opens the socket of a configuration: reads the token, binds the address. `owner` (user and group
    /// ids) owns the Unix socket's file; `None`: the current user.
    ///
    /// # Errors
    /// The token cannot be read, or the address or path cannot be listened on.
    pub fn open(admin: &Admin, owner: Option<(u32, u32)>) -> Result<Door, OpenError> {
        let token = token_of(admin)?;
        let listener = match &admin.address {
            Address::Ip(address) => {
                check_address(*address).map_err(OpenError::NotLoopback)?;
                let bound = os::listen::bind(*address, None, false).map_err(OpenError::Listen)?;
                Listener::Tcp(bound.listener)
            }
            Address::Unix(path) => Listener::Unix(
                UnixSocket::bind(*path, access(owner), UNIX_BACKLOG).map_err(OpenError::Unix)?,
            ),
        };
        Ok(Door { listener, token })
    }

    /// As [`Door::open`], on a socket that another process bound for the same address and handed over.
    ///
    /// # Errors
    /// As [`Door::open`].
    pub fn adopt(
        socket: OwnedFd,
        admin: &Admin,
        owner: Option<(u32, u32)>,
    ) -> Result<Door, OpenError> {
        let token = token_of(admin)?;
        let listener = match admin.address {
            Address::Ip(_) => Listener::Tcp(TcpListener::from(socket)),
            Address::Unix(path) => match UnixSocket::adopt(socket, path) {
                Ok(socket) => Listener::Unix(socket),
                // Its file is gone: no client could connect.
                Err(_) => return Door::open(admin, owner),
            },
        };
        Ok(Door::of(listener, token))
    }

    /// Checks whether [`Door::open`] would succeed, without binding the address: the token file is
    /// readable and protected, and a Unix socket's directory is writable.
    ///
    /// # Errors
    /// As [`Door::open`].
    pub fn check(admin: &Admin) -> Result<(), Vec<OpenError>> {
        let mut errors = Vec::new();
        if let Some(Err(error)) = admin.token_file.as_deref().map(Token::read) {
            errors.push(OpenError::Token(error));
        }
        match &admin.address {
            Address::Ip(address) => {
                errors.extend(check_address(*address).err().map(OpenError::NotLoopback));
            }
            Address::Unix(path) => {
                errors.extend(UnixSocket::check(*path).err().map(OpenError::Unix));
            }
        }
        if errors.is_empty() { Ok(()) } else { Err(errors) }
    }

    /// Uses a socket that is already bound, such as one that another process handed over.
    /// [`crate::start`] checks its address.
    pub fn of(listener: Listener, token: Option<Token>) -> Door {
        Door { listener, token }
    }

    /// The required token.
    pub fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }

    pub(crate) fn into_parts(self) -> (Listener, Option<Token>) {
        (self.listener, self.token)
    }
}

/// Reads the required token; `None`: none is required.
fn token_of(admin: &Admin) -> Result<Option<Token>, OpenError> {
    admin.token_file.as_deref().map(Token::read).transpose().map_err(OpenError::Token)
}

/// For handing the socket over to another process.
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
    /// In the file system: a Unix socket.
    Unix(UnixSocket),
}

/// Why the socket could not be opened. Prints as one line: what, why, how to fix it.
#[derive(Debug)]
pub enum OpenError {
    /// Other machines could reach the address.
    NotLoopback(NotLoopback),
    /// The address cannot be bound.
    Listen(ListenError),
    /// The Unix socket cannot be bound.
    Unix(UnixError),
    /// The file does not contain a valid token.
    Token(TokenError),
}

impl OpenError {
    /// Returns whether another process listens there.
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

/// Checks whether the API may listen on `address`: only loopback, as long as it does not support TLS.
///
/// # Errors
/// The address is not a loopback address.
pub fn check_address(address: SocketAddr) -> Result<(), NotLoopback> {
    if address.ip().to_canonical().is_loopback() { Ok(()) } else { Err(NotLoopback(address)) }
}
