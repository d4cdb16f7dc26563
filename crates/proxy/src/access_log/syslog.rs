//! Sends access lines to a syslog collector, as messages of RFC 5424; on a Unix socket in the form of
//! syslog(3), which is what rsyslog and journald read there.
//!
//! Whatever the collector does, a call ends within a fraction of a second, so that the writer can
//! always be given another target; only the resolution of its name may take as long as the system's
//! resolver does. What cannot be sent yet waits, up to a bound; beyond it the oldest
//! lines are lost and counted. Over TCP, lines that the kernel had already taken when the collector
//! went away are lost without being noticed, as are datagrams.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

use model::{HostPort, Moment, Syslog, SyslogTarget};
use observe::TimestampCache;
use observe::truncate::{TRUNCATED, cut};

use crate::line_batch::Batch;

/// Lines that wait for a collector that is slow or gone.
const WAITING_MAX_BYTES: usize = 8 << 20;

/// The largest message in a datagram. Collectors read at least 2048 bytes, usually 8 KiB (RFC 5426
/// section 3.2).
const DATAGRAM_MAX_BYTES: usize = 8 * 1024;

/// How long connecting may take.
const CONNECT_MAX: Duration = Duration::from_millis(400);
/// How long one call may write.
const WRITE_MAX: Duration = Duration::from_millis(200);
/// How long a connection may take no byte until it is replaced.
const STALLED_MAX: Duration = Duration::from_secs(10);

/// The first delay before the next attempt; it doubles with each failure, up to the second.
const DELAY_MIN: Duration = Duration::from_millis(100);
const DELAY_MAX: Duration = Duration::from_secs(5);

/// How often it is logged that lines are lost.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

/// Severity `info` (RFC 5424 section 6.2.1).
const SEVERITY: u8 = 6;

/// A collector and what waits for it.
pub(super) struct Collector {
    to: SyslogTarget,
    /// What stands before a message's time, and behind it.
    priority: String,
    identity: String,
    timestamps: TimestampCache,
    connection: Option<Connection>,
    waiting: VecDeque<Batch>,
    waiting_bytes: usize,
    /// The messages being sent, each behind its length (RFC 6587 section 3.4.1), and how much of them is.
    frames: Vec<u8>,
    sent: usize,
    /// When the next attempt is due, after a failure, and the delay after the one after.
    due: Option<Moment>,
    delay: Duration,
    /// Lines lost, until they are counted, and until it is logged.
    lost: u64,
    unsaid: u64,
    complaint: Complaint,
}

struct Connection {
    socket: Socket,
    since: Moment,
    /// When it last took a byte.
    moved: Moment,
}

enum Socket {
    Udp(UdpSocket),
    Tcp(TcpStream),
    Unix(UnixDatagram),
}

/// What has been logged about a collector.
#[derive(Default)]
struct Complaint {
    last: Option<Moment>,
    is_failing: bool,
}

impl Collector {
    /// Returns a collector that is not connected yet.
    pub(super) fn new(syslog: &Syslog) -> Collector {
        let priority = syslog.facility.number() * 8 + SEVERITY;
        let (app_name, pid) = (&syslog.app_name, std::process::id());
        let is_local = matches!(syslog.to, SyslogTarget::Unix(_));
        let (priority, identity) = if is_local {
            (format!("<{priority}>"), format!(" {app_name}[{pid}]: "))
        } else {
            (format!("<{priority}>1 "), format!(" {} {app_name} {pid} access - ", host_name()))
        };
        Collector {
            to: syslog.to.clone(),
            priority,
            identity,
            timestamps: TimestampCache::default(),
            connection: None,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            frames: Vec::new(),
            sent: 0,
            due: None,
            delay: DELAY_MIN,
            lost: 0,
            unsaid: 0,
            complaint: Complaint::default(),
        }
    }

    /// Adds a batch, and loses the oldest if there are too many.
    pub(super) fn add(&mut self, mut batch: Batch) {
        // A batch of few lines has room for many.
        batch.lines.shrink_to_fit();
        self.waiting_bytes += batch.bytes();
        self.waiting.push_back(batch);
        while self.waiting_bytes > WAITING_MAX_BYTES && self.waiting.len() > 1 {
            let Some(oldest) = self.waiting.pop_front() else { break };
            self.waiting_bytes -= oldest.bytes();
            self.lose(oldest.count);
        }
    }

    /// Returns how long the next call of [`Collector::send`] can wait, `None`: until there are lines.
    pub(super) fn wait(&self, now: Moment) -> Option<Duration> {
        if self.waiting.is_empty() && self.frames.is_empty() {
            return None;
        }
        Some(self.due.map_or(Duration::ZERO, |due| due.since(now)))
    }

    /// Sends what waits, as far as the collector takes it, unless it is too early after a failure.
    pub(super) fn send(&mut self, now: Moment) {
        if self.due.is_some_and(|due| due > now) {
            return;
        }
        if let Err(error) = self.try_send(now) {
            self.fail(&error);
        }
        self.complain();
    }

    /// Makes a last attempt, and gives up the rest.
    pub(super) fn finish(&mut self) {
        self.due = None;
        self.send(os::clock::now());
        let waiting: u64 = self.waiting.drain(..).map(|batch| batch.count).sum();
        self.lose(waiting + unsent(&self.frames, self.sent));
        (self.waiting_bytes, self.sent) = (0, 0);
        self.frames.clear();
        self.complain();
    }

    /// Returns the number of lines lost since the last call.
    pub(super) fn take_lost(&mut self) -> u64 {
        std::mem::take(&mut self.lost)
    }

    fn lose(&mut self, lines: u64) {
        self.lost += lines;
        self.unsaid += lines;
    }

    fn try_send(&mut self, now: Moment) -> io::Result<()> {
        if self.connection.as_ref().is_some_and(Connection::is_closed) {
            return Err(ErrorKind::ConnectionReset.into());
        }
        if self.connection.is_none() {
            let socket = connect(&self.to)?;
            let now = os::clock::now();
            self.connection = Some(Connection { socket, since: now, moved: now });
        }
        let until = now + CONNECT_MAX + WRITE_MAX;
        loop {
            if self.sent == self.frames.len() && !self.frame() {
                self.due = None;
                return Ok(());
            }
            let Some(connection) = &mut self.connection else { return Ok(()) };
            let now = os::clock::now();
            match connection.socket.write(&self.frames[self.sent..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.sent += count;
                    connection.moved = now;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) =>
                {
                    if now.since(connection.moved) > STALLED_MAX {
                        return Err(ErrorKind::TimedOut.into());
                    }
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
            if now > until {
                return Ok(());
            }
        }
    }

    /// Makes messages of the next batch. Returns false if there is none.
    fn frame(&mut self) -> bool {
        self.frames.clear();
        self.sent = 0;
        let Some(batch) = self.waiting.pop_front() else { return false };
        self.waiting_bytes -= batch.bytes();
        let time = self.timestamps.at(batch.at);
        let local = local_time(time.as_bytes());
        let time = match self.to {
            SyslogTarget::Unix(_) => &local[..],
            SyslogTarget::Udp(_) | SyslogTarget::Tcp(_) => &time.as_bytes()[..],
        };
        let head = self.priority.len() + time.len() + self.identity.len();
        let message_max = match self.to {
            SyslogTarget::Tcp(_) => usize::MAX,
            SyslogTarget::Udp(_) | SyslogTarget::Unix(_) => DATAGRAM_MAX_BYTES,
        };
        for line in batch.lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let (text, end) = if head + line.len() <= message_max {
                (line, &b""[..])
            } else {
                (cut(line, message_max.saturating_sub(head + TRUNCATED.len())), TRUNCATED)
            };
            // Writing to a Vec cannot fail.
            let _ = write!(self.frames, "{} ", head + text.len() + end.len());
            self.frames.extend_from_slice(self.priority.as_bytes());
            self.frames.extend_from_slice(time);
            self.frames.extend_from_slice(self.identity.as_bytes());
            self.frames.extend_from_slice(text);
            self.frames.extend_from_slice(end);
        }
        true
    }

    /// Gives up the connection, and waits before the next.
    fn fail(&mut self, error: &io::Error) {
        // A message of which a part was sent is sent again as a whole: on a new connection, messages
        // start over.
        self.frames.drain(..begin_of_frame(&self.frames, self.sent));
        self.sent = 0;
        let now = os::clock::now();
        // A collector that closes each connection is not connected to without a pause.
        if let Some(connection) = self.connection.take()
            && now.since(connection.since) > DELAY_MAX
        {
            self.delay = DELAY_MIN;
        }
        self.due = Some(now + self.delay);
        self.delay = (self.delay * 2).min(DELAY_MAX);
        if !self.complaint.is_failing && self.complaint.may_be_made(now) {
            self.complaint.is_failing = true;
            tracing::warn!(
                collector = %self.to, %error,
                "cannot send the access log; lines wait, and the oldest are lost if they become too many"
            );
        }
    }

    /// Logs now and then how many lines were lost, and that the collector takes lines again.
    fn complain(&mut self) {
        if self.unsaid > 0 && self.complaint.may_be_made(os::clock::now()) {
            tracing::warn!(
                collector = %self.to, lost = self.unsaid,
                "the collector was too slow or gone; lines of the access log are lost"
            );
            self.unsaid = 0;
        }
        if self.complaint.is_failing && self.due.is_none() && self.connection.is_some() {
            self.complaint.is_failing = false;
            tracing::info!(collector = %self.to, "the access log is sent again");
        }
    }
}

impl Complaint {
    /// Returns whether enough time has passed since the last complaint.
    fn may_be_made(&mut self, now: Moment) -> bool {
        let may = self.last.is_none_or(|last| now.since(last) >= COMPLAIN_EVERY);
        if may {
            self.last = Some(now);
        }
        may
    }
}

impl Connection {
    /// Returns whether the collector has closed it, as far as the kernel knows: the first write to a
    /// closed connection would be lost without an error. What it sends is discarded.
    fn is_closed(&self) -> bool {
        let Socket::Tcp(stream) = &self.socket else { return false };
        if stream.set_nonblocking(true).is_err() {
            return true;
        }
        let mut stream_ref = stream;
        let read = stream_ref.read(&mut [0; 256]);
        let is_open = match read {
            Ok(count) => count > 0,
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        };
        !is_open || stream.set_nonblocking(false).is_err()
    }
}

impl Socket {
    /// Writes some of `frames`: bytes of a stream, or one datagram without its length. Returns how
    /// many bytes of `frames` were written.
    fn write(&mut self, frames: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write(frames),
            Socket::Udp(socket) => {
                let (message, whole) = first_message(frames);
                socket.send(message).map(|_| whole)
            }
            Socket::Unix(socket) => {
                let (message, whole) = first_message(frames);
                socket.send(message).map(|_| whole)
            }
        }
    }
}

fn connect(to: &SyslogTarget) -> io::Result<Socket> {
    Ok(match to {
        SyslogTarget::Udp(target) => {
            let addresses = resolve(target)?;
            let address = addresses.first().copied().ok_or_else(no_address)?;
            let any: std::net::IpAddr = match address.ip() {
                std::net::IpAddr::V4(_) => std::net::Ipv4Addr::UNSPECIFIED.into(),
                std::net::IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
            };
            let socket = UdpSocket::bind((any, 0))?;
            socket.connect(address)?;
            socket.set_write_timeout(Some(WRITE_MAX))?;
            Socket::Udp(socket)
        }
        SyslogTarget::Tcp(target) => {
            let mut connected = Err(no_address());
            for address in resolve(target)? {
                connected = TcpStream::connect_timeout(&address, CONNECT_MAX);
                if connected.is_ok() {
                    break;
                }
            }
            let stream = connected?;
            stream.set_write_timeout(Some(WRITE_MAX))?;
            Socket::Tcp(stream)
        }
        SyslogTarget::Unix(path) => {
            let socket = UnixDatagram::unbound()?;
            socket.connect(path.as_path())?;
            socket.set_write_timeout(Some(WRITE_MAX))?;
            Socket::Unix(socket)
        }
    })
}

fn resolve(target: &HostPort) -> io::Result<Vec<std::net::SocketAddr>> {
    transport::names::addresses_blocking(&target.host, target.port, CONNECT_MAX)
}

fn no_address() -> io::Error {
    io::Error::other("the name has no address")
}

/// Returns the machine's name, or `-` if it is unknown or unfit for a message.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    let is_valid = (1..=255).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_graphic());
    if is_valid { name.to_owned() } else { "-".to_owned() }
}

/// Returns an RFC 3339 time as `Nov 25 18:38:07`, in UTC. What reads the socket uses its own clock.
fn local_time(text: &[u8; 24]) -> [u8; 15] {
    const MONTHS: &[u8; 36] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
    let month = usize::from(text[5] - b'0') * 10 + usize::from(text[6] - b'0');
    let at = month.clamp(1, 12) * 3 - 3;
    let mut local = *b"Jan  1 00:00:00";
    local[..3].copy_from_slice(&MONTHS[at..at + 3]);
    local[4..6].copy_from_slice(&text[8..10]);
    if local[4] == b'0' {
        local[4] = b' ';
    }
    local[7..].copy_from_slice(&text[11..19]);
    local
}

/// Returns the first message of `frames`, which begin with one, and its length with all before it.
fn first_message(frames: &[u8]) -> (&[u8], usize) {
    let digits = frames.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let length = frames[..digits].iter().fold(0, |n, digit| n * 10 + usize::from(digit - b'0'));
    let start = (digits + 1).min(frames.len());
    let end = (start + length).min(frames.len());
    (&frames[start..end], end)
}

/// Returns where the message begins of which `sent` bytes into `frames` is the next to be sent.
fn begin_of_frame(frames: &[u8], sent: usize) -> usize {
    let mut begin = 0;
    while begin < frames.len() {
        let (_, length) = first_message(&frames[begin..]);
        if begin + length > sent {
            break;
        }
        begin += length;
    }
    begin
}

/// Returns how many messages have not been sent completely.
fn unsent(frames: &[u8], sent: usize) -> u64 {
    let mut rest = &frames[begin_of_frame(frames, sent)..];
    let mut count = 0;
    while !rest.is_empty() {
        rest = &rest[first_message(rest).1..];
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests;
