//! The address of a listening socket: an IP address and a port, or a Unix socket's path.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The prefix of a Unix socket's address as text.
pub const UNIX_PREFIX: &str = "unix:";

/// Where a server or a listener is reached. In JSON it is its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Address {
    /// An IP address and a port.
    Ip(SocketAddr),
    /// A Unix socket.
    Unix(UnixPath),
}

impl Address {
    /// Parses a text from outside: a Unix socket only if a configuration of this process has named it, so
    /// that nothing is stored.
    pub fn find(text: &str) -> Option<Address> {
        match text.strip_prefix(UNIX_PREFIX) {
            Some(path) => UnixPath::find(path).map(Address::Unix),
            None => text.parse().ok().map(Address::Ip),
        }
    }

    /// Returns the IP address and port; `None`: a Unix socket.
    pub fn ip(self) -> Option<SocketAddr> {
        match self {
            Address::Ip(address) => Some(address),
            Address::Unix(_) => None,
        }
    }

    /// Returns the port; `None`: a Unix socket.
    pub fn port(self) -> Option<u16> {
        self.ip().map(|address| address.port())
    }

    /// Returns it as the host of a message that names no other (RFC 9110 section 7.2); for a Unix socket,
    /// [`UnixPath::HOST`].
    pub fn authority(self) -> String {
        self.ip().map_or_else(|| UnixPath::HOST.to_owned(), |address| address.to_string())
    }

    /// Returns whether it can be reached from this machine only.
    pub fn is_local(self) -> bool {
        self.ip().is_none_or(|address| address.ip().to_canonical().is_loopback())
    }

    /// Returns whether it means another server on each machine, or on each of its networks.
    pub fn is_of_one_machine(self) -> bool {
        let is_link_local = self.ip().is_some_and(|address| match address.ip().to_canonical() {
            IpAddr::V4(ip) => ip.is_link_local(),
            IpAddr::V6(ip) => ip.is_unicast_link_local(),
        });
        self.is_local() || is_link_local
    }

    /// Returns whether it is port 0, in whose place the kernel chooses one.
    pub fn is_any_port(self) -> bool {
        self.port() == Some(0)
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Address {
        Address::Ip(address)
    }
}

/// Displays it as written in the configuration: `10.0.1.5:8080`, `unix:/run/app.sock`.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Ip(address) => address.fmt(f),
            Address::Unix(path) => write!(f, "{UNIX_PREFIX}{path}"),
        }
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Address {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Address, D::Error> {
        Cow::<str>::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// A text that is no [`Address`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnAddress;

impl FromStr for Address {
    type Err = NotAnAddress;

    fn from_str(text: &str) -> Result<Address, NotAnAddress> {
        match text.strip_prefix(UNIX_PREFIX) {
            Some(path) => UnixPath::new(path).map(Address::Unix).ok_or(NotAnAddress),
            None => text.parse().map(Address::Ip).map_err(|_| NotAnAddress),
        }
    }
}

impl fmt::Display for NotAnAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("neither an IP address and a port, nor unix: and an absolute path")
    }
}

impl std::error::Error for NotAnAddress {}

/// The path of a Unix socket.
///
/// Addresses are copied with every request, so each distinct path is stored once and is never freed: a
/// process keeps the at most 107 bytes of every path that its configurations have named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixPath(&'static str);

/// The paths of this process.
static PATHS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

impl UnixPath {
    /// Maximum length, in bytes. unix(7): `sun_path` has 108 bytes, the last of them zero.
    pub const BYTES_MAX: usize = 107;

    /// The host name for what is sent to it and names a host, if none is configured: the process
    /// behind it is on this machine.
    pub const HOST: &str = "localhost";

    /// Returns the path; `None` if no Unix socket can have it: it is not absolute, names a directory,
    /// contains a control character, or is longer than [`UnixPath::BYTES_MAX`]; or if it is not in
    /// its plain form, without `//`, `.` and `..`, so that one socket would have several addresses.
    pub fn new(path: &str) -> Option<UnixPath> {
        let fits = path.len() <= UnixPath::BYTES_MAX && !path.contains(char::is_control);
        if !fits || !UnixPath::is_plain(path) {
            return None;
        }
        let mut paths = PATHS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = paths.get(path) {
            return Some(UnixPath(known));
        }
        let kept: &'static str = Box::leak(path.into());
        paths.insert(kept);
        Some(UnixPath(kept))
    }

    /// Returns whether a path is absolute, and no part of it is empty, `.` or `..`.
    pub fn is_plain(path: &str) -> bool {
        let is_plain = |part: &str| !matches!(part, "" | "." | "..");
        path.strip_prefix('/').is_some_and(|rest| rest.split('/').all(is_plain))
    }

    /// Returns the path if this process knows it already; stores nothing.
    fn find(path: &str) -> Option<UnixPath> {
        let paths = PATHS.lock().unwrap_or_else(PoisonError::into_inner);
        paths.get(path).copied().map(UnixPath)
    }

    /// Returns it as text.
    pub fn as_str(self) -> &'static str {
        self.0
    }

    /// Returns it as a path.
    pub fn as_path(self) -> &'static Path {
        Path::new(self.0)
    }
}

impl fmt::Display for UnixPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Who may connect to a Unix socket that Weir listens on: those that may write to its file (unix(7)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketAccess {
    /// Permission bits of its file.
    pub mode: u32,
    /// Its group; `None`: that of Weir's user.
    pub group: Option<String>,
}

impl Default for SocketAccess {
    /// Weir's own user and its group.
    fn default() -> SocketAccess {
        SocketAccess { mode: 0o660, group: None }
    }
}

/// A host and a port on the network; a name is resolved whenever a connection or a datagram needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPort {
    /// A host name in lower case, or an IP address without brackets.
    pub host: String,
    /// Port.
    pub port: u16,
}

impl From<SocketAddr> for HostPort {
    fn from(address: SocketAddr) -> HostPort {
        let host = match address {
            SocketAddr::V6(v6) if v6.scope_id() != 0 => format!("{}%{}", v6.ip(), v6.scope_id()),
            SocketAddr::V4(_) | SocketAddr::V6(_) => address.ip().to_string(),
        };
        HostPort { host, port: address.port() }
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let HostPort { host, port } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_stored_once_and_compared_by_its_text() {
        let path = |text: &str| UnixPath::new(text).unwrap();
        let (one, other) = (path("/run/app.sock"), path(&format!("/run/{}.sock", "app")));
        assert_eq!(one, other);
        assert!(std::ptr::eq(one.as_str(), other.as_str()));
        assert!(one < path("/run/b.sock"));
        assert_eq!(Address::Unix(one).to_string(), "unix:/run/app.sock");
        assert_eq!("unix:/run/app.sock".parse(), Ok(Address::Unix(one)));
        assert_eq!("unix:run/app.sock".parse::<Address>(), Err(NotAnAddress));
        assert!(Address::Ip("[2001:db8::1]:80".parse().unwrap()) < Address::Unix(one));
    }

    #[test]
    fn what_no_socket_can_have_is_no_path() {
        let long = format!("/{}", "a".repeat(UnixPath::BYTES_MAX));
        for wrong in ["", "run/app.sock", "/run/", "/", "/run/\0", "/run//a", "/run/../a", &long] {
            assert_eq!(UnixPath::new(wrong), None, "{wrong:?}");
        }
        assert!(UnixPath::new(&long[..UnixPath::BYTES_MAX]).is_some());
    }

    #[test]
    fn what_comes_from_outside_is_not_stored() {
        assert_eq!(Address::find("unix:/run/found.sock"), None);
        let path = UnixPath::new("/run/found.sock").unwrap();
        assert_eq!(Address::find("unix:/run/found.sock"), Some(Address::Unix(path)));
        assert_eq!(Address::find("unix:/run/lost.sock"), None);
        assert!(Address::find("127.0.0.1:80").is_some());
    }
}
