//! Lists the TCP sockets of a network namespace (netlink `sock_diag`): at about a microsecond per
//! socket, where reading `/proc/net/tcp` takes minutes once there are many.
//!
//! Sockets are passed to the caller one after the other.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::ControlFlow;

use crate::netlink::{Netlink, array, attributes};
use crate::tcp_info::{TcpInfo, TcpState, parse};

/// Which sockets are listed, in how much detail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// States, one bit each: see [`Wanted::listeners`] and [`Wanted::others`].
    states: u32,
    /// Whether `TCP_INFO` and the congestion control are included. The kernel locks each socket for
    /// a moment then.
    pub info: bool,
    /// Whether memory and drops are included.
    pub memory: bool,
    /// One of two halves, or all.
    half: Option<Half>,
}

/// One of two halves of all sockets, of about the same size: filling a reply takes longer than
/// finding the sockets, so two threads that request a half each finish sooner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// Those whose ephemeral port is in the lower half of the usual range, and those without one.
    Lower,
    /// The others.
    Upper,
}

/// The usual range of ephemeral ports is 32768 to 60999; this is its middle.
const EPHEMERAL: u16 = 32_768;
const MIDDLE: u16 = 46_884;

/// The kernel's numbers of states (`include/net/tcp_states.h`).
const ESTABLISHED: u32 = 1;
const LISTEN: u32 = 10;

impl Wanted {
    /// Selects listening sockets, with their drops.
    pub fn listeners() -> Wanted {
        Wanted { states: 1 << LISTEN, memory: true, ..Wanted::default() }
    }

    /// Selects all that do not listen: connections in every state, including `TIME_WAIT`.
    pub fn others() -> Wanted {
        // 1 (ESTABLISHED) to 11 (CLOSING); the kernel adds its own state for listeners (12).
        Wanted { states: 0xFFE & !(1 << LISTEN), ..Wanted::default() }
    }

    /// Selects connections on which data can flow.
    pub fn established() -> Wanted {
        Wanted { states: 1 << ESTABLISHED, ..Wanted::default() }
    }

    /// Adds `TCP_INFO`.
    #[must_use]
    pub fn with_info(self) -> Wanted {
        Wanted { info: true, ..self }
    }

    /// Selects one half of these.
    #[must_use]
    pub fn half(self, half: Half) -> Wanted {
        Wanted { half: Some(half), ..self }
    }

    /// Returns the extensions of struct `inet_diag_req_v2`: bit n - 1 requests attribute n.
    fn extensions(self) -> u8 {
        let bit = |wanted: bool, attribute: u16| if wanted { 1 << (attribute - 1) } else { 0 };
        bit(self.info, INET_DIAG_INFO)
            | bit(self.info, INET_DIAG_CONG)
            | bit(self.memory, INET_DIAG_SKMEMINFO)
    }
}

/// A socket as reported by the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Socket {
    /// State.
    pub state: TcpState,
    /// Its own address; the IPv4 address of an IPv6 socket is reported as IPv4.
    pub local: SocketAddr,
    /// The peer's; port 0 for listeners.
    pub peer: SocketAddr,
    /// Listening: connections that wait to be accepted. Otherwise: bytes received and not read.
    pub receive_queue: u32,
    /// Listening: their maximum (the backlog in force). Otherwise: bytes sent and not acknowledged,
    /// or not sent.
    pub send_queue: u32,
    /// Its user: 0 is root, or no user in `TIME_WAIT`.
    pub uid: u32,
    /// Its inode number, as in `/proc/PID/fd`; 0 when no program has it open.
    pub inode: u32,
    /// Retransmissions since the last acknowledgement.
    pub retransmits: u8,
    /// Whether it takes IPv6 (and perhaps IPv4 too).
    pub is_ipv6: bool,
    /// Memory and drops, if requested.
    pub memory: Option<Memory>,
    /// `TCP_INFO`, if requested; `TIME_WAIT` and `SYN_RECV` have none.
    pub info: Option<TcpInfo>,
    /// The congestion control, if `TCP_INFO` was requested.
    pub congestion_control: Option<CongestionControl>,
}

/// The name of a congestion control: `cubic`, `bbr`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CongestionControl {
    /// `TCP_CA_NAME_MAX` of `include/net/tcp.h`.
    bytes: [u8; 16],
}

impl CongestionControl {
    fn read(value: &[u8]) -> CongestionControl {
        let mut bytes = [0; 16];
        for (to, from) in bytes.iter_mut().zip(value.iter().take_while(|&&byte| byte != 0)) {
            *to = *from;
        }
        CongestionControl { bytes }
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        let length = self.bytes.iter().position(|&byte| byte == 0).unwrap_or(self.bytes.len());
        std::str::from_utf8(self.bytes.get(..length).unwrap_or_default()).unwrap_or("?")
    }
}

impl fmt::Debug for CongestionControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Memory used by a socket (`SK_MEMINFO_*` of `include/uapi/linux/sock_diag.h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Bytes received and not read, including the kernel's overhead.
    pub received_bytes: u32,
    /// Bytes that may be received.
    pub receive_max_bytes: u32,
    /// Bytes queued for sending.
    pub queued_bytes: u32,
    /// Packets dropped for this socket. Listening sockets count SYNs here that they could not
    /// accept. `None` on kernels before 4.7.
    pub drops: Option<u32>,
}

/// Attributes of `include/uapi/linux/inet_diag.h`.
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
const INET_DIAG_SKMEMINFO: u16 = 7;

/// `TCPDIAG_GETSOCK` of `include/uapi/linux/inet_diag.h`. The newer `SOCK_DIAG_BY_FAMILY` walks the
/// kernel's table once for IPv4 and once for IPv6; this one returns both in one walk, which is why
/// `ss` uses it too.
const TCPDIAG_GETSOCK: u16 = 18;

/// Struct `inet_diag_msg`.
const MESSAGE_BYTES: usize = 72;

/// Queries the TCP sockets of the network namespace in which it was opened.
#[derive(Debug)]
pub struct SockDiag {
    netlink: Netlink,
}

impl SockDiag {
    /// Opens it in the calling thread's network namespace.
    ///
    /// # Errors
    /// When the kernel has no `sock_diag`.
    pub fn open() -> io::Result<SockDiag> {
        Ok(SockDiag { netlink: Netlink::open(rustix::net::netlink::SOCK_DIAG)? })
    }

    /// Passes every `wanted` socket to `each`, until it breaks; after a break this must not be used
    /// again. Returns whether the tables were unchanged meanwhile: if not, a few sockets may be
    /// missing or reported twice.
    ///
    /// # Errors
    /// When the kernel has no `sock_diag` for TCP (module `tcp_diag`), or refuses.
    pub fn each(
        &mut self,
        wanted: Wanted,
        mut each: impl FnMut(&Socket) -> ControlFlow<()>,
    ) -> io::Result<bool> {
        self.netlink.dump(TCPDIAG_GETSOCK, &request(wanted), &mut |bytes| match read(bytes) {
            Some(socket) => each(&socket),
            None => ControlFlow::Continue(()),
        })
    }
}

/// Returns struct `inet_diag_req`, with an address of zeros: every socket of either family.
fn request(wanted: Wanted) -> Vec<u8> {
    let mut request = vec![0; 60];
    // The kernel ignores which of AF_INET and AF_INET6 this is.
    request[0] = libc::AF_INET as u8;
    request[3] = wanted.extensions();
    request[52..56].copy_from_slice(&wanted.states.to_ne_bytes());
    if let Some(half) = wanted.half {
        let program = program(half);
        // An attribute: its length, and `INET_DIAG_REQ_BYTECODE`.
        request.extend((4 + program.len() as u16).to_ne_bytes());
        request.extend(1_u16.to_ne_bytes());
        request.extend(program);
    }
    request
}

/// Returns the filter that the kernel runs for each socket (`inet_diag_bc_run` of
/// `net/ipv4/inet_diag.c`). Operations have four bytes: code, offset on a match, offset on a
/// mismatch. A comparison of ports is followed by another four, of which the last two are the port.
/// A socket that ends after the last byte is reported, one that ends four bytes further is not.
fn program(half: Half) -> Vec<u8> {
    // Comparisons of the own port and of the peer's: at least, at most.
    const JUMP: u8 = 1;
    const OWN_MIN: u8 = 2;
    const OWN_MAX: u8 = 3;
    const PEERS_MIN: u8 = 4;
    const PEERS_MAX: u8 = 5;
    let (own, peers, port) = match half {
        Half::Lower => (OWN_MAX, PEERS_MAX, MIDDLE - 1),
        Half::Upper => (OWN_MIN, PEERS_MIN, MIDDLE),
    };
    let operation = |code: u8, yes: u8, no: u16| {
        let [low, high] = no.to_ne_bytes();
        [code, yes, low, high]
    };
    let operations = [
        // 0: if the own port is ephemeral, it decides; else the peer's, at 20.
        operation(OWN_MIN, 8, 20),
        operation(0, 0, EPHEMERAL),
        // 8
        operation(own, 8, 24),
        operation(0, 0, port),
        // 16: to the end.
        operation(JUMP, 4, 12),
        // 20
        operation(peers, 8, 12),
        operation(0, 0, port),
    ];
    operations.concat()
}

/// Parses struct `inet_diag_msg` and the attributes that follow.
fn read(bytes: &[u8]) -> Option<Socket> {
    let family = i32::from(*bytes.first()?);
    let u32_at = |at| array(bytes, at).map(u32::from_ne_bytes);
    let mut socket = Socket {
        state: TcpState::from_kernel(*bytes.get(1)?),
        local: SocketAddr::new(address(family, bytes.get(8..24)?)?, port(bytes, 4)?),
        peer: SocketAddr::new(address(family, bytes.get(24..40)?)?, port(bytes, 6)?),
        receive_queue: u32_at(56)?,
        send_queue: u32_at(60)?,
        uid: u32_at(64)?,
        inode: u32_at(68)?,
        retransmits: *bytes.get(3)?,
        is_ipv6: family == libc::AF_INET6,
        memory: None,
        info: None,
        congestion_control: None,
    };
    for (number, value) in attributes(bytes.get(MESSAGE_BYTES..)?) {
        match number {
            INET_DIAG_INFO => socket.info = Some(parse(value)),
            INET_DIAG_CONG => socket.congestion_control = Some(CongestionControl::read(value)),
            INET_DIAG_SKMEMINFO => socket.memory = Some(memory(value)),
            _ => {}
        }
    }
    Some(socket)
}

fn port(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}

fn address(family: i32, bytes: &[u8]) -> Option<IpAddr> {
    if family == libc::AF_INET6 {
        let octets: [u8; 16] = array(bytes, 0)?;
        return Some(Ipv6Addr::from(octets).to_canonical());
    }
    let octets: [u8; 4] = array(bytes, 0)?;
    Some(Ipv4Addr::from(octets).into())
}

fn memory(value: &[u8]) -> Memory {
    let number = |index: usize| array(value, index * 4).map(u32::from_ne_bytes);
    Memory {
        received_bytes: number(0).unwrap_or(0),
        receive_max_bytes: number(1).unwrap_or(0),
        queued_bytes: number(5).unwrap_or(0),
        drops: number(8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    fn of(port: u16, wanted: Wanted) -> Vec<Socket> {
        let mut found = Vec::new();
        let each = |socket: &Socket| {
            if socket.local.port() == port {
                found.push(*socket);
            }
            ControlFlow::Continue(())
        };
        SockDiag::open().unwrap().each(wanted, each).unwrap();
        found
    }

    #[test]
    fn a_listener_shows_its_backlog_and_queue() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        rustix::net::listen(&listener, 5).unwrap();
        let address = listener.local_addr().unwrap();
        let waiting: Vec<_> = (0..2).map(|_| TcpStream::connect(address).unwrap()).collect();
        let found = of(address.port(), Wanted::listeners());
        let [socket] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!(socket.state, TcpState::Listen);
        assert_eq!((socket.local, socket.peer.port()), (address, 0));
        assert_eq!((socket.receive_queue, socket.send_queue), (2, 5));
        assert_eq!(socket.memory.unwrap().drops, Some(0));
        let fd = std::os::fd::AsRawFd::as_raw_fd(&listener);
        let link = std::fs::read_link(format!("/proc/self/fd/{fd}")).unwrap();
        assert_eq!(link.to_string_lossy(), format!("socket:[{}]", socket.inode));
        drop(waiting);
    }

    #[test]
    fn a_connection_shows_both_ends_and_what_the_kernel_knows() {
        let listener = TcpListener::bind("[::1]:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let server = listener.accept().unwrap().0;
        client.write_all(b"unread").unwrap();
        let local = client.local_addr().unwrap();
        let mut found = of(local.port(), Wanted::others().with_info());
        // The port may be in use at another address, too.
        found.retain(|socket| socket.local == local);
        let [socket] = found.as_slice() else { panic!("{found:?}") };
        assert!(socket.is_ipv6);
        assert_eq!(socket.peer, client.peer_addr().unwrap());
        let (listed, asked) = (socket.info.unwrap(), crate::tcp_info::read(&client).unwrap());
        assert_eq!((listed.state, listed.snd_mss_bytes), (asked.state, asked.snd_mss_bytes));
        assert_eq!(listed.total_retrans, asked.total_retrans);
        let default = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control").unwrap();
        assert_eq!(socket.congestion_control.unwrap().as_str(), default.trim());
        let accepted = of(server.local_addr().unwrap().port(), Wanted::others());
        assert!(accepted.iter().any(|socket| socket.receive_queue == 6), "{accepted:?}");
    }

    #[test]
    fn an_ipv4_client_of_an_ipv6_socket_is_reported_as_ipv4() {
        let listener = TcpListener::bind("[::]:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let _server = listener.accept().unwrap().0;
        let accepted = of(port, Wanted::others().with_info());
        assert!(accepted.iter().any(|s| s.peer == client.local_addr().unwrap()), "{accepted:?}");
    }

    #[test]
    fn two_halves_are_the_whole() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let held: Vec<_> = (0..50)
            .map(|_| (TcpStream::connect(address).unwrap(), listener.accept().unwrap()))
            .collect();
        let ends = |wanted: Wanted| {
            let mut all: Vec<(SocketAddr, SocketAddr)> = of(address.port(), wanted)
                .into_iter()
                .filter(|socket| socket.local == address)
                .map(|socket| (socket.local, socket.peer))
                .collect();
            all.sort();
            all
        };
        let whole = ends(Wanted::established());
        assert_eq!(whole.len(), held.len());
        let [lower, upper] =
            [Half::Lower, Half::Upper].map(|half| ends(Wanted::established().half(half)));
        let own = |(local, peer): &(SocketAddr, SocketAddr)| {
            if local.port() >= EPHEMERAL { local.port() } else { peer.port() }
        };
        assert!(lower.iter().all(|one| own(one) < MIDDLE), "{lower:?}");
        assert!(upper.iter().all(|one| own(one) >= MIDDLE), "{upper:?}");
        let mut both = [lower, upper].concat();
        both.sort();
        assert_eq!(both, whole);
    }

    #[test]
    fn cut_off_messages_are_no_sockets() {
        assert!((0..MESSAGE_BYTES).all(|length| read(&[2; 72][..length]).is_none()));
        let mut whole = [0; MESSAGE_BYTES];
        whole[0] = 2;
        assert!(read(&whole).is_some());
        assert_eq!(memory(&[1; 32]).drops, None, "an older kernel tells no drops");
    }
}
