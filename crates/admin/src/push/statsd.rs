//! Pushes to statsd: one line per sample, as many lines per UDP datagram as fit. Delivery is not
//! confirmed.

use std::fmt::Write as _;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use model::HostPort;
use tokio::net::UdpSocket;

use super::{Moment, Reached, Sample, resolve, within};

/// Maximum size of a datagram that fits an Ethernet frame, with an allowance for tunnels.
const DATAGRAM_MAX_BYTES: usize = 1_432;

/// Datagrams per burst before a pause, so that a receiver with a small buffer keeps up.
const BURST: usize = 16;
const PAUSE: Duration = Duration::from_millis(1);

/// A statsd server.
#[derive(Debug)]
pub(super) struct Statsd {
    target: HostPort,
    reached: Reached,
}

impl Statsd {
    pub(super) fn new(target: HostPort) -> Statsd {
        Statsd { target, reached: Reached::default() }
    }

    /// Sends the datagrams, as far as the time allows.
    pub(super) async fn push(&mut self, datagrams: &[String], allowed: Duration) {
        let sent = within(allowed, send(&self.target, datagrams)).await;
        self.reached.note("statsd", &self.target, &sent);
    }
}

async fn send(target: &HostPort, datagrams: &[String]) -> io::Result<()> {
    let found = resolve(target).await?;
    let to = *found.first().ok_or_else(|| io::Error::other("the name has no address"))?;
    let from: SocketAddr = match to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    // Not connected: without a listener, every second send would fail.
    let socket = UdpSocket::bind(from).await?;
    for burst in datagrams.chunks(BURST) {
        for datagram in burst {
            socket.send_to(datagram.as_bytes(), to).await?;
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}

/// Formats samples as datagrams.
pub(super) fn encode(moment: &Moment<'_>, prefix: &str) -> Vec<String> {
    let mut datagrams = vec![String::new()];
    let mut line = String::new();
    moment.each(prefix, &mut |name, sample| {
        line.clear();
        // Writing to a String cannot fail.
        let _ = match sample {
            // statsd sends zeros for counters without events by itself.
            Sample::Count(0) => return,
            Sample::Count(count) => write!(line, "{name}:{count}|c"),
            // No gauge is negative; statsd would read a sign as a difference.
            Sample::Gauge(value) => write!(line, "{name}:{}|g", super::graphite::number(value)),
        };
        let Some(last) = datagrams.last_mut() else { return };
        if last.is_empty() {
            last.push_str(&line);
        } else if last.len() + 1 + line.len() <= DATAGRAM_MAX_BYTES {
            last.push('\n');
            last.push_str(&line);
        } else {
            datagrams.push(line.clone());
        }
    });
    datagrams
}
